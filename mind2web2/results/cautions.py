"""Reasons why scores may be wrong, one line each, from the facts of their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mind2web2.results.claim_facts import PageFacts
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted

_ON_PRIVATE_NETWORK = (
    "on this machine or its network (if you trust the answers, add --allow_private_network)"
)
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
        pages = [PageFacts.of(leaf) for leaf in leaves]
        troubles = [" and ".join(sorted(each.troubles)) for each in pages]
        flagged = [url for each in pages for url in each.flagged]
        flagged += [str(each.url) for each in result.extractions if each.shown.flags]
        return cls(
            task_id=task_id,
            answer_name=answer_name,
            unavailable=frozenset(url for each in pages for url in each.unavailable),
            unread=tuple(result.unread_pages()),
            refused_pages=result.refused_pages(),
            troubles=tuple(filter(None, troubles)),
            notes=tuple(_notes(f"{task_id}/{answer_name}", result, leaves)),
            partly_shown=sum(each.is_shown_in_part for each in pages),
            refused_downloads=result.refused_downloads(),
            declined=result.declined_counts(),
            is_flagged=bool(result.answer_flags),
            flagged_pages=frozenset(flagged),
            flagged_claims=frozenset(_flagged_claims(leaves)),
            faults=result.script_faults,
            clock=_clock(result),
        )


def _notes(name: str, result: ResultFile, leaves: list[WrittenNode]) -> Iterator[str]:
    errors = [leaf.id for leaf in leaves if leaf.grounds.decided_by == "error"]
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


def _flagged_claims(leaves: list[WrittenNode]) -> Iterator[str]:
    return (str(leaf.grounds.claim) for leaf in leaves if leaf.grounds.flags)


def _clock(result: ResultFile) -> tuple[str, bool] | None:
    made_from = result.provenance
    if made_from is None or made_from.inputs.clock is None:
        return None
    clock = made_from.inputs.clock
    return (clock.date, made_from.inputs.as_of is not None) if clock.is_read else None


def cautions(results: Sequence[CautionFacts], recapture: str) -> list[str]:
    """Return the reasons of a run.

    Args:
        recapture: the command that captures pages again.
    """
    lines = [
        _unavailable_line(results),
        _suspect_line(results, recapture),
        *(line for result in results for line in result.notes),
        _partly_shown_line(results),
        _downloads_line(results),
        _declined_line(results),
        flagged_line(results),
        *_fault_lines(results),
    ]
    return [line for line in lines if line]


def lasting_cautions(results: Sequence[CautionFacts]) -> list[str]:
    """Return the cautions about stored results beside the table of doubtful verdicts."""
    lines = [
        _unavailable_line(results),
        _downloads_line(results),
        *_fault_lines(results),
    ]
    return [line for line in lines if line]


def _unavailable_line(results: Sequence[CautionFacts]) -> str | None:
    judged = {(one.task_id, url) for one in results for url in one.unavailable}
    read = [(one.task_id, url) for one in results for url in one.unread]
    refused = {(one.task_id, url) for one in results for url in one.refused_pages}
    pages = judged | set(read)
    if not pages:
        return None
    tasks = _by_name(Counter(task for task, _ in pages))
    parts = [f"{counted(len(pages), 'cited page')} unavailable ({tasks})"]
    parts += ["claims on them are not supported"] if judged else []
    parts += [f"{counted(len(read), 'extraction')} came out empty"] if read else []
    if private := len(pages & refused):
        parts.append(f"{private} of them {_ON_PRIVATE_NETWORK}")
    return "; ".join(parts)


def _suspect_line(results: Sequence[CautionFacts], recapture: str) -> str | None:
    # One entry a claim, so that the counts add up.
    kinds = Counter(kinds for result in results for kinds in result.troubles)
    if not kinds:
        return None
    return (
        f"some claims were judged on pages that look wrong: {_total(kinds)}. Look at these pages, "
        f"or capture them again: {recapture}"
    )


def _partly_shown_line(results: Iterable[CautionFacts]) -> str | None:
    count = sum(result.partly_shown for result in results)
    if not count:
        return None
    return (
        f"{counted(count, 'claim')} judged without all images of a page, because the judge is "
        "shown fewer. The evidence says how many"
    )


def _downloads_line(results: Iterable[CautionFacts]) -> str | None:
    files = {(result.task_id, url) for result in results for url in result.refused_downloads}
    if not files:
        return None
    tasks = Counter(task for task, _ in files)
    return f"scripts could not download files: {_total(tasks)}, {_ON_PRIVATE_NETWORK}"


def _declined_line(results: Iterable[CautionFacts]) -> str | None:
    tasks, kinds = Counter[str](), Counter[str]()
    for result in results:
        votes, extractions = result.declined
        tasks[result.task_id] += votes + extractions
        kinds.update(votes=votes, extractions=extractions)
    if not tasks.total():
        return None
    return (
        f"the judge refused to answer, twice each: votes {kinds['votes']}, extractions "
        f"{kinds['extractions']} ({_by_name(+tasks)}). Such votes count as not supported, and "
        "such extractions are empty"
    )


def flagged_line(results: Sequence[CautionFacts]) -> str | None:
    """Return how many answers, pages and claims were flagged; ``None`` where none was."""
    answers = {result.name for result in results if result.is_flagged}
    pages = {(result.task_id, url) for result in results for url in result.flagged_pages}
    claims = {(result.task_id, claim) for result in results for claim in result.flagged_claims}
    amounts = {"answer": len(answers), "page": len(pages), "claim": len(claims)}
    parts = [counted(amount, noun) for noun, amount in amounts.items() if amount]
    if not parts:
        return None
    return (
        f"texts that seem to instruct the judge: {', '.join(parts)}. This changes no verdict, and "
        "the results have the flags"
    )


def _fault_lines(results: Iterable[CautionFacts]) -> Iterator[str]:
    """Yield each mistake of a script that may have cost answers points, once."""
    answers: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for fault in result.faults:
            answers.setdefault((result.task_id, fault), []).append(result.name)
    for (_, fault), names in sorted(answers.items(), key=lambda item: natural_key(item[0][0])):
        yield f"{fault} ({name_list(names)})"


def _total(amounts: Counter[str]) -> str:
    return f"{amounts.total()} ({_by_name(amounts)})"


def _by_name(amounts: Counter[str]) -> str:
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts, key=natural_key))


def clock_line(results: Sequence[CautionFacts]) -> str | None:
    """Return which scripts read the clock, and on which dates, in one line."""
    clocks = [(each.task_id, each.clock) for each in results if each.clock is not None]
    scripts = {task_id for task_id, _ in clocks}
    dates = {date for _, (date, _) in clocks}
    is_fixed = all(is_fixed for _, (_, is_fixed) in clocks)
    if not scripts:
        return None
    reads = "1 script reads" if len(scripts) == 1 else f"{len(scripts)} scripts read"
    how = "set by --as_of" if is_fixed else "--as_of fixes the date"
    return f"{reads} the clock: {name_list(scripts)}; date seen: {name_list(dates)} ({how})"
