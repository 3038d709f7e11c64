"""The report on a draft, which a person reads before the task is used."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.authoring.draft import Attempt, Draft
from mind2web2.scripts.rubric_file import FROM_ANSWER, RubricFile
from mind2web2.scripts.rubric_outline import tree_lines


def report_lines(draft: Draft) -> Iterator[str]:
    """Yield the report: tree and leaves, answers, what is doubtful, what was repaired."""
    chosen = draft.chosen
    if chosen is not None and chosen.rubric is not None:
        yield "The tree, and what each leaf asks:"
        yield from (f"  {text}" for text in tree_lines(chosen.rubric))
        yield "Answers, rehearsed without a model on what the drafting model says is in them:"
        yield from _answers(chosen)
        yield "Doubtful:"
        yield from (
            f"  - {' '.join(text.split())}"
            for text in _doubts(draft, chosen, chosen.rubric)
        )
    yield "Repaired:"
    yield from _repairs(draft)


def _answers(chosen: Attempt) -> Iterator[str]:
    about = {
        name: " ".join(answer.about.split()) for name, answer in chosen.reply.answers()
    }
    for case in chosen.outcomes:
        yield f"  {case.name}: {case} ({about.get(case.name, '')})"
    if not chosen.outcomes:
        yield "  none could be rehearsed"


def _doubts(draft: Draft, chosen: Attempt, rubric: RubricFile) -> Iterator[str]:
    yield "no page was opened: facts and addresses of the solution are the model's memory"
    yield from chosen.reply.doubts
    yield from (f"still found: {finding}" for finding in chosen.findings)
    yield from draft.raised()
    alone = [node.id for node in rubric.root.walk() if node.sources == (FROM_ANSWER,)]
    if alone:
        yield f"judged from the answer alone: {', '.join(alone)}"
    known = [node.id for node in rubric.root.walk() if node.equals is not None]
    if known:
        yield f"rests on a value that the model names or compares: {', '.join(known)}"
    if chosen.unshown:
        yield f"seen to pass in no rehearsal: {', '.join(chosen.unshown)}"


def _repairs(draft: Draft) -> Iterator[str]:
    repaired = draft.attempts[:-1]
    if not repaired:
        yield "  nothing" if not draft.attempts[0].findings else "  nothing could be"
    for number, attempt in enumerate(repaired, start=1):
        yield f"  repair {number} was asked for because of:"
        yield from (
            f"    - {' '.join(finding.split())}" for finding in attempt.findings
        )
    chosen = draft.chosen
    if chosen is not None and chosen is not draft.attempts[-1]:
        used = next(
            number for number, each in enumerate(draft.attempts) if each is chosen
        )
        which = "the first draft" if used == 0 else f"repair {used}"
        yield f"  later repairs were worse: {which} is used"
