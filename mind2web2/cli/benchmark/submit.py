"""``mind2web2 validate`` and ``mind2web2 submit``: hand an agent's answers in."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import Subcommands, add_folder_options, paths_of, positive_int
from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from mind2web2.benchmark.submission import Findings

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
    """Add ``validate`` and ``submit`` to ``mind2web2``."""
    validate = commands.add_parser("validate", help="check an agent's answers", description=VALIDATE)
    submit = commands.add_parser("submit", help="pack an agent's answers and results", description=SUBMIT)
    for parser in (validate, submit):
        parser.add_argument("agent", metavar="AGENT", help="a folder under answers/")
        parser.add_argument(
            "--task_list",
            metavar="FILE",
            type=Path,
            help="the expected tasks: an id a line, or CSV with a column task_id (default: the agent's)",
        )
        parser.add_argument(
            "--num_runs", metavar="N", type=positive_int, default=3, help="answers to each task (default: 3)"
        )
    submit.add_argument("-o", "--output", metavar="FILE", type=Path, help="default: AGENT.zip")
    add_folder_options(validate, "answer_folder")
    add_folder_options(submit, "answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")
    validate.set_defaults(run=run_validate)
    submit.set_defaults(run=run_submit)


def run_validate(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status: 1 where there is an error."""
    _, findings = _validated(options)
    return 1 if findings.errors else 0


def run_submit(options: argparse.Namespace) -> int:
    """Pack and return the exit status: 1 where the answers have errors."""
    from mind2web2.benchmark.submission import LEADERBOARD_RUNS, leaderboard_entry, pack_submission
    from mind2web2.cli.console import counted, line, plain_console

    if isinstance(options.cache_root, str):
        raise UsageError(f"submit packs folders: copy {options.cache_root} to a disk, and name that")
    tasks, findings = _validated(options)
    console = plain_console()
    if findings.errors:
        line(console, "Nothing was packed: correct the errors first.")
        return 1
    paths = paths_of(options)
    entry, why_not = None, f"it needs --task_list and --num_runs {LEADERBOARD_RUNS}"
    if options.task_list is not None and options.num_runs == LEADERBOARD_RUNS:
        entry, why_not = leaderboard_entry(paths, options.agent, tasks)
    output = options.output or Path(f"{options.agent}.zip")
    more = {"tasks": tasks, "num_runs": options.num_runs, "leaderboard": entry}
    manifest = pack_submission(paths, options.agent, output, more)
    line(console, f"{counted(len(manifest['files']), 'file')} packed into {output}")
    line(console, f"No leaderboard entry: {why_not}" if entry is None else json.dumps(entry))
    return 0


def _validated(options: argparse.Namespace) -> tuple[list[str], Findings]:
    from mind2web2.benchmark.submission import validate_answers
    from mind2web2.benchmark.tasks import read_task_list
    from mind2web2.cli.console import counted, line, plain_console
    from mind2web2.errors import UsageError
    from mind2web2.utils.text import check_name

    folder = paths_of(options).answers_root / check_name("agent", options.agent)
    if options.task_list is not None:
        tasks = [task.task_id for task in read_task_list(options.task_list)]
    elif folder.is_dir():
        tasks = sorted(path.name for path in folder.iterdir() if path.is_dir())
    else:
        raise UsageError(f"no agent {options.agent} under {folder.parent}")
    findings = validate_answers(folder, tasks, options.num_runs)
    console = plain_console()
    for kind, found in (("Error", findings.errors), ("Warning", findings.warnings)):
        for text in found:
            line(console, f"{kind}: {text}")
    errors = counted(len(findings.errors), "error")
    warnings = counted(len(findings.warnings), "warning")
    line(console, f"{counted(len(tasks), 'task')}: {errors}, {warnings}")
    return tasks, findings
