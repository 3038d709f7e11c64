"""Parser of ``mind2web2 new``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugin import Subcommands

DESCRIPTION = """\
Write a new task to start from: a rubric file and one perfect answer, which pass their rehearsal. Then change
them step by step, and rehearse after each step. docs/your-own-benchmark.md leads you through it.

  mind2web2 new my_task              write eval_scripts/own/my_task.yaml and rehearsals/my_task/perfect.md
  mind2web2 new my_task --python     write an eval script instead of the rubric file
"""


def add_command(commands: Subcommands) -> None:
    """Add ``new`` to ``mind2web2``."""
    parser = commands.add_parser("new", help="write a task of your own", description=DESCRIPTION)
    add = parser.add_argument
    add(
        "task",
        metavar="TASK",
        help="the task's id: its file has this name, and so has its folder under answers/AGENT/",
    )
    add(
        "--question",
        metavar="TEXT",
        help="the question that agents are asked (default: the example's)",
    )
    add("--python", action="store_true", help="write an eval script instead of a rubric file")
    add(
        "--version",
        metavar="V",
        default="own",
        help="the folder under eval_scripts/ (default: %(default)s)",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        default=Path("rehearsals"),
        help="the folder of cases (default: %(default)s/)",
    )
    parser.add_settings(["eval_scripts_root"])
    parser.set_defaults(run="mind2web2_authoring.new")
