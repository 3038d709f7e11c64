"""Leaves with another verdict in another agent's result, grouped by cause; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mind2web2.runs.reader import leaf_facts, leaves_of, pages_not_had

Cause = Literal["skip", "page_missing", "extraction", "vote", "answer", "judge"]
CAUSES: Mapping[Cause, str] = {
    "skip": "skipped, as a prerequisite failed",
    "page_missing": "page unavailable",
    "extraction": "value not extracted, or extracted differently",
    "vote": "votes differ",
    "answer": "the answers claim different things",
    "judge": "same claim, other verdict",
}
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class JudgedLeaf:
    """One leaf's own verdict and the facts that tell why two of them differ."""

    passed: bool
    decided_by: str | None
    claim: str | None
    answer_sha256: str | None
    is_split: bool
    lacks_page: bool


# By task, answer name and leaf.
Leaves = Mapping[tuple[str, str, str], JudgedLeaf]


def judged_leaves(task_id: str, answer_name: str, result: Mapping[str, Any]) -> Leaves:
    """Return the leaves of a result; of leaves with one id the last counts."""
    provenance = result.get("provenance")
    sha256 = provenance.get("answer_sha256") if isinstance(provenance, dict) else None
    found = {}
    for leaf in leaves_of(result):
        verdict = leaf.get("superseded") or leaf
        evidence = leaf.get("evidence")
        own = evidence if isinstance(evidence, dict) else {}
        found[task_id, answer_name, str(leaf.get("id"))] = JudgedLeaf(
            passed=isinstance(verdict, dict) and verdict.get("status") == "passed",
            decided_by=own.get("decided_by"),
            claim=own.get("claim"),
            answer_sha256=sha256,
            is_split=leaf_facts(leaf).is_split,
            lacks_page=bool(pages_not_had(leaf)) or own.get("decided_by") == "page",
        )
    return found


@dataclass(frozen=True, slots=True)
class FlipCount:
    """The flips of one cause.

    Args:
        gained: leaves that only the second agent passes.
        lost: leaves that only the first agent passes.
        examples: a few of them, as ``task/answer/leaf``.
    """

    gained: int
    lost: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeafFlips:
    """The leaves of two agents, matched by task, answer name and leaf id.

    Args:
        matched: leaves that both results have.
        unmatched: leaves that only one of both results has.
        by_cause: the flips, of all causes.
    """

    matched: int
    unmatched: int
    by_cause: Mapping[Cause, FlipCount]

    def summary(self) -> dict[str, Any]:
        """Return them as ``mind2web2 compare --json`` prints them."""
        return asdict(self)


def leaf_flips(first: Leaves, second: Leaves) -> LeafFlips:
    """Return the leaves that pass in one agent's result only, by the cause on the side that fails."""
    answers = {name[:2] for name in first} & {name[:2] for name in second}
    shared = [name for name in first if name in second]
    gained: Counter[Cause] = Counter()
    lost: Counter[Cause] = Counter()
    examples: dict[Cause, list[str]] = {cause: [] for cause in CAUSES}
    for name in shared:
        one, other = first[name], second[name]
        if one.passed != other.passed:
            cause = _cause(failed=one if other.passed else other, passed=other if other.passed else one)
            (gained if other.passed else lost)[cause] += 1
            examples[cause].append("/".join((name[0], name[1].removesuffix(".md"), name[2])))
    sides = sum(name[:2] in answers for leaves in (first, second) for name in leaves)
    return LeafFlips(
        len(shared),
        sides - 2 * len(shared),
        {
            cause: FlipCount(gained[cause], lost[cause], tuple(examples[cause][:_EXAMPLES]))
            for cause in CAUSES
        },
    )


def _cause(failed: JudgedLeaf, passed: JudgedLeaf) -> Cause:
    if failed.decided_by == "prerequisite":
        return "skip"
    if failed.lacks_page:
        return "page_missing"
    is_other_claim = failed.claim != passed.claim
    is_same_answer = failed.answer_sha256 is not None and failed.answer_sha256 == passed.answer_sha256
    # A script decides a leaf by the values that it extracted.
    if failed.decided_by in ("script", None) or (is_other_claim and is_same_answer):
        return "extraction"
    if is_other_claim:
        return "answer"
    return "vote" if failed.is_split or passed.is_split else "judge"
