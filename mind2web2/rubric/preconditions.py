"""Which leaves keep a verification from being asked (eval-scripts.md, "When a verification is skipped")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mind2web2.rubric.node import VerificationNode


def prerequisite_leaves(
    node: VerificationNode | None, extra: Sequence[VerificationNode] = ()
) -> list[VerificationNode]:
    """Return the leaves that ``node`` depends on, each once.

    Args:
        node: the node to verify; ``None`` depends on ``extra`` alone.
        extra: further nodes whose leaves must hold.

    Raises:
        ValueError: ``node`` is named as its own prerequisite.
    """
    leaves: dict[int, VerificationNode] = {}
    for source in (*_named(node, extra), *_required_siblings(node)):
        for leaf in source.walk():
            if not leaf.children and leaf is not node:
                leaves[id(leaf)] = leaf
    return list(leaves.values())


def blocking_leaf(
    node: VerificationNode | None, extra: Sequence[VerificationNode] = ()
) -> VerificationNode | None:
    """Return a failed or skipped leaf among the prerequisites, ``None`` when nothing blocks.

    Takes time in proportion to the depth of the tree, not to its size.

    Raises:
        ValueError: ``node`` is named as its own prerequisite.
    """
    named = _named(node, extra)
    for each in named if node is None else (*named, node):
        each.check_settled("what blocks")
    return next(possible_blocks(node, extra), None)


def possible_blocks(
    node: VerificationNode | None, extra: Sequence[VerificationNode]
) -> Iterator[VerificationNode]:
    """Yield the prerequisites that block or may come to, in the order in which ``blocking_leaf`` looks.

    The first of them that blocks in the end is the one that ``blocking_leaf`` would name if nothing were
    pending. Takes time in proportion to the depth of the tree and to the pending leaves.

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


def _required_siblings(node: VerificationNode | None) -> Iterator[VerificationNode]:
    """Yield, on every level below the root, critical siblings and earlier ones of a sequence."""
    while node is not None and node.parent is not None:
        in_sequence = node.parent.strategy == "sequential"
        for sibling in node.parent.children:
            if sibling is not node and (
                sibling.critical or (in_sequence and sibling.position < node.position)
            ):
                yield sibling
        node = node.parent
