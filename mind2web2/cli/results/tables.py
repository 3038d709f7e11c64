"""An agent's metrics for people: tables with warnings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mind2web2.cli.console import PlainConsole
from mind2web2.results.agent_summary import (
    AgentSummary,
    ClaimCounts,
    MissingBounds,
    TheseTasks,
    VerdictCounts,
)
from mind2web2.results.claim_facts import Reservation
from mind2web2.results.freshness import ResultsNow
from mind2web2.statistics.uncertainty import LEVEL, RESAMPLES, IntervalFigures
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted, number, percent, whole

_TASKS_SHOWN = 3
LEVEL_NAME = f"{LEVEL:.0%} interval"
_AT_LARGE = f"{LEVEL_NAME}\n(tasks at large)"
_METHOD = f"BCa bootstrap, {RESAMPLES:,} resamples of the tasks with all their answers"
_EXACT = "exact (Clopper-Pearson), as all tasks have the same value"
_RESERVATIONS: Mapping[Reservation, str] = {
    "page_not_had": "failed: page unavailable",
    "suspect_page": "page looks wrong",
    "declined": "failed: judge refused",
    "flagged": "text tries to instruct judge",
    "error": "failed: error while judging",
}
_OF_EXTRACTIONS: Mapping[Reservation, str] = {
    "page_not_had": "empty, because a page was unavailable",
    "suspect_page": "from pages that look wrong",
    "declined": "empty, because the judge refused to answer",
    "flagged": "from pages that try to instruct the judge",
}


class Metric(NamedTuple):
    """The name of a metric, and how its values are written."""

    label: str
    text: Callable[[float | None], str] = number


# By their names in ``summary.json``; pass@k is ``pass_at_k``.
METRICS = {
    "avg_score": Metric("partial completion"),
    "success_rate": Metric("success rate"),
    "pass_at_k": Metric("pass@k"),
    "avg_answer_word_count": Metric("answer length (words)", whole),
    "avg_time_seconds": Metric("agent's time (s)", whole),
}


def print_metrics(console: PlainConsole, summary: AgentSummary) -> None:
    """Print an agent's metrics, with warnings."""
    tasks = counted(summary.num_tasks, "task")
    runs = counted(summary.num_runs, "run")
    by_name = summary.shown_intervals
    labels = {name: metric.label for name, metric in METRICS.items()}
    labels["pass_at_k"] = f"pass@{summary.num_runs}"
    values = {
        "avg_score": (summary.shown_score, summary.avg_score_std),
        "success_rate": (summary.shown_success_rate, summary.success_rate_std),
        # No mean over runs, and so without a spread.
        "pass_at_k": (summary.pass_at_k, None),
        "avg_answer_word_count": (
            summary.avg_answer_word_count,
            summary.avg_answer_word_count_std,
        ),
        "avg_time_seconds": (summary.avg_time_seconds, None),
    }
    rows = []
    for name, (mean, spread) in values.items():
        text = METRICS[name].text
        interval = by_name[name]
        shown = range_text(interval.low, interval.high, text)
        rows.append((labels[name], text(mean), text(spread), shown))
    headings = ("metric", "mean", "spread of runs' means", _AT_LARGE)
    scope = "chosen tasks" if summary.missing_counted_as_zero else "all results"
    title = f"{summary.agent_name}, {scope}: {tasks}, {runs}"
    console.print_table(title, headings, rows)
    intervals = {label: by_name[name] for name, label in labels.items()}
    _print_methods(console, intervals)
    print_reasons(console, intervals)
    if summary.over_tasks is not None:
        console.print_line(
            "Some runs lack tasks, so partial completion and success rate are averaged over the "
            "means of tasks, as in compare. The means of runs, in summary.json, are "
            f"{percent(summary.avg_score or 0)} and {percent(summary.success_rate or 0)}.",
        )
    if summary.these_tasks is not None:
        console.print_line(f"{_other_answers(summary.these_tasks)}.")
    _print_missing(console, summary.missing_bounds)
    console.print_lines(summary.warnings, "Warning: ")


def _other_answers(these: TheseTasks) -> str:
    """Return how far other answers to the same tasks might differ, where theirs do differ."""
    if these.low == these.high:
        return (
            "No interval for new answers to these same tasks: all answers to a task have the "
            "same score"
        )
    return (
        f"{LEVEL_NAME} for new answers to these same tasks: partial completion "
        f"{percent(these.low)} to {percent(these.high)}"
    )


def _print_missing(console: PlainConsole, bounds: MissingBounds | None) -> None:
    """Print what the answers without a score could change."""
    if bounds is None:
        return
    (low, high), (low_rate, high_rate) = bounds.avg_score, bounds.success_rate
    console.print_line(
        f"If all missing scores were 0 or 1, partial completion would be {percent(low)} or "
        f"{percent(high)}, and the success rate {percent(low_rate)} or {percent(high_rate)}.",
    )


def print_verdicts(console: PlainConsole, verdicts: VerdictCounts) -> None:
    """Print how many verdicts rest on something doubtful, and in which tasks most of them are."""
    quoted = sum(verdicts.quotes.values())
    rows = [
        *(
            _share_row(label, verdicts, partial(_share_reserved, name))
            for name, label in _RESERVATIONS.items()
        ),
        _share_row(f"votes differ, of {verdicts.voted}", verdicts, _share_split),
        _share_row(f"quotations not found, of {quoted}", verdicts, _share_misquoted),
    ]
    title = f"Evidence behind the scores: {counted(verdicts.claims, 'judged claim')}"
    headings = ("claims", "number", "share", "most of them in")
    console.print_table(title, headings, rows, texts=("most of them in",))
    console.print_lines(_doubtful_results(verdicts), "Warning: ")


def doubt_lines(verdicts: VerdictCounts) -> Iterator[str]:
    """Yield what else than unavailable pages may have made scores wrong, one line each."""
    for name, label in _RESERVATIONS.items():
        count = verdicts.reservations[name]
        if count and name != "page_not_had":
            yield f"{counted(count, 'claim')} of {verdicts.claims:,}: {label}"
    yield from _doubtful_results(verdicts)


class _Share(NamedTuple):
    part: int
    total: int


def _share_reserved(reservation: Reservation, counts: ClaimCounts) -> _Share:
    return _Share(counts.reservations[reservation], counts.claims)


def _share_split(counts: ClaimCounts) -> _Share:
    return _Share(counts.split, counts.voted)


def _share_misquoted(counts: ClaimCounts) -> _Share:
    return _Share(counts.quotes["not_found"], sum(counts.quotes.values()))


def _share_row(
    label: str, verdicts: VerdictCounts, share_of: Callable[[ClaimCounts], _Share]
) -> Sequence[str]:
    """Return a share of all verdicts, and the tasks with most of them."""
    part, total = share_of(verdicts)
    by_task = {task: share_of(counts) for task, counts in verdicts.tasks.items()}
    order = sorted(by_task, key=lambda task: (-by_task[task].part, natural_key(task)))
    listed = [
        f"{task} {by_task[task].part} of {by_task[task].total}"
        for task in order[:_TASKS_SHOWN]
        if by_task[task].part
    ]
    return label, str(part), percent(part / total) if total else "-", ", ".join(listed)


def _doubtful_results(verdicts: VerdictCounts) -> Iterator[str]:
    counts = verdicts.extractions
    extractions = [
        f"{counts[name]} {label}" for name, label in _OF_EXTRACTIONS.items() if counts[name]
    ]
    if extractions:
        yield f"extractions: {', '.join(extractions)}"
    results = {
        "answers that try to instruct the judge": verdicts.flagged_answers,
        "results in doubt, which the next run judges again": verdicts.in_doubt,
        "scores without a rubric tree, which cannot be checked": verdicts.treeless,
        "scores that differ from their rubric trees": verdicts.off_tree,
        "results without evidence, whose claims are not counted": verdicts.unexplained,
    }
    for label, names in results.items():
        if names:
            yield f"{label}: {len(names)} ({name_list(names)})"


def print_now(
    console: PlainConsole, now: ResultsNow, unevaluated: Sequence[str], evaluate: str
) -> None:
    """Print which results are out of date, and which answers have none."""
    if now.stale:
        console.print_line(
            f"Warning: {counted(len(now.stale), 'result')} out of date. To judge again: {evaluate}",
        )
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reason in now.stale.items():
        by_reason[reason].append(name)
    for reason, names in by_reason.items():
        console.print_line(f"Out of date: {name_list(names)}: {reason}")
    if unevaluated:
        console.print_line(
            f"Warning: {counted(len(unevaluated), 'answer')} never evaluated "
            f"({name_list(unevaluated)}). To judge them: {evaluate}",
        )
    console.print_lines(now.unchecked, "Note: not checked: ")


def range_text(
    low: float | None, high: float | None, text: Callable[[float | None], str] = number
) -> str:
    """Return the ends of an interval, ``-`` where there is none."""
    return "-" if low is None else f"{text(low)} to {text(high)}"


def _print_methods(console: PlainConsole, intervals: Mapping[str, IntervalFigures]) -> None:
    """Name the method of the intervals, by the metrics' labels.

    Most intervals are resampled, and some are exact.
    """
    known = [label for label, interval in intervals.items() if interval.is_known]
    exact = [label for label in known if intervals[label].exact]
    if len(exact) < len(known):
        console.print_line(f"{LEVEL_NAME}: {_METHOD}.")
    if exact:
        console.print_line(f"{LEVEL_NAME} of {', '.join(exact)}: {_EXACT}.")


def print_reasons(console: PlainConsole, intervals: Mapping[str, IntervalFigures]) -> None:
    """Print which metrics have no interval, and why; a metric without a value needs no reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    valued = {label: interval for label, interval in intervals.items() if interval.tasks}
    for label, interval in valued.items():
        if interval.reason is not None:
            by_reason[interval.reason].append(label)
    for reason, labels in by_reason.items():
        console.print_line(f"No interval for {', '.join(labels)}: {reason}.")


def removed_tasks_text(agent_results: Path, task_ids: Iterable[str]) -> str:
    """Return which folders hold results of tasks that have no answers any more."""
    folders = ", ".join(str(agent_results / task_id) for task_id in task_ids)
    return (
        "these tasks have no answers, but their stored results still count: to leave them out, "
        f"delete {folders}"
    )
