"""Parsers of ``get``, ``validate`` and ``submit``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands
from mind2web2.cli.task_options import DATASET, add_task_list, add_tasks_root

GET = """\
Download the benchmark from its Hugging Face dataset: task lists to tasks/, and eval scripts to
eval_scripts/VERSION/. Complete files are not downloaded again, and files that you changed are not replaced.

  mind2web2 get                       download the newest state of osunlp/Mind2Web-2
  mind2web2 get --revision COMMIT     download the state of a commit, branch or tag

The dataset is gated. Accept its conditions on its page, then set HF_TOKEN or log in with the hf command.
HF_ENDPOINT names another server with the same API.
"""
VALIDATE = """\
Check the files of an agent's answers. There should be a folder for each task, with answers in UTF-8 and meta
files that can be read. Warnings name missing and empty runs, answers without a URL, and stray files. The exit
status is 1 if there is an error.

  mind2web2 validate my_agent --task_list tasks/test_set.csv --num_runs 3
"""
SUBMIT = """\
Pack an agent's answers, pages, newest results and judgments into one ZIP file with a manifest of checksums.
With a task list and three runs, the command also prints the entry for the leaderboard. It leaves out answers
with errors.

  mind2web2 submit my_agent --task_list tasks/test_set.csv -o my_agent.zip
"""


def add_command(commands: Subcommands) -> None:
    """Add ``get``, ``validate`` and ``submit`` to ``mind2web2``."""
    _add_get(commands)
    _add_submission(commands)


def _add_get(commands: Subcommands) -> None:
    get = commands.add_parser("get", help="download tasks and eval scripts", description=GET)
    get.add_argument(
        "--dataset", metavar="NAME", default=DATASET, help="the dataset (default: %(default)s)"
    )
    get.add_argument(
        "--revision",
        metavar="R",
        default="main",
        help="the commit, branch or tag (default: main)",
    )
    get.add_argument("--overwrite", action="store_true", help="also replace files that you changed")
    add_tasks_root(get)
    get.add_folder_options("eval_scripts_root")
    get.set_defaults(run="mind2web2.cli.benchmark:run_get")


def _add_submission(commands: Subcommands) -> None:
    validate = commands.add_parser(
        "validate", help="check the files of an agent's answers", description=VALIDATE
    )
    submit = commands.add_parser(
        "submit", help="pack an agent's answers and results", description=SUBMIT
    )
    for parser in (validate, submit):
        parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
        add_task_list(parser, "the expected tasks", "those that the agent has answered")
        parser.add_argument(
            "--num_runs",
            metavar="N",
            type="positive_int",
            default=3,
            help="the number of answers to each task (default: 3)",
        )
    submit.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="the file to write (default: AGENT.zip)"
    )
    validate.add_folder_options("answer_folder")
    submit.add_folder_options(
        "answer_folder", "eval_scripts_root", "eval_results_root", "cache_root"
    )
    validate.set_defaults(run="mind2web2.cli.benchmark:run_validate")
    submit.set_defaults(run="mind2web2.cli.benchmark:run_submit")
