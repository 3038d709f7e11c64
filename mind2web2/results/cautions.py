"""Reasons why scores may be wrong, one line each, from the facts of their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.verdicts import TO_THIS_JUDGE, PageCheck
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted

_ON_PRIVATE_NETWORK = (
    "on this machine or its network (if you trust the answers, add --allow_private_network)"
)


@dataclass(frozen=True, slots=True)
class CautionFacts:
    """Facts that may make one score wrong.

    Args:
        unavailable: pages whose claims failed, as they are unavailable.
        unread: the same for extractions.
        partly_shown: claims that were judged without all images of a page.
        clock: the date that the script read.
    """

    task_id: str
    answer_name: str
    unavailable: frozenset[str]
    unread: tuple[str, ...]
    refused_pages: tuple[str, ...]
    partly_shown: int
    refused_downloads: tuple[str, ...]
    faults: tuple[str, ...]
    clock: str | None

    @property
    def name(self) -> str:
        """Return task and answer for messages."""
        return f"{self.task_id}/{self.answer_name}"

    @classmethod
    def of(cls, task_id: str, answer_name: str, result: ResultFile) -> CautionFacts:
        """Return the facts of a result."""
        pages = [leaf.grounds.pages for leaf in result.leaves()]
        checks = [check for of_leaf in pages for check in of_leaf]
        return cls(
            task_id=task_id,
            answer_name=answer_name,
            unavailable=frozenset(each.url for each in checks if each.outcome == "unavailable"),
            unread=tuple(result.unread_pages()),
            refused_pages=result.refused_pages(),
            partly_shown=sum(map(_is_shown_in_part, pages)),
            refused_downloads=result.refused_downloads(),
            faults=result.script_faults,
            clock=_date_seen(result),
        )


def _is_shown_in_part(checks: Sequence[PageCheck]) -> bool:
    """Tell whether the judge got only some of the images of a claim's pages."""
    return any(TO_THIS_JUDGE in note for check in checks for note in check.shown.notes)


def _date_seen(result: ResultFile) -> str | None:
    clock = None if result.provenance is None else result.provenance.inputs.clock
    return clock.date if clock is not None and clock.is_read else None


def cautions(results: Sequence[CautionFacts]) -> list[str]:
    """Return the reasons beside the doubtful verdicts, which the metrics count."""
    lines = [
        _unavailable_line(results),
        _partly_shown_line(results),
        _downloads_line(results),
        *_fault_lines(results),
    ]
    return list(filter(None, lines))


def _unavailable_line(results: Sequence[CautionFacts]) -> str | None:
    judged = _with_tasks(results, lambda one: one.unavailable)
    read = _with_tasks(results, lambda one: one.unread)
    refused = _with_tasks(results, lambda one: one.refused_pages)
    pages = judged | read
    if not pages:
        return None
    tasks = _by_task(pages)
    parts = [f"{counted(len(pages), 'cited page')} unavailable ({tasks})"]
    parts += ["claims on them are not supported"] if judged else []

    if private := len(pages & refused):
        parts.append(f"{private} of them {_ON_PRIVATE_NETWORK}")
    return "; ".join(parts)


def _partly_shown_line(results: Iterable[CautionFacts]) -> str | None:
    count = sum(result.partly_shown for result in results)
    if not count:
        return None
    return (
        f"{counted(count, 'claim')} judged without all images of a page, because the judge is "
        "shown fewer. The evidence says how many"
    )


def _downloads_line(results: Iterable[CautionFacts]) -> str | None:
    files = _with_tasks(results, lambda one: one.refused_downloads)
    if not files:
        return None
    tasks = _by_task(files)
    return f"scripts could not download files: {len(files)} ({tasks}), {_ON_PRIVATE_NETWORK}"


def _fault_lines(results: Iterable[CautionFacts]) -> Iterator[str]:
    """Yield each mistake of a script that may have cost answers points, once."""
    answers: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for fault in result.faults:
            answers.setdefault((result.task_id, fault), []).append(result.name)
    for (_, fault), names in sorted(answers.items(), key=lambda item: natural_key(item[0][0])):
        yield f"{fault} ({name_list(names)})"


def _with_tasks(
    results: Iterable[CautionFacts], addresses_of: Callable[[CautionFacts], Iterable[str]]
) -> set[tuple[str, str]]:
    """Return the addresses that results have, each with its task."""
    return {(one.task_id, url) for one in results for url in addresses_of(one)}


def _by_task(addresses: Iterable[tuple[str, str]]) -> str:
    amounts = Counter(task for task, _ in addresses)
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts, key=natural_key))


def clock_line(results: Sequence[CautionFacts]) -> str | None:
    """Return which scripts read the clock, and on which dates, in one line."""
    dates = {result.task_id: result.clock for result in results if result.clock is not None}
    if not dates:
        return None
    scripts = f"{counted(len(dates), 'script')} read the clock: {name_list(dates)}"
    return f"{scripts}; date seen: {name_list(set(dates.values()))} (--as_of sets it)"
