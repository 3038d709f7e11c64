"""``mind2web2 get`` and ``mind2web2 tasks``: download the benchmark, and list its tasks."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option, paths_of

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


def add_command(commands: Subcommands) -> None:
    """Add ``get`` and ``tasks`` to ``mind2web2``."""
    get = commands.add_parser("get", help="download tasks and eval scripts", description=GET)
    get.add_argument("--dataset", metavar="NAME", default=_DATASET, help="default: %(default)s")
    get.add_argument("--revision", metavar="R", default="main", help="commit, branch or tag (default: main)")
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


def add_tasks_root(parser: argparse.ArgumentParser) -> None:
    """Add the folder of task lists."""
    parser.add_argument(
        "--tasks_root",
        metavar="DIR",
        type=Path,
        default=Path("tasks"),
        help="the task lists (default: tasks/)",
    )


def add_task_list(parser: argparse.ArgumentParser) -> None:
    """Add ``--task_list``."""
    parser.add_argument(
        "--task_list",
        metavar="FILE",
        type=Path,
        help="the tasks: an id a line, or CSV with a column task_id (default: all that are there)",
    )


def run_get(options: argparse.Namespace) -> int:
    """Download and return the exit status."""
    import asyncio
    import re

    from mind2web2.benchmark.download import Hub, download_benchmark
    from mind2web2.cli.console import plain_console
    from mind2web2.errors import UsageError

    if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", options.dataset, re.ASCII) is None:
        raise UsageError(f"--dataset {options.dataset!r} is no name such as {_DATASET}")
    console = plain_console()

    def show(done: int, total: int) -> None:
        if done % 25 == 0 or done == total:
            console.print(f"{done} of {total} files", soft_wrap=True)

    result = asyncio.run(
        download_benchmark(
            Hub.from_environment(),
            paths_of(options),
            options.tasks_root,
            dataset=options.dataset,
            revision=options.revision,
            overwrite=options.overwrite,
            on_progress=show,
        )
    )
    lists = ", ".join(path.name for path in result.task_lists)
    console.print(
        f"{options.dataset} at {result.commit}: {lists} and {result.scripts} eval scripts, {result.fetched} "
        "files downloaded now",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
    return 0


def run_tasks(options: argparse.Namespace) -> int:
    """Print the tasks and return the exit status."""
    from textwrap import shorten

    from mind2web2.benchmark.tasks import find_tasks, select_tasks
    from mind2web2.cli.console import counted, plain_console

    console = plain_console()
    tasks = select_tasks(
        find_tasks(paths_of(options), options.tasks_root, options.task_list), options.task_ids or ()
    )
    if options.json:
        console.print_json(json.dumps([asdict(task) for task in tasks]))
        return 0
    for task in tasks:
        question = task.question or "no question"
        shown = question if options.task_ids else shorten(question, 100, placeholder="…")
        place = ", ".join(task.listed_in) or "no list"
        kind = " / ".join(filter(None, (task.domain, task.subdomain)))
        script = f"script {task.script_version}" if task.script_version else "no script"
        fields = [task.task_id, place, kind, script]
        console.print(
            f"{'; '.join(filter(None, fields))}\n    {shown}", soft_wrap=True, markup=False, highlight=False
        )
    missing = sum(task.script_version is None for task in tasks)
    without = f", {missing} without an eval script" if missing else ""
    console.print(f"{counted(len(tasks), 'task')}{without}", highlight=False)
    return 0
