"""A rubric under construction: nodes by id, each id given once."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from mind2web2.rubric.evidence import Evidence
from mind2web2.rubric.node import FIELDS, AggregationStrategy, VerificationNode
from mind2web2.utils.api_misuse import note_ignored_argument, script_api

log = logging.getLogger(__name__)

_LEAF_STATUSES = ("passed", "failed", "skipped", "initialized")
_NODE_FIELDS = frozenset(FIELDS)
_BY_SCRIPT = "checked by the script without a judge"
# Reading one of these never runs a script's own code.
_SHOWN_TYPES = (str, int, float, type(None), list, tuple, dict, set)
_MOST_CHARS_SHOWN = 80


@script_api
class Rubric:
    """A tree that an eval script adds nodes to, and looks for them in."""

    def __init__(self) -> None:
        self.root: VerificationNode | None = None
        self.logger: logging.Logger = log
        self._last_suffix: dict[str, int] = {}

    def add_parallel(
        self, id: str, desc: str, parent: VerificationNode | None = None, **kwargs: Any
    ) -> VerificationNode:
        """Add an inner node whose non-critical children are averaged."""
        return self._add(id, desc, parent, {**kwargs, "strategy": AggregationStrategy.PARALLEL})

    def add_sequential(
        self, id: str, desc: str, parent: VerificationNode | None = None, **kwargs: Any
    ) -> VerificationNode:
        """Add an inner node whose children count up to the first shortfall."""
        return self._add(id, desc, parent, {**kwargs, "strategy": AggregationStrategy.SEQUENTIAL})

    def add_leaf(
        self,
        id: str,
        desc: str,
        parent: VerificationNode | None = None,
        critical: bool = False,
        score: float = 0.0,
        status: str = "initialized",
        **kwargs: Any,
    ) -> VerificationNode:
        """Add a leaf to be verified.

        Raises:
            ValueError: a score other than 0.0 and 1.0, an unknown status, or non-critical under a
                critical parent.
        """
        if score not in (0.0, 1.0):
            raise ValueError(f"leaf '{id}': score must be 0.0 or 1.0, not {score!r}")
        if status not in _LEAF_STATUSES:
            raise ValueError(
                f"leaf '{id}': status must be one of {', '.join(_LEAF_STATUSES)}, not {status!r}"
            )
        given = {**kwargs, "critical": critical, "score": score, "status": status}
        return self._add(id, desc, parent, given)

    def add_custom_node(
        self,
        result: Any,
        id: str,
        desc: str,
        parent: VerificationNode | None = None,
        critical: bool = True,
        **kwargs: Any,
    ) -> VerificationNode:
        """Add a leaf that the script has decided: passed if ``result`` is truthy, else failed."""
        node = self.add_leaf(id, desc, parent, critical=critical, **kwargs)
        passed = bool(result)
        evidence = Evidence(decided_by="script", reason=f"{_BY_SCRIPT}: {_condition(result, passed)}")
        node.decide(float(passed), "passed" if passed else "failed", evidence)
        return node

    def add_existence_node(self, result: Any, id: str, desc: str, **kwargs: Any) -> VerificationNode:
        """Add a leaf that says whether something was given; the same as ``add_custom_node``."""
        return self.add_custom_node(result, id, desc, **kwargs)

    def _add(
        self, node_id: str, desc: str, parent: VerificationNode | None, given: dict[str, Any]
    ) -> VerificationNode:
        above = parent if parent is not None else self._started_root()
        known = {name: value for name, value in given.items() if name in _NODE_FIELDS}
        self._warn_of_unknown(f"node '{node_id}'", given.keys() - known.keys())
        node = VerificationNode(id=self._free_id(str(node_id)), desc=str(desc), **known)
        above.add_node(node)
        return node

    def _free_id(self, wanted: str) -> str:
        if self.check_id_available(wanted):
            return wanted
        # From the last one given, which a refused node may have left free.
        suffix = self._last_suffix.get(wanted, 1)
        while not self.check_id_available(f"{wanted}_{suffix}"):
            suffix += 1
        self._last_suffix[wanted] = suffix
        return f"{wanted}_{suffix}"

    # Looking things up

    def find_node(self, id: str) -> VerificationNode | None:
        """Return the node with this id, or ``None``."""
        return None if self.root is None else self.root.find(id)

    def get_all_node_ids(self) -> list[str]:
        """Return all ids, sorted."""
        return [] if self.root is None else self.root.node_ids()

    def check_id_available(self, id: str) -> bool:
        """Tell whether no node has this id yet."""
        return self.find_node(id) is None

    def get_node_count(self) -> int:
        """Return the number of nodes, the root included."""
        return 0 if self.root is None else sum(1 for _ in self.root.walk())

    def _started_root(self) -> VerificationNode:
        if self.root is None:
            raise ValueError("the evaluation has no rubric yet: call initialize(...) first")
        return self.root

    def _warn_of_unknown(self, where: str, names: Iterable[str]) -> None:
        for name in sorted(names):
            note_ignored_argument(name)
            self.logger.warning("unknown argument ignored where=%s name=%s", where, name)


def _condition(result: Any, passed: bool) -> str:
    """Say whether a script's condition was met, with its value where that says more than yes or no."""
    met = "met" if passed else "not met"
    if type(result) not in _SHOWN_TYPES or (passed and not isinstance(result, str | int | float)):
        return met
    shown = repr(result)
    cut = shown if len(shown) <= _MOST_CHARS_SHOWN else f"{shown[: _MOST_CHARS_SHOWN - 3]}..."
    return f"{met} (value: {cut})"
