"""The leaves of an answer's two trees: which belong together, and what each adds to the difference.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from mind2web2.plugin import (
    ResultFile,
    WrittenNode,
)


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
        return self.node.grounds.claim or None

    @property
    def pages(self) -> Sequence[str]:
        """Return the URLs of the pages that it was judged on."""
        return [check.url for check in self.node.grounds.pages]

    @property
    def judgments(self) -> set[str]:
        """Return the keys of the replies that it rests on."""
        votes = chain.from_iterable(self.node.grounds.vote_groups())
        return {vote.judgment for vote in votes if vote.judgment is not None}

    @property
    def is_skipped(self) -> bool:
        """Tell whether it was not judged, because a leaf before it failed."""
        return self.node.grounds.decided_by == "prerequisite"

    def worth_beside(self, other: Leaf) -> float:
        """Return by how much the score of the tree falls with another leaf's verdict here."""
        scores = self.root.rescoring()
        return scores.score - scores.score_with({id(self.node): other.node.verdict})


def leaves_of(result: ResultFile) -> list[Leaf]:
    """Return the leaves of a result, in rubric order."""
    leaves = []
    for tree in result.trees:
        siblings: Counter[str] = Counter()
        for place in tree.leaf_places():
            parent = place.path.rpartition("/")[0]
            leaves.append(Leaf(place.leaf, tree, place.path, siblings[parent]))
            siblings[parent] += 1
    return leaves


# A key that only one leaf of each side has pairs the two. The surest key comes first.
_KEYS: tuple[Callable[[Leaf], Hashable], ...] = (
    lambda leaf: leaf.path,
    lambda leaf: leaf.node.id,
    lambda leaf: leaf.claim,
    lambda leaf: leaf.place,
)


@dataclass(frozen=True)
class Matched:
    """A leaf on both sides."""

    first: Leaf
    second: Leaf

    @cached_property
    def effect(self) -> float:
        """Return what the other verdict adds to the difference.

        It is looked up in the tree of the side that passed, where a gate skips nothing. The effect
        is 0 where the verdicts are alike, and behind a gate.
        """
        if self.first.is_skipped or self.second.is_skipped:
            return 0.0
        if self.second.node.is_passed:
            return self.second.worth_beside(self.first)
        return -self.first.worth_beside(self.second)

    def has_passed(self, result: ResultFile | None, *, by_second: bool) -> bool | None:
        """Return whether the leaf passed in another result of the same rubric."""
        own = self.second if by_second else self.first
        leaves = [] if result is None else leaves_of(result)
        return next((leaf.node.is_passed for leaf in leaves if leaf.path == own.path), None)


@dataclass(frozen=True)
class Leaves:
    """The leaves of two results: those of both, and those of one side alone."""

    both: Sequence[Matched] = ()
    removed: Sequence[Leaf] = ()
    added: Sequence[Leaf] = ()

    @classmethod
    def of(cls, first: ResultFile, second: ResultFile) -> Leaves:
        """Match the leaves of two results."""
        removed, added, both = leaves_of(first), leaves_of(second), []
        for key in _KEYS:
            one, other = _unique(removed, key), _unique(added, key)
            for name in filter(other.__contains__, one):
                both.append(Matched(one[name], other[name]))
                removed.remove(one[name])
                added.remove(other[name])
        return cls(both, removed, added)


def _unique(leaves: Sequence[Leaf], key: Callable[[Leaf], Hashable]) -> Mapping[Hashable, Leaf]:
    """Return the leaves by their keys, without those that share one or have none."""
    counts = Counter(map(key, leaves))
    return {key(leaf): leaf for leaf in leaves if key(leaf) is not None and counts[key(leaf)] == 1}
