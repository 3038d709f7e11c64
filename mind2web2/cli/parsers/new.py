"""Parser of ``mind2web2 new``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands, add_settings

DESCRIPTION = """\
Write a task of your own: a rubric file, and one perfect answer, which pass their rehearsal
(docs/your-own-benchmark.md). Then change them step by step, and rehearse after each.

  mind2web2 new my_task                    eval_scripts/own/my_task.yaml, rehearsals/my_task/perfect.md
  mind2web2 new my_task --python           the same as an eval script
"""


def add_command(commands: Subcommands) -> None:
    """Add ``new`` to ``mind2web2``."""
    parser = commands.add_parser("new", help="write a task of your own", description=DESCRIPTION)
    add = parser.add_argument
    add(
        "task",
        metavar="TASK",
        help="its id: the file's name, and a folder under answers/AGENT/",
    )
    add(
        "--question",
        metavar="TEXT",
        help="the question to agents (default: the example's)",
    )
    add("--python", action="store_true", help="an eval script instead of a rubric file")
    add(
        "--version",
        metavar="V",
        default="own",
        help="folder under eval_scripts/ (default: %(default)s)",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        default=Path("rehearsals"),
        help="the cases (default: %(default)s/)",
    )
    add_settings(parser, ["eval_scripts_root"])
    parser.set_defaults(run="mind2web2.cli.new")
