"""The facts of a result that the cautions at the end of a run need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mind2web2.results.claim_facts import (
    decisive_troubles,
    flagged_pages,
    is_shown_in_part,
    unavailable_pages,
)
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.written_tree import WrittenNode

_SCORES = {"passed": 1.0, "failed": 0.0, "skipped": 0.0, "initialized": 0.0}


@dataclass(frozen=True, slots=True)
class CautionFacts:
    """Facts that may make one score wrong.

    Args:
        unavailable: pages whose claims failed, as they are unavailable.
        unread: the same for extractions, one for each.
        troubles: one entry for each claim that was judged on a page that looks wrong.
        notes: lines about this answer alone.
        partly_shown: claims that were judged without all images of a page.
        declined: votes and extractions that the judge refused.
        clock: the date that the script read, and whether ``--as_of`` fixed it.
    """

    task_id: str
    answer_name: str
    unavailable: frozenset[str]
    unread: tuple[str, ...]
    refused_pages: tuple[str, ...]
    troubles: tuple[str, ...]
    notes: tuple[str, ...]
    partly_shown: int
    refused_downloads: tuple[str, ...]
    declined: tuple[int, int]
    is_flagged: bool
    flagged_pages: frozenset[str]
    flagged_claims: frozenset[str]
    faults: tuple[str, ...]
    clock: tuple[str, bool] | None

    @property
    def name(self) -> str:
        """Return task and answer for messages."""
        return f"{self.task_id}/{self.answer_name}"

    @classmethod
    def of(cls, task_id: str, answer_name: str, result: ResultFile) -> CautionFacts:
        """Return the facts of a result."""
        leaves = list(result.leaves())
        troubles = [" and ".join(sorted(decisive_troubles(leaf))) for leaf in leaves]
        return cls(
            task_id=task_id,
            answer_name=answer_name,
            unavailable=frozenset(url for leaf in leaves for url in unavailable_pages(leaf)),
            unread=tuple(result.unread_pages()),
            refused_pages=result.refused_pages(),
            troubles=tuple(filter(None, troubles)),
            notes=tuple(_notes(f"{task_id}/{answer_name}", result, leaves)),
            partly_shown=sum(map(is_shown_in_part, leaves)),
            refused_downloads=result.refused_downloads(),
            declined=result.declined_counts(),
            is_flagged=bool(result.answer_flags),
            flagged_pages=frozenset(_flagged_pages(result, leaves)),
            flagged_claims=frozenset(_flagged_claims(leaves)),
            faults=tuple(result.faults_of_script()),
            clock=_clock(result),
        )


def _notes(name: str, result: ResultFile, leaves: list[WrittenNode]) -> Iterator[str]:
    errors = [leaf.id for leaf in leaves if leaf.evidence and leaf.evidence.decided_by == "error"]
    if errors:
        yield f"{name}: failed because of an error, see its log: {', '.join(errors)}"
    if contradictory := [leaf.id for leaf in leaves if _is_contradictory(leaf)]:
        yield (
            f"{name}: the script has set a score that contradicts the status: "
            f"{', '.join(contradictory)}"
        )
    if not leaves:
        yield f"{name}: its script returned a score without a rubric tree, which cannot be checked"
    if (by_tree := result.other_score_by_tree) is not None:
        score = f"its script returned the score {result.final_score:g}"
        yield f"{name}: {score}, but its rubric tree has {by_tree:g}"
    if result.doubts:
        yield f"{name}: in doubt, the next run judges it again: {'; '.join(result.doubts)}"


def _is_contradictory(leaf: WrittenNode) -> bool:
    # The script's own decision, before a sequence overrode it.
    score, status = leaf.verdict
    return status in _SCORES and score != _SCORES[status]


def _flagged_pages(result: ResultFile, leaves: list[WrittenNode]) -> Iterator[str]:
    for record in result.extractions:
        if record.page is not None and record.page.flags:
            yield str(record.url)
    for leaf in leaves:
        yield from flagged_pages(leaf)


def _flagged_claims(leaves: list[WrittenNode]) -> Iterator[str]:
    evidences = [leaf.evidence for leaf in leaves if leaf.evidence is not None]
    return (str(evidence.claim) for evidence in evidences if evidence.flags)


def _clock(result: ResultFile) -> tuple[str, bool] | None:
    made_from = result.provenance
    if made_from is None or made_from.inputs.clock is None:
        return None
    clock = made_from.inputs.clock
    return (clock.date, made_from.inputs.as_of is not None) if clock.is_read else None
