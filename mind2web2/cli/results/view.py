"""``mind2web2 view`` and ``report``: look at results in a browser, and label a sample of them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

from mind2web2.analysis.correction_record import CorrectionRoots
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.cli.results.chosen import named_agents
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.program import program
from mind2web2.viewer.audit import AuditSession, AuditSettings
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.front_end import DEFAULT_TITLE
from mind2web2.viewer.report import LARGE_FILE_BYTES, ReportContent, write_report
from mind2web2.viewer.server import (
    Session,
    SessionGuard,
    application,
    in_url,
    listen,
    open_browser,
    serve,
)


def run_view(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or open a written report, and return the exit status."""
    if report := next((name for name in options.agents if name.endswith(".html")), None):
        return _open_report(Path(report).resolve(), options)
    settings = settings_of(options)
    catalog = _catalog(settings, options, settings.task_ids)
    catalog.agents()
    listener = listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    session = Session.at(host, port)
    features, first_view = {}, ""
    if options.audit is not None:
        auditor = check_name("auditor", options.audit)
        audit = AuditSettings(options.audits_root, _agent_of_audit(catalog), auditor)
        features, first_view = {"audit": AuditSession(catalog, audit).routes()}, "#/audit"
    address = f"http://{in_url(host)}:{port}/?token={session.token}{first_view}"
    console = PlainConsole()
    console.print_line(f"Open {address}")
    console.print_line(
        "The address contains the key of this session, so keep it to yourself. Ctrl-C ends the "
        "viewer.",
    )
    # Where the output is a pipe, the address is wanted now.
    console.file.flush()
    if not options.no_browser:
        open_browser(address)
    # While the browser starts: results of many agents take seconds to read.
    Thread(target=_read_results, args=(console, catalog), daemon=True).start()
    serve(SessionGuard(application(catalog, session, features), session), listener)
    return 0


def _open_report(report: Path, options: argparse.Namespace) -> int:
    if not report.is_file():
        raise UsageError(f"there is no file {report}")
    PlainConsole().print_line(f"Open {report.as_uri()}")
    if not options.no_browser:
        open_browser(report.as_uri())
    return 0


def _read_results(console: PlainConsole, catalog: Catalog) -> None:
    """Read all results, and say how far that is."""
    agents = catalog.agents()
    with console.status("Reading results") as status:
        for number, agent in enumerate(agents, start=1):
            status.update(f"Reading results of agent {number} of {len(agents)}, {agent}")
            catalog.answers(agent)
    catalog.overview()


def run_report(options: argparse.Namespace) -> int:
    """Write the file and return the exit status."""
    if options.output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"-o {options.output}: name a file that ends in .html")
    title = options.title or DEFAULT_TITLE
    content = ReportContent(
        pages=not options.no_pages, redact_tasks=options.redact_tasks, title=title
    )
    settings = settings_of(options)
    catalog = _catalog(settings, options, [*settings.task_ids, *options.tasks])
    catalog.check_tasks()
    size = asyncio.run(write_report(options.output, catalog, content))
    console = PlainConsole()
    console.print_line(f"Wrote {options.output} ({size / 1e6:.1f} MB)")
    if size > LARGE_FILE_BYTES:
        console.print_line(
            "Warning: browsers open a file of this size slowly, or not at all. Leave pages out "
            "with --no_pages, or choose tasks with --tasks",
        )
    return 0


def _agent_of_audit(catalog: Catalog) -> str:
    """Return the agent of an audit."""
    agents = catalog.agents()
    if len(agents) != 1:
        raise UsageError(f"an audit is about one agent: {program()} view AGENT --audit NAME")
    return agents[0]


def _catalog(settings: RunSettings, options: argparse.Namespace, tasks: Sequence[str]) -> Catalog:
    """Return the results to show."""
    paths = settings.paths
    roots = CorrectionRoots(paths.eval_results_root, options.audits_root, options.rejudged_root)
    return Catalog(paths, named_agents(options), tasks, roots)
