"""Which leaves keep a verification from being asked (eval-scripts.md, "When a verification is skipped")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mind2web2.rubric.node import VerificationNode


def possible_blocks(
    node: VerificationNode | None, extra: Sequence[VerificationNode]
) -> Iterator[VerificationNode]:
    """Yield the prerequisites that block or may come to, in the order in which they are checked.

    The first of them that blocks in the end is the reason for the skip. Takes time in proportion to the depth
    of the tree and to the number of pending leaves.

    Raises:
        ValueError: ``node`` is named as its own prerequisite.
    """
    for named in _named(node, extra):
        yield from _possible_leaves(named, besides=node)
    while node is not None and node.parent is not None:
        parent = node.parent
        earliest = parent.blocking_critical_children.first(besides=node.position)
        waiting = [position for position in parent.pending_children if position != node.position]
        critical = [position for position in waiting if parent.children[position].critical]
        for position in _in_order(critical, earliest):
            yield from _possible_leaves(parent.children[position])
        if parent.strategy == "sequential":
            earliest = parent.blocking_children.first(besides=node.position)
            for position in _in_order(waiting, earliest):
                if position < node.position:
                    yield from _possible_leaves(parent.children[position])
        node = parent


def _in_order(pending: Sequence[int], blocking: int | None) -> list[int]:
    """Return the pending positions up to the first that blocks in any case, and that one."""
    if blocking is None:
        return list(pending)
    return [*(position for position in pending if position < blocking), blocking]


def _possible_leaves(
    top: VerificationNode, besides: VerificationNode | None = None
) -> Iterator[VerificationNode]:
    stack = [top]
    while stack:
        node = stack.pop()
        if not node.children:
            if node is not besides and (node.is_pending or node.has_blocking_leaf):
                yield node
            continue
        wanted = set(node.pending_children)
        if besides is not None:
            # The first one that blocks may do so by the former verdict of the node itself.
            wanted.update(node.blocking_children)
        elif (first := node.blocking_children.first()) is not None:
            wanted.add(first)
        stack.extend(node.children[position] for position in sorted(wanted, reverse=True))


def _named(node: VerificationNode | None, extra: Sequence[VerificationNode]) -> Sequence[VerificationNode]:
    if any(named is node for named in extra):
        raise ValueError(f"node '{node.id if node else node}' cannot be its own prerequisite")
    return extra
