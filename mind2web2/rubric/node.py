"""The rubric tree: its nodes, their links and how a score comes about (scoring.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import EnumType, StrEnum
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from mind2web2.rubric.aggregation import Outcome, Status, aggregate
from mind2web2.rubric.evidence import Evidence
from mind2web2.utils.api_misuse import checked_methods, report_missing

STATUSES: tuple[str, ...] = get_args(Status)
_SCORED_FIELDS = frozenset({"score", "status", "critical", "strategy"})
_VERDICT_FIELDS = ("score", "status", "evidence")


class _StrategyNames(EnumType):
    """Reports strategies that do not exist."""

    def __getattr__(cls, name: str) -> Any:
        report_missing(cls, name)
        raise AttributeError(f"there is no strategy {name!r}")


class AggregationStrategy(StrEnum, metaclass=_StrategyNames):
    """How the children of a node make up its score."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class TreeWatch(Protocol):
    """Who has verdicts of a tree under way; told what might come out otherwise once they are there."""

    def refuse(self, what: str) -> NoReturn:
        """Raise, since ``what`` needs the verdicts that are under way."""

    def note_change(self) -> None:
        """Take note of a change of the tree; raises where it comes from elsewhere than the program itself."""


class _Tree:
    """What the nodes of one tree share.

    Args:
        nodes: every node by its id; of equal ids the first one added.
        version: grows with every change that may alter a score.
        watch: set while verdicts are under way.
        under_way: how many are.
    """

    __slots__ = ("nodes", "under_way", "version", "watch")

    def __init__(self) -> None:
        self.nodes: dict[str, VerificationNode] = {}
        self.version = 0
        self.watch: TreeWatch | None = None
        self.under_way = 0


class Positions:
    """A set of children's positions that knows its smallest member."""

    __slots__ = ("_first", "_members")

    def __init__(self) -> None:
        self._members: set[int] = set()
        self._first: int | None = None

    def __bool__(self) -> bool:
        return bool(self._members)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._members))

    def put(self, position: int, belongs: bool) -> None:
        """Make the position a member or not."""
        if belongs:
            self._members.add(position)
            self._first = position if self._first is None else min(self._first, position)
        elif position in self._members:
            self._members.remove(position)
            if position == self._first:
                self._first = min(self._members, default=None)

    def first(self, besides: int | None = None) -> int | None:
        """Return the smallest member other than ``besides``."""
        if self._first is None or self._first != besides:
            return self._first
        return min((position for position in self._members if position != besides), default=None)


class _Children(list["VerificationNode"]):
    """A node's children: a list to readers; whatever is added goes through ``add_node``."""

    __slots__ = ("_owner",)

    def __init__(self, owner: VerificationNode) -> None:
        super().__init__()
        self._owner = owner

    def append(self, child: VerificationNode) -> None:
        """Add a child to the owner."""
        self._owner.add_node(child)

    def extend(self, children: Iterable[VerificationNode]) -> None:
        """Add children to the owner."""
        for child in list(children):
            self._owner.add_node(child)

    def __iadd__(self, children: Iterable[VerificationNode]) -> _Children:  # type: ignore[override,misc]
        # list promises Self here; a subclass of this private class is not foreseen.
        self.extend(children)
        return self

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError(f"children of '{self._owner.id}' can only be added, with add_node")

    insert = remove = pop = clear = sort = reverse = __setitem__ = __delitem__ = __imul__ = _refuse


@checked_methods
class VerificationNode(BaseModel):
    """A node of a rubric tree; a node without children is a leaf.

    The tree keeps its own links: ``parent``, the index behind ``find`` and, per node, which children
    have a failed or skipped leaf below them, so that neither a lookup nor the question whether a
    verification is to be skipped ever searches the tree.
    """

    model_config = ConfigDict(validate_assignment=True)

    id: str
    desc: str
    critical: bool = False
    score: float = Field(default=0.0, ge=0.0, le=1.0)
    status: Status = "initialized"
    strategy: AggregationStrategy = AggregationStrategy.PARALLEL
    children: list[VerificationNode] = Field(default_factory=list)
    evidence: Evidence | None = None

    _parent: VerificationNode | None = PrivateAttr(default=None)
    _position: int = PrivateAttr(default=0)
    _tree: _Tree = PrivateAttr(default_factory=_Tree)
    # What was decided, as opposed to what scoring wrote over it: a leaf behind the end of a sequence
    # shows "skipped", yet keeps its own verdict for the next time the tree is scored.
    _verdict: Outcome = PrivateAttr(default=Outcome(0.0, "initialized"))
    _blocks: bool = PrivateAttr(default=False)
    # That others were skipped for it stays true when it is verified again.
    _blocked_as: Status | None = PrivateAttr(default=None)
    _blocking_children: Positions = PrivateAttr(default_factory=Positions)
    _blocking_critical_children: Positions = PrivateAttr(default_factory=Positions)
    _remembered: tuple[int, float] | None = PrivateAttr(default=None)

    def model_post_init(self, _context: object) -> None:
        """Take over the children that were handed in."""
        given = self.children
        self.__dict__["children"] = _Children(self)
        self._verdict = Outcome(self.score, self.status)
        self._blocks = self._verdict.blocks
        self._blocked_as = self.status if self._blocks else None
        self._tree.nodes[self.id] = self
        for child in given:
            self.add_node(child)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a private attribute."""
            try:
                return object.__getattribute__(self, "__pydantic_private__")[name]
            except (AttributeError, KeyError, TypeError):
                report_missing(self, name)
            return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; what bears on scores makes remembered ones stale."""
        if name in ("children", "id") and "_tree" in (self.__pydantic_private__ or {}):
            if value is self.__dict__[name]:  # "node.children += more" ends in assigning what is there
                return
            raise TypeError(f"'{name}' of node '{self.id}' cannot be replaced")
        if name not in type(self).__pydantic_fields__ and not name.startswith("_"):
            report_missing(self, name)
        if name in _VERDICT_FIELDS:
            self._check_decided(f"'{name}' of")
        if name == "critical":
            self._check_critical(bool(value))
        if name in _SCORED_FIELDS and self._tree.watch is not None:
            self._tree.watch.note_change()
        super().__setattr__(name, value)
        if name in _SCORED_FIELDS:
            self._after_change(name)

    def _check_critical(self, critical: bool) -> None:
        if not critical and self._parent is not None and self._parent.critical:
            raise ValueError(
                f"non-critical node '{self.id}' cannot go under critical node '{self._parent.id}'"
            )
        for child in self.children if critical else ():
            if not child.critical:
                raise ValueError(f"non-critical node '{child.id}' cannot go under critical node '{self.id}'")

    def _after_change(self, name: str) -> None:
        self._tree.version += 1
        if name in ("score", "status"):
            # The other half stays as it was decided, whatever scoring shows in its place.
            self._verdict = self._verdict._replace(**{name: getattr(self, name)})
            if self._verdict.blocks:
                self._blocked_as = self._verdict.status
            self._update_blocking()
        elif name == "critical" and self._parent is not None:
            self._parent._note_child(self)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> VerificationNode:
        """Return a tree of its own, from this node down."""
        self.check_settled("a copy of")
        twins: dict[int, VerificationNode] = {}
        for node in self.walk():
            score, status = node._verdict
            given = {name: getattr(node, name) for name in ("id", "desc", "critical", "strategy", "evidence")}
            twin = twins[id(node)] = VerificationNode(**given, score=score, status=status)
            if node is not self:
                twins[id(node._parent)].add_node(twin)
            twin._write(Outcome(node.score, node.status))
            twin._blocked_as = node._blocked_as
        return twins[id(self)]

    # Links

    @property
    def parent(self) -> VerificationNode | None:
        """Return the node above, ``None`` for a root."""
        return self._parent

    @property
    def position(self) -> int:
        """Return the index among the parent's children."""
        return self._position

    @property
    def claim(self) -> str:
        """Return the description; published scripts read it under this name."""
        return self.desc

    def find(self, node_id: str) -> VerificationNode | None:
        """Return the node with this id anywhere in the tree that this node belongs to."""
        return self._tree.nodes.get(node_id)

    def node_ids(self) -> list[str]:
        """Return the distinct ids of the whole tree, sorted."""
        return sorted(self._tree.nodes)

    def walk(self) -> Iterator[VerificationNode]:
        """Yield this node and all below it, each before its children, in rubric order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def add_node(self, child: VerificationNode) -> None:
        """Append a child.

        Raises:
            ValueError: the node itself, one of its ancestors, a child of another node, or a
                non-critical child under a critical node (scoring.md).
        """
        if not isinstance(child, VerificationNode):
            raise TypeError(f"a child of '{self.id}' must be a VerificationNode, not {type(child).__name__}")
        if child._parent is self:
            return
        self._check_child(child)
        self._check_decided("a child of")
        child.check_settled("a new place for")
        if self._tree.watch is not None:
            self._tree.watch.note_change()
        child._parent = self
        child._position = len(self.children)
        list.append(self.children, child)
        for node in child.walk():
            node._tree = self._tree
            # Versions of different trees do not compare.
            node._remembered = None
            self._tree.nodes.setdefault(node.id, node)
        self._tree.version += 1
        if child._blocks:
            self._note_child(child)
        self._update_blocking()

    def _check_child(self, child: VerificationNode) -> None:
        if child is self:
            raise ValueError(f"node '{self.id}' cannot be its own child")
        if child._parent is not None:
            raise ValueError(f"node '{child.id}' already belongs to '{child._parent.id}', not to '{self.id}'")
        if child._tree is self._tree:
            raise ValueError(f"node '{child.id}' is above '{self.id}' and cannot be its child")
        if self.critical and not child.critical:
            raise ValueError(f"non-critical node '{child.id}' cannot go under critical node '{self.id}'")

    # What blocks others

    @property
    def has_blocking_leaf(self) -> bool:
        """Tell whether a leaf here or below is decided as failed or skipped."""
        return self._blocks

    @property
    def blocking_children(self) -> Positions:
        """Return the positions of children with a failed or skipped leaf here or below."""
        return self._blocking_children

    @property
    def blocking_critical_children(self) -> Positions:
        """Return the critical ones among ``blocking_children``."""
        return self._blocking_critical_children

    @property
    def verdict(self) -> Outcome:
        """Return what was decided about this leaf, whatever scoring wrote over it."""
        return self._verdict

    @property
    def blocked_as(self) -> Status | None:
        """Return how this leaf was last decided so that it blocks others, ``None`` if it never was."""
        self._check_decided("'blocked_as' of")
        return self._blocked_as

    def _update_blocking(self) -> None:
        """Carry a change of what blocks from here towards the root, as far as it reaches."""
        node: VerificationNode | None = self
        while node is not None:
            blocks = bool(node._blocking_children) if node.children else node._verdict.blocks
            if blocks == node._blocks:
                return
            node._blocks = blocks
            if node._parent is not None:
                node._parent._note_child(node)
            node = node._parent

    def _note_child(self, child: VerificationNode) -> None:
        self._blocking_children.put(child._position, child._blocks)
        self._blocking_critical_children.put(child._position, child._blocks and child.critical)

    # Verdicts under way

    @property
    def awaits_verdict(self) -> bool:
        """Tell whether a verdict on this leaf is under way (awaiting_leaf.py)."""
        return False

    def _check_decided(self, what: str) -> None:
        if self.awaits_verdict:
            self._refuse(what)

    def check_settled(self, what: str) -> None:
        """Give the attempt up if verdicts on this tree are pending, which ``what`` depends on."""
        if self._tree.watch is not None:
            self._refuse(what)

    def _refuse(self, what: str) -> NoReturn:
        if self._tree.watch is None:
            raise AttributeError(f"{what} node '{self.id}' is not there")
        self._tree.watch.refuse(f"{what} node '{self.id}'")

    def __getstate__(self) -> dict[Any, Any]:
        """Return what a pickle holds."""
        self.check_settled("a pickle of")
        return super().__getstate__()

    def __copy__(self) -> Self:
        """Return a shallow copy."""
        self.check_settled("a copy of")
        return super().__copy__()

    def __iter__(self) -> Any:
        """Yield names and values of the fields, as pydantic does."""
        self.check_settled("the fields of")
        return super().__iter__()

    def model_dump(self, **keywords: Any) -> dict[str, Any]:
        """Return the fields as plain data."""
        self.check_settled("a dump of")
        return super().model_dump(**keywords)

    def model_dump_json(self, **keywords: Any) -> str:
        """Return the fields as JSON."""
        self.check_settled("a dump of")
        return super().model_dump_json(**keywords)

    # Scores

    def decide(self, score: float, status: Status, evidence: Evidence | None = None) -> None:
        """Write a verdict with what led to it."""
        self.score = score
        self.status = status
        self.evidence = evidence

    def compute_score(self, mutate: bool = False) -> float:
        """Return the score by the rules of scoring.md; with ``mutate``, write scores and statuses back."""
        self.check_settled("the score of")
        outcomes = aggregate(self)
        if mutate:
            for node in self.walk():
                node._write(outcomes[id(node)])
            self._remembered = (self._tree.version, outcomes[id(self)].score)
        return outcomes[id(self)].score

    @property
    def aggregated_score(self) -> float:
        """Return the score written back once and remembered until something changes."""
        self.check_settled("the score of")
        if self._remembered is not None and self._remembered[0] == self._tree.version:
            return self._remembered[1]
        return self.compute_score(mutate=True)

    def _write(self, outcome: Outcome) -> None:
        # Past __setattr__: a derived value is no new verdict.
        self.__dict__["score"] = outcome.score
        self.__dict__["status"] = outcome.status
