"""The tables at the end of a run."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mind2web2.cli.console import duration_text, print_amounts, totals_text
from mind2web2.cli.metric_tables import counted, line, number, print_metrics
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import RecordedJudge
from mind2web2.judge.protocol import RunUsage, TaskUsage
from mind2web2.llm_client.chat import Usage
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.answers import TaskWork
from mind2web2.runs.provenance import provenance_in
from mind2web2.runs.reader import (
    decisive_troubles,
    declined_counts,
    is_shown_in_part,
    leaves_of,
    other_score_by_tree,
    pages_not_had,
    pages_not_read,
    quote_counts,
    refused_downloads,
    refused_pages,
)
from mind2web2.runs.results import write_file, writing_in
from mind2web2.runs.run import RunFolders
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.text import dollars, dollars_as_given

log = logging.getLogger(__name__)

FILE_NAME = "usage.json"
# A line of totals each, so that the file stays small however often an agent is evaluated.
_RUNS_KEPT = 200
_COLUMNS = ("asked", "requests", "tokens in", "cached", "out", "cost", "reused", "saved")


def print_usage(console: Console, usage: RunUsage) -> None:
    """Print what each task and all together have taken; nothing where no judge was asked."""
    total = usage.total()
    if total.asked.requests:
        rows = {task_id: _cells(usage.tasks[task_id]) for task_id in sorted(usage.tasks)}
        print_amounts(console, "Judge use", "task", _COLUMNS, rows | {"all": _cells(total)})
    print_unreported(console, usage)


def print_unreported(console: Console, usage: RunUsage) -> None:
    """Print how many requests may be on the bill without being among the dollars; nothing if none are."""
    if requests := usage.total().asked.unreported_requests:
        console.print(_unreported_text(requests), soft_wrap=True)


def budget_text(budget: Budget) -> str:
    """Return what a budget was used for, and how to go on where it is used up."""
    limit = dollars_as_given(budget.max_usd)
    spent = f"Budget: {dollars(budget.spent_usd)} of --max_cost {limit} spent"
    if not budget.is_reached:
        return f"{spent}."
    return (
        f"{spent}, and nothing more was asked. The same command (without --overwrite) goes on with another "
        f"${limit}; a higher --max_cost goes further."
    )


def write_usage(folder: Path, judge: RecordedJudge) -> None:
    """Add the run to ``usage.json``: the newest run by task, those before as totals.

    Raises:
        ResultWriteError: the file cannot be written.
    """
    if not judge.usage.tasks:
        return
    path = folder / FILE_NAME
    total = judge.usage.total().as_json()
    run = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge_model": judge.settings.model,
        "endpoint": judge.endpoint,
        **total,
        "sent_again": dict(judge.usage.retries.reasons),
    }
    tasks = {task_id: judge.usage.tasks[task_id].as_json() for task_id in sorted(judge.usage.tasks)}
    with writing_in(folder):
        runs = [*_earlier_runs(path), run][-_RUNS_KEPT:]
        content = {"newest_run": {**run, "tasks": tasks}, "runs": runs}
        write_file(path, json.dumps(content, ensure_ascii=True, indent=2) + "\n")


def _cells(task: TaskUsage) -> Sequence[str]:
    asked, reused = task.asked, task.reused
    tokens = (asked.input_tokens, asked.cached_tokens, asked.output_tokens)
    counts = (asked.judgments, asked.requests, *tokens)
    saved = _cost(reused) if reused.judgments else "-"
    return (*(f"{count:,}" for count in counts), _cost(asked), f"{reused.judgments:,}", saved)


def _unreported_text(requests: int) -> str:
    return (
        f"Judge use: the server did not report the tokens of {requests:,} requests (stopped, timed out or "
        "answered without a count). They may be billed, and are not among the tokens and dollars above."
    )


def _cost(usage: Usage) -> str:
    return "unknown" if usage.cost_usd is None else dollars(usage.cost_usd)


def _earlier_runs(path: Path) -> list[Any]:
    try:
        runs = json.loads(read_regular_file(path))["runs"]
        if not isinstance(runs, list):
            raise TypeError("its runs are no list")
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError, LookupError, TypeError) as error:
        log.warning(
            "%s is damaged and is replaced: the judge use of earlier runs is lost, nothing else (%s)",
            path,
            error,
        )
        return []
    return runs


def flagged_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    """Return how many answers, pages and claims were flagged; ``None`` where none was."""
    results = [(outcome, outcome.result) for outcome in outcomes if outcome.result is not None]
    answers = {(found.task_id, found.answer_name) for found, result in results if result.get("answer_flags")}
    pages = {(found.task_id, url) for found, result in results for url in _flagged_pages(result)}
    claims = {(found.task_id, claim) for found, result in results for claim in _flagged_claims(result)}
    counts = (("answer", len(answers)), ("page", len(pages)), ("claim", len(claims)))
    counted = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts if count]
    if not counted:
        return None
    listed = " and ".join(part for part in (", ".join(counted[:-1]), counted[-1]) if part)
    verb = "tries" if counted[-1].startswith("1 ") and len(counted) == 1 else "try"
    return (
        f"{listed} {verb} to instruct the judge, as it seems; this changes no verdict: see the flags in the "
        "results"
    )


def _flagged_pages(result: Mapping[str, Any]) -> Iterator[str]:
    records = result.get("extractions")
    # A script may return what it likes beside the score.
    shown = [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []
    for leaf in leaves_of(result):
        shown += leaf.get("evidence", {}).get("pages", ())
    for record in shown:
        if (record.get("page") or {}).get("flags"):
            yield str(record["url"])


def _flagged_claims(result: Mapping[str, Any]) -> Iterator[str]:
    for leaf in leaves_of(result):
        evidence = leaf.get("evidence", {})
        if evidence.get("flags"):
            yield str(evidence.get("claim"))


_ON_PRIVATE_NETWORK = (
    "on this machine or its network: add --allow_private_network where you trust the answers"
)
_SCORES = {"passed": 1.0, "failed": 0.0, "skipped": 0.0, "initialized": 0.0}


def cautions(outcomes: Sequence[AnswerOutcome], recapture: str) -> list[str]:
    """Return, one line each, what may make scores others than the answers deserve.

    Args:
        recapture: the command that captures suspect pages again.
    """
    suspect: list[frozenset[str]] = []
    shown_in_part = 0
    found: list[str] = []
    for outcome in outcomes:
        if outcome.result is None:
            continue
        leaves = list(leaves_of(outcome.result))
        suspect += [troubles for leaf in leaves if (troubles := decisive_troubles(leaf))]
        shown_in_part += sum(map(is_shown_in_part, leaves))
        found += _of_answer(outcome, leaves)
    if suspect:
        # One entry a claim, so that the counts add up.
        kinds = Counter(" and ".join(sorted(troubles)) for troubles in suspect)
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        found.insert(
            0,
            f"claims judged on pages that look wrong: {len(suspect)} ({listed}); look at these pages; to "
            f"capture them again: {recapture}",
        )
    if missing := _missing_line(outcomes):
        found.insert(0, missing)
    if shown_in_part:
        found.append(
            f"{counted(shown_in_part, 'claim')} judged without all images of a page, as the judge is shown "
            "fewer; the evidence says how many"
        )
    if downloads := _refused_downloads_line(outcomes):
        found.append(downloads)
    if declined := _declined_line(outcomes):
        found.append(declined)
    if misquoted := _misquoted_line(outcomes):
        found.append(misquoted)
    if flagged := flagged_line(outcomes):
        found.append(flagged)
    if ignored := _ignored_arguments_line(outcomes):
        found.append(ignored)
    return found


def lasting_cautions(outcomes: Sequence[AnswerOutcome]) -> list[str]:
    """Return those cautions about stored results that the table of doubtful verdicts does not count."""
    found = [_missing_line(outcomes), _refused_downloads_line(outcomes), _ignored_arguments_line(outcomes)]
    of_answers = (line for outcome in outcomes if outcome.result for line in _undecided_lines(outcome))
    return [*filter(None, found), *of_answers]


def _ignored_arguments_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    names: dict[str, set[str]] = {}
    for outcome in outcomes:
        ignored = (outcome.result or {}).get("ignored_arguments")
        if isinstance(ignored, list) and ignored:
            names.setdefault(outcome.task_id, set()).update(map(str, ignored))
    if not names:
        return None
    count = sum(map(len, names.values()))
    scripts = "; ".join(
        f"{task}.py: {', '.join(sorted(names[task]))}" for task in sorted(names, key=natural_key)
    )
    if count == 1:
        return f"1 argument was ignored, as the toolkit does not know it: {scripts}"
    return f"{count} arguments were ignored, as the toolkit does not know them: {scripts}"


def clock_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    """Return which scripts read the clock, and on which dates, in one line."""
    scripts: set[str] = set()
    dates: set[str] = set()
    is_fixed = True
    for outcome in outcomes:
        made_from = None if outcome.result is None else provenance_in(outcome.result)
        clock = None if made_from is None else made_from.inputs.clock
        if made_from is not None and clock is not None and clock.is_read:
            scripts.add(outcome.task_id)
            dates.add(clock.date)
            is_fixed = is_fixed and made_from.inputs.as_of is not None
    if not scripts:
        return None
    names = name_list(scripts)
    reads = "1 script reads" if len(scripts) == 1 else f"{len(scripts)} scripts read"
    how = "set by --as_of" if is_fixed else "--as_of fixes the date"
    return f"{reads} the clock: {names}; date seen: {name_list(dates)} ({how})"


def _missing_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    judged: set[tuple[str, str]] = set()
    read: list[tuple[str, str]] = []
    refused: set[tuple[str, str]] = set()
    for outcome in outcomes:
        if outcome.result is not None:
            task, leaves = outcome.task_id, leaves_of(outcome.result)
            judged |= {(task, url) for leaf in leaves for url in pages_not_had(leaf)}
            read += [(task, url) for url in pages_not_read(outcome.result)]
            refused |= {(task, url) for url in refused_pages(outcome.result)}
    pages = judged | set(read)
    if not pages:
        return None
    parts = [f"unavailable cited pages: {_by_task(pages)}"]
    parts += ["claims on them count as failed"] if judged else []
    parts += [f"{counted(len(read), 'extraction')} came out empty"] if read else []
    if private := len(pages & refused):
        parts.append(f"{private} of them {_ON_PRIVATE_NETWORK}")
    return "; ".join(parts)


def _refused_downloads_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    found = {
        (outcome.task_id, url)
        for outcome in outcomes
        if outcome.result is not None
        for url in refused_downloads(outcome.result)
    }
    if not found:
        return None
    return f"files that scripts could not download: {_by_task(found)}, {_ON_PRIVATE_NETWORK}"


def _by_task(pages: Collection[tuple[str, str]]) -> str:
    tasks = Counter(task for task, _ in pages)
    return f"{len(pages)} ({', '.join(f'{task} {count}' for task, count in sorted(tasks.items()))})"


def _declined_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    votes: Counter[str] = Counter()
    extractions: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.result is not None:
            of_votes, of_extractions = declined_counts(outcome.result)
            votes[outcome.task_id] += of_votes
            extractions[outcome.task_id] += of_extractions
    tasks = +(votes + extractions)
    if not tasks:
        return None
    listed = ", ".join(f"{task} {tasks[task]}" for task in sorted(tasks, key=natural_key))
    return (
        f"the judge refused to answer, twice each: votes {votes.total()}, extractions {extractions.total()} "
        f"({listed}); such votes count as not supported, such extractions as empty"
    )


def _misquoted_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    quoted = 0
    tasks: Counter[str] = Counter()
    for outcome in outcomes:
        counts = {} if outcome.result is None else quote_counts(outcome.result)
        quoted += sum(counts.values())
        tasks[outcome.task_id] += counts.get("not_found", 0)
    if not +tasks:
        return None
    listed = ", ".join(f"{task} {tasks[task]}" for task in sorted(+tasks, key=natural_key))
    return (
        f"passages that the judge quoted and that are not in what it was shown: {tasks.total()} of {quoted} "
        f"({listed}); no verdict changes for that"
    )


def _of_answer(outcome: AnswerOutcome, leaves: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    name = f"{outcome.task_id}/{outcome.answer_name}"
    result = outcome.result or {}
    errors = [leaf["id"] for leaf in leaves if leaf.get("evidence", {}).get("decided_by") == "error"]
    if errors:
        yield f"{name}: failed because of an error, see its log: {', '.join(errors)}"
    yield from _undecided_lines(outcome)
    if torn := [leaf["id"] for leaf in leaves if _is_torn(leaf)]:
        listed = ", ".join(torn)
        yield f"{name}: score and status, as the script has set them, contradict each other: {listed}"
    if not leaves:
        yield f"{name}: its script returned a score without a rubric tree, which cannot be checked"
    if (by_tree := other_score_by_tree(result)) is not None:
        score = result["final_score"]
        yield f"{name}: its script returned the score {score:g}, but its rubric tree has {by_tree:g}"
    if result.get("doubts"):
        doubts = "; ".join(result["doubts"])
        yield f"{name}: in doubt, the next run judges it again: {doubts}"


def _undecided_lines(outcome: AnswerOutcome) -> Iterator[str]:
    undecided = (outcome.result or {}).get("undecided_leaves")
    if isinstance(undecided, list) and undecided:
        name = f"{outcome.task_id}/{outcome.answer_name}"
        yield f"{name}: never decided by the script, counted 0: {', '.join(map(str, undecided))}"


def _is_torn(leaf: Mapping[str, Any]) -> bool:
    # What the script decided, whatever the end of a sequence shows in its place.
    decided = leaf.get("superseded") or leaf
    status, score = decided.get("status"), decided.get("score")
    return status in _SCORES and score != _SCORES[status]


def print_run(
    console: Console,
    work: Sequence[TaskWork],
    outcomes: Sequence[AnswerOutcome],
    summary: Mapping[str, Any] | None,
    judge: RecordedJudge,
    folders: RunFolders,
    problems: Sequence[str],
    recapture: str,
    elapsed_s: float,
    show: str,
) -> None:
    """Print each task's scores, the agent's metrics, what has no score and why, and what it took.

    Args:
        recapture: the command that captures suspect pages again.
        elapsed_s: how long the run took.
        show: the command that shows why an answer has its score.
    """
    console.print(_scores_table(work, outcomes))
    if summary is not None and summary["num_runs"]:
        print_metrics(console, summary)
    for reason, names in _by_reason(outcomes).items():
        line(console, f"No result: {name_list(names)}: {reason}")
    for caution in cautions(outcomes, recapture):
        line(console, f"Warning: {caution}")
    for problem in problems:
        line(console, f"Warning: {problem}")
    if clock := clock_line(outcomes):
        line(console, f"Note: {clock}")
    for task in work:
        for problem in task.problems:
            line(console, f"Note: {task.task_id}: {problem}")
    print_usage(console, judge.usage)
    line(console, f"Judge: {judge.settings.model} ({judge.endpoint}). {totals_text(judge.usage)}.")
    if judge.budget is not None:
        line(console, budget_text(judge.budget))
    line(console, f"Why an answer has its score: {show}")
    line(console, f"Time: {duration_text(elapsed_s)}.")
    line(console, f"Results: {folders.agent_results}")


def _by_reason(outcomes: Sequence[AnswerOutcome]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.reason is not None:
            names.setdefault(outcome.reason, []).append(f"{outcome.task_id}/{outcome.answer_name}")
    return names


def _scores_table(work: Sequence[TaskWork], outcomes: Sequence[AnswerOutcome]) -> Table:
    table = Table(title="Scores")
    table.add_column("task", overflow="fold")
    table.add_column("script", no_wrap=True)
    table.add_column("answers", overflow="fold")
    table.add_column("mean", justify="right")
    for task in work:
        own = [outcome for outcome in outcomes if outcome.task_id == task.task_id]
        scores = [outcome.score for outcome in own if outcome.score is not None]
        mean = sum(scores) / len(scores) if scores else None
        listed = "  ".join(f"{_stem(outcome)} {number(outcome.score)}" for outcome in own)
        table.add_row(task.task_id, task.script_version or "none", listed or "none", number(mean))
    return table


def _stem(outcome: AnswerOutcome) -> str:
    return outcome.answer_name.removeprefix("answer_").removesuffix(".md") + ":"
