"""``mind2web2 serve``: scores of single answers over HTTP."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.evaluate import add_judge_parameters
from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    JUDGE_PROVIDERS_HELP,
    Subcommands,
    add_folder_options,
    paths_of,
    port_number,
    positive_dollars,
    positive_int,
    positive_seconds,
)
from mind2web2.cli.settings import apply_settings_file, judge_server
from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from mind2web2.scoring.scorer import Scorer


TOKEN_VARIABLE = "MIND2WEB2_TOKEN"
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
    parser = commands.add_parser("serve", help="score single answers over HTTP", description=DESCRIPTION)
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
    add_folder_options(parser, "eval_scripts_root")
    add("--eval_version", metavar="V", help="version of the eval scripts")
    _add_page_options(parser.add_argument_group("pages"))
    _add_judge_options(parser.add_argument_group("judge"))
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max_concurrent_answers",
        metavar="N",
        type=positive_int,
        default=64,
        help="answers at once (default: 64)",
    )
    limits.add_argument(
        "--answer_timeout",
        metavar="S",
        type=positive_seconds,
        default=600.0,
        help="seconds that a script may take for one answer (default: 600)",
    )
    limits.add_argument(
        "--no_isolate",
        action="store_true",
        help="run scripts in the server's process: three times as fast, but one that blocks holds up all",
    )
    parser.set_defaults(run=run)


def _add_page_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--pages", metavar="DIR", type=Path, help="the cached pages, with a folder for each task: cache/AGENT"
    )
    group.add_argument(
        "--missing_pages",
        choices=("no_score", "unavailable", "capture"),
        default="no_score",
        help="a cited page that is not there: no score (default), unavailable (claims on it fail), or "
        "capture it",
    )
    group.add_argument("--allow_private_network", action="store_true", help="also pages on private addresses")


def _add_judge_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--llm_provider", choices=JUDGE_PROVIDERS, default="openai", help=JUDGE_PROVIDERS_HELP)
    group.add_argument("--judge_model", metavar="M", help="the model that judges (default: o4-mini)")
    add_judge_parameters(group)
    group.add_argument(
        "--judgments", metavar="FILE", type=Path, help="keep the judge's replies there (default: in memory)"
    )
    group.add_argument(
        "--max_llm_requests",
        metavar="N",
        type=positive_int,
        default=30,
        help="judge requests at once (default: 30)",
    )
    group.add_argument(
        "--max_cost", metavar="USD", type=positive_dollars, help="stop asking at this cost, for good"
    )


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM and return the exit status."""
    import os
    from ipaddress import ip_address

    from mind2web2.cli.console import counted, line, plain_console, warnings_on
    from mind2web2.scoring.server import serve
    from mind2web2.viewer.server import listen

    apply_settings_file(options)
    console = plain_console()
    with listen(options.host, options.port) as listener, warnings_on(console):
        host, port = listener.getsockname()[:2]
        token = os.environ.get(TOKEN_VARIABLE) or None
        if token is None and not ip_address(host).is_loopback:
            raise UsageError(f"--host {host} is open to other machines: set {TOKEN_VARIABLE} to a secret")
        with _scorer(options) as scorer:
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            line(console, f"Scoring at {address} until Ctrl-C. {_parts_in_words(options)}")
            scorer.check_judge().add_done_callback(_warn_of_judge)
            # Where the output is a pipe, the address is wanted now.
            console.file.flush()
            serve(scorer, listener, token, options.stop_timeout)
        counts = scorer.counts
        without = counted(counts.no_scores.total(), "answer")
        line(console, f"Stopped. {counted(counts.scores, 'score')}, {without} without a score.")
    return 0


def _parts_in_words(options: argparse.Namespace) -> str:
    from mind2web2.llm_client.settings import DEFAULT_JUDGE_MODEL, endpoint_of

    model = options.judge_model or DEFAULT_JUDGE_MODEL
    endpoint = endpoint_of(options.llm_provider, judge_server(options))
    pages = options.pages or f"none (--missing_pages {options.missing_pages})"
    return f"Judge: {model} ({endpoint}). Pages: {pages}. Scripts: {paths_of(options).eval_scripts_root}."


def _warn_of_judge(check: Future[None]) -> None:
    import logging  # slow to load beside --help

    if not check.cancelled() and (error := check.exception()) is not None:
        logging.getLogger(__name__).warning("%s Until it is, calls have no score.", error)


def _scorer(options: argparse.Namespace) -> Scorer:
    from mind2web2.llm_client.settings import DEFAULT_JUDGE_MODEL
    from mind2web2.scoring.scorer import Judge, Scorer
    from mind2web2.scripts.isolation.processes import IS_POSSIBLE

    return Scorer(
        judge=Judge(
            model=options.judge_model or DEFAULT_JUDGE_MODEL,
            base_url=judge_server(options),
            provider=options.llm_provider,
            temperature=options.judge_temperature,
            reasoning_effort=options.judge_reasoning_effort,
            max_images=options.max_images,
            extra_body=json.loads(options.judge_extra_body or "{}"),
            outage_wait_s=options.judge_outage_wait,
        ),
        pages=options.pages,
        scripts=paths_of(options).eval_scripts_root,
        eval_version=options.eval_version,
        judgments=options.judgments,
        missing_pages=options.missing_pages,
        isolate=IS_POSSIBLE and not options.no_isolate,
        max_answers=options.max_concurrent_answers,
        max_llm_requests=options.max_llm_requests,
        max_cost=options.max_cost,
        answer_timeout=options.answer_timeout,
        allow_private_network=options.allow_private_network,
    )
