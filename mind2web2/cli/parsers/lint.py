"""Parser of ``mind2web2 lint``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands

DESCRIPTION = """\
Find faults of eval scripts and rubric files without running them: claims without a source, trees without
a gate, leaves that are never judged, and others (docs/lint.md lists the rules).

  mind2web2 lint                              all tasks under eval_scripts/
  mind2web2 lint eval_scripts/mine/lake.py
  mind2web2 lint --strict --format github     in continuous integration

`# lint: ignore[R201]` on a line, or on the line above, leaves a finding out. What lint cannot see, a
rehearsal can: mind2web2 rehearse TASK
"""


def add_command(commands: Subcommands) -> None:
    """Add ``lint`` to ``mind2web2``."""
    parser = commands.add_parser(
        "lint", help="find faults of eval scripts", description=DESCRIPTION
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        type=Path,
        help="files or folders (default: the folder of scripts)",
    )
    parser.add_argument(
        "--eval_scripts_root",
        metavar="DIR",
        type=Path,
        default=Path("eval_scripts"),
        help="the eval scripts",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with status 1 where there is a finding; without it, only where a file does not parse",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="how findings are printed",
    )
    parser.set_defaults(run="mind2web2.cli.lint")
