"""``mind2web2 economy``: what each rule of ``--votes`` would have cost and changed."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.utils.names import check_name

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.runs.economy import Economy
    from mind2web2.statistics.paired import Estimate

DESCRIPTION = """\
Replay the stored votes of an agent's results by each rule of --votes, and show what the rule would have
changed. Nothing is asked.

  mind2web2 economy my_agent

requests            of the votes that were asked for, the share that the rule asks for
verdicts, scores    the share that would differ, with the 95% interval, for tasks like these
doubt without ...   the rule doubt, if this sign did not count
"""


def add_command(commands: Subcommands) -> None:
    """Add ``economy`` to ``mind2web2``."""
    parser = commands.add_parser(
        "economy",
        help="show what fewer votes would have saved and changed",
        description=DESCRIPTION,
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent")
    add_task_option(parser, "all that have results")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the figures and return the exit status."""
    from mind2web2.cli.console import plain_console, warnings_on
    from mind2web2.runs.economy import economy

    settings = settings_of(options)
    name = check_name("agent", options.agent)
    root = paths_of(settings, name).eval_results_root
    console = plain_console()
    with warnings_on(console):
        found = economy(root, name, settings.task_ids)
    if not found.claims:
        why = (
            f", and {found.other_rules} by another rule than --votes always"
            if found.other_rules
            else ""
        )
        raise UsageError(
            f"no votes of {name} to replay under {root}: there are {found.answers} answers with a score and "
            f"no vote on a claim{why}; run mind2web2 evaluate first"
        )
    if options.json:
        console.print_json(json.dumps(asdict(found)))
    else:
        _print(console, found)
    return 0


def _print(console: Console, found: Economy) -> None:
    from rich.table import Table

    from mind2web2.cli.console import counted, line

    places = f"{counted(found.answers, 'answer')} to {counted(found.tasks, 'task')}"
    claims = f"{counted(found.votes, 'vote')} on {counted(found.claims, 'claim')} in {places}"
    line(console, f"{claims}, replayed by each rule of --votes:")
    table = Table()
    for head in ("rule", "requests", "other verdicts", "other scores"):
        table.add_column(head, justify="left" if head == "rule" else "right")
    for rule in found.rules:
        table.add_row(
            rule.rule, *map(_share, (rule.requests, rule.verdicts, rule.scores))
        )
    console.print(table)
    if found.other_rules:
        answers = counted(found.other_rules, "answer")
        line(
            console,
            f"Left out: {answers} judged by another rule, which did not ask for all votes.",
        )


def _share(figure: Estimate) -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.1%}"
    return f"{figure.value:.1%} ({figure.low:.1%} to {figure.high:.1%})"
