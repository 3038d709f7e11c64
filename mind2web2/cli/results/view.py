"""``mind2web2 view`` and ``report``: look at results in a browser, and label a sample of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_settings,
    add_task_option,
    port_number,
)
from mind2web2.cli.results.chosen import no_results
from mind2web2.cli.results.corrections import add_correction_roots
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.program import program

if TYPE_CHECKING:
    from starlette.routing import Route

    from mind2web2.viewer.catalog import Catalog

VIEW = """\
Look at results in the browser: scores by task and run, rubric trees, and each claim beside the page that
the judge saw. A local web server shows them, to this machine alone, until Ctrl-C.

  mind2web2 view                      all agents that have results
  mind2web2 view my_agent other       these agents, side by side
  mind2web2 view my_agent --audit NAME
                                      check the judge: label claims without seeing its verdicts
  mind2web2 view my_agent --audit NAME --second
                                      then look again at those where you and the judge differ
"""
REPORT = """\
Write the same views into one HTML file, which opens from disk without a server or a network.

  mind2web2 report my_agent -o report.html
  mind2web2 report my_agent -o report.html --no_pages      without texts and pictures of cited pages
"""


def add_command(commands: Subcommands) -> None:
    """Add ``view`` and ``report`` to ``mind2web2``."""
    view = commands.add_parser("view", help="look at results in the browser", description=VIEW)
    view.add_argument("agents", metavar="AGENT", nargs="*", help="default: all that have results")
    view.add_argument("--port", type=port_number, default=0, help="default: a free one")
    view.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default: %(default)s, reachable from this machine only)",
    )
    view.add_argument(
        "--no_browser", action="store_true", help="print the address, and open nothing"
    )
    report = commands.add_parser(
        "report", help="write results into one HTML file", description=REPORT
    )
    report.add_argument("agents", metavar="AGENT", nargs="+")
    report.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="the file to write",
    )
    report.add_argument(
        "--title",
        metavar="TEXT",
        help="the report's title (default: Mind2Web-2 results)",
    )
    report.add_argument(
        "--no_pages",
        action="store_true",
        help="leave out texts and pictures of cited pages",
    )
    report.add_argument(
        "--redact_tasks",
        action="store_true",
        help="leave out the texts of tasks (gated benchmarks)",
    )
    view.add_argument(
        "--audit",
        metavar="NAME",
        help="label the claims of whole answers, drawn at random, without the judge's verdicts, as NAME",
    )
    view.add_argument(
        "--second",
        action="store_true",
        help="label again, beside the judge's reasons, only the leaves at which NAME's blind label and the "
        "judge differ; kept apart from the blind labels",
    )
    for parser in (view, report):
        add_correction_roots(parser)
    pages = view.add_argument_group("pages that are captured again")
    pages.add_argument("--reviewer", metavar="NAME", help="who decides (default: your user name)")
    add_settings(view, ["cdp_url", "allow_private_network"], group=pages)
    report.add_argument(
        "--tasks",
        metavar="ID",
        nargs="+",
        default=[],
        help="only these tasks (as --task_id, repeated)",
    )
    for parser in (view, report):
        add_task_option(parser, default="all that have results")
        add_folder_options(parser, "eval_results_root", "answer_folder", "cache_root")
    view.set_defaults(run=run_view)
    report.set_defaults(run=run_report)


def run_view(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C and return the exit status."""
    from mind2web2.cli.console import line, plain_console
    from mind2web2.viewer.audit import AuditSession, AuditSettings
    from mind2web2.viewer.server import (
        Session,
        application,
        guarded,
        listen,
        open_browser,
        run_routes,
        serve,
    )

    settings = settings_of(options)
    catalog = _catalog(
        settings,
        options.agents,
        settings.task_ids,
        (options.audits_root, options.rejudged_root),
    )
    catalog.agents()
    listener = listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    session = Session.at(host, port)
    shown_host = f"[{host}]" if ":" in host else host
    if options.audit is None:
        features = {
            "pages": _page_routes(settings, catalog, options.reviewer),
            "run": run_routes(catalog),
        }
    else:
        auditor = check_name("auditor", options.audit)
        audit = AuditSettings(options.audits_root, _audited(catalog), auditor, options.second)
        features = {"audit": AuditSession(catalog, audit).routes()}
    first_view = "" if options.audit is None else "#/audit"
    address = f"http://{shown_host}:{port}/?token={session.token}{first_view}"
    console = plain_console()
    line(console, f"Open {address}")
    line(
        console,
        "The address holds the key of this session: keep it to yourself. Ctrl-C ends the viewer.",
    )
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
    from mind2web2.viewer.front_end import DEFAULT_TITLE
    from mind2web2.viewer.report import LARGE_FILE_BYTES, ReportContent, write_report

    title = options.title or DEFAULT_TITLE
    content = ReportContent(
        pages=not options.no_pages, redact_tasks=options.redact_tasks, title=title
    )
    settings = settings_of(options)
    catalog = _catalog(
        settings,
        options.agents,
        [*settings.task_ids, *options.tasks],
        (options.audits_root, options.rejudged_root),
    )
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


def _page_routes(settings: RunSettings, catalog: Catalog, reviewer: str | None) -> list[Route]:
    import getpass

    from mind2web2.capture.models import CaptureSettings, NetworkSettings
    from mind2web2.viewer.page_review import PageReview, PageRoutes, Reviewer

    network = NetworkSettings(allow_private_network=settings.allow_private_network)
    capture = CaptureSettings(cdp_url=settings.cdp_url, network=network)
    review = PageReview(catalog, Reviewer(reviewer or getpass.getuser(), capture))
    return PageRoutes(review, catalog.agents()).routes()


def _audited(catalog: Catalog) -> str:
    """Return the agent of an audit."""
    agents = catalog.agents()
    if len(agents) != 1:
        raise UsageError(f"an audit is of one agent: {program()} view AGENT --audit NAME")
    return agents[0]


def _catalog(
    settings: RunSettings,
    named: Sequence[str],
    tasks: Sequence[str],
    correctors: tuple[Path, Path],
) -> Catalog:
    """Return the results to show; the last paths have the labels and the samples by a strong judge."""
    from mind2web2.analysis.corrections import CorrectionRoots
    from mind2web2.viewer.catalog import Catalog

    agents = [check_name("agent", name.rstrip("/")) for name in named]
    paths = paths_of(settings, *agents)
    catalog = Catalog(
        paths,
        agents,
        list(tasks),
        CorrectionRoots(paths.eval_results_root, *correctors),
    )
    known = catalog.known_agents()
    for agent in agents:
        if agent not in known:
            raise no_results(settings, paths.eval_results_root, agent)
    return catalog
