"""``mind2web2 metrics``: average the results that are there, and say how far the averages can be trusted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_task_option,
    paths_of,
    suggested_command,
)
from mind2web2.errors import UsageError
from mind2web2.utils.names import name_list

if TYPE_CHECKING:
    from mind2web2.runs.comparison import AgentComparison
    from mind2web2.runs.freshness import ResultsNow
    from mind2web2.runs.score_matrix import ScoredAnswer
    from mind2web2.utils.path_config import PathConfig

DESCRIPTION = """\
Average an agent's results into partial completion, success rate, pass@k, answer length and time, with 95%
intervals; the numbers are also written to eval_results/AGENT/summary.json.

  mind2web2 metrics my_agent                          over the tasks that have results
  mind2web2 metrics my_agent --task_list tasks.txt    over these tasks: what is missing counts as 0
  mind2web2 metrics my_agent --task_id TASK           over this task; may be repeated
  mind2web2 metrics my_agent --forget TASK            delete the stored results of a task that was removed
  mind2web2 metrics my_agent another                  both, and the difference over the tasks they share

The intervals tell what another choice of tasks might have given, and nothing of the judge's errors. Below
them stands what makes the numbers less than they seem: judges, versions or scripts that differ between
answers, missing runs, results that are stale, and verdicts that rest on pages that were unavailable or
look wrong, on refusals, or on votes that differ.

The exit status is 1 where an answer has no result.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``metrics`` to ``mind2web2``."""
    parser = commands.add_parser("metrics", help="average an agent's results", description=DESCRIPTION)
    parser.add_argument(
        "agents",
        metavar="AGENT",
        nargs="+",
        help="the agent, a folder under eval_results/; further ones are compared with the first",
    )
    parser.add_argument(
        "--task_list", metavar="FILE", type=Path, help="ids of the tasks there should be, one a line"
    )
    add_task_option(parser, "all that have results")
    parser.add_argument(
        "--forget",
        metavar="TASK",
        action="append",
        default=[],
        help="delete eval_results/AGENT/TASK with all its results, for a task that has no answers any more; "
        "may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument(
        "--eval_version", metavar="V", help="the scripts' version that results should be of (default: newest)"
    )
    add_folder_options(parser, "answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")
    parser.set_defaults(run=run)


class _Agent(NamedTuple):
    name: str
    answers: list[ScoredAnswer]
    summary: dict[str, Any]
    now: ResultsNow
    newest: dict[str, Any] | None
    cautions: list[str]
    not_written: str | None


def run(options: argparse.Namespace) -> int:
    """Print the metrics and return the exit status: 1 where an answer has no result."""
    from mind2web2.errors import UsageError
    from mind2web2.runs.comparison import compared
    from mind2web2.utils.names import check_name

    names = [check_name("agent", name) for name in options.agents]
    if len(set(names)) < len(names):
        raise UsageError("an agent is named twice: name each one once")
    paths = paths_of(options)
    if options.eval_version is not None:
        paths.script_versions()  # a version that does not exist is a mistake of the command
    task_ids = chosen_tasks(options)
    removed = [_removed_folder(paths, names, task_id) for task_id in dict.fromkeys(options.forget)]
    forgotten = [_forgotten(paths, folder) for folder in removed]
    agents = [_summed_up(options, paths, name, task_ids) for name in names]
    first, *others = agents
    comparisons = [compared(first[:2], other[:2], task_ids) for other in others]
    if options.json:
        _print_json(agents, comparisons)
    else:
        _print(options, agents, comparisons, forgotten)
    return 1 if any(agent.summary["missing"] or agent.now.unevaluated for agent in agents) else 0


def _summed_up(
    options: argparse.Namespace, paths: PathConfig, agent_name: str, task_ids: list[str] | None
) -> _Agent:
    from mind2web2.cli.evaluate_report import lasting_cautions
    from mind2web2.errors import ResultWriteError
    from mind2web2.runs.answer import AnswerOutcome
    from mind2web2.runs.freshness import results_now
    from mind2web2.runs.metrics import agent_metrics
    from mind2web2.runs.results import latest_results
    from mind2web2.runs.summaries import agent_answers, summarised_answers

    root = paths.eval_results_root
    not_written = None
    try:
        found = summarised_answers(root, agent_name, task_ids) if has_record(root, agent_name) else None
    except ResultWriteError as error:
        # A folder that is shared for reading has its numbers all the same.
        not_written = str(error)
        answers = agent_answers(root, agent_name)
        found = (answers, agent_metrics(agent_name, answers, task_ids).summary()) if answers else None
    if found is None:
        raise no_results(options, root, agent_name)
    answers, summary = found
    results = list(latest_results(root, agent_name))
    newest = max((each for _, _, each in results), key=lambda found: found.path.name, default=None)
    counted = {(answer.task_id, answer.answer_name) for answer in answers if answer.score is not None}
    outcomes = [
        AnswerOutcome(task_id, name, each.content, None)
        for task_id, name, each in results
        if (task_id, name) in counted and (task_ids is None or task_id in task_ids)
    ]
    return _Agent(
        name=agent_name,
        answers=answers,
        summary=summary,
        now=results_now(paths, agent_name, answers, task_ids),
        newest=None if newest is None else newest.content,
        cautions=lasting_cautions(outcomes),
        not_written=not_written,
    )


def _removed_folder(paths: PathConfig, names: Sequence[str], task_id: str) -> Path:
    """Return the folder with the results of a task that has no answers any more."""
    from mind2web2.errors import UsageError
    from mind2web2.utils.names import check_name

    if len(names) > 1:
        raise UsageError("--forget goes with one agent")
    folder = paths.eval_results_root / names[0] / check_name("task", task_id)
    answers = paths.answers_root / names[0] / task_id
    if not folder.is_dir() or (not any(folder.glob("summary.json")) and not any(folder.glob("*/results"))):
        raise UsageError(f"--forget {task_id}: there are no results in {folder}")
    if not answers.parent.is_dir():
        raise UsageError(
            f"--forget {task_id}: no folder {answers.parent} tells whether the task has answers: "
            "name the answers with --answer_folder"
        )
    if any(answers.glob("answer_*.md")):
        raise UsageError(f"--forget {task_id}: the task has answers in {answers}; remove that folder first")
    return folder


def _forgotten(paths: PathConfig, folder: Path) -> str:
    """Delete the results of a task, and say so in one line."""
    import shutil

    from mind2web2.errors import ResultWriteError
    from mind2web2.runs.summaries import merge_all_results

    results = len(list(folder.glob("*/results/*.md.json")))
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise ResultWriteError(f"cannot delete {folder}: {error.strerror or error}") from error
    merge_all_results(paths.eval_results_root)
    return f"Deleted {folder} with {results} result{'s' * (results != 1)}."


def _print(
    options: argparse.Namespace,
    agents: Sequence[_Agent],
    comparisons: Sequence[AgentComparison],
    forgotten: Sequence[str],
) -> None:
    from mind2web2.cli.console import plain_console
    from mind2web2.cli.metric_tables import (
        line,
        print_comparison,
        print_metrics,
        print_missing,
        print_now,
        print_verdicts,
    )
    from mind2web2.cli.options import suggested_command, suggested_evaluation

    console = plain_console()
    for deleted in forgotten:
        line(console, deleted)
    for agent in agents:
        if agent.summary["avg_score"] is None:
            console.print(f"No answer of {agent.name} has a score.", soft_wrap=True)
            print_missing(console, agent.summary)
        else:
            print_metrics(console, agent.summary)
            print_missing(console, agent.summary)
            print_verdicts(console, agent.summary["verdicts"])
            for caution in agent.cautions:
                line(console, f"Warning: {caution}")
        evaluate = suggested_evaluation(options, agent.name, agent.newest)
        print_now(console, agent.now, evaluate)
        if agent.now.removed:
            forget = [word for task_id in agent.now.removed for word in ("--forget", task_id)]
            folders = ", ".join(
                str(paths_of(options).eval_results_root / agent.name / task_id)
                for task_id in agent.now.removed
            )
            line(
                console,
                f"Note: tasks without answers, whose stored results are still counted: {folders}. To delete "
                f"these folders: {suggested_command(options, 'metrics', agent.name, *forget)}",
            )
        if agent.not_written:
            line(console, f"Warning: the numbers were not stored: {agent.not_written}")
    for comparison in comparisons:
        print_comparison(console, comparison)


def _print_json(agents: Sequence[_Agent], comparisons: Sequence[AgentComparison]) -> None:
    from mind2web2.cli.console import plain_console

    contents = [agent.summary | asdict(agent.now) for agent in agents]
    content: object = contents[0]
    if len(agents) > 1:
        content = {"agents": contents, "comparisons": [comparison.summary() for comparison in comparisons]}
    plain_console().print_json(json.dumps(content))


def chosen_tasks(options: argparse.Namespace) -> list[str] | None:
    """Return the tasks of ``--task_list`` and ``--task_id``, ``None`` without either."""
    from mind2web2.utils.names import check_name

    named = [check_name("task", task_id) for task_id in options.task_ids or ()]
    listed = [] if options.task_list is None else _listed_tasks(options.task_list)
    return list(dict.fromkeys(listed + named)) or None


def _listed_tasks(path: Path) -> list[str]:
    from mind2web2.errors import UsageError
    from mind2web2.utils.files import read_regular_file

    try:
        lines = read_regular_file(path).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the task list {path}: {error}") from error
    task_ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not task_ids:
        raise UsageError(f"the task list {path} names no task: write one task id a line")
    return task_ids


def has_record(eval_results_root: Path, agent_name: str) -> bool:
    """Tell whether a run has left results of an agent, or why there are none."""
    folder = eval_results_root / agent_name
    return any(any(folder.glob(files)) for files in ("*/*/results/*.md.json", "*/summary.json"))


def no_results(options: argparse.Namespace, eval_results_root: Path, agent_name: str) -> UsageError:
    """Return the error of a command that is to read results of an agent who has none."""
    others = {path.parts[-5] for path in eval_results_root.glob("*/*/*/results/*.md.json")} - {agent_name}
    there = f"; there are results of {name_list(others)}" if others else ""
    return UsageError(
        f"no results of agent {agent_name} under {eval_results_root}: run "
        f"{suggested_command(options, 'evaluate', agent_name)} first{there}"
    )
