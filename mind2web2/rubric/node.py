"""The rubric tree: its nodes, their links and how a score comes about (scoring.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from enum import EnumType, StrEnum
from typing import Any, get_args

from pydantic_core import CoreSchema, SchemaSerializer, core_schema

from mind2web2.rubric.verdicts import Evidence, Outcome, Status, Undecided, aggregate
from mind2web2.utils.api_misuse import report_missing, script_api
from mind2web2.utils.private_attributes import check_private_attributes

PlainFields = dict[str, Any]
STATUSES: tuple[str, ...] = get_args(Status)
FIELDS = (
    "id",
    "desc",
    "critical",
    "score",
    "status",
    "strategy",
    "children",
    "evidence",
)


class _StrategyNames(EnumType):
    """Reports strategies that do not exist."""

    def __getattr__(cls, name: str) -> Any:
        report_missing(cls, name)
        raise AttributeError(f"there is no strategy {name!r}")


class AggregationStrategy(StrEnum, metaclass=_StrategyNames):
    """How the children of a node make up its score."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class _Tree:
    """State that the nodes of one tree share.

    Args:
        nodes: every node by its id; of equal ids the first one added.
        version: grows with every change that may alter a score.
    """

    __slots__ = ("nodes", "version")

    def __init__(self) -> None:
        self.nodes: dict[str, VerificationNode] = {}
        self.version = 0


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


@script_api
class VerificationNode:
    """A node of a rubric tree; a node without children is a leaf.

    The tree keeps its own links: ``parent``, the index behind ``find`` and, per node, which
    children have a failed, skipped or undecided leaf below them, so that neither a lookup nor the
    question whether a verification is to be skipped ever searches the tree.
    """

    __slots__ = (
        *(f"_{name}" for name in FIELDS),
        "_parent",
        "_position",
        "_members",
        "_tree",
        "_verdict",
        "_blocks",
        "_blocked_as",
        "_remembered",
        "_blocking_children",
        "_blocking_critical_children",
        "_undecided",
        "_tags",
        "__weakref__",
    )
    # Sets of nodes would have another order in each run.
    __hash__ = None  # type: ignore[assignment]
    __pydantic_serializer__: SchemaSerializer

    def __init__(
        self,
        *,
        id: str,
        desc: str,
        critical: bool = False,
        score: float = 0.0,
        status: Status = "initialized",
        strategy: AggregationStrategy | str = AggregationStrategy.PARALLEL,
        children: Iterable[VerificationNode] = (),
        evidence: Evidence | None = None,
        tags: Iterable[str] | str = (),
    ) -> None:
        self._id = self._text("id", id)
        self._desc = self._text("desc", desc)
        self._critical = self._flag(critical)
        self._strategy = AggregationStrategy(strategy)
        self._evidence = _evidence(evidence)
        self._tags = self._tag_names(tags)
        self._parent: VerificationNode | None = None
        self._position = 0
        self._children: list[VerificationNode] = _Children(self)
        # By position; a script may take nodes out of the list above.
        self._members: list[VerificationNode] = []
        # The verdict, as opposed to the score and status that scoring wrote over it: a leaf behind
        # the end of a sequence shows "skipped", yet keeps its own verdict for the next time the
        # tree is scored.
        verdict = self._verdict = self._outcome(score, status)
        self._score, self._status = verdict
        self._blocks = verdict.blocks
        # That others were skipped for it stays true when it is verified again.
        self._blocked_as = verdict.status if verdict.blocks else None
        # Positions in order, as the first one decides.
        self._blocking_children: list[int] = []
        self._blocking_critical_children: list[int] = []
        self._undecided: Undecided | None = None
        self._remembered: tuple[int, float] | None = None
        self._tree = _Tree()
        self._tree.nodes[self._id] = self
        for child in children:
            self.add_node(child)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; report a name that nodes do not have."""
        try:
            object.__setattr__(self, name, value)
        except AttributeError:
            report_missing(self, name, is_set=True)
            raise

    # Fields

    @property
    def id(self) -> str:
        """Return the name within the tree."""
        return self._id

    @property
    def desc(self) -> str:
        """Return the description."""
        return self._desc

    @desc.setter
    def desc(self, desc: str) -> None:
        self._desc = self._text("desc", desc)

    @property
    def claim(self) -> str:
        """Return the description; published scripts read it under this name."""
        return self._desc

    @property
    def children(self) -> list[VerificationNode]:
        """Return the nodes right below, to which more can be appended."""
        return self._children

    @children.setter
    def children(self, children: list[VerificationNode]) -> None:
        if (
            children is not self._children
        ):  # "node.children += more" ends in assigning the same list
            raise TypeError(f"'children' of node '{self._id}' cannot be replaced")

    @property
    def critical(self) -> bool:
        """Tell whether it is a gate for its parent."""
        return self._critical

    @critical.setter
    def critical(self, critical: bool) -> None:
        critical = self._flag(critical)
        if not critical and self._parent is not None and self._parent._critical:
            raise _not_critical(self, self._parent)
        for child in self._children if critical else ():
            if not child._critical:
                raise _not_critical(child, self)
        self._note_change()
        self._critical = critical
        if self._parent is not None:
            self._parent._note_child(self)

    @property
    def strategy(self) -> AggregationStrategy:
        """Return how the children make up the score."""
        return self._strategy

    @strategy.setter
    def strategy(self, strategy: AggregationStrategy | str) -> None:
        strategy = AggregationStrategy(strategy)
        self._note_change()
        self._strategy = strategy

    @property
    def score(self) -> float:
        """Return the score: a leaf's verdict, or the result of the last scoring."""
        return self._score

    @score.setter
    def score(self, score: float) -> None:
        # The other half stays as it was decided, whatever scoring shows in its place.
        verdict = self._outcome(score, self._verdict.status)
        self._note_change()
        self._score = verdict.score
        self._set_verdict(verdict)

    @property
    def status(self) -> Status:
        """Return the status that goes with the score."""
        return self._status

    @status.setter
    def status(self, status: Status) -> None:
        verdict = self._outcome(self._verdict.score, status)
        self._note_change()
        self._status = status
        self._set_verdict(verdict)

    @property
    def evidence(self) -> Evidence | None:
        """Return the record of how the verdict was reached."""
        return self._evidence

    @evidence.setter
    def evidence(self, evidence: Evidence | None) -> None:
        self._evidence = _evidence(evidence)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the names under which metrics count the leaves from here down."""
        return self._tags

    def _tag_names(self, tags: Iterable[str] | str) -> tuple[str, ...]:
        names = (tags,) if isinstance(tags, str) else tuple(tags)
        if not all(isinstance(name, str) and name.strip() for name in names):
            raise ValueError(f"node '{self._id}': tags must be a list of names, not {tags!r}")
        return tuple(dict.fromkeys(names))

    def _text(self, name: str, text: str) -> str:
        if not isinstance(text, str):
            raise ValueError(f"a node's {name} must be a string, not {text!r}")
        return text

    def _flag(self, critical: bool) -> bool:
        if critical not in (False, True):
            raise ValueError(f"node '{self._id}': critical must be True or False, not {critical!r}")
        return bool(critical)

    def _outcome(self, score: float, status: Status) -> Outcome:
        try:
            number = float(score)
        except (TypeError, ValueError):
            number = -1.0
        if not 0.0 <= number <= 1.0:
            raise ValueError(
                f"node '{self._id}': score must be a number from 0 to 1, not {score!r}"
            )
        if status not in STATUSES:
            raise ValueError(
                f"node '{self._id}': status must be one of {', '.join(STATUSES)}, not {status!r}"
            )
        return Outcome(number, status)

    def _note_change(self) -> None:
        """Make remembered scores stale."""
        self._tree.version += 1

    # Copies and plain forms

    def _fields(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, f"_{name}")) for name in FIELDS)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield names and values of the fields."""
        return self._fields()

    @property
    def __dict__(self) -> PlainFields:  # type: ignore[override]  # nodes have slots
        """Return the fields as they stand now."""
        return dict(self._fields())

    def __repr__(self) -> str:
        """Show all fields, those of children as well."""
        fields = [f"{name}={value!r}" for name, value in self._fields()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __str__(self) -> str:
        """Show all fields without the type."""
        return " ".join(f"{name}={value!r}" for name, value in self._fields())

    def model_dump(self, **keywords: Any) -> PlainFields:
        """Return the fields as plain data, with the options of pydantic's method."""
        dump: PlainFields = _PLAIN.to_python(dict(self._fields()), **keywords)
        return dump

    def dict(self, **keywords: Any) -> PlainFields:
        """Return the fields as plain data."""
        return self.model_dump(**keywords)

    def model_dump_json(self, **keywords: Any) -> str:
        """Return the fields as JSON, with the options of pydantic's method."""
        return _PLAIN.to_json(dict(self._fields()), **keywords).decode()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        """Let models of a script's own hold nodes."""
        return core_schema.is_instance_schema(cls, serialization=_AS_FIELDS)

    @property
    def model_fields_set(self) -> set[str]:
        """Return the names of the fields that differ from their defaults or have none."""
        return {
            name
            for name, value in self._fields()
            if name in ("id", "desc") or value != _DEFAULTS[name]
        }

    def __copy__(self) -> VerificationNode:
        """Return a node that shares parent, children and tree with this one."""
        twin = object.__new__(type(self))
        for name in VerificationNode.__slots__:
            if name != "__weakref__":
                setattr(twin, name, getattr(self, name))
        return twin

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> VerificationNode:
        """Return a copy with other values of some fields, unchecked as by pydantic."""
        twin = deepcopy(self) if deep else copy(self)
        for name, value in (update or {}).items():
            setattr(twin, f"_{name}", value)
        twin._verdict = Outcome(twin._score, twin._status)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle makes the node, by plain records, so that any depth works."""
        path = []
        node = self
        while node._parent is not None:
            path.append(node._position)
            node = node._parent
        if path:
            return _node_at, (node, tuple(reversed(path)))
        return _tree_of, (_records(self),)

    def __deepcopy__(self, _memo: object = None) -> VerificationNode:
        """Return a tree of its own, from this node down."""
        return _tree_of(_records(self))

    # Links

    @property
    def parent(self) -> VerificationNode | None:
        """Return the node above, ``None`` for a root."""
        return self._parent

    @property
    def position(self) -> int:
        """Return the index among the parent's children."""
        return self._position

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
            stack.extend(reversed(node._children))

    def add_node(self, node: VerificationNode) -> None:
        """Append a child.

        Raises:
            ValueError: the node itself, one of its ancestors, a child of another node, or a
                non-critical child under a critical node (scoring.md).
        """
        if not isinstance(node, VerificationNode):
            raise TypeError(
                f"a child of '{self.id}' must be a VerificationNode, not {type(node).__name__}"
            )
        if node._parent is self:
            return
        self._check_child(node)
        self._note_change()
        node._parent = self
        node._position = len(self._members)
        self._members.append(node)
        list.append(self._children, node)
        for below in node.walk():
            below._tree = self._tree
            # Versions of different trees do not compare.
            below._remembered = None
            self._tree.nodes.setdefault(below._id, below)
        if node._blocks:
            self._note_child(node)
        self._update_blocking()

    def _check_child(self, child: VerificationNode) -> None:
        if child is self:
            raise ValueError(f"node '{self.id}' cannot be its own child")
        if child._parent is not None:
            raise ValueError(
                f"node '{child.id}' already belongs to '{child._parent.id}', not to '{self.id}'"
            )
        if child._tree is self._tree:
            raise ValueError(f"node '{child.id}' is above '{self.id}' and cannot be its child")
        if self.critical and not child.critical:
            raise _not_critical(child, self)

    # Leaves that block others

    @property
    def has_blocking_leaf(self) -> bool:
        """Tell whether a leaf here or below is decided as failed or skipped; scripts read it."""
        return self._blocks

    @property
    def verdict(self) -> Outcome:
        """Return the verdict on this leaf, which scoring does not overwrite."""
        return self._verdict

    @property
    def blocked_as(self) -> Status | None:
        """Return the last decision by which this leaf blocks others, if any."""
        return self._blocked_as

    def _update_blocking(self) -> None:
        """Propagate a change of the blocking leaves towards the root, as far as it matters."""
        node: VerificationNode | None = self
        while node is not None:
            blocks = bool(node._blocking_children) if node._children else node._is_block
            if blocks == node._blocks:
                return
            node._blocks = blocks
            if node._parent is not None:
                node._parent._note_child(node)
            node = node._parent

    @property
    def _is_block(self) -> bool:
        return self._verdict.blocks or self._undecided is not None

    def _note_child(self, child: VerificationNode) -> None:
        _set_member(self._blocking_children, child._position, child._blocks)
        _set_member(
            self._blocking_critical_children,
            child._position,
            child._blocks and child._critical,
        )

    # Leaves without a verdict yet

    @property
    def undecided(self) -> Undecided | None:
        """Return what stands in the place of the verdict, ``None`` where there is one."""
        return self._undecided

    def leave_undecided(self, undecided: Undecided) -> None:
        """Show the leaf as passed until a later run of the script knows the verdict."""
        self.decide(1.0, "passed")
        self._undecided = undecided
        self._update_blocking()

    # Verdicts and scores

    def decide(self, score: float, status: Status, evidence: Evidence | None = None) -> None:
        """Write a verdict with the evidence for it."""
        verdict, self._evidence = self._outcome(score, status), _evidence(evidence)
        self._score, self._status = verdict
        self._set_verdict(verdict)

    def _set_verdict(self, verdict: Outcome) -> None:
        self._verdict = verdict
        self._undecided = None
        self._tree.version += 1
        if verdict.blocks:
            self._blocked_as = verdict.status
        self._update_blocking()

    def compute_score(self, mutate: bool = False) -> float:
        """Return the score (scoring.md); with ``mutate``, write scores and statuses back."""
        outcomes = aggregate(self)
        if mutate:
            for node in self.walk():
                # A derived value does not make a new verdict.
                node._score, node._status = outcomes[id(node)]
            self._remembered = (self._tree.version, outcomes[id(self)].score)
        return outcomes[id(self)].score

    @property
    def aggregated_score(self) -> float:
        """Return the score written back once and remembered until something changes."""
        if self._remembered is not None and self._remembered[0] == self._tree.version:
            return self._remembered[1]
        return self.compute_score(mutate=True)


@dataclass(frozen=True, slots=True)
class _Record:
    """A node as plain data.

    ``above`` is the number of its parent's record, ``None`` for the first.
    """

    above: int | None
    fields: PlainFields
    shown: Outcome
    blocked_as: Status | None


_RECORDED = ("id", "desc", "critical", "strategy", "evidence", "tags")
_DEFAULTS: PlainFields = {
    "critical": False,
    "score": 0.0,
    "status": "initialized",
    "strategy": AggregationStrategy.PARALLEL,
    "children": [],
    "evidence": None,
}


def _records(top: VerificationNode) -> list[_Record]:
    records: list[_Record] = []
    numbers: dict[int, int] = {}
    for node in top.walk():
        numbers[id(node)] = len(records)
        above = None if node is top else numbers[id(node._parent)]
        fields = {name: getattr(node, f"_{name}") for name in _RECORDED}
        fields |= node._verdict._asdict()
        records.append(_Record(above, fields, Outcome(node._score, node._status), node._blocked_as))
    return records


def _tree_of(records: Sequence[_Record]) -> VerificationNode:
    nodes: list[VerificationNode] = []
    for record in records:
        node = VerificationNode(**record.fields)
        if record.above is not None:
            nodes[record.above].add_node(node)
        node._score, node._status = record.shown
        node._blocked_as = record.blocked_as
        nodes.append(node)
    return nodes[0]


def _node_at(root: VerificationNode, path: Sequence[int]) -> VerificationNode:
    node = root
    for position in path:
        node = node.children[position]
    return node


# Which leaves keep a verification from being asked (eval-scripts.md, "When a verification is
# skipped")


def blocks(leaf: VerificationNode, extra: Sequence[VerificationNode]) -> Iterator[VerificationNode]:
    """Yield the prerequisites that block a verification, or that are undecided and may come to.

    Only branches with such a leaf are visited.

    Raises:
        ValueError: ``leaf`` is named as its own prerequisite.
    """
    if any(node_named is leaf for node_named in extra):
        raise ValueError(f"node '{leaf.id}' cannot be its own prerequisite")
    for node_named in extra:
        yield from _blocking_leaves(node_named, besides=leaf)
    node = leaf
    while node.parent is not None:
        parent, position = node.parent, node.position
        before = bisect_left(parent._blocking_children, position)
        is_sequential = parent.strategy == "sequential"
        places = [*parent._blocking_critical_children]
        places += parent._blocking_children[:before] if is_sequential else []
        for place in dict.fromkeys(places):
            if place != position:
                yield from _blocking_leaves(parent._members[place])
        node = parent


def _blocking_leaves(
    top: VerificationNode, besides: VerificationNode | None = None
) -> Iterator[VerificationNode]:
    # Iterators, as many siblings may block and the first one may do.
    stack: list[Iterator[VerificationNode]] = [iter((top,))]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
        elif node.children:
            stack.append(map(node._members.__getitem__, node._blocking_children))
        elif node._blocks and node is not besides:
            yield node


def _set_member(positions: list[int], position: int, belongs: bool) -> None:
    place = bisect_left(positions, position)
    is_member = positions[place : place + 1] == [position]
    if belongs and not is_member:
        positions.insert(place, position)
    elif is_member and not belongs:
        del positions[place]


def _not_critical(child: VerificationNode, parent: VerificationNode) -> ValueError:
    return ValueError(f"non-critical node '{child.id}' cannot go under critical node '{parent.id}'")


def _evidence(evidence: object) -> Evidence | None:
    return None if evidence is None else Evidence.model_validate(evidence)


_PLAIN = SchemaSerializer(core_schema.any_schema())
_AS_FIELDS = core_schema.plain_serializer_function_ser_schema(VerificationNode.model_dump)
check_private_attributes("pydantic")
# Nodes in a script's own data are written as their fields.
VerificationNode.__pydantic_serializer__ = SchemaSerializer(
    core_schema.any_schema(serialization=_AS_FIELDS)
)
