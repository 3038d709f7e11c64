"""A rubric tree under construction, and as it is written into a result (eval-scripts.md, "Summary")."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from pydantic_core import to_jsonable_python

from mind2web2.rubric.node import FIELDS, AggregationStrategy, VerificationNode
from mind2web2.rubric.verdicts import Evidence, Outcome, implied_verdict
from mind2web2.utils.api_misuse import note_ignored_argument, script_api

_UNDECIDED = Outcome(0.0, "initialized")


def tree_as_dict(root: VerificationNode) -> dict[str, Any]:
    """Return the tree with scores, statuses and evidence as plain data, however deep it is."""
    written: dict[int, dict[str, Any]] = {}
    for node in root.walk():
        written[id(node)] = _node_as_dict(node)
        if node is not root:
            written[id(node.parent)]["children"].append(written[id(node)])
    return written[id(root)]


def tree_statistics(root: VerificationNode) -> dict[str, int]:
    """Return the edges of the longest branch, and the number of nodes and leaves."""
    levels: dict[int, int] = {}
    leaf_count = 0
    for node in root.walk():
        levels[id(node)] = 0 if node is root else levels[id(node.parent)] + 1
        leaf_count += not node.children
    return {"depth": max(levels.values()), "total_nodes": len(levels), "leaf_nodes": leaf_count}


def _node_as_dict(node: VerificationNode) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": node.id,
        "desc": node.desc,
        "critical": node.critical,
        "score": node.score,
        "status": node.status,
        "strategy": node.strategy.value,
        "children": [],
    }
    if not node.children and node.verdict != (node.score, node.status):
        # Explains why a leaf that passed shows as skipped.
        fields["superseded"] = {
            "score": node.verdict.score,
            "status": node.verdict.status,
            "reason": "behind the first shortfall of a sequence",
        }
    if not node.children:
        fields.update(_leaf_fields(node))
    elif node.evidence is not None:
        fields["evidence"] = node.evidence.model_dump(mode="json", exclude_defaults=True)
    return fields


def _leaf_fields(leaf: VerificationNode) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    evidence = leaf.evidence
    if evidence is None and leaf.verdict != _UNDECIDED:
        evidence = Evidence(decided_by="script", reason="the script has set it")
    implied = None if evidence is None else implied_verdict(evidence)
    if implied not in (None, leaf.verdict):
        # Explains why a leaf differs from its votes.
        fields["overruled"] = {**implied._asdict(), "reason": "the script has set it otherwise since"}
    if leaf.blocked_as is not None and not leaf.verdict.blocks:
        # Explains why leaves that depend on it were skipped.
        reason = "it was decided otherwise since"
        fields["earlier"] = {"score": 0.0, "status": leaf.blocked_as, "reason": reason}
    if evidence is not None:
        fields["evidence"] = evidence.model_dump(mode="json", exclude_defaults=True)
    return fields


def plain_info(info: Any) -> Any:
    """Return a script's own data as JSON can hold it: dates, URLs and templates as text and objects."""
    plain = to_jsonable_python(info, fallback=str, bytes_mode="base64")
    # JSON has no infinity; pydantic keeps it as a number here.
    return json.loads(json.dumps(plain), parse_constant=str)


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
