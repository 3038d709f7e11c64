"""Parser of ``mind2web2 serve``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import Subcommands
from mind2web2.runs.settings import RunSettings

_SETTINGS = (
    "eval_scripts_root",
    "eval_version",
    "votes",
    "judgments",
    "max_llm_requests",
    "max_cost",
    "max_concurrent_answers",
    "answer_timeout",
)
_CHANGED = {
    "judgments": {"help": "keep the judge's replies in this file", "default_text": "in memory"},
    "max_concurrent_answers": {"help": "judge at most N answers at once"},
}
DESCRIPTION = """\
Score single answers over HTTP until Ctrl-C, for training runs and other programs.

  mind2web2 serve --pages cache/my_agent --port 8080
  curl localhost:8080/score --json '{"task": "TASK", "answer": "..."}'

Status 200 comes with the score, the tree and the evidence. Status 503 means that judge, script, page or
budget failed, with the reason; it says nothing about the answer. Status 400 means bad input. There are also
POST /scores and GET /health.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``serve`` to ``mind2web2``."""
    parser = commands.add_parser(
        "serve", help="score single answers over HTTP", description=DESCRIPTION
    )
    add = parser.add_argument
    add("--port", type="port_number", default=0, help="the port to listen at (default: a free one)")
    add(
        "--host",
        default="127.0.0.1",
        help="the address to listen at (default: %(default)s, which only this machine reaches). "
        "Any other "
        "address needs a token in MIND2WEB2_TOKEN",
    )
    add(
        "--stop_timeout",
        metavar="S",
        type="positive_seconds",
        default=30.0,
        help="seconds to finish open calls after Ctrl-C or SIGTERM (default: 30)",
    )
    pages = parser.add_argument_group("pages")
    pages.add_argument(
        "--pages",
        metavar="DIR",
        type=Path,
        help="the cached pages, one folder a task, such as cache/AGENT",
    )
    pages.add_argument(
        "--missing_pages",
        choices=("no_score", "unavailable", "capture"),
        default="no_score",
        help="what to do if a cited page is not there: give no_score (the default), treat it as "
        "unavailable "
        "(claims on it fail), or capture it",
    )
    parser.add_settings(["allow_private_network"], group=pages)
    parser.add_judge_settings(*_SETTINGS, base=RunSettings.for_scoring(), changed=_CHANGED)
    parser.set_defaults(run="mind2web2.cli.serve")
