"""Scores that a tree would have with other verdicts on some of its leaves; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mind2web2.rubric.verdicts import Outcome, Scored, outcome_of_children


class Rescoring:
    """Scores of one tree with other verdicts, in the time of the paths to the root.

    Args:
        verdicts: by ``id(leaf)``, in place of the leaves' own.
    """

    def __init__(self, root: Scored, verdicts: Mapping[int, Outcome] | None = None) -> None:
        other_verdicts = verdicts or {}
        self._root = root
        self._nodes = list(root.walk())
        self._parents: dict[int, int] = {}
        # Before a sequence around a node skips it.
        self._outcomes: dict[int, Outcome] = {}
        for position in reversed(range(len(self._nodes))):
            node = self._nodes[position]
            for child in node.children:
                self._parents[id(child)] = position
            if node.children:
                self._outcomes[id(node)] = self._inner(node, {})
            else:
                self._outcomes[id(node)] = other_verdicts.get(id(node), node.verdict)

    @property
    def score(self) -> float:
        """Return the tree's score."""
        return self.score_with({})

    def score_without(self, leaf: Scored) -> float:
        """Return the tree's score if a leaf had failed."""
        return self.score_with({id(leaf): Outcome(0.0, "failed")})

    def score_with(self, verdicts: Mapping[int, Outcome]) -> float:
        """Return the tree's score with these verdicts, by ``id(leaf)``.

        It equals that of ``aggregate``.
        """
        changed = dict(verdicts)
        for position in self._above(verdicts):
            node = self._nodes[position]
            changed[id(node)] = self._inner(node, changed)
        root = id(self._root)
        return changed.get(root, self._outcomes[root]).score

    def _above(self, leaves: Iterable[int]) -> list[int]:
        """Return the places of all inner nodes above some leaves, children before parents."""
        places: set[int] = set()
        for leaf in leaves:
            position = self._parents.get(leaf)
            while position is not None and position not in places:
                places.add(position)
                position = self._parents.get(id(self._nodes[position]))
        return sorted(places, reverse=True)

    def _inner(self, node: Scored, changed: Mapping[int, Outcome]) -> Outcome:
        children = [changed.get(id(child), self._outcomes[id(child)]) for child in node.children]
        return outcome_of_children(node, children)
