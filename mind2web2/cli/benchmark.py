"""The commands of the benchmark.

They get its tasks, import an agent's answers, check them and hand them in.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from mind2web2.benchmark.answering import import_answers, read_answers
from mind2web2.benchmark.download import download_benchmark
from mind2web2.benchmark.submission import (
    LEADERBOARD_RUNS,
    Findings,
    answers_without_result,
    evaluated_answers,
    leaderboard_entry,
    pack_submission,
    validate_answers,
)
from mind2web2.benchmark.task_lists import read_task_list
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.listed_tasks import tasks_of
from mind2web2.cli.options import settings_of
from mind2web2.cli.task_options import DATASET
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.files import folder_names
from mind2web2.utils.names import check_name, name_list
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted

# Tasks


def run_get(options: argparse.Namespace) -> int:
    """Download and return the exit status."""
    if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", options.dataset, re.ASCII) is None:
        raise UsageError(f"--dataset {options.dataset} is not a name such as {DATASET}")
    result = download_benchmark(
        settings_of(options).paths,
        options.tasks_root,
        dataset=options.dataset,
        revision=options.revision,
        overwrite=options.overwrite,
    )
    lists = ", ".join(path.name for path in result.task_lists)
    PlainConsole().print_line(
        f"{options.dataset} at {result.commit}: {lists} and "
        f"{counted(result.scripts, 'eval script')}, {counted(result.written, 'file')} written now",
    )
    return 0


# Answers


def run_import(options: argparse.Namespace) -> int:
    """Store the answers and return the exit status."""
    settings = settings_of(options)
    folder = settings.paths.answers_root / check_name("agent", options.agent)
    runs = read_answers(options.file, tasks_of(settings, options.tasks_root), folder)
    new = import_answers(runs, folder, overwrite=options.overwrite)
    runs_given = f"{counted(len(runs), 'run')} in {options.file}"
    text = f"{runs_given}: {new} stored under {folder}, {len(runs) - new} already there"
    PlainConsole().print_line(text)
    return 0


# Submissions


def run_validate(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status: 1 where there is an error."""
    _, findings = _validate(settings_of(options), options.agent, options.num_runs)
    return 1 if findings.errors else 0


def run_submit(options: argparse.Namespace) -> int:
    """Pack and return the exit status: 1 where the answers have errors."""
    settings = settings_of(options)
    tasks, findings = _validate(settings, options.agent, options.num_runs)
    console = PlainConsole()
    if findings.errors:
        console.print_line("Nothing was packed: correct the errors first.")
        return 1
    paths = settings.paths
    entry = None
    why_not = f"it needs --task_list and --num_runs {LEADERBOARD_RUNS}"
    answers, summary = evaluated_answers(paths, options.agent, tasks)
    if names := answers_without_result(summary):
        why_not = "answers have no result"
        evaluate = command_line("evaluate", options.agent, *settings.options())
        console.print_line(f"Warning: without a result: {name_list(names)}; run {evaluate}")
    elif settings.task_list is not None and options.num_runs == LEADERBOARD_RUNS:
        entry, why_not = leaderboard_entry(paths, answers, summary, tasks)
    output = options.output or Path(f"{options.agent}.zip")
    more = {"tasks": tasks, "num_runs": options.num_runs, "leaderboard": entry}
    packed = pack_submission(paths, options.agent, output, more)
    console.print_line(f"{counted(packed.files, 'file')} packed into {output}")
    console.print_line(
        f"There is no entry for the leaderboard: {why_not}" if entry is None else json.dumps(entry),
    )
    return 0


def _validate(settings: RunSettings, agent_name: str, num_runs: int) -> tuple[list[str], Findings]:
    folder = settings.paths.answers_root / check_name("agent", agent_name)
    if settings.task_list is not None:
        tasks = [task.task_id for task in read_task_list(settings.task_list)]
    elif folder.is_dir():
        tasks = folder_names(folder)
    else:
        raise UsageError(f"no agent {agent_name} under {folder.parent}")
    findings = validate_answers(folder, tasks, num_runs)
    console = PlainConsole()
    console.print_lines(findings.errors, "Error: ")
    console.print_lines(findings.warnings, "Warning: ")
    errors = counted(len(findings.errors), "error")
    warnings = counted(len(findings.warnings), "warning")
    console.print_line(f"{counted(len(tasks), 'task')}: {errors}, {warnings}")
    return tasks, findings
