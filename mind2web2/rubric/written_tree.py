"""The rubric tree as results have it, read whatever wrote it; pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from mind2web2.rubric.rescoring import Rescoring
from mind2web2.rubric.verdicts import NO_EVIDENCE, Evidence, Outcome, Status
from mind2web2.utils.json_text import JsonObject, mapping, mappings, read_leniently

WrittenScore = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]

# ``run.tree_format`` of results: since 2, a tree keeps a leaf's own verdict beside the one that a
# sequence or a script put in its place.
TREE_FORMAT = 2
# The fields that a score follows from.
_SCORING_FIELDS = frozenset({"id", "critical", "score", "status", "strategy"})


class OtherVerdict(BaseModel):
    """A verdict that a leaf has or would have beside the one that it shows, and why."""

    model_config = ConfigDict(frozen=True)

    score: WrittenScore
    status: Status
    reason: str = ""


class WrittenNode(BaseModel):
    """A node of a result's tree.

    Args:
        superseded: a leaf's own verdict, where a sequence put another in its place.
        overruled: the verdict that the evidence comes to, where the script set another.
        earlier: a verdict that blocked other leaves before the present one.
        tags: names by which metrics group leaves.
        is_sound: all fields that a score follows from were there and well formed.
    """

    model_config = ConfigDict(frozen=True)

    id: str = ""
    desc: str = ""
    critical: StrictBool = False
    score: WrittenScore = 0.0
    status: Status = "initialized"
    strategy: Literal["parallel", "sequential"] = "parallel"
    superseded: OtherVerdict | None = None
    overruled: OtherVerdict | None = None
    earlier: OtherVerdict | None = None
    evidence: Evidence | None = None
    tags: tuple[str, ...] = ()
    children: tuple[WrittenNode, ...] = ()
    is_sound: bool = True

    @property
    def grounds(self) -> Evidence:
        """Return the evidence; a leaf without any has one that says nothing."""
        return self.evidence or NO_EVIDENCE

    @property
    def is_passed(self) -> bool:
        """Tell whether a leaf's own verdict is that it passed."""
        return self.verdict.status == "passed"

    @property
    def verdict(self) -> Outcome:
        """Return a leaf's own verdict, whatever a sequence put in its place."""
        node_before = self.superseded or self
        return Outcome(node_before.score, node_before.status)

    def rescoring(self) -> Rescoring:
        """Return the scores that this tree would have with other verdicts."""
        return Rescoring(self)

    def walk(self) -> Iterator[WrittenNode]:
        """Yield this node and all below it, each before its children, in rubric order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def placed(self) -> Iterator[tuple[WrittenNode, tuple[WrittenNode, ...]]]:
        """Yield the same nodes, each with those above it, from this node down."""
        stack: list[tuple[WrittenNode, tuple[WrittenNode, ...]]] = [(self, ())]
        while stack:
            node, above = stack.pop()
            yield node, above
            stack.extend((child, (*above, node)) for child in reversed(node.children))

    def leaf_places(self) -> Iterator[LeafPlace]:
        """Yield the leaves with their places, in rubric order."""
        for leaf, above in self.placed():
            if not leaf.children:
                line = (*above, leaf)
                path = "/".join(node.id for node in line[1:] or line)
                yield LeafPlace(
                    leaf, path, dict.fromkeys(tag for node in line for tag in node.tags)
                )

    def leaves(self) -> Iterator[WrittenNode]:
        """Yield the leaves, in rubric order."""
        return (node for node in self.walk() if not node.children)

    def own_fields(self) -> JsonObject:
        """Return the fields as JSON values, without the children."""
        left_out = {"children", "is_sound"}
        return {
            "id": self.id,
            "desc": self.desc,
            "critical": self.critical,
            "score": self.score,
            "status": self.status,
            "strategy": self.strategy,
            **self.model_dump(mode="json", exclude=left_out, exclude_defaults=True),
        }


class LeafPlace(NamedTuple):
    """A leaf in its tree.

    Args:
        path: the ids from below the root to the leaf, with slashes.
        tags: its own and those of the nodes above it, in this order.
    """

    leaf: WrittenNode
    path: str
    tags: Collection[str]


def read_tree(fields: object) -> WrittenNode | None:
    """Return a tree of a result, however deep; ``None`` where there is none.

    A field that is malformed counts as missing, and the node then is not sound.
    """
    tree = mapping(fields)
    if not tree:
        return None
    return _sound_tree(tree) or _tree_by_node(tree)


def _sound_tree(fields: JsonObject) -> WrittenNode | None:
    """Return a tree whose nodes are all sound, at once.

    ``None`` for others, and for very deep ones.
    """
    try:
        root = WrittenNode.model_validate(fields)
    except ValidationError:
        return None
    for node in root.walk():
        known = node.model_fields_set
        if not known >= _SCORING_FIELDS or "is_sound" in known:
            return None
    return root


def _tree_by_node(fields: JsonObject) -> WrittenNode:
    parts: list[JsonObject] = [fields]
    for part in parts:  # it grows on the way
        parts += mappings(part.get("children"))
    # From the last level up: the first nodes that no parent has taken yet are a node's children.
    orphans: deque[WrittenNode] = deque()
    for part in reversed(parts):
        count = len(mappings(part.get("children")))
        children = [orphans.popleft() for _ in range(count)]
        orphans.append(_read_node(part, tuple(reversed(children))))
    return orphans[0]


def _read_node(fields: JsonObject, children: tuple[WrittenNode, ...]) -> WrittenNode:
    listed = fields.get("children", [])
    if children or listed != [] or "is_sound" in fields:
        fields = {**fields, "children": children, "is_sound": True}
    node = read_leniently(WrittenNode, fields)
    is_known = isinstance(listed, list) and len(listed) == len(children)
    needed = _SCORING_FIELDS
    if "superseded" in fields:
        needed |= {"superseded"}
    if is_known and needed <= node.model_fields_set:
        return node
    return node.model_copy(update={"is_sound": False})
