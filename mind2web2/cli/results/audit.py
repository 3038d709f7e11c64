"""``mind2web2 audit``: the judge's quality and the score by human labels."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

from mind2web2.cli.options import Subcommands, add_folder_options, paths_of
from mind2web2.errors import UsageError
from mind2web2.utils.text import check_name

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.statistics.paired import Estimate
    from mind2web2.viewer.audit import CorrectedScore, JudgeQuality

DESCRIPTION = """\
Compare the judge with people: how often they agree, which errors the judge makes, and the score corrected by
the labels. Labels are made with: mind2web2 view AGENT --audit NAME

  mind2web2 audit my_agent
"""


def add_command(commands: Subcommands) -> None:
    """Add ``audit`` to ``mind2web2``."""
    from mind2web2.cli.results.view import add_audits_root

    parser = commands.add_parser("audit", help="check the judge by human labels", description=DESCRIPTION)
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_audits_root(parser)
    add_folder_options(parser, "eval_results_root", "answer_folder")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the figures and return the exit status."""
    from mind2web2.cli.console import plain_console
    from mind2web2.viewer.audit import (
        LabelFile,
        auditors,
        between_auditors,
        corrected_score,
        judge_quality,
        judged_leaves,
    )
    from mind2web2.viewer.catalog import Catalog

    agent = check_name("agent", options.agent.rstrip("/"))
    catalog = Catalog(paths_of(options), [agent])
    leaves = judged_leaves(catalog, agent)
    labels = {
        name: LabelFile(options.audits_root, agent, name).labels()
        for name in auditors(options.audits_root, agent)
    }
    if not any(labels.values()):
        raise UsageError(
            f"no labels of agent {agent} under {options.audits_root}; "
            f"make some with: mind2web2 view {agent} --audit YOUR_NAME"
        )
    quality = {name: judge_quality(leaves, found) for name, found in labels.items()}
    # Where auditors differ, the first in the alphabet counts.
    together = {leaf: label for name in sorted(labels, reverse=True) for leaf, label in labels[name].items()}
    score = corrected_score(catalog, agent, leaves, together)
    pairs = {(a, b): between_auditors(labels[a], labels[b]) for a, b in combinations(labels, 2)}
    if options.json:
        content: dict[str, Any] = {
            "agent": agent,
            "auditors": {name: asdict(found) for name, found in quality.items()},
            "between_auditors": [
                {"auditors": [*names], "leaves": found[0]}
                | {
                    key: asdict(value)
                    for key, value in zip(("agreement", "kappa", "ac1"), found[1:], strict=True)
                }
                for names, found in pairs.items()
            ],
            "score": None if score is None else asdict(score),
        }
        print(json.dumps(content, indent=2))  # noqa: T201
        return 0
    console = plain_console()
    for name, found in quality.items():
        _print_quality(console, f"Judge and {name}", found)
    for (one, other), (count, *figures) in pairs.items():
        _print_figures(
            console,
            f"{one} and {other}: {_leaves(count)}",
            zip(("agreement", "kappa", "AC1"), figures, strict=True),
        )
    if score is not None:
        _print_score(console, score)
    return 0


def _leaves(amount: int) -> str:
    return f"{amount} {'leaf' if amount == 1 else 'leaves'}"


def _print_quality(console: Console, title: str, found: JudgeQuality) -> None:
    from mind2web2.cli.console import line

    rows = [
        ("agreement", found.agreement),
        ("Cohen's kappa", found.kappa),
        ("Gwet's AC1", found.ac1),
        ("passed wrongly", found.wrong_passes),
        ("failed wrongly", found.wrong_failures),
    ]
    _print_figures(console, f"{title}: {_leaves(found.labels)}", rows)
    if found.undecidable:
        line(console, f"Undecidable: {_leaves(found.undecidable)}, not counted.")
    if found.stale:
        line(console, f"Labels that no longer count, as the leaves were judged again: {found.stale}.")


def _print_figures(console: Console, title: str, rows: Any) -> None:  # Any: pairs of a name and an Estimate
    from rich.table import Table

    table = Table(title=title)
    for heading in ("figure", "value", "95% interval"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for name, figure in rows:
        table.add_row(name, *_in_words(figure))
    console.print(table)


def _in_words(figure: Estimate) -> tuple[str, str]:
    if figure.value is None:
        return "-", "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.4f}", "-"
    return f"{figure.value:.4f}", f"{figure.low:.4f} to {figure.high:.4f}"


def _print_score(console: Console, score: CorrectedScore) -> None:
    from mind2web2.cli.console import line
    from mind2web2.statistics.uncertainty import MIN_TASKS

    value, interval = _in_words(score.corrected)
    if score.corrected.low is None:
        interval = f"unknown with labels of fewer than {MIN_TASKS} tasks"
    line(console, f"Partial completion by the judge: {score.raw:.4f}")
    if score.corrected.value is None:
        line(console, "Corrected score: labels of leaves in at least two answers are needed.")
    else:
        line(
            console,
            f"Corrected by the labels: {value}, 95% interval {interval} "
            f"(PPI++, {score.answers} answers with labels, weight of the judge {score.power:.2f})",
        )
