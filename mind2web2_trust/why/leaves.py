"""The leaves of an answer's two trees: which belong together, and what each adds to the difference.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mind2web2.plugin import Rescoring, ResultFile, WrittenNode, judgments_named, page_checks


@dataclass(frozen=True)
class Leaf:
    """A leaf in its tree.

    Args:
        path: the ids from below the root to it, with slashes.
        position: among the leaves of its parent.
    """

    node: WrittenNode
    root: WrittenNode
    path: str
    position: int

    @property
    def place(self) -> tuple[str, int]:
        """Return the path of its parent, and its position there."""
        return self.path.rpartition("/")[0], self.position

    @property
    def claim(self) -> str | None:
        """Return what was judged, ``None`` where nothing was."""
        return None if self.node.evidence is None else self.node.evidence.claim or None

    @property
    def pages(self) -> Sequence[str]:
        """Return the URLs of the pages that it was judged on."""
        return [check.url for check in page_checks(self.node)]

    @property
    def judgments(self) -> set[str]:
        """Return the keys of the replies that it rests on."""
        return judgments_named(self.node.own_fields())

    @property
    def is_skipped(self) -> bool:
        """Tell whether it was not judged, because a leaf before it failed."""
        evidence = self.node.evidence
        return evidence is not None and evidence.decided_by == "prerequisite"

    def worth_beside(self, other: Leaf) -> float:
        """Return by how much the score of the tree falls with another leaf's verdict here."""
        scores = Rescoring(self.root)
        return scores.score - scores.score_with({id(self.node): other.node.verdict})


def leaves_of(result: ResultFile) -> list[Leaf]:
    """Return the leaves of a result, in rubric order."""
    found = []
    for tree in result.trees:
        siblings: Counter[str] = Counter()
        for place in tree.leaf_places():
            parent = place.path.rpartition("/")[0]
            found.append(Leaf(place.leaf, tree, place.path, siblings[parent]))
            siblings[parent] += 1
    return found


# From the surest on: a key that only one leaf of each side has pairs the two.
_KEYS: tuple[Callable[[Leaf], Hashable], ...] = (
    lambda leaf: leaf.path,
    lambda leaf: leaf.node.id,
    lambda leaf: leaf.claim,
    lambda leaf: leaf.place,
)


@dataclass(frozen=True)
class Matched:
    """A leaf on both sides, or on one."""

    first: Leaf | None
    second: Leaf | None

    @property
    def path(self) -> str:
        """Return the leaf's path, that of the second side where both have one."""
        leaf = self.second or self.first
        return "" if leaf is None else leaf.path

    @cached_property
    def effect(self) -> float:
        """Return what the other verdict adds to the difference.

        It is looked up in the tree of the side that passed, where a gate skips nothing. The effect
        is 0 where the verdicts are alike, behind a gate, and for a leaf on one side only.
        """
        one, other = self.first, self.second
        if one is None or other is None or one.is_skipped or other.is_skipped:
            return 0.0
        if other.node.is_passed:
            return other.worth_beside(one)
        return -one.worth_beside(other)

    def has_passed(self, result: ResultFile | None, *, by_second: bool) -> bool | None:
        """Return whether the leaf passed in another result of the same rubric."""
        own = self.second if by_second else self.first
        if result is None or own is None:
            return None
        verdicts = (leaf.node.is_passed for leaf in leaves_of(result) if leaf.path == own.path)
        return next(verdicts, None)


def matched(first: ResultFile, second: ResultFile) -> Iterator[Matched]:
    """Yield the leaves of two results in pairs, and then those of one side alone."""
    rest = leaves_of(first), leaves_of(second)
    for key in _KEYS:
        one, other = (_unique(leaves, key) for leaves in rest)
        for name in [name for name in one if name in other]:
            yield Matched(one[name], other[name])
            rest[0].remove(one[name])
            rest[1].remove(other[name])
    yield from (Matched(leaf, None) for leaf in rest[0])
    yield from (Matched(None, leaf) for leaf in rest[1])


def _unique(leaves: Sequence[Leaf], key: Callable[[Leaf], Hashable]) -> Mapping[Hashable, Leaf]:
    """Return the leaves by their keys, without those that share one or have none."""
    counts = Counter(map(key, leaves))
    return {key(leaf): leaf for leaf in leaves if key(leaf) is not None and counts[key(leaf)] == 1}
