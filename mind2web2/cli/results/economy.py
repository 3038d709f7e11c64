"""``mind2web2 economy``: what each rule of votes, or of two judges, would have cost and changed."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_json_option,
    add_settings,
    add_task_option,
)
from mind2web2.cli.results.chosen import check_record
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.cli.suggestions import suggested_command
from mind2web2.errors import UsageError
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.judge.cascade import JudgeCascade
    from mind2web2.runs.decision_economy import DecisionEconomy
    from mind2web2.runs.economy import Economy
    from mind2web2.runs.settings import RunSettings
    from mind2web2.runs.two_judges import SharedEconomy
    from mind2web2.statistics.paired import Estimate

DESCRIPTION = """\
Replay the stored votes of an agent's results by each rule of --votes, and show what the rule would have
changed. Nothing is asked.

  mind2web2 economy my_agent

requests            of the votes that were asked for, the share that the rule asks for
verdicts, scores    the share that would differ, with the 95% interval, for tasks like these
doubt without ...   the rule doubt, if this sign did not count

  mind2web2 economy my_agent --judge_cascade CHEAP,STRONG

compares results of the same answers by both judges, each alone (evaluate, or rejudge --judge_model): what
each rule of --judge_doubt would have cost, and which verdicts and scores would not be the strong judge's.

  mind2web2 economy my_agent --judge_cascade decisions:CHEAP,STRONG
  mind2web2 economy my_agent --judge_cascade CHEAP,STRONG --agreement .95

names the boldest rule whose verdicts are the strong judge's in this share of the claims, for certain:
rules are tested from the most cautious on, and the first that may miss it ends the test.
"""
# Of two judges' rules, beside the rule's name, which stays whole where the terminal is narrow.
_COMPARED = ("votes of the strong", "price", "other verdicts", "other scores")


def add_command(commands: Subcommands) -> None:
    """Add ``economy`` to ``mind2web2``."""
    parser = commands.add_parser(
        "economy",
        help="show what fewer votes would have saved and changed",
        description=DESCRIPTION,
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent")
    add_task_option(parser, "all that have results")
    add_settings(parser, ["judge_cascade"])
    parser.add_argument(
        "--agreement",
        metavar="SHARE",
        type=_share_of_verdicts,
        help="with --judge_cascade: of the strong judge's verdicts, the share to keep, such as .95",
    )
    parser.add_argument(
        "--rejudged_root",
        metavar="DIR",
        type=Path,
        default=Path("rejudged"),
        help="with --judge_cascade: results of rejudge, which count as well (default: rejudged/)",
    )
    add_json_option(parser, "the numbers")
    add_folder_options(parser, "eval_results_root")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the figures and return the exit status."""
    from mind2web2.cli.console import plain_console, warnings_on
    from mind2web2.runs.economy import economy

    settings = settings_of(options)
    name = check_name("agent", options.agent)
    root = paths_of(settings, name).eval_results_root
    check_record(settings, root, name)
    console = plain_console()
    cascade = settings.judge_cascade
    if cascade is not None and cascade.decision_provider is not None:
        decided = _decided(settings, root, name, options.agreement)
        if options.json:
            console.print_json(json.dumps(asdict(decided)))
        else:
            _print_decided(console, decided, cascade)
        return 0
    if settings.judge_cascade is not None:
        roots = (root, *sorted(options.rejudged_root.glob("*/*/")))
        shared = _shared(settings, roots, name, options.agreement)
        if options.json:
            console.print_json(json.dumps(asdict(shared)))
        else:
            _print_shared(console, shared, settings.judge_cascade)
        return 0
    if options.agreement is not None:
        raise UsageError("--agreement goes with --judge_cascade CHEAP,STRONG")
    with warnings_on(console):
        found = economy(root, name, settings.task_ids)
    if not found.claims:
        why = (
            f", and {found.other_rules} by another rule than --votes always"
            if found.other_rules
            else ""
        )
        raise UsageError(
            f"no votes of {name} to replay under {root}: it has "
            f"{counted(found.answers, 'answer')} with a score and "
            f"no vote on a claim{why}"
        )
    if options.json:
        console.print_json(json.dumps(asdict(found)))
    else:
        _print(console, found)
    return 0


def _print(console: Console, found: Economy) -> None:
    from rich.table import Table

    from mind2web2.cli.console import line

    places = f"{counted(found.answers, 'answer')} to {counted(found.tasks, 'task')}"
    claims = f"{counted(found.votes, 'vote')} on {counted(found.claims, 'claim')} in {places}"
    line(console, f"{claims}, replayed by each rule of --votes:")
    table = Table()
    table.add_column("rule", no_wrap=True)
    for head in ("requests", "other verdicts", "other scores"):
        table.add_column(head, justify="right")
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


def _shared(
    settings: RunSettings, roots: Sequence[Path], name: str, agreement: float | None
) -> SharedEconomy:
    from mind2web2.runs.two_judges import shared_economy

    cascade = settings.judge_cascade
    assert cascade is not None, "the caller has looked"
    found = shared_economy(roots, name, cascade, settings.task_ids, agreement)
    if not found.claims:
        raise UsageError(
            f"no answer of {name} has results by {cascade.first} and by {cascade.strong}, each alone with "
            f"--votes always, on the same answer, script and prompts: mind2web2 rejudge {name} --judge_model "
            "MODEL --times 1 makes those of the other judge"
        )
    return found


def _decided(
    settings: RunSettings, root: Path, name: str, agreement: float | None
) -> DecisionEconomy:
    from mind2web2.runs.decision_economy import decision_economy

    cascade = settings.judge_cascade
    assert cascade is not None, "the caller has looked"
    found = decision_economy(root, name, cascade, settings.task_ids, agreement)
    if not found.asked:
        both = ("--judge_cascade", str(cascade), "--judge_confidence", "1")
        command = suggested_command(
            settings, "evaluate", name, *both, "--judge_doubt", "signs"
        )
        raise UsageError(
            f"no answer of {name} has a result for which {cascade.first_name} and {cascade.strong} were "
            f"asked about the same claims: {command} asks both, with the options for the judges' servers"
        )
    return found


def _print_decided(
    console: Console, found: DecisionEconomy, cascade: JudgeCascade
) -> None:
    from rich.table import Table

    from mind2web2.cli.console import line

    places = f"{counted(found.answers, 'answer')} to {counted(found.tasks, 'task')}"
    line(
        console,
        f"{counted(found.claims, 'claim')} in {places}; {cascade.first} was asked about {found.asked}, "
        f"{cascade.strong} about all. If {cascade.first} decided above a probability:",
    )
    table = Table()
    table.add_column("--judge_confidence", justify="right", no_wrap=True)
    for head in _COMPARED:
        table.add_column(head, justify="right")
    for rule in found.rules:
        figures = (rule.strong, rule.price, rule.verdicts, rule.scores)
        table.add_row(f"{rule.confidence:g}", *map(_share, figures))
    console.print(table)
    if found.agreement is not None:
        line(console, _confidence_guarantee(found, cascade))


def _confidence_guarantee(found: DecisionEconomy, cascade: JudgeCascade) -> str:
    wanted = f"{found.agreement:.1%} of the verdicts"
    if found.chosen is None:
        return (
            f"For no confidence it is certain (97.5%) that {wanted} are those of {cascade.strong}: judge "
            "more answers by both, or take a better first judge."
        )
    return (
        f"{wanted} are those of {cascade.strong} for certain (97.5%, for tasks like these) with "
        f"--judge_cascade {cascade} --judge_confidence {found.chosen:g}."
    )


def _print_shared(
    console: Console, found: SharedEconomy, cascade: JudgeCascade
) -> None:
    from rich.table import Table

    from mind2web2.cli.console import line

    places = f"{counted(found.answers, 'answer')} to {counted(found.tasks, 'task')}"
    line(
        console,
        f"{counted(found.claims, 'claim')} in {places}, judged by {cascade.first} and by {cascade.strong}, "
        "each alone.",
    )
    line(
        console,
        f"The first one, and the strong one where that is in doubt, against {cascade.strong} alone:",
    )
    table = Table()
    table.add_column("--judge_doubt", no_wrap=True)
    for head in _COMPARED:
        table.add_column(head, justify="right")
    for rule in found.rules:
        if rule.rule == "alone":
            name = f"({cascade.first} alone)"
        else:
            name = rule.rule
        figures = (rule.strong, rule.price, rule.verdicts, rule.scores)
        table.add_row(name, *map(_share, figures))
    console.print(table)
    if found.unknown:
        claims = counted(found.unknown, "claim")
        line(console, f"Left out: {claims} that the first judge was not asked alike.")
    if found.lacking:
        answers = counted(found.lacking, "answer")
        line(console, f"Left out: {answers} that not both judged on the same premises.")
    if found.agreement is not None:
        line(console, _guarantee(found, cascade))


def _guarantee(found: SharedEconomy, cascade: JudgeCascade) -> str:
    wanted = f"{found.agreement:.1%} of the verdicts"
    if found.chosen is None:
        return (
            f"For no rule it is certain (97.5%) that {wanted} are those of {cascade.strong}: judge "
            "more answers by both, or take a better first judge."
        )
    rule = (
        f"--judge_model {cascade.first}"
        if found.chosen == "alone"
        else f"--judge_cascade {cascade} --judge_doubt {found.chosen}"
    )
    return f"{wanted} are those of {cascade.strong} for certain (97.5%, for tasks like these) with {rule}."


def _share_of_verdicts(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no share between 0 and 1, such as .95"
        )
    return share


def _share(figure: Estimate) -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.1%}"
    return f"{figure.value:.1%} ({figure.low:.1%} to {figure.high:.1%})"
