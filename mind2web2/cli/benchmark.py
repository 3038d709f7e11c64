"""The commands of the benchmark: get its tasks, ask an agent, import its answers, check and hand them in."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_task_option,
    positive_int,
)
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.cli.task_options import add_task_list, add_tasks_root
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from mind2web2.benchmark.submission import Findings

_DATASET = "osunlp/Mind2Web-2"
GET = """\
Download task lists to tasks/ and eval scripts to eval_scripts/VERSION/ from a Hugging Face dataset. What is
complete is not downloaded again, and files that you changed are not replaced.

  mind2web2 get                       the newest state of osunlp/Mind2Web-2
  mind2web2 get --revision COMMIT     the state of a commit, branch or tag

The dataset is gated: accept its conditions on its page, then set HF_TOKEN or log in with the hf command.
HF_ENDPOINT names another server with the same API.
"""
TASKS = """\
List the tasks of tasks/*.csv and eval_scripts/: where each is listed, its eval script, and its question.

  mind2web2 tasks                     one line each
  mind2web2 tasks --task_id ID        with the whole question
"""
IMPORT = """\
Store answers from a file: JSON lines or CSV with task_id (or question) and answer, and optionally run,
seconds, cost_usd and status (answered, empty, error, out_of_budget). Nothing is stored unless the
whole file is right.

  mind2web2 answers import my_agent answers.jsonl
"""
VALIDATE = """\
Check an agent's answers: a folder for each task, answers in UTF-8, meta files that can be read. Warnings name
missing and empty runs, answers without a URL, and stray files. The exit status is 1 where there is an error.

  mind2web2 validate my_agent --task_list tasks/test_set.csv --num_runs 3
"""
SUBMIT = """\
Pack answers, pages, newest results and judgments of an agent into one ZIP file with a manifest of checksums.
With a task list and three runs it prints the entry for the leaderboard. Answers with errors are not packed.

  mind2web2 submit my_agent --task_list tasks/test_set.csv -o my_agent.zip
"""


def add_command(commands: Subcommands) -> None:
    """Add ``get``, ``tasks``, ``answers``, ``validate`` and ``submit`` to ``mind2web2``."""
    _add_tasks(commands)
    _add_answers(commands)
    _add_submission(commands)


def _add_tasks(commands: Subcommands) -> None:
    get = commands.add_parser("get", help="download tasks and eval scripts", description=GET)
    get.add_argument("--dataset", metavar="NAME", default=_DATASET, help="default: %(default)s")
    get.add_argument(
        "--revision",
        metavar="R",
        default="main",
        help="commit, branch or tag (default: main)",
    )
    get.add_argument("--overwrite", action="store_true", help="also replace files that you changed")
    tasks = commands.add_parser("tasks", help="list the tasks that are there", description=TASKS)
    add_task_option(tasks, "all")
    add_task_list(tasks)
    tasks.add_argument("--json", action="store_true", help="print them as JSON")
    for parser in (get, tasks):
        add_tasks_root(parser)
        add_folder_options(parser, "eval_scripts_root")
    get.set_defaults(run=run_get)
    tasks.set_defaults(run=run_tasks)


def _add_answers(commands: Subcommands) -> None:
    answers = commands.add_parser("answers", help="import answers from a file")
    actions = answers.add_subparsers(title="actions", required=True, metavar="ACTION")
    take = actions.add_parser("import", help="store answers from a file", description=IMPORT)
    take.add_argument("agent", metavar="AGENT")
    take.add_argument("file", metavar="FILE", type=Path)
    take.add_argument(
        "--overwrite",
        action="store_true",
        help="replace other answers to the same tasks and runs",
    )
    add_task_list(take)
    add_tasks_root(take)
    add_folder_options(take, "answer_folder", "eval_scripts_root")
    take.set_defaults(run=run_import)


def _add_submission(commands: Subcommands) -> None:
    validate = commands.add_parser(
        "validate", help="check an agent's answers", description=VALIDATE
    )
    submit = commands.add_parser(
        "submit", help="pack an agent's answers and results", description=SUBMIT
    )
    for parser in (validate, submit):
        parser.add_argument("agent", metavar="AGENT", help="a folder under answers/")
        add_task_list(parser, "the expected tasks", "the agent's")
        parser.add_argument(
            "--num_runs",
            metavar="N",
            type=positive_int,
            default=3,
            help="answers to each task (default: 3)",
        )
    submit.add_argument("-o", "--output", metavar="FILE", type=Path, help="default: AGENT.zip")
    add_folder_options(validate, "answer_folder")
    add_folder_options(
        submit, "answer_folder", "eval_scripts_root", "eval_results_root", "cache_root"
    )
    validate.set_defaults(run=run_validate)
    submit.set_defaults(run=run_submit)


# Tasks


def run_get(options: argparse.Namespace) -> int:
    """Download and return the exit status."""
    import asyncio

    from mind2web2.benchmark.tasks import Hub, download_benchmark
    from mind2web2.cli.console import line, plain_console

    if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", options.dataset, re.ASCII) is None:
        raise UsageError(f"--dataset {options.dataset!r} is no name such as {_DATASET}")
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
    from mind2web2.benchmark.tasks import select_tasks
    from mind2web2.cli.console import line, plain_console
    from mind2web2.cli.listed_tasks import tasks_of

    console = plain_console()
    settings = settings_of(options)
    tasks = select_tasks(tasks_of(settings, options.tasks_root), settings.task_ids)
    if options.json:
        console.print_json(json.dumps([asdict(task) for task in tasks]))
        return 0
    for task in tasks:
        question = task.question or "no question"
        shown = question if settings.task_ids else shorten(question, 100, placeholder="…")
        place = ", ".join(task.listed_in) or "no list"
        kind = " / ".join(filter(None, (task.domain, task.subdomain)))
        script = f"script {task.script_version}" if task.script_version else "no script"
        script += " (broken)" if task.script_problem else ""
        fields = [task.task_id, place, kind, script]
        line(console, f"{'; '.join(filter(None, fields))}\n    {shown}")
    missing = sum(task.script_version is None for task in tasks)
    without = f", {missing} without an eval script" if missing else ""
    line(console, f"{counted(len(tasks), 'task')}{without}")
    for task in tasks:
        if task.script_problem:
            line(console, f"Broken eval script: {task.script_problem}")
    return 0


# Answers


def run_import(options: argparse.Namespace) -> int:
    """Store the answers and return the exit status."""
    from mind2web2.benchmark.answering import import_answers, read_answers
    from mind2web2.cli.console import line, plain_console
    from mind2web2.cli.listed_tasks import tasks_of

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
    from mind2web2.benchmark.submission import (
        LEADERBOARD_RUNS,
        leaderboard_entry,
        pack_submission,
    )
    from mind2web2.cli.console import line, plain_console

    settings = settings_of(options)
    if isinstance(settings.cache_root, str):
        raise UsageError(
            f"submit packs folders: copy {settings.cache_root} to a disk, and name that"
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
        f"No leaderboard entry: {why_not}" if entry is None else json.dumps(entry),
    )
    return 0


def _validated(settings: RunSettings, agent_name: str, num_runs: int) -> tuple[list[str], Findings]:
    from mind2web2.benchmark.submission import validate_answers
    from mind2web2.benchmark.tasks import read_task_list
    from mind2web2.cli.console import line, plain_console

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
