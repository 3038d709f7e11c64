"""What lookahead would ask for nothing, told from a stored result; pure."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.planned_votes import PlannedVotes
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.score_bounds import blocked_by, is_skipped


def wasted_requests(result: ResultFile, votes: PlannedVotes) -> float:
    """Return how many requests lookahead adds to those of a result.

    A skipped leaf is taken to be asked about one source: by then its gate is decided.

    Args:
        votes: those that the result's judged leaves take.
    """
    if not votes.sources:
        return 0.0
    leaves = sum(1 for tree in result.trees for _ in leaves_asked_ahead(tree))
    return leaves * (votes.own + votes.first) / votes.sources


def leaves_asked_ahead(tree: WrittenNode) -> Iterator[WrittenNode]:
    """Yield the skipped leaves of a rubric tree that were one level of gates away from being asked."""
    by_id = {leaf.id: leaf for leaf in tree.leaves()}
    parents = {id(child): node for node in tree.walk() for child in node.children}
    for leaf in by_id.values():
        if not is_skipped(leaf):
            continue
        if not _fails_by_judge(by_id.get(blocked_by(leaf) or "")):
            continue
        if not any(map(is_skipped, _leaves_before(leaf, parents))):
            yield leaf


def _leaves_before(
    leaf: WrittenNode, parents: dict[int, WrittenNode]
) -> Iterator[WrittenNode]:
    """Yield the leaves before one that may block it: critical ones, and those of sequences."""
    node = leaf
    while (parent := parents.get(id(node))) is not None:
        for sibling in parent.children:
            if sibling is node:
                break
            if sibling.critical or parent.strategy == "sequential":
                yield from sibling.leaves()
        node = parent


def _fails_by_judge(gate: WrittenNode | None) -> bool:
    # Other verdicts, such as a script's own, take no time in which something could be asked.
    if gate is None or gate.evidence is None:
        return False
    return gate.evidence.decided_by == "judge" and not gate.is_passed
