"""The leaves of a result that would be skipped if others failed; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mind2web2.rubric.written_tree import WrittenNode


def skipped_behind(
    root: WrittenNode, leaves: Sequence[WrittenNode], failing_leaves: Iterable[int]
) -> set[int]:
    """Return the leaves that are skipped, by ``id(leaf)``, if these fail."""
    first = set(failing_leaves)
    failed = set(first)
    by_id: dict[str, list[WrittenNode]] = defaultdict(list)
    for node in root.walk():
        by_id[node.id].append(node)
    is_changed = True
    while is_changed:
        failing = _with_failed_leaf(root, failed)
        skipped = _behind(root, failing)
        blocked = {
            id(leaf)
            for leaf in leaves
            if id(leaf) in skipped
            or any(
                id(node) in failing
                for name in leaf.grounds.prerequisites
                for node in by_id.get(name, ())
            )
        }
        is_changed = not blocked <= failed
        failed |= blocked
    return failed - first


def _with_failed_leaf(root: WrittenNode, failed: set[int]) -> set[int]:
    nodes = set(failed)
    for node in reversed(list(root.walk())):
        if any(id(child) in nodes for child in node.children):
            nodes.add(id(node))
    return nodes


def _behind(root: WrittenNode, failing: set[int]) -> set[int]:
    """Return the nodes that a failing node skips, with all below them."""
    nodes: set[int] = set()
    for node in root.walk():
        places = [place for place, child in enumerate(node.children) if id(child) in failing]
        gates = [place for place in places if node.children[place].critical]
        for place, child in enumerate(node.children):
            is_late = node.strategy == "sequential" and bool(places) and places[0] < place
            if id(node) in nodes or is_late or (gates and gates != [place]):
                nodes.add(id(child))
    return nodes
