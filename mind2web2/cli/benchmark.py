"""The commands of the benchmark: get its tasks, ask an agent, import its answers, check and hand them in."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten

from rich.console import Console

from mind2web2.benchmark.answering import import_answers, read_answers
from mind2web2.benchmark.submission import (
    LEADERBOARD_RUNS,
    Findings,
    leaderboard_entry,
    pack_submission,
    validate_answers,
)
from mind2web2.benchmark.tasks import (
    Hub,
    Task,
    download_benchmark,
    read_task_list,
    select_tasks,
)
from mind2web2.cli.console import line, plain_console
from mind2web2.cli.listed_tasks import tasks_of
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.cli.task_options import DATASET
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted

# Tasks


def run_get(options: argparse.Namespace) -> int:
    """Download and return the exit status."""
    if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", options.dataset, re.ASCII) is None:
        raise UsageError(f"--dataset {options.dataset} is not a name such as {DATASET}")
    console = plain_console()

    def show(done: int, total: int) -> None:
        if done % 25 == 0 or done == total:
            line(console, f"{done} of {counted(total, 'file')}")

    result = asyncio.run(
        download_benchmark(
            Hub.from_environment(),
            paths_of(settings_of(options)),
            options.tasks_root,
            dataset=options.dataset,
            revision=options.revision,
            overwrite=options.overwrite,
            on_progress=show,
        )
    )
    lists = ", ".join(path.name for path in result.task_lists)
    line(
        console,
        f"{options.dataset} at {result.commit}: {lists} and {counted(result.scripts, 'eval script')}, "
        f"{counted(result.fetched, 'file')} downloaded now",
    )
    return 0


def run_tasks(options: argparse.Namespace) -> int:
    """Print the tasks and return the exit status."""
    console = plain_console()
    settings = settings_of(options)
    tasks = select_tasks(tasks_of(settings, options.tasks_root), settings.task_ids)
    if options.json:
        console.print_json(json.dumps([asdict(task) for task in tasks]))
        return 0
    _print_tasks(console, tasks, is_whole=bool(settings.task_ids))
    missing = sum(task.script_version is None for task in tasks)
    without = f", {missing} without an eval script" if missing else ""
    line(console, f"{counted(len(tasks), 'task')}{without}")
    for task in tasks:
        if task.script_problem:
            line(console, f"Broken eval script: {task.script_problem}")
    return 0


def _print_tasks(console: Console, tasks: Sequence[Task], *, is_whole: bool) -> None:
    """Print a line for each task, under headings; a question is cut unless the tasks are named."""
    rows = [("task", "script", "list", "domain", "question")]
    rows += [(task.task_id, _script_text(task), *_listing(task)) for task in tasks]
    used = [column for column in range(4) if any(row[column] for row in rows[1:])]
    widths = {column: max(len(row[column]) for row in rows) for column in used}
    for row in rows:
        cells = [f"{row[column]:{width}}" for column, width in widths.items()]
        question = row[-1] if is_whole else shorten(row[-1], 60, placeholder="…")
        line(console, "  ".join([*cells, question]))


def _script_text(task: Task) -> str:
    version = task.script_version or "none"
    return f"{version} (broken)" if task.script_problem else version


def _listing(task: Task) -> tuple[str, str, str]:
    """Return the lists that have the task, its domain, and its question."""
    domain = " / ".join(filter(None, (task.domain, task.subdomain)))
    return ", ".join(task.listed_in), domain, task.question or "none"


# Answers


def run_import(options: argparse.Namespace) -> int:
    """Store the answers and return the exit status."""
    settings = settings_of(options)
    folder = paths_of(settings, options.agent).answers_root / check_name("agent", options.agent)
    runs = read_answers(options.file, tasks_of(settings, options.tasks_root), folder)
    new = import_answers(runs, folder, overwrite=options.overwrite)
    found = f"{counted(len(runs), 'run')} in {options.file}"
    text = f"{found}: {new} stored under {folder}, {len(runs) - new} already there"
    line(plain_console(), text)
    return 0


# Submissions


def run_validate(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status: 1 where there is an error."""
    _, findings = _validated(settings_of(options), options.agent, options.num_runs)
    return 1 if findings.errors else 0


def run_submit(options: argparse.Namespace) -> int:
    """Pack and return the exit status: 1 where the answers have errors."""
    settings = settings_of(options)
    if isinstance(settings.cache_root, str):
        raise UsageError(
            f"submit packs folders of this machine: copy {settings.cache_root} to a disk, and "
            "name that folder"
        )
    tasks, findings = _validated(settings, options.agent, options.num_runs)
    console = plain_console()
    if findings.errors:
        line(console, "Nothing was packed: correct the errors first.")
        return 1
    paths = paths_of(settings, options.agent)
    entry = None
    why_not = f"it needs --task_list and --num_runs {LEADERBOARD_RUNS}"
    if settings.task_list is not None and options.num_runs == LEADERBOARD_RUNS:
        entry, why_not = leaderboard_entry(paths, options.agent, tasks)
    output = options.output or Path(f"{options.agent}.zip")
    more = {"tasks": tasks, "num_runs": options.num_runs, "leaderboard": entry}
    packed = pack_submission(paths, options.agent, output, more)
    line(console, f"{counted(packed.files, 'file')} packed into {output}")
    line(
        console,
        f"There is no entry for the leaderboard: {why_not}" if entry is None else json.dumps(entry),
    )
    return 0


def _validated(settings: RunSettings, agent_name: str, num_runs: int) -> tuple[list[str], Findings]:

    folder = paths_of(settings, agent_name).answers_root / check_name("agent", agent_name)
    if settings.task_list is not None:
        tasks = [task.task_id for task in read_task_list(settings.task_list)]
    elif folder.is_dir():
        tasks = sorted(path.name for path in folder.iterdir() if path.is_dir())
    else:
        raise UsageError(f"no agent {agent_name} under {folder.parent}")
    findings = validate_answers(folder, tasks, num_runs)
    console = plain_console()
    for kind, found in (("Error", findings.errors), ("Warning", findings.warnings)):
        for text in found:
            line(console, f"{kind}: {text}")
    errors = counted(len(findings.errors), "error")
    warnings = counted(len(findings.warnings), "warning")
    line(console, f"{counted(len(tasks), 'task')}: {errors}, {warnings}")
    return tasks, findings
