"""``mind2web2 serve``: scores of single answers over HTTP."""

from __future__ import annotations

import argparse
import logging
import os
from concurrent.futures import Future
from ipaddress import ip_address
from pathlib import Path

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.settings import RunSettings
from mind2web2.scoring.scorer import MissingPages, Scorer
from mind2web2.scoring.server import serve
from mind2web2.utils.text import counted
from mind2web2.viewer.server import in_url, listen

TOKEN_VARIABLE = "MIND2WEB2_TOKEN"


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM and return the exit status."""
    settings = settings_of(options, is_announced=True)
    console = PlainConsole()
    with listen(options.host, options.port) as listener, console.show_warnings():
        host, port = listener.getsockname()[:2]
        token = os.environ.get(TOKEN_VARIABLE) or None
        if token is None and not ip_address(host).is_loopback:
            raise UsageError(
                f"--host {host} is open to other machines: set {TOKEN_VARIABLE} to a secret"
            )
        with Scorer.of_settings(settings, options.pages, options.missing_pages) as scorer:
            address = f"http://{in_url(host)}:{port}"
            parts = _in_words(settings, options.pages, options.missing_pages)
            console.print_line(f"Scoring at {address} until Ctrl-C. {parts}")
            scorer.check_judge().add_done_callback(_warn_of_judge)
            # Where the output is a pipe, the address is wanted now.
            console.file.flush()
            serve(scorer, listener, token, options.stop_timeout)
        counts = scorer.counts
        without = counted(counts.no_scores.total(), "answer")
        console.print_line(
            f"Stopped. {counted(counts.scores, 'score')}, {without} without a score.",
        )
    return 0


def _in_words(settings: RunSettings, folder: Path | None, missing_pages: MissingPages) -> str:
    judge = judge_spec(settings)
    pages = folder or f"none (--missing_pages {missing_pages})"
    scripts = settings.paths.eval_scripts_root
    return f"Judge: {judge.model} ({judge.endpoint}). Pages: {pages}. Scripts: {scripts}."


def _warn_of_judge(check: Future[None]) -> None:
    if not check.cancelled() and (error := check.exception()) is not None:
        logging.getLogger(__name__).warning(
            "%s Calls have no score until the judge answers.", error
        )
