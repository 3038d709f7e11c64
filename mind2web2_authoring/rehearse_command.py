"""Parser of ``mind2web2 rehearse``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugin import RunSettings, Subcommands

CASES = Path("rehearsals")
DESCRIPTION = """\
Find out whether a rubric gives 1 to a right answer and 0 to a wrong one. It takes seconds, and needs no key
and no pages (docs/rehearsals.md). The verdict is sound, faulty, look at, or cannot tell.

  mind2web2 rehearse                       show a table of all tasks, with what an answer costs
  mind2web2 rehearse TASK                  show the verdict and up to five causes; with -v, all of them
  mind2web2 rehearse TASK --write_cases    write variants of rehearsals/TASK/perfect.md
  mind2web2 rehearse --strict              exit with status 1 unless all tasks are sound
  mind2web2 rehearse --no_run FILE         only read the file, for editors and CI
  mind2web2 rehearse TASK --judge_model M --pages cache/my_agent
                                           have a real judge decide the cases
"""
_JUDGE_MODEL = {
    "help": "judge the cases with this model",
    "default_text": "no model; made-up verdicts",
}


def add_command(commands: Subcommands) -> None:
    """Add ``rehearse`` to ``mind2web2``."""
    parser = commands.add_parser(
        "rehearse", help="try tasks without a judge", description=DESCRIPTION
    )
    add = parser.add_argument
    add(
        "tasks",
        metavar="TASK",
        nargs="*",
        help="the tasks, by id or file (default: all, as a table)",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        default=CASES,
        help="the cases, with a folder for each task (default: rehearsals/)",
    )
    add("-v", "--verbose", action="store_true", help="show all findings and cases")
    add("--no_run", action="store_true", help="only read scripts and rubric files, and run none")
    add(
        "--write_cases",
        action="store_true",
        help="write the missing variants of perfect.md, if it scores 1",
    )
    add(
        "--timeout",
        metavar="S",
        type="positive_seconds",
        default=10.0,
        help="seconds that a script may take for one made-up answer (default: %(default)g)",
    )
    add(
        "--strict",
        # The setting named ``strict`` is another one: it withholds scores for a script's mistakes.
        dest="fails_unless_sound",
        action="store_true",
        help="exit with status 1 unless every task is sound (default: only if one fails to run)",
    )
    written = parser.add_mutually_exclusive_group()
    written.add_argument(
        "--show_tree",
        action="store_true",
        help="only print the tree of a rubric file, and what each leaf asks",
    )
    written.add_argument(
        "--write_script",
        metavar="FILE",
        type=Path,
        help="only write the eval script that a rubric file equals, to go on in Python",
    )
    add("--junit", metavar="FILE", type=Path, help="also write the findings as JUnit XML")
    add("--json", action="store_true", help="print everything as JSON")
    judge = parser.add_argument_group("cases with a real judge")
    judge.add_argument(
        "--pages",
        metavar="DIR",
        type=Path,
        help="the cached pages, one folder a task, such as cache/AGENT",
    )
    judge.add_argument(
        "--missing_pages",
        choices=("no_score", "unavailable", "capture"),
        default="no_score",
        help="what to do if a page is not there: give no_score (the default), treat it as "
        "unavailable "
        "(claims on it fail), or capture it",
    )
    parser.add_settings(["allow_private_network"], group=judge)
    parser.add_judge_settings(
        "eval_scripts_root",
        "eval_version",
        "max_cost",
        base=RunSettings.for_scoring(),
        changed={"judge_model": _JUDGE_MODEL},
    )
    parser.set_defaults(run="mind2web2_authoring.rehearse")
