"""``mind2web2 view``, ``report`` and ``audit``: look at results in a browser, check the judge by labels."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_settings,
    add_task_option,
    count,
    port_number,
    positive_int,
)
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.utils.names import check_name

if TYPE_CHECKING:
    from rich.console import Console
    from starlette.routing import Route

    from mind2web2.statistics.paired import Estimate
    from mind2web2.viewer.audit import AuditSession, CorrectedScore, JudgeQuality
    from mind2web2.viewer.catalog import Catalog

VIEW = """\
Look at results in the browser: scores by task and run, rubric trees, and each claim beside the page that
the judge saw. A local web server shows them, to this machine alone, until Ctrl-C.

  mind2web2 view                      all agents that have results
  mind2web2 view my_agent other       these agents, side by side
  mind2web2 view my_agent --audit NAME
                                      check the judge: label claims without seeing its verdicts
"""
REPORT = """\
Write the same views into one HTML file, which opens from disk without a server or a network.

  mind2web2 report my_agent -o report.html
  mind2web2 report my_agent -o report.html --no_pages      without texts and pictures of cited pages
"""


def add_command(commands: Subcommands) -> None:
    """Add ``view``, ``report`` and ``audit`` to ``mind2web2``."""
    view = commands.add_parser("view", help="look at results in the browser", description=VIEW)
    view.add_argument("agents", metavar="AGENT", nargs="*", help="default: all that have results")
    view.add_argument("--port", type=port_number, default=0, help="default: a free one")
    view.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default: %(default)s, reachable from this machine only)",
    )
    view.add_argument("--no_browser", action="store_true", help="print the address, and open nothing")
    report = commands.add_parser("report", help="write results into one HTML file", description=REPORT)
    report.add_argument("agents", metavar="AGENT", nargs="+")
    report.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file to write")
    report.add_argument("--no_pages", action="store_true", help="leave out texts and pictures of cited pages")
    report.add_argument(
        "--redact_tasks", action="store_true", help="leave out the texts of tasks (gated benchmarks)"
    )
    view.add_argument(
        "--audit", metavar="NAME", help="label a blind sample of judged leaves, as this auditor"
    )
    view.add_argument(
        "--sample", type=positive_int, metavar="N", default=200, help="how many leaves (default: %(default)s)"
    )
    view.add_argument(
        "--seed", type=count, default=0, help="auditors with one seed label the same leaves (default: 0)"
    )
    _add_audits_root(view)
    pages = view.add_argument_group("pages that are captured again")
    pages.add_argument("--reviewer", metavar="NAME", help="who decides (default: your user name)")
    add_settings(view, ["cdp_url", "allow_private_network"], group=pages)
    report.add_argument(
        "--tasks", metavar="ID", nargs="+", default=[], help="only these tasks (as --task_id, repeated)"
    )
    for parser in (view, report):
        add_task_option(parser, default="all that have results")
        add_folder_options(parser, "eval_results_root", "answer_folder", "cache_root")
    view.set_defaults(run=run_view)
    report.set_defaults(run=run_report)
    _add_audit(commands)


def _add_audits_root(parser: argparse.ArgumentParser) -> None:
    """Add the folder of human labels."""
    parser.add_argument(
        "--audits_root",
        metavar="DIR",
        type=Path,
        default=Path("audits"),
        help="where labels go (default: audits/)",
    )


def run_view(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C and return the exit status."""
    from mind2web2.cli.console import line, plain_console
    from mind2web2.viewer.server import Session, application, guarded, listen, open_browser, run_routes, serve

    catalog = _catalog(options)
    catalog.agents()
    listener = listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    session = Session.at(host, port)
    shown_host = f"[{host}]" if ":" in host else host
    features = {"pages": _page_routes(options, catalog), "run": run_routes(catalog)}
    if options.audit is not None:
        features["audit"] = _audit_session(options, catalog).routes()
    first_view = "" if options.audit is None else "#/audit"
    address = f"http://{shown_host}:{port}/?token={session.token}{first_view}"
    console = plain_console()
    line(console, f"Open {address}")
    line(console, "The address holds the key of this session: keep it to yourself. Ctrl-C ends the viewer.")
    # Where the output is a pipe, the address is wanted now.
    console.file.flush()
    if not options.no_browser:
        open_browser(address)
    # While the browser starts: results of a whole benchmark take a second to read.
    Thread(target=catalog.overview, daemon=True).start()
    serve(guarded(application(catalog, session, features), session), listener)
    return 0


def run_report(options: argparse.Namespace) -> int:
    """Write the file and return the exit status."""
    import asyncio

    from mind2web2.cli.console import line, plain_console
    from mind2web2.viewer.front_end import LARGE_FILE_BYTES, ReportContent, write_report

    content = ReportContent(pages=not options.no_pages, redact_tasks=options.redact_tasks)
    catalog = _catalog(options)
    catalog.check_tasks()
    size = asyncio.run(write_report(options.output, catalog, content))
    console = plain_console()
    line(console, f"Wrote {options.output} ({size / 1e6:.1f} MB)")
    if size > LARGE_FILE_BYTES:
        line(
            console,
            "Warning: browsers open a file of this size slowly, or not at all; leave pages out with "
            "--no_pages, or choose tasks with --tasks",
        )
    return 0


def _page_routes(options: argparse.Namespace, catalog: Catalog) -> list[Route]:
    import getpass

    from mind2web2.capture.models import CaptureSettings, NetworkSettings
    from mind2web2.viewer.page_review import PageReview, PageRoutes, Reviewer

    settings = settings_of(options)
    network = NetworkSettings(allow_private_network=settings.allow_private_network)
    capture = CaptureSettings(cdp_url=settings.cdp_url, network=network)
    reviewer = Reviewer(options.reviewer or options.audit or getpass.getuser(), capture)
    return PageRoutes(PageReview(catalog, reviewer), catalog.agents()).routes()


def _audit_session(options: argparse.Namespace, catalog: Catalog) -> AuditSession:
    from mind2web2.viewer.audit import AuditSession, AuditSettings

    agents = catalog.agents()
    if len(agents) != 1:
        raise UsageError("an audit is of one agent: mind2web2 view AGENT --audit NAME")
    auditor = check_name("auditor", options.audit)
    settings = AuditSettings(options.audits_root, agents[0], auditor, options.sample, options.seed)
    return AuditSession(catalog, settings)


def _catalog(options: argparse.Namespace) -> Catalog:
    from mind2web2.viewer.catalog import Catalog

    agents = [check_name("agent", name.rstrip("/")) for name in options.agents]
    settings = settings_of(options)
    tasks = [*settings.task_ids, *getattr(options, "tasks", ())]
    return Catalog(paths_of(settings, *agents), agents, tasks)


AUDIT = """\
Compare the judge with people: how often they agree, which errors the judge makes, and the score corrected by
the labels. Labels are made with: mind2web2 view AGENT --audit NAME

  mind2web2 audit my_agent
"""


def _add_audit(commands: Subcommands) -> None:
    parser = commands.add_parser("audit", help="check the judge by human labels", description=AUDIT)
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    _add_audits_root(parser)
    add_folder_options(parser, "eval_results_root", "answer_folder")
    parser.set_defaults(run=run_audit)


def run_audit(options: argparse.Namespace) -> int:
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
    catalog = Catalog(paths_of(settings_of(options), agent), [agent])
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
    for (one, other), (shared, *figures) in pairs.items():
        _print_figures(
            console,
            f"{one} and {other}: {_leaves(shared)}",
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
