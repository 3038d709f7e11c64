"""How far a score depends on verdicts with weak evidence: its least and greatest possible value; pure.

Scores never fall when a leaf passes instead of failing, and fewer leaves are skipped then. So the score is
least where every weak verdict is a failure, and greatest where each is a pass. A leaf that was skipped
because of a weak failure has no verdict: it fails in one case and passes in the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mind2web2.rubric.aggregation import Outcome, aggregate, is_score
from mind2web2.rubric.evidence import blocking_leaf_id
from mind2web2.runs.reader import JUDGED, WrittenNode, leaf_facts, other_score_by_tree, written_tree
from mind2web2.utils.text import mapping

_PASSED, _FAILED = Outcome(1.0, "passed"), Outcome(0.0, "failed")


@dataclass(frozen=True, slots=True)
class ScoreBounds:
    """A score's least and greatest value."""

    low: float
    high: float
    weak_leaves: int
    unknown_leaves: int


def score_bounds(result: Mapping[str, Any]) -> ScoreBounds | None:
    """Return the bounds of a result's score, ``None`` where it does not follow from one rubric tree.

    Weak are verdicts on missing or suspect pages, with a quotation that was not found, with votes that differ
    or that the judge declined, and after an error. The script's own decisions stay as they are.
    """
    root, score = written_tree(result), result.get("final_score")
    if root is None or not is_score(score) or other_score_by_tree(result) is not None:
        return None
    leaves = [node for node in root.walk() if not node.children]
    weak = {id(leaf) for leaf in leaves if _is_weak(leaf)}
    if not weak:
        return ScoreBounds(score, score, 0, 0)
    unknown = _unblocked(leaves, weak)
    failed = _blocked(root, leaves, weak)
    low = aggregate(root, dict.fromkeys(failed, _FAILED))[id(root)].score
    high = aggregate(root, dict.fromkeys(weak | unknown, _PASSED))[id(root)].score
    return ScoreBounds(low, high, len(weak), len(unknown))


def _evidence(leaf: WrittenNode) -> Mapping[str, Any]:
    return mapping(leaf.fields.get("evidence"))


def _is_weak(leaf: WrittenNode) -> bool:
    return _evidence(leaf).get("decided_by") in JUDGED and leaf_facts(leaf.fields).is_weak


def _unblocked(leaves: Sequence[WrittenNode], weak: set[int]) -> set[int]:
    """Return the skipped leaves that are judged if all weak leaves pass."""
    counts = Counter(leaf.id for leaf in leaves)
    by_id = {leaf.id: leaf for leaf in leaves if counts[leaf.id] == 1}
    passes: dict[int, bool] = {}
    for leaf in leaves:
        # From a skipped leaf to the one that blocked it, and so on, to one that is known.
        chain: list[WrittenNode] = []
        at: WrittenNode | None = leaf
        while at is not None and id(at) not in passes and _is_skipped(at):
            chain.append(at)
            passes[id(at)] = True
            at = by_id.get(blocking_leaf_id(str(_evidence(at).get("reason"))) or "")
        ends = at is None or id(at) in weak or passes.get(id(at), not at.verdict.blocks)
        passes.update((id(each), ends) for each in (*chain, *([at] if at is not None else [])))
    return {id(leaf) for leaf in leaves if _is_skipped(leaf) and passes[id(leaf)]}


def _is_skipped(leaf: WrittenNode) -> bool:
    return leaf.verdict.status == "skipped" and _evidence(leaf).get("decided_by") == "prerequisite"


def _blocked(root: WrittenNode, leaves: Sequence[WrittenNode], weak: set[int]) -> set[int]:
    """Return the leaves that fail if all weak leaves fail, those included that are then skipped."""
    failed = weak | {id(leaf) for leaf in leaves if leaf.verdict.blocks}
    named = {id(leaf): _evidence(leaf).get("prerequisites") or () for leaf in leaves}
    if not any(named.values()):
        # Other prerequisites are the gates and sequences that aggregation applies itself.
        return failed
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
            or any(id(node) in failing for name in named[id(leaf)] for node in by_id.get(str(name), ()))
        }
        is_changed = not blocked <= failed
        failed |= blocked
    return failed


def _with_failed_leaf(root: WrittenNode, failed: set[int]) -> set[int]:
    found = set(failed)
    for node in reversed(list(root.walk())):
        if any(id(child) in found for child in node.children):
            found.add(id(node))
    return found


def _behind(root: WrittenNode, failing: set[int]) -> set[int]:
    """Return the nodes beside a failing critical node or after a failing one in a sequence, and all below."""
    found: set[int] = set()
    for node in root.walk():
        places = [place for place, child in enumerate(node.children) if id(child) in failing]
        gates = [place for place in places if node.children[place].critical]
        for place, child in enumerate(node.children):
            is_late = node.strategy == "sequential" and bool(places) and places[0] < place
            if id(node) in found or is_late or (gates and gates != [place]):
                found.add(id(child))
    return found
