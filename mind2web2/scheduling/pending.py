"""Verdicts that are under way: on which leaves, and what a verification depends on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pydantic import BaseModel

from mind2web2.errors import JudgeError
from mind2web2.rubric.aggregation import Outcome, Status
from mind2web2.rubric.node import TreeWatch, VerificationNode
from mind2web2.rubric.preconditions import blocking_leaf, possible_blocks

_BLOCKING = ("failed", "skipped")


@dataclass(eq=False)
class PendingVerdict:
    """A deferred verification.

    Args:
        leaf: where the verdict will stand, if anywhere.
        fields: of the leaf, from before.
        status: the verdict; ``None`` while there is none, and after a failure.
    """

    leaf: VerificationNode | None
    fields: dict[str, Any] = field(default_factory=dict)
    status: Status | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    async def outcome(self) -> Status:
        """Return the verdict once it is there.

        Raises:
            JudgeError: there will be none.
        """
        await self.finished.wait()
        if self.status is None:
            name = None if self.leaf is None else self.leaf.id
            raise JudgeError(f"no verdict on '{name}', which was to come first")
        return self.status


@dataclass(frozen=True, slots=True)
class NotedPrerequisites:
    """What may block a verification, as it stood when the script asked, in the order of ``blocking_leaf``.

    Args:
        decided: why it is blocked in any case, unless one of ``pending`` blocks as well.
        pending: looked at first.
    """

    decided: str | None
    pending: tuple[PendingVerdict, ...] = ()

    async def skip_reason(self) -> str | None:
        """Return why the verification is skipped, ``None`` if it is not."""
        for each in self.pending:
            status = await each.outcome()
            if status in _BLOCKING and each.leaf is not None:
                return _reason(each.leaf, status)
        return self.decided


class PendingVerdicts:
    """Which leaves of any tree await a verdict, found from above in as many steps as the tree is deep."""

    def __init__(self) -> None:
        self._verdicts: dict[int, PendingVerdict] = {}
        self._below: dict[int, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._verdicts)

    def holds(self, leaf: VerificationNode) -> bool:
        """Tell whether this leaf awaits its verdict."""
        return id(leaf) in self._verdicts

    def below(self, parent: VerificationNode) -> list[int]:
        """Return the positions of children with a pending leaf here or below."""
        return sorted(self._below.get(id(parent), ()))

    def verdict_on(self, leaf: VerificationNode | None) -> PendingVerdict | None:
        """Return what is under way about this leaf."""
        return self._verdicts.get(id(leaf))

    def add(self, leaf: VerificationNode, verdict: PendingVerdict) -> None:
        """Note a leaf, and on the way up where it is to be found."""
        self._verdicts[id(leaf)] = verdict
        node = leaf
        while node.parent is not None:
            known = self._below.setdefault(id(node.parent), set())
            was_empty = not known
            known.add(node.position)
            if not was_empty:
                return
            node = node.parent

    def remove(self, leaf: VerificationNode) -> None:
        """Forget a leaf."""
        del self._verdicts[id(leaf)]
        node = leaf
        while node.parent is not None:
            known = self._below[id(node.parent)]
            known.discard(node.position)
            if known:
                return
            del self._below[id(node.parent)]
            node = node.parent

    def prerequisites(
        self, node: VerificationNode | None, extra: Sequence[VerificationNode]
    ) -> NotedPrerequisites:
        """Return what blocks a verification or may come to, as it stands now."""
        if not self._verdicts:
            return decided_prerequisites(node, extra)
        pending: list[PendingVerdict] = []
        for leaf in possible_blocks(node, extra, self):
            verdict = self.verdict_on(leaf)
            if verdict is None:
                return NotedPrerequisites(_reason(leaf, leaf.verdict.status), tuple(pending))
            pending.append(verdict)
        return NotedPrerequisites(None, tuple(pending))


def decided_prerequisites(
    node: VerificationNode | None, extra: Sequence[VerificationNode]
) -> NotedPrerequisites:
    """Return what blocks a verification where no verdict is under way."""
    leaf = blocking_leaf(node, extra)
    return NotedPrerequisites(None if leaf is None else _reason(leaf, leaf.verdict.status))


def _reason(leaf: VerificationNode, status: str) -> str:
    return f"not judged, because '{leaf.id}' {'failed' if status == 'failed' else 'was skipped'}"


_VERDICT_FIELDS = ("score", "status", "evidence")
# What holds the fields of any model: pydantic declares it as a slot.
_fields_slot = vars(BaseModel)["__dict__"]


def _fields_of(leaf: VerificationNode) -> dict[str, Any]:
    leaf._refuse("the fields of")


def _set_fields(leaf: VerificationNode, fields: dict[str, Any]) -> None:
    _fields_slot.__set__(leaf, fields)


class _AwaitingLeaf(VerificationNode):
    """What a leaf is meanwhile: without the verdict's fields, and with none of the ways around that."""

    # Here ``vars``, serialisation from outside and comparisons look for the fields.
    __dict__ = property(_fields_of, _set_fields)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; the description has nothing to do with the verdict."""
        if name == "desc" and isinstance(value, str):
            _fields_slot.__get__(self)[name] = value
        else:
            super().__setattr__(name, value)

    @property
    def awaits_verdict(self) -> bool:
        """Tell that a verdict is under way."""
        return True

    @property
    def verdict(self) -> Outcome:
        """Refuse: there is none."""
        self._refuse("the verdict on")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Refuse a representation."""
        self._refuse("a representation of")

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same node; two of them differ in their places in any case."""
        return self is other

    __hash__ = None  # type: ignore[assignment]  # as any node


class _VerdictField:
    """Stands behind a field that is left out."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, leaf: VerificationNode | None, _owner: type) -> NoReturn:
        if leaf is None:
            raise AttributeError(f"a node's class has no attribute '{self._name}'")
        leaf._refuse(f"'{self._name}' of")


for _name in _VERDICT_FIELDS:
    # Afterwards, as pydantic would take it for the field's default.
    setattr(_AwaitingLeaf, _name, _VerdictField(_name))
_AwaitingLeaf.__name__ = VerificationNode.__name__
_AwaitingLeaf.__qualname__ = VerificationNode.__qualname__


def await_verdict(leaf: VerificationNode, watch: TreeWatch) -> dict[str, Any]:
    """Leave the verdict's fields out until ``take_verdict``, so that nobody reads what is not there yet.

    Returns:
        What ``take_verdict`` needs.
    """
    tree = leaf._tree
    tree.watch = watch
    tree.under_way += 1
    fields = leaf.__dict__
    # Another mapping, as a verdict brings one: who holds on to the former sees what stood there.
    _set_fields(leaf, {name: fields[name] for name in fields if name not in _VERDICT_FIELDS})
    object.__setattr__(leaf, "__class__", _AwaitingLeaf)
    return fields


def take_verdict(leaf: VerificationNode, fields: dict[str, Any]) -> None:
    """Be as before ``await_verdict``, apart from a new description."""
    desc = leaf.desc
    object.__setattr__(leaf, "__class__", VerificationNode)
    _set_fields(leaf, {**fields, "desc": desc})
    tree = leaf._tree
    tree.under_way -= 1
    if not tree.under_way:
        tree.watch = None
