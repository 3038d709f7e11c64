"""Which leaves keep a verification from being asked (eval-scripts.md, "When a verification is skipped")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

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
    named_nodes = _named(node, extra)
    for each in named_nodes if node is None else (*named_nodes, node):
        each.check_settled("what blocks")
    for named in named_nodes:
        found = _first_blocking_leaf(named, besides=node)
        if found is not None:
            return found
    while node is not None and node.parent is not None:
        sibling = _blocking_sibling(node, node.parent)
        if sibling is not None:
            return _first_blocking_leaf(sibling)
        node = node.parent
    return None


class PendingLeaves(Protocol):
    """Leaves whose verdict has been asked for and is not there yet."""

    def holds(self, leaf: VerificationNode) -> bool:
        """Tell whether this leaf is one of them."""

    def below(self, parent: VerificationNode) -> list[int]:
        """Return, in order, the positions of children that are such leaves or have some below them."""


def possible_blocks(
    node: VerificationNode | None, extra: Sequence[VerificationNode], pending: PendingLeaves
) -> Iterator[VerificationNode]:
    """Yield the prerequisites that block or may come to, in the order in which ``blocking_leaf`` looks.

    The first of them that blocks in the end is the one that ``blocking_leaf`` would name if nothing were
    pending. Takes time in proportion to the depth of the tree and to the pending leaves.

    Raises:
        ValueError: ``node`` is named as its own prerequisite.
    """
    for named in _named(node, extra):
        yield from _possible_leaves(named, pending, besides=node)
    while node is not None and node.parent is not None:
        parent = node.parent
        earliest = parent.blocking_critical_children.first(besides=node.position)
        waiting = [position for position in pending.below(parent) if position != node.position]
        critical = [position for position in waiting if parent.children[position].critical]
        for position in _in_order(critical, earliest):
            yield from _possible_leaves(parent.children[position], pending)
        if parent.strategy == "sequential":
            earliest = parent.blocking_children.first(besides=node.position)
            for position in _in_order(waiting, earliest):
                if position < node.position:
                    yield from _possible_leaves(parent.children[position], pending)
        node = parent


def _in_order(pending: Sequence[int], blocking: int | None) -> list[int]:
    """Return the pending positions up to the first that blocks in any case, and that one."""
    if blocking is None:
        return list(pending)
    return [*(position for position in pending if position < blocking), blocking]


def _possible_leaves(
    top: VerificationNode, pending: PendingLeaves, besides: VerificationNode | None = None
) -> Iterator[VerificationNode]:
    stack = [top]
    while stack:
        node = stack.pop()
        if not node.children:
            if node is not besides and (pending.holds(node) or node.has_blocking_leaf):
                yield node
            continue
        wanted = set(pending.below(node))
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


def _blocking_sibling(node: VerificationNode, parent: VerificationNode) -> VerificationNode | None:
    """Return a sibling that blocks ``node``, without looking at those that do not."""
    position = parent.blocking_critical_children.first(besides=node.position)
    if position is None and parent.strategy == "sequential":
        earliest = parent.blocking_children.first(besides=node.position)
        position = earliest if earliest is not None and earliest < node.position else None
    return None if position is None else parent.children[position]


def _first_blocking_leaf(
    node: VerificationNode, besides: VerificationNode | None = None
) -> VerificationNode | None:
    """Return the first blocking leaf of a subtree; ``besides`` may be a leaf of it that does not count."""
    if not node.has_blocking_leaf:
        return None
    if besides is not None and besides.has_blocking_leaf:
        leaves = (leaf for leaf in node.walk() if not leaf.children and leaf is not besides)
        return next((leaf for leaf in leaves if leaf.verdict.blocks), None)
    while (position := node.blocking_children.first()) is not None:
        node = node.children[position]
    return node
