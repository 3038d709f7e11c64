"""The leaves of a result that would be skipped if others failed; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mind2web2.rubric.written_tree import WrittenNode


def skipped_behind(
    root: WrittenNode, leaves: Sequence[WrittenNode], failing_leaves: Iterable[int]
) -> set[int]:
    """Return the leaves that are skipped, by ``id(leaf)``, if these fail.

    Others are skipped behind a skipped leaf as well, so this goes on until nothing changes.
    """
    failing = set(failing_leaves)
    not_passed = set(failing)
    by_id: dict[str, list[WrittenNode]] = defaultdict(list)
    for node in root.walk():
        by_id[node.id].append(node)
    is_changed = True
    while is_changed:
        shut = _with_leaf_in(root, not_passed)
        behind_shut = _behind(root, shut)
        skipped = {
            id(leaf)
            for leaf in leaves
            if id(leaf) in behind_shut
            or any(
                id(node) in shut
                for name in leaf.grounds.prerequisites
                for node in by_id.get(name, ())
            )
        }
        is_changed = not skipped <= not_passed
        not_passed |= skipped
    return not_passed - failing


def _with_leaf_in(root: WrittenNode, not_passed: set[int]) -> set[int]:
    """Return the nodes that are, or have below them, a leaf that does not pass."""
    nodes = set(not_passed)
    for node in reversed(list(root.walk())):
        if any(id(child) in nodes for child in node.children):
            nodes.add(id(node))
    return nodes


def _behind(root: WrittenNode, shut: set[int]) -> set[int]:
    """Return the nodes that are skipped behind these, with all below them."""
    nodes: set[int] = set()
    for node in root.walk():
        places = [place for place, child in enumerate(node.children) if id(child) in shut]
        gates = [place for place in places if node.children[place].critical]
        for place, child in enumerate(node.children):
            is_late = node.strategy == "sequential" and bool(places) and places[0] < place
            if id(node) in nodes or is_late or (gates and gates != [place]):
                nodes.add(id(child))
    return nodes
