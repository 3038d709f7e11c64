"""A rubric tree as a result file has it; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.aggregation import Outcome, Status, aggregate
from mind2web2.evidence import Evidence, PageCheck

# Sums of the same numbers may differ by their last digits from one Python to the next.
TOLERANCE = 1e-9
# What is kept of a tree, which a result says in ``run.tree_format``: since 2, how a leaf was decided before
# it was decided otherwise.
TREE_FORMAT = 2


class TreeShapeError(ValueError):
    """What stands in a result's place for a tree is none; the text says where."""


class _Verdict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    score: float
    status: Status

    def outcome(self) -> Outcome:
        return Outcome(self.score, self.status)


class _NodeFields(_Verdict):
    id: str
    desc: str
    critical: bool
    strategy: Literal["parallel", "sequential"]
    superseded: _Verdict | None = None


@dataclass(frozen=True, slots=True)
class WrittenNode:
    """A node of a result's tree.

    Args:
        shown: score and status as they stand there.
        superseded: a leaf's own verdict, where the end of a sequence has overwritten it.
    """

    id: str
    critical: bool
    strategy: str
    shown: Outcome
    superseded: Outcome | None
    evidence: Evidence | None
    children: list[WrittenNode] = field(default_factory=list)

    @property
    def verdict(self) -> Outcome:
        """Return what was decided about a leaf, whatever a sequence wrote over it."""
        return self.superseded or self.shown

    def walk(self) -> Iterator[WrittenNode]:
        """Yield this node and all below it, each before its children, in rubric order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def written_tree(tree: object) -> WrittenNode:
    """Return the tree that a result file has, however deep.

    Raises:
        TreeShapeError: it is none.
    """
    root = _node(tree, "the root")
    stack: list[tuple[WrittenNode, Any]] = [(root, tree)]
    while stack:
        node, fields = stack.pop()
        children = fields.get("children", [])
        if not isinstance(children, list):
            raise TreeShapeError(f"children of '{node.id}' are no list")
        for child_fields in children:
            child = _node(child_fields, f"a child of '{node.id}'")
            node.children.append(child)
            stack.append((child, child_fields))
    return root


def _node(fields: object, what: str) -> WrittenNode:
    if not isinstance(fields, dict):
        raise TreeShapeError(f"{what} is no node")
    try:
        # Children apart: they may be nested deeper than a validator goes.
        own = {name: value for name, value in fields.items() if name not in ("children", "evidence")}
        node = _NodeFields.model_validate(own)
        evidence = fields.get("evidence")
        read = None if evidence is None else Evidence.model_validate(evidence)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(step) for step in problem["loc"])
        named = f" '{fields['id']}'" if isinstance(fields.get("id"), str) else ""
        raise TreeShapeError(f"{what}{named} is no node: {where}: {problem['msg']}") from error
    return WrittenNode(
        id=node.id,
        critical=node.critical,
        strategy=node.strategy,
        shown=node.outcome(),
        superseded=None if node.superseded is None else node.superseded.outcome(),
        evidence=read,
    )


def is_same_score(one: float, other: float) -> bool:
    """Tell whether two scores are the same, rounding aside."""
    return math.isclose(one, other, rel_tol=0.0, abs_tol=TOLERANCE)


def only_tree(result: Mapping[str, Any]) -> object | None:
    """Return the one tree of a result, ``None`` where it has none or several."""
    parts = result.get("eval_breakdown")
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], dict):
        return None
    return parts[0].get("verification_tree")


def score_by_tree(result: Mapping[str, Any]) -> float | None:
    """Return the score that follows from the leaves of a result, ``None`` where it has no tree."""
    try:
        root = written_tree(only_tree(result))
    except TreeShapeError:
        return None
    return aggregate(root)[id(root)].score


def other_score_by_tree(result: Mapping[str, Any]) -> float | None:
    """Return the score that follows from the leaves of a result, ``None`` where that is the one it has."""
    score, by_tree = result.get("final_score"), score_by_tree(result)
    if by_tree is None or not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    return None if is_same_score(score, by_tree) else by_tree


def judged_pages(root: WrittenNode) -> Iterator[PageCheck]:
    """Yield every check of a page in a tree that votes were cast on."""
    for node in root.walk():
        if node.evidence is not None:
            yield from (check for check in node.evidence.pages if check.votes)


def other_pages(
    result: Mapping[str, Any], pages: Mapping[str, str | None]
) -> dict[str, tuple[str | None, ...]]:
    """Return the digests of pages that a result says were judged, and that are not those looked up.

    Args:
        pages: digests of the pages that were looked up in the task's cache.
    """
    try:
        root = written_tree(only_tree(result))
    except TreeShapeError:
        return {}
    found: dict[str, set[str | None]] = {}
    for check in judged_pages(root):
        sha256 = None if check.page is None else check.page.sha256
        if check.url not in pages or pages[check.url] != sha256:
            found.setdefault(check.url, set()).add(sha256)
    return {url: tuple(sorted(digests, key=str)) for url, digests in sorted(found.items())}
