"""Bounds of a result's score, by its verdicts on weak evidence; pure.

Scores never fall when a leaf passes instead of failing, and fewer leaves are skipped then. So the
score is least where every weak verdict is a failure, and greatest where each is a pass. A leaf that
was skipped because of a weak failure has no verdict: it fails in one case and passes in the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from mind2web2.results.claim_facts import claim_facts, is_claim
from mind2web2.rubric.verdicts import Outcome, aggregate
from mind2web2.rubric.written_tree import WrittenNode, WrittenScore


class ScoreBounds(BaseModel):
    """The least and the greatest score that a result could have had.

    Args:
        weak_leaves: leaves with a verdict on weak evidence.
        unknown_leaves: leaves that were skipped because a weak leaf failed.
    """

    model_config = ConfigDict(frozen=True)

    low: WrittenScore
    high: WrittenScore
    weak_leaves: int = 0
    unknown_leaves: int = 0


_PASSED = Outcome(1.0, "passed")
_FAILED = Outcome(0.0, "failed")


def score_bounds(root: WrittenNode, score: float) -> ScoreBounds:
    """Return the bounds of a score that follows from a rubric tree.

    Weak are verdicts on missing or suspect pages, with a quotation that was not found, with votes
    that differ or that the judge declined, and after an error. The script's own decisions stay as
    they are. Unknown are leaves that were skipped because a weak leaf failed.
    """
    leaves = list(root.leaves())
    weak = {id(leaf) for leaf in leaves if _is_weak(leaf)}
    if not weak:
        return ScoreBounds(low=score, high=score)
    unknown = unblocked_leaves(leaves, weak)
    blocking = weak | {id(leaf) for leaf in leaves if leaf.verdict.blocks}
    failed = blocked_leaves(root, leaves, blocking)
    low = aggregate(root, dict.fromkeys(failed, _FAILED))[id(root)].score
    high = aggregate(root, dict.fromkeys(weak | unknown, _PASSED))[id(root)].score
    return ScoreBounds(low=low, high=high, weak_leaves=len(weak), unknown_leaves=len(unknown))


def _is_weak(leaf: WrittenNode) -> bool:
    return is_claim(leaf) and claim_facts(leaf).is_weak


def unblocked_leaves(leaves: Sequence[WrittenNode], weak: set[int]) -> set[int]:
    """Return the skipped leaves that are judged if all these leaves pass, by ``id(leaf)``."""
    counts = Counter(leaf.id for leaf in leaves)
    by_id = {leaf.id: leaf for leaf in leaves if counts[leaf.id] == 1}
    passes: dict[int, bool] = {}
    for leaf in leaves:
        # From a skipped leaf to the one that blocked it, and so on, to one that is known.
        chain: list[WrittenNode] = []
        at: WrittenNode | None = leaf
        while at is not None and id(at) not in passes and is_skipped(at):
            chain.append(at)
            passes[id(at)] = True
            at = by_id.get(blocked_by(at) or "")
        ends = True
        if at is not None:
            chain.append(at)
            ends = id(at) in weak or passes.get(id(at), not at.verdict.blocks)
        for each in chain:
            passes[id(each)] = ends
    return {id(leaf) for leaf in leaves if is_skipped(leaf) and passes[id(leaf)]}


def is_skipped(leaf: WrittenNode) -> bool:
    """Tell whether a leaf was skipped because a prerequisite blocked it."""
    is_by_prerequisite = leaf.evidence is not None and leaf.evidence.decided_by == "prerequisite"
    return leaf.verdict.status == "skipped" and is_by_prerequisite


def blocked_by(leaf: WrittenNode) -> str | None:
    """Return the id of the leaf that a skipped leaf names as the reason, if any."""
    return None if leaf.evidence is None else leaf.evidence.blocked_by


def blocked_leaves(
    root: WrittenNode, leaves: Sequence[WrittenNode], failing_leaves: Iterable[int]
) -> set[int]:
    """Return the leaves that fail, by ``id(leaf)``, with those that are then skipped by name."""
    failed = set(failing_leaves)
    if not any(map(_prerequisites, leaves)):
        # Other prerequisites are the gates and sequences that aggregation applies itself.
        return failed
    return failed | skipped_behind(root, leaves, failed)


def _prerequisites(leaf: WrittenNode) -> Sequence[str]:
    return () if leaf.evidence is None else leaf.evidence.prerequisites


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
        found = {
            id(leaf)
            for leaf in leaves
            if id(leaf) in skipped
            or any(
                id(node) in failing for name in _prerequisites(leaf) for node in by_id.get(name, ())
            )
        }
        is_changed = not found <= failed
        failed |= found
    return failed - first


def _with_failed_leaf(root: WrittenNode, failed: set[int]) -> set[int]:
    found = set(failed)
    for node in reversed(list(root.walk())):
        if any(id(child) in found for child in node.children):
            found.add(id(node))
    return found


def _behind(root: WrittenNode, failing: set[int]) -> set[int]:
    """Return the nodes that a failing node skips, with all below them."""
    found: set[int] = set()
    for node in root.walk():
        places = [place for place, child in enumerate(node.children) if id(child) in failing]
        gates = [place for place in places if node.children[place].critical]
        for place, child in enumerate(node.children):
            is_late = node.strategy == "sequential" and bool(places) and places[0] < place
            if id(node) in found or is_late or (gates and gates != [place]):
                found.add(id(child))
    return found
