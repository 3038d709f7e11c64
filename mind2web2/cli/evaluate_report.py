"""The tables and warnings at the end of a run."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from mind2web2.capture.network.destinations import is_private_url
from mind2web2.cli.console import line, number
from mind2web2.cli.displays import duration_text, totals_text
from mind2web2.cli.results.tables import print_metrics
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.cascade import CASCADE_RULE
from mind2web2.judge.usage import RunUsage, TaskUsage
from mind2web2.llm_client.chat import Usage
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.answers import RunFolders, TaskWork
from mind2web2.results.caution_facts import CautionFacts
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.utils.dollars import dollars, dollars_as_given
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import counted

log = logging.getLogger(__name__)

OVERWRITE_CONTINUED = (
    "The same command asks everything again from the start. Without --overwrite, it judges the answers "
    "without a new result by stored replies: those of this run, and earlier ones where it has asked nothing."
)

_USAGE_COLUMNS = (
    "asked",
    "requests",
    "tokens in",
    "cached",
    "out",
    "cost",
    "reused",
    "saved",
)


# After the run


@dataclass(frozen=True)
class RunReport:
    """A run that is over.

    Args:
        summary: the agent's metrics, ``None`` where they could not be written.
        problems: failures beside the answers, one line each.
        recapture: the command that captures suspect pages again.
        is_overwriting: it has asked everything again.
        is_quiet: without the judge's use and hints.
        is_one_of_several: without tables of scores too, where it is quiet: they follow for all runs together.
    """

    work: Sequence[TaskWork]
    outcomes: Sequence[AnswerOutcome]
    summary: AgentSummary | None
    judge: CachingJudge
    folders: RunFolders
    problems: Sequence[str]
    elapsed_s: float
    recapture: str
    show: str
    is_overwriting: bool = False
    is_quiet: bool = False
    is_one_of_several: bool = False


def print_run(console: Console, run: RunReport) -> None:
    """Print each task's scores, the agent's metrics, the answers without a score, and what the run took."""
    if not (run.is_quiet and run.is_one_of_several):
        console.print(_scores_table(run.work, run.outcomes))
        if run.summary is not None and run.summary.num_runs:
            print_metrics(console, run.summary)
    for text in _failure_lines(run):
        line(console, text)
    for warning in (*cautions(run.outcomes, run.recapture), *run.problems):
        line(console, f"Warning: {warning}")
    if clock := clock_line(run.outcomes):
        line(console, f"Note: {clock}")
    for task in run.work:
        for problem in task.problems:
            line(console, f"Note: {task.task_id}: {problem}")
    judge = run.judge
    if not run.is_quiet:
        print_usage(console, judge.usage)
        print_spent_for_nothing(console, judge.spent_for_nothing)
    line(
        console,
        f"{_judges_text(judge)}. {totals_text(judge.usage)}.",
    )
    if judge.budget is not None:
        line(console, budget_text(judge.budget, run.is_overwriting))
    has_score = any(outcome.score is not None for outcome in run.outcomes)
    if has_score and not run.is_quiet:
        line(console, f"Why an answer has its score: {run.show}")
    line(console, f"Time: {duration_text(run.elapsed_s)}.")
    results = run.folders.agent_results
    line(console, f"Results: {results}")


def _failure_lines(run: RunReport) -> Iterator[str]:
    unscored: dict[str, list[str]] = {}
    for outcome in run.outcomes:
        if outcome.reason is not None:
            unscored.setdefault(outcome.reason, []).append(
                f"{outcome.task_id}/{outcome.answer_name}"
            )
    for reason, names in unscored.items():
        yield f"No result: {name_list(names)}: {reason}"
    if unscored and not run.is_one_of_several:
        yield (
            OVERWRITE_CONTINUED
            if run.is_overwriting
            else "The same command judges the answers without a result again; what it has asked is kept."
        )
    for task in run.work:
        yield from (
            f"Score 0: {task.task_id}/{name}: {why}" for name, why in task.failed_runs.items()
        )


def _scores_table(work: Sequence[TaskWork], outcomes: Sequence[AnswerOutcome]) -> Table:
    table = Table(title="Scores")
    table.add_column("task", overflow="fold")
    table.add_column("script", no_wrap=True)
    table.add_column("answers", overflow="fold")
    table.add_column("mean", justify="right")
    for task in work:
        # Runs in which the agent failed count as 0, as in the metrics.
        own: dict[str, float | None] = dict.fromkeys(task.failed_runs, 0.0)
        own |= {each.answer_name: each.score for each in outcomes if each.task_id == task.task_id}
        scores = [score for score in own.values() if score is not None]
        mean = sum(scores) / len(scores) if scores else None
        listed = "  ".join(
            f"{name.removeprefix('answer_').removesuffix('.md')}: {number(own[name])}"
            for name in sorted(own, key=natural_key)
        )
        table.add_row(task.task_id, task.script_version or "none", listed or "none", number(mean))
    return table


def print_usage(console: Console, usage: RunUsage) -> None:
    """Print the judge's use in one line; nothing where no judge was asked."""
    total = usage.total()
    if total.asked.requests:
        cells = zip(_USAGE_COLUMNS, _usage_cells(total), strict=True)
        amounts = ", ".join(f"{column} {cell}" for column, cell in cells)
        line(console, f"Judge use: {amounts}")
    print_unreported(console, usage)


def _judges_text(judge: CachingJudge) -> str:
    own = f"{judge.settings.model} ({judge.endpoint})"
    if judge.first is None:
        return f"Judge: {own}"
    first = f"{judge.first.settings.model} ({judge.first.endpoint})"
    return f"Judges: {first}, and {own} for its {CASCADE_RULE}"


def print_spent_for_nothing(console: Console, usage: Usage) -> None:
    """Print what lookahead asked about leaves that were skipped; nothing if that was none."""
    if usage.judgments:
        line(
            console,
            f"For nothing: {usage.judgments:,} of these judgments ({_cost(usage)}) were about leaves that "
            "were skipped, or of questions that the script did not ask in the end.",
        )


def print_unreported(console: Console, usage: RunUsage) -> None:
    """Print how many requests may be billed without being counted; nothing if none are."""
    if requests := usage.total().asked.unreported_requests:
        line(
            console,
            f"Judge use: the server did not report the tokens of {counted(requests, 'request')} "
            "(stopped, timed out "
            "or answered without a count). They may be billed, and are not among the tokens and dollars.",
        )


def _usage_cells(task: TaskUsage) -> Sequence[str]:
    asked, reused = task.asked, task.reused
    tokens = (asked.input_tokens, asked.cached_tokens, asked.output_tokens)
    counts = (asked.judgments, asked.requests, *tokens)
    saved = _cost(reused) if reused.judgments else "-"
    return (
        *(f"{count:,}" for count in counts),
        _cost(asked),
        f"{reused.judgments:,}",
        saved,
    )


def _cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else dollars(usage.cost_usd)


def budget_text(budget: Budget, is_overwriting: bool) -> str:
    """Return how much of a budget was spent, and how to continue where it is used up."""
    limit = dollars_as_given(budget.max_usd)
    spent = f"Budget: {dollars(budget.spent_usd)} of --max_cost {limit} spent"
    if not budget.is_reached:
        return f"{spent}."
    spent = f"{spent}, and nothing more was asked."
    if is_overwriting:
        return (
            f"{spent} With --overwrite, give a --max_cost that covers everything (--estimate says how much), "
            "or judge one task at a time (--task_id)."
        )
    return f"{spent} The same command continues with another ${limit}; a higher --max_cost goes further."


# Reasons why scores may be wrong

_ON_PRIVATE_NETWORK = (
    "on this machine or its network: add --allow_private_network where you trust the answers"
)


def cautions(outcomes: Sequence[AnswerOutcome], recapture: str) -> list[str]:
    """Return, one line each, reasons why scores may be wrong."""
    results = _scored(outcomes)
    lines = [
        _unavailable_line(results),
        _suspect_line(results, recapture),
        *(line for found in results for line in found.notes),
        _partly_shown_line(results),
        _downloads_line(results),
        _declined_line(results),
        _misquoted_line(results),
        flagged_line(outcomes),
        *_fault_lines(results),
    ]
    return [line for line in lines if line]


def lasting_cautions(results: Sequence[CautionFacts]) -> list[str]:
    """Return the cautions about stored results that the table of doubtful verdicts does not count."""
    lines = [
        _unavailable_line(results),
        _downloads_line(results),
        *_fault_lines(results),
        _opposites_line(results),
    ]
    return [line for line in lines if line]


def _opposites_line(results: Iterable[CautionFacts]) -> str | None:
    pairs = [f"{one.name}: {pair}" for one in results for pair in one.opposites]
    if not pairs:
        return None
    return (
        f"{counted(len(pairs), 'pair')} of leaves of one answer say the same about the same page, with "
        f"opposite verdicts ({name_list(pairs)})"
    )


def _scored(outcomes: Iterable[AnswerOutcome]) -> list[CautionFacts]:
    return [each.facts for each in outcomes if each.facts is not None]


def _unavailable_line(results: Sequence[CautionFacts]) -> str | None:
    judged = {(one.task_id, url) for one in results for url in one.unavailable}
    read = [(one.task_id, url) for one in results for url in one.unread]
    refused = {(one.task_id, url) for one in results for url in one.refused_pages}
    pages = judged | set(read)
    if not pages:
        return None
    parts = [f"unavailable cited pages: {_total(Counter(task for task, _ in pages))}"]
    parts += ["claims on them count as failed"] if judged else []
    parts += [f"{counted(len(read), 'extraction')} came out empty"] if read else []
    if private := len(pages & refused):
        parts.append(f"{private} of them {_ON_PRIVATE_NETWORK}")
    return "; ".join(parts)


def _suspect_line(results: Sequence[CautionFacts], recapture: str) -> str | None:
    # One entry a claim, so that the counts add up.
    kinds = Counter(kinds for found in results for kinds in found.troubles)
    if not kinds:
        return None
    urls = [url for found in results for url in found.suspects]
    option = "--allow_private_network"
    if option not in recapture and any(map(is_private_url, urls)):
        recapture = f"{recapture} {option}"
    return (
        f"claims judged on pages that look wrong: {_total(kinds)}; look at these pages; to capture them "
        f"again: {recapture}"
    )


def _partly_shown_line(results: Iterable[CautionFacts]) -> str | None:
    count = sum(found.partly_shown for found in results)
    if not count:
        return None
    return (
        f"{counted(count, 'claim')} judged without all images of a page, as the judge is shown fewer; the "
        "evidence says how many"
    )


def _downloads_line(results: Iterable[CautionFacts]) -> str | None:
    files = {(found.task_id, url) for found in results for url in found.refused_downloads}
    if not files:
        return None
    tasks = Counter(task for task, _ in files)
    return f"files that scripts could not download: {_total(tasks)}, {_ON_PRIVATE_NETWORK}"


def _declined_line(results: Iterable[CautionFacts]) -> str | None:
    tasks, kinds = Counter[str](), Counter[str]()
    for found in results:
        votes, extractions = found.declined
        tasks[found.task_id] += votes + extractions
        kinds.update(votes=votes, extractions=extractions)
    if not tasks.total():
        return None
    return (
        f"the judge refused to answer, twice each: votes {kinds['votes']}, extractions "
        f"{kinds['extractions']} ({_by_name(+tasks)}); such votes count as not supported, such "
        "extractions as empty"
    )


def _misquoted_line(results: Iterable[CautionFacts]) -> str | None:
    tasks, matches = Counter[str](), Counter[str]()
    for found in results:
        tasks[found.task_id] += found.quotes["not_found"]
        matches.update(found.quotes)
    if not tasks.total():
        return None
    return (
        f"passages that the judge quoted and that are not in what it was shown: {tasks.total()} of "
        f"{matches.total()} ({_by_name(+tasks)}); this changes no verdict"
    )


def flagged_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    """Return how many answers, pages and claims were flagged; ``None`` where none was."""
    results = _scored(outcomes)
    answers = {found.name for found in results if found.is_flagged}
    pages = {(found.task_id, url) for found in results for url in found.flagged_pages}
    claims = {(found.task_id, claim) for found in results for claim in found.flagged_claims}
    amounts = {"answer": len(answers), "page": len(pages), "claim": len(claims)}
    parts = [counted(amount, noun) for noun, amount in amounts.items() if amount]
    if not parts:
        return None
    *first_parts, last_part = parts
    listed = last_part
    if first_parts:
        listed = f"{', '.join(first_parts)} and {last_part}"
    verb = "tries" if sum(amounts.values()) == 1 else "try"
    return (
        f"{listed} {verb} to instruct the judge, as it seems; this changes no verdict: see the flags in the "
        "results"
    )


def _fault_lines(results: Iterable[CautionFacts]) -> Iterator[str]:
    """Yield the mistakes of scripts that may have cost answers points, each once for all its answers."""
    answers: dict[tuple[str, str], list[str]] = {}
    for found in results:
        for fault in found.faults:
            answers.setdefault((found.task_id, fault), []).append(found.name)
    for (_, fault), names in sorted(answers.items(), key=lambda item: natural_key(item[0][0])):
        yield f"{fault} ({name_list(names)})"


def _total(amounts: Counter[str]) -> str:
    return f"{amounts.total()} ({_by_name(amounts)})"


def _by_name(amounts: Counter[str]) -> str:
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts, key=natural_key))


def clock_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    """Return which scripts read the clock, and on which dates, in one line."""
    clocks = [(each.task_id, each.clock) for each in _scored(outcomes) if each.clock is not None]
    scripts = {task_id for task_id, _ in clocks}
    dates = {date for _, (date, _) in clocks}
    is_fixed = all(is_fixed for _, (_, is_fixed) in clocks)
    if not scripts:
        return None
    reads = "1 script reads" if len(scripts) == 1 else f"{len(scripts)} scripts read"
    how = "set by --as_of" if is_fixed else "--as_of fixes the date"
    return f"{reads} the clock: {name_list(scripts)}; date seen: {name_list(dates)} ({how})"
