"""What ``--ahead gates`` would ask for nothing, told from a stored result; pure."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.results.result_file import ResultFile
from mind2web2.results.score_bounds import blocked_by, is_skipped
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.planned_votes import PlannedVotes


def wasted_requests(result: ResultFile, votes: PlannedVotes) -> float:
    """Return how many requests ``--ahead gates`` adds to those of a result.

    A skipped leaf is taken to be asked about one source: by then its gate is decided.

    Args:
        votes: those that the result's judged leaves take.
    """
    if not votes.sources:
        return 0.0
    leaves = sum(1 for tree in result.trees for _ in leaves_asked_ahead(tree))
    return leaves * (votes.own + votes.first) / votes.sources


def leaves_asked_ahead(tree: WrittenNode) -> Iterator[WrittenNode]:
    """Yield the leaves of a rubric tree that were skipped for a verdict of the judge, or for such a leaf."""
    by_id = {leaf.id: leaf for leaf in tree.leaves()}
    for leaf in by_id.values():
        gate: WrittenNode | None = leaf
        seen: set[str] = set()
        while gate is not None and is_skipped(gate) and gate.id not in seen:
            seen.add(gate.id)
            gate = by_id.get(blocked_by(gate) or "")
        if seen and _fails_by_judge(gate):
            yield leaf


def _fails_by_judge(gate: WrittenNode | None) -> bool:
    # Other verdicts, such as a script's own, take no time in which something could be asked.
    if gate is None or gate.evidence is None:
        return False
    return gate.evidence.decided_by == "judge" and not gate.is_passed
