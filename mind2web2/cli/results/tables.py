"""Metrics for people and other programs: tables with warnings, tests of several agents, JUnit XML."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from mind2web2.analysis.comparison import AgentComparison, Pair, Power, Ranking
from mind2web2.analysis.judgings import CAUSES, LeafFlips
from mind2web2.cli.console import line, number
from mind2web2.results.agent_summary import (
    AgentSummary,
    ClaimCounts,
    MissingBounds,
    TheseTasks,
    VerdictCounts,
)
from mind2web2.results.claim_facts import Reservation
from mind2web2.results.freshness import ResultsNow
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.statistics.uncertainty import LEVEL, RESAMPLES, IntervalFigures
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted

_TASKS_SHOWN = 3
# More are not worth their exact number, which depends on a small remainder of two estimates.
_MOST_RUNS = 50
_TESTED = {"avg_score": "partial completion", "success_rate": "success rate"}
_LEVEL = f"{LEVEL:.0%} interval"
_AT_LARGE = f"{_LEVEL}\n(tasks at large)"
_OF_PAIR = "for tasks at large, each of its pair alone"
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
    "page_not_had": "empty, as a page was unavailable",
    "suspect_page": "from pages that look wrong",
    "declined": "empty, as the judge refused to answer",
    "flagged": "from pages that try to instruct the judge",
}
# By the names that comparisons have.
_COMPARED_METRICS = {
    "avg_score": "partial completion",
    "success_rate": "success rate",
    "pass_at_k": "pass@k",
    "avg_answer_word_count": "answer length (words)",
    "avg_time_seconds": "agent's time (s)",
}


@dataclass(frozen=True)
class _MetricRow:
    """A metric as a table shows it: without deviation where it is no mean over runs."""

    label: str
    mean: float | None
    deviation: float | None
    interval: IntervalFigures


def _metric_rows(summary: AgentSummary) -> list[_MetricRow]:
    intervals = summary.shown_intervals
    return [
        _MetricRow(
            "partial completion",
            summary.shown_score,
            summary.avg_score_std,
            intervals["avg_score"],
        ),
        _MetricRow(
            "success rate",
            summary.shown_success_rate,
            summary.success_rate_std,
            intervals["success_rate"],
        ),
        _MetricRow(
            f"pass@{summary.num_runs}",
            summary.pass_at_k,
            None,
            intervals[summary.pass_name],
        ),
        _MetricRow(
            "answer length (words)",
            summary.avg_answer_word_count,
            summary.avg_answer_word_count_std,
            intervals["avg_answer_word_count"],
        ),
        _MetricRow(
            "agent's time (s)",
            summary.avg_time_seconds,
            None,
            intervals["avg_time_seconds"],
        ),
    ]


def print_metrics(console: Console, summary: AgentSummary) -> None:
    """Print an agent's metrics, with warnings."""
    tasks = counted(summary.num_tasks, "task")
    runs = counted(summary.num_runs, "run")
    rows = _metric_rows(summary)
    is_sampled = any(row.interval.is_known for row in rows)
    table = Table(title=f"{summary.agent_name}, all results: {tasks}, {runs}", min_width=46)
    table.add_column("metric")
    headings = ("mean", "spread of runs' means", *([_AT_LARGE] if is_sampled else []))
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [row.label, number(row.mean), number(row.deviation)]
        if is_sampled:
            cells.append(_interval(row.interval))
        table.add_row(*cells)
    console.print(table)
    intervals = {row.label: row.interval for row in rows}
    _print_methods(console, _LEVEL, _METHOD, intervals)
    _print_reasons(console, intervals)
    if summary.over_tasks is not None:
        line(
            console,
            "Runs lack tasks: partial completion and success rate are means of the means of tasks, as in "
            f"compare; summary.json has the means of runs, {number(summary.avg_score)} and "
            f"{number(summary.success_rate)}.",
        )
    if summary.these_tasks is not None:
        above = "; the intervals above are for tasks at large" if is_sampled else ""
        line(console, f"{_other_answers(summary.these_tasks)}{above}.")
    _print_missing(console, summary.missing_bounds)
    for warning in summary.warnings:
        line(console, f"Warning: {warning}")


def _other_answers(these: TheseTasks) -> str:
    """Return how far other answers to the same tasks might differ, where theirs do differ."""
    if these.low == these.high:
        return (
            "No interval for these tasks with other answers of the agent: all answers to a task have the "
            "same score"
        )
    return (
        f"These tasks with other answers of the agent: partial completion {number(these.low)} to "
        f"{number(these.high)} ({_LEVEL})"
    )


def _print_missing(console: Console, bounds: MissingBounds | None) -> None:
    """Print what the answers without a score could change."""
    if bounds is None:
        return
    (low, high), (low_rate, high_rate) = bounds.avg_score, bounds.success_rate
    line(
        console,
        f"With all missing scores as 0, or as 1: partial completion {number(low)} to {number(high)}, success "
        f"rate {number(low_rate)} to {number(high_rate)}.",
    )
    lacking, others = bounds.at_missing, bounds.at_others
    if lacking is not None and others is not None:
        hard = ": missing at hard tasks" if lacking < others else ""
        line(
            console,
            f"Other answers to the tasks that lack some have {number(lacking)} on average, answers to "
            f"complete tasks {number(others)}{hard}.",
        )


def print_verdicts(console: Console, verdicts: VerdictCounts) -> None:
    """Print how many verdicts rest on something doubtful, and in which tasks most of them are."""
    table = Table(
        title=f"What the scores rest on: {counted(verdicts.claims, 'claim')} judged",
        min_width=46,
    )
    table.add_column("claims")
    table.add_column("number", justify="right")
    table.add_column("share", justify="right")
    table.add_column("most of them in", overflow="fold")
    for name, label in _RESERVATIONS.items():
        _add_share(table, label, verdicts, partial(_share_reserved, name))
    _add_share(table, f"votes differ, of {verdicts.voted}", verdicts, _share_split)
    quoted = sum(verdicts.quotes.values())
    _add_share(table, f"quotations not found, of {quoted}", verdicts, _share_misquoted)
    console.print(table)
    counts = verdicts.extractions
    extractions = [
        f"{counts[name]} {label}" for name, label in _OF_EXTRACTIONS.items() if counts[name]
    ]
    if extractions:
        line(console, f"Extractions: {', '.join(extractions)}.")
    for label, answers in _doubtful_answers(verdicts):
        if answers:
            line(console, f"Warning: {label}: {len(answers)} ({name_list(answers)})")


class _Share(NamedTuple):
    part: int
    total: int


def _share_reserved(reservation: Reservation, counts: ClaimCounts) -> _Share:
    return _Share(counts.reservations[reservation], counts.claims)


def _share_split(counts: ClaimCounts) -> _Share:
    return _Share(counts.split, counts.voted)


def _share_misquoted(counts: ClaimCounts) -> _Share:
    return _Share(counts.quotes["not_found"], sum(counts.quotes.values()))


def _add_share(
    table: Table,
    label: str,
    verdicts: VerdictCounts,
    share_of: Callable[[ClaimCounts], _Share],
) -> None:
    """Add a row: a share of all verdicts, and the tasks with most of them."""
    part, total = share_of(verdicts)
    by_task = {task: share_of(counts) for task, counts in verdicts.tasks.items()}
    order = sorted(by_task, key=lambda task: (-by_task[task].part, natural_key(task)))
    listed = [
        f"{task} {by_task[task].part} of {by_task[task].total}"
        for task in order[:_TASKS_SHOWN]
        if by_task[task].part
    ]
    percentage = f"{part / total:.1%}" if total else "-"
    table.add_row(label, str(part), percentage, ", ".join(listed))


def _doubtful_answers(verdicts: VerdictCounts) -> list[tuple[str, Sequence[str]]]:
    return [
        ("answers that try to instruct the judge", verdicts.flagged_answers),
        ("results in doubt, which the next run judges again", verdicts.in_doubt),
        ("scores without a rubric tree, which cannot be checked", verdicts.treeless),
        ("scores that differ from their rubric trees", verdicts.off_tree),
        (
            "results without evidence, whose claims are not counted here",
            verdicts.unexplained,
        ),
    ]


def print_variation(console: Console, summary: AgentSummary) -> None:
    """Print how far the scores depend on weak verdicts, and on tasks and runs."""
    bounds, variation = summary.bounds, summary.variation
    if bounds.avg_score is not None and bounds.success_rate is not None:
        (low, high), (low_rate, high_rate) = bounds.avg_score, bounds.success_rate
        line(
            console,
            f"With other verdicts on weak evidence, partial completion lies between {number(low)} and "
            f"{number(high)}, the success rate between {number(low_rate)} and {number(high_rate)}.",
        )
    elif bounds.without:
        line(
            console,
            f"No bounds for weak evidence: {counted(bounds.without, 'result')} of an earlier version or "
            "without a rubric tree; `evaluate --llm_provider replay` writes results with bounds.",
        )
    if variation is not None and variation.between_runs is not None:
        line(
            console,
            f"Variance of scores: between tasks {variation.between_tasks:.4f}, between runs of a task "
            f"{variation.between_runs:.4f} (the judge's own included, which mind2web2 rejudge separates).",
        )


def print_now(console: Console, now: ResultsNow, evaluate: str) -> None:
    """Print which results are out of date, and which answers have none."""
    if now.stale:
        line(
            console,
            f"Warning: results out of date: {len(now.stale)}; to judge them again: {evaluate}",
        )
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reasons in now.stale.items():
        by_reason["; ".join(reasons)].append(name)
    for reason, names in by_reason.items():
        line(console, f"Out of date: {name_list(names)}: {reason}")
    if now.unevaluated:
        line(
            console,
            f"Warning: answers that were never evaluated and are not counted: {len(now.unevaluated)} "
            f"({name_list(now.unevaluated)}); to judge them: {evaluate}",
        )
    for unchecked in now.unchecked:
        line(console, f"Note: not checked: {unchecked}")


def print_comparison(console: Console, comparison: AgentComparison) -> None:
    """Print the metrics of two agents over the same tasks, with the differences."""
    first, second = comparison.first, comparison.second
    tasks = counted(comparison.num_tasks, "task")
    table = Table(title=f"{second} against {first}, over the same {tasks}", min_width=46)
    table.add_column("metric", no_wrap=True)
    for heading in (first, second):
        table.add_column(heading, justify="right", overflow="fold")
    for heading in ("difference", _LEVEL):
        table.add_column(heading, justify="right", no_wrap=True)
    found = {label: comparison.metrics[name] for name, label in _COMPARED_METRICS.items()}
    for label, own in found.items():
        values = map(number, (own.first, own.second, own.difference))
        table.add_row(label, *values, _interval(own))
    console.print(table)
    clear = [label for label, own in found.items() if own.clear]
    intervals: dict[str, IntervalFigures] = {**found}
    if any(interval.is_known for interval in intervals.values()):
        how = "sign flips of the differences of tasks, each averaged over its runs"
        _print_methods(console, f"{_LEVEL} of the difference, {_OF_PAIR}", how, intervals)
        corrected = ""
        if any(own.is_corrected for own in found.values()):
            corrected = " (p-values corrected by Holm for all pairs of these agents)"
        line(
            console,
            f"More than chance in the choice of tasks: {', '.join(clear) or 'no difference'}{corrected}.",
        )
    _print_reasons(console, intervals)
    for warning in comparison.warnings:
        line(console, f"Warning: {warning}")


def _interval(found: IntervalFigures) -> str:
    if found.is_known:
        return f"{number(found.low)} to {number(found.high)}"
    return "-"


def _print_methods(
    console: Console, title: str, how: str, intervals: Mapping[str, IntervalFigures]
) -> None:
    """Name the method of the intervals, by the metrics' labels: most are resampled, some are exact."""
    known = [label for label, found in intervals.items() if found.is_known]
    exact = [label for label in known if intervals[label].exact]
    if len(exact) < len(known):
        line(console, f"{title}: {how}.")
    if exact:
        line(console, f"{title} of {', '.join(exact)}: {_EXACT}.")


def _print_reasons(console: Console, intervals: Mapping[str, IntervalFigures]) -> None:
    """Print which metrics have no interval, and why; a metric without a value needs no reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    valued = {label: found for label, found in intervals.items() if found.tasks}
    for label, found in valued.items():
        if found.reason is not None:
            by_reason[found.reason].append(label)
    for reason, labels in by_reason.items():
        subject = f"No interval for {', '.join(labels)}"
        if len(labels) == len(valued):
            subject = f"No {_LEVEL}s"
        line(console, f"{subject}: {reason}.")


# Tests of several agents


def print_ranking(console: Console, found: Ranking, flips: Mapping[str, LeafFlips]) -> None:
    """Print both metrics, and each further agent's power, tasks and leaves against the first."""
    first, *others = found.agents
    for name, label in _TESTED.items():
        _print_metric(console, found, name, label)
    line(
        console,
        "Differences, intervals and p-values: sign flips of the differences of tasks, each averaged over its "
        f"runs. Intervals: {_OF_PAIR}"
        f"{'; p-values: corrected for all pairs by Holm' if len(others) > 1 else ''}.",
    )
    pairs = found.metrics["avg_score"].against(first)
    for other in others:
        pair = pairs[other]
        _print_power(console, pair, found.num_tasks)
        largest = ", ".join(f"{one.task_id} {one.difference:+.2f}" for one in pair.largest)
        if largest:
            line(console, f"Largest differences of {other} from {first}: {largest}")
        _print_flips(console, first, other, flips[other])
    for warning in found.warnings:
        line(console, f"Warning: {warning}")


def _print_metric(console: Console, found: Ranking, name: str, label: str) -> None:
    first = found.agents[0]
    metric = found.metrics[name]
    pairs = metric.against(first)
    table = Table(
        title=f"{label}, over the same {counted(found.num_tasks, 'task')}",
        min_width=46,
    )
    table.add_column("agent", overflow="fold")
    for heading in ("mean", "difference", "95% interval", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent, value in metric.values.items():
        pair = pairs.get(agent)
        if agent in metric.tied_with_best and len(metric.tied_with_best) > 1:
            mark = " *"
        else:
            mark = ""
        cells = ("first", "", "") if pair is None else _cells(pair)
        table.add_row(f"{agent}{mark}", number(round(value, 4)), *cells)
    console.print(table)
    for pair in pairs.values():
        if pair.reason is not None:
            line(console, f"No interval for {pair.second_agent}: {pair.reason}.")
    if len(metric.tied_with_best) > 1:
        line(
            console,
            f"* no significant difference from the best at the 5% level: {', '.join(metric.tied_with_best)}.",
        )
    else:
        line(
            console,
            f"The best is {metric.tied_with_best[0]}; no other is tied with it at the 5% level.",
        )


def _cells(pair: Pair) -> Sequence[str]:
    shown = "-"
    if pair.low is not None and pair.high is not None:
        shown = f"{pair.low:+.4f} to {pair.high:+.4f}"
    difference = "-" if pair.difference is None else f"{pair.difference:+.4f}"
    return difference, shown, f"{pair.p_holm:.4f}"


def _print_power(console: Console, pair: Pair, tasks: int) -> None:
    power = pair.power
    # Where all tasks differ alike, their variance tells nothing about other tasks.
    if power is None or not power.variation.of_difference:
        return
    shown = "too few to show any difference in partial completion"
    if power.detectable is not None:
        shown = f"enough to show a difference of {power.detectable:.3f} in partial completion"
    line(
        console,
        f"Power of {pair.second_agent} against {pair.first_agent}: {counted(tasks, 'task')} are {shown} four "
        f"times out of five. {_for_observed(pair, power, tasks)}".rstrip(),
    )
    split = power.variation
    if split.between_runs is not None:
        line(
            console,
            f"Variance of a task's difference: {split.of_difference:.4f}, of it between tasks "
            f"{split.between_tasks:.4f} and between runs {split.between_runs / split.runs:.4f}.",
        )


def _for_observed(pair: Pair, power: Power, tasks: int) -> str:
    # Of a difference that is shown, the power for its size says nothing.
    if power.tasks_needed is None or pair.clear:
        return ""
    if power.tasks_needed <= tasks:
        return "The observed difference is larger than that."
    more, runs = "", power.runs_needed
    if runs is not None:
        more = f", or these tasks with {counted(runs, 'run')}"
        if runs > _MOST_RUNS:
            more = f"; with these tasks, more than {_MOST_RUNS} runs"
    return f"The observed difference would take {counted(power.tasks_needed, 'task')}{more}."


def _print_flips(console: Console, first: str, other: str, flips: LeafFlips) -> None:

    if not flips.matched:
        line(
            console,
            f"No leaf of {first} and {other} can be matched by task, answer and leaf id.",
        )
        return
    table = Table(
        title=f"Verdicts that differ, of {counted(flips.matched, 'matched leaf')}",
        min_width=46,
    )
    table.add_column("cause")
    for heading in (f"only {other} passes", f"only {first} passes"):
        table.add_column(heading, justify="right", overflow="fold")
    examples = []
    for cause, own in flips.by_cause.items():
        label = CAUSES[cause]
        if own.gained or own.lost:
            table.add_row(label, str(own.gained), str(own.lost))
            examples.append(f"Such as ({label}): {', '.join(own.examples)}")
    if table.row_count:
        console.print(table)
        for text in examples:
            line(console, text)
    else:
        line(
            console,
            f"No verdict differs: {first} and {other} have {counted(flips.matched, 'matched leaf')}.",
        )
    if flips.behind:
        line(
            console,
            f"Skipped by one of {first} and {other} behind such a gate, and not counted: "
            f"{counted(flips.behind, 'leaf')}.",
        )
    if flips.unmatched:
        line(
            console,
            f"Leaves that only one of {first} and {other} has, not compared: {flips.unmatched}.",
        )


def print_verdict(console: Console, found: Ranking, worse: Sequence[str], margin: float) -> None:
    """Print whether ``--fail_if_worse`` applies."""
    first = found.agents[0]
    if worse:
        line(console, f"Worse than {first} by more than {margin:g}: {', '.join(worse)}.")
        return
    line(console, f"None is shown to be worse than {first} by more than {margin:g}.")


# Characters that XML does not have; answers and pages may hold them.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_suite(
    summary: AgentSummary,
    answers: Sequence[ScoredAnswer],
    results: Mapping[tuple[str, str], ResultFile],
    unevaluated: Sequence[str],
) -> ElementTree.Element:
    """Return the test suite of an agent, with a test case for each answer.

    An answer below score 1 is a failure with the claim of its first failed leaf; one without a score is an
    error with the reason.

    Args:
        summary: the agent's metrics; their tasks and missing answers are those of the suite.
        results: by task and answer name.
        unevaluated: answers that were never evaluated, as ``task/answer``.
    """
    suite = ElementTree.Element("testsuite", name=_text(summary.agent_name))
    properties = ElementTree.SubElement(suite, "properties")
    figures = {
        "avg_score": summary.avg_score,
        "success_rate": summary.success_rate,
        "num_tasks": summary.num_tasks,
        "num_runs": summary.num_runs,
    }
    for name, value in figures.items():
        ElementTree.SubElement(properties, "property", name=name, value=str(value))
    missing = _missing_reasons(summary, unevaluated)
    cases = {(answer.task_id, answer.answer_name): answer for answer in answers}
    scored = {place for place in cases if place[0] in summary.tasks}
    for place in sorted(scored | missing.keys()):
        task_id, answer_name = place
        attributes = {"classname": _text(f"{summary.agent_name}.{task_id}")}
        name = _text(answer_name.removesuffix(".md"))
        case = ElementTree.SubElement(suite, "testcase", attributes, name=name)
        if place in missing:
            ElementTree.SubElement(case, "error", message=_text(missing[place]))
            continue
        answer = cases[place]
        if answer.time_s is not None:
            case.set("time", f"{answer.time_s:g}")
        if answer.score != 1.0:
            _add_failure(case, answer, results.get(place))
    tags = {"tests": "testcase", "failures": "failure", "errors": "error"}
    for kind, tag in tags.items():
        suite.set(kind, str(len(list(suite.iter(tag)))))
    return suite


def _missing_reasons(
    summary: AgentSummary, unevaluated: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return why answers have no score, by task and answer name."""
    missing = {
        (each.task_id, each.answer_name or "no answer"): each.reason for each in summary.missing
    }
    for name in unevaluated:
        task_id, _, answer_name = name.rpartition("/")
        missing[task_id, answer_name] = "never evaluated"
    return missing


def _add_failure(
    case: ElementTree.Element, answer: ScoredAnswer, result: ResultFile | None
) -> None:
    leaves = () if result is None else result.leaves()
    failed = [_claim(leaf) for leaf in leaves if leaf.status == "failed"]
    why = answer.reason or (failed[0] if failed else "no leaf failed")
    message = _text(f"score {answer.score:g}: {why}")
    ElementTree.SubElement(case, "failure", message=message, type="score").text = _text(
        "\n".join(failed)
    )


def _claim(leaf: WrittenNode) -> str:
    claim = None if leaf.evidence is None else leaf.evidence.claim
    return f"{leaf.id}: {claim or leaf.desc}"


def _text(value: object) -> str:
    return _NOT_XML.sub("\ufffd", str(value))


def junit_xml(suites: Sequence[ElementTree.Element]) -> bytes:
    """Return the content of the file."""
    root = ElementTree.Element("testsuites")
    root.extend(suites)
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"
