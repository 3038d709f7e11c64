"""``mind2web2 serve``: scores of single answers over HTTP."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import (
    Subcommands,
    add_settings,
    asking_providers,
    port_number,
    positive_seconds,
)
from mind2web2.cli.scorer_options import SCORING_DEFAULTS, scorer_of
from mind2web2.cli.settings_file import settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.settings import JUDGE_SETTINGS, SETTINGS, RunSettings
from mind2web2.utils import values
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mind2web2.scoring.scorer import MissingPages


TOKEN_VARIABLE = "MIND2WEB2_TOKEN"
_SETTINGS = (
    "eval_scripts_root",
    "eval_version",
    *JUDGE_SETTINGS,
    "judge_cascade",
    "votes",
    "judgments",
    "max_llm_requests",
    "max_cost",
    "max_concurrent_answers",
    "answer_timeout",
    "strict",
)
_CHANGED = (
    asking_providers(),
    replace(
        SETTINGS["judgments"],
        help="keep the judge's replies there",
        metavar="FILE",
        parse=values.local_path,
        default_text="in memory",
    ),
    replace(SETTINGS["max_concurrent_answers"], help="answers at once"),
    replace(SETTINGS["max_cost"], help="stop asking at this cost, for good"),
)
DESCRIPTION = """\
Score single answers over HTTP until Ctrl-C, for training runs and other programs.

  mind2web2 serve --pages cache/my_agent --port 8080
  curl localhost:8080/score --json '{"task": "TASK", "answer": "..."}'

Replies: 200 with the score, the tree and the evidence; 503 with kind and reason where judge, script, page or
budget failed, which says nothing about the answer; 400 for bad input. Also POST /scores, GET /health and
GET /metrics (Prometheus).
"""


def add_command(commands: Subcommands) -> None:
    """Add ``serve`` to ``mind2web2``."""
    parser = commands.add_parser(
        "serve", help="score single answers over HTTP", description=DESCRIPTION
    )
    add = parser.add_argument
    add("--port", type=port_number, default=0, help="default: a free one")
    add(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default: %(default)s, reachable from this machine only); another "
        f"one needs a token in {TOKEN_VARIABLE}",
    )
    add(
        "--stop_timeout",
        metavar="S",
        type=positive_seconds,
        default=30.0,
        help="seconds for the calls in flight after Ctrl-C or SIGTERM (default: 30)",
    )
    pages = parser.add_argument_group("pages")
    pages.add_argument(
        "--pages",
        metavar="DIR",
        type=Path,
        help="the cached pages, with a folder for each task: cache/AGENT",
    )
    pages.add_argument(
        "--missing_pages",
        choices=("no_score", "unavailable", "capture"),
        default="no_score",
        help="a cited page that is not there: no score (default), unavailable (claims on it fail), or "
        "capture it",
    )
    add_settings(parser, ["allow_private_network"], group=pages)
    add_settings(parser, _SETTINGS, base=SCORING_DEFAULTS, changed=_CHANGED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM and return the exit status."""
    import os
    from ipaddress import ip_address

    from mind2web2.cli.console import line, plain_console, warnings_on
    from mind2web2.scoring.server import serve
    from mind2web2.viewer.server import listen

    settings = settings_of(options, is_announced=True)
    console = plain_console()
    with listen(options.host, options.port) as listener, warnings_on(console):
        host, port = listener.getsockname()[:2]
        token = os.environ.get(TOKEN_VARIABLE) or None
        if token is None and not ip_address(host).is_loopback:
            raise UsageError(
                f"--host {host} is open to other machines: set {TOKEN_VARIABLE} to a secret"
            )
        with scorer_of(settings, options.pages, options.missing_pages) as scorer:
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            parts = _in_words(settings, options.pages, options.missing_pages)
            line(console, f"Scoring at {address} until Ctrl-C. {parts}")
            scorer.check_judge().add_done_callback(_warn_of_judge)
            # Where the output is a pipe, the address is wanted now.
            console.file.flush()
            serve(scorer, listener, token, options.stop_timeout)
        counts = scorer.counts
        without = counted(counts.no_scores.total(), "answer")
        line(
            console,
            f"Stopped. {counted(counts.scores, 'score')}, {without} without a score.",
        )
    return 0


def _in_words(settings: RunSettings, folder: Path | None, missing_pages: MissingPages) -> str:
    from mind2web2.llm_client.settings import endpoint_of
    from mind2web2.runs.paths import paths_of

    endpoint = endpoint_of(settings.llm_provider, settings.judge_server())
    pages = folder or f"none (--missing_pages {missing_pages})"
    scripts = paths_of(settings).eval_scripts_root
    return f"Judge: {settings.model} ({endpoint}). Pages: {pages}. Scripts: {scripts}."


def _warn_of_judge(check: Future[None]) -> None:
    import logging  # slow to load beside --help

    if not check.cancelled() and (error := check.exception()) is not None:
        logging.getLogger(__name__).warning("%s Until it is, calls have no score.", error)
