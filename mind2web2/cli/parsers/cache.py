"""Parsers of ``mind2web2 cache``, and of the root scripts that store pages."""

from __future__ import annotations

from mind2web2.cli.options import (
    ASKING,
    CommandParser,
    Subcommands,
)
from mind2web2.runs.setting import Flag

CACHE = """\
Find every page that an agent's answers cite, and store it as the judge needs it: its text and screenshot, or
the PDF.

  mind2web2 cache my_agent                       store all pages that are not cached yet
  mind2web2 cache my_agent --task_id TASK        store the pages of one task; may be repeated
  mind2web2 cache my_agent --only failed         try failed pages again
  mind2web2 cache my_agent --only suspect --cdp_url http://127.0.0.1:9222
                                                 capture pages that look wrong again, through your own
                                                 Chrome, started with --remote-debugging-port=9222

If the command was stopped, the same command captures the missing pages. Exit status: 0 every cited page is
cached, 1 some are unavailable or an answer could not be read, 2 the run could not start. If a model could not
be asked for links, the command says so, and its exit status stays the same.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``cache`` to ``mind2web2``."""
    parser = commands.add_parser(
        "cache", help="store the pages that answers cite", description=CACHE
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
    parser.add_task_option()
    add_options(parser)


def add_task_command(parser: CommandParser) -> None:
    """Add the arguments of ``batch_answer_cache.py``."""
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
    parser.add_argument(
        "task_ids",
        metavar="TASK",
        nargs=1,
        help="the task, a folder under answers/AGENT/",
    )
    add_options(parser)


def add_agents_command(parser: CommandParser) -> None:
    """Add the arguments of ``cache_all_answers.sh``."""
    parser.add_argument(
        "agent",
        metavar="AGENT",
        nargs="?",
        help="the agent, a folder under answers/ (default: each of them)",
    )
    add_options(parser)


def add_options(parser: CommandParser) -> None:
    """Add the options of all three spellings of the command."""
    pages = parser.add_mutually_exclusive_group()
    pages.add_argument(
        "--only",
        choices=("failed", "suspect"),
        help="capture only pages that failed before, or only cached pages that look wrong. A "
        "cached page is "
        "replaced only by one that is as good",
    )
    pages.add_argument(
        "--overwrite",
        action="store_const",
        dest="only",
        const="all",
        help="capture all pages again. A cached page is replaced only by one that is as good",
    )
    parser.add_argument(
        "--archive",
        action="store_true",
        help="take the Internet Archive's copy of each page that is unavailable or looks wrong, "
        "from the date nearest to the answer's",
    )
    parser.add_argument(
        "--archive_url",
        metavar="URL",
        type="web_address",
        help="the archive, with the Internet Archive's availability API (default: "
        "https://archive.org)",
    )
    parser.add_folder_options("answer_folder", "cache_root")
    _add_link_options(parser)
    _add_browser_options(parser)
    parser.set_defaults(run="mind2web2.cli.cache")


def _add_link_options(parser: CommandParser) -> None:
    group = parser.add_argument_group(
        "links written as plain words",
        "A model finds them, if one of these options is there. Normal links need no model.",
    )
    names = [
        "llm_provider",
        "judge_model",
        "judge_base_url",
        "judge_extra_body",
    ]
    provider = "the provider of this model, with the same keys as for mind2web2 evaluate"
    changed = {
        "llm_provider": {**ASKING["llm_provider"], "help": provider},
        "judge_model": {**ASKING["judge_model"], "help": "the model to ask for links"},
    }
    parser.add_settings(names, changed=changed, group=group)


def _add_browser_options(parser: CommandParser) -> None:
    group = parser.add_argument_group("browser")
    group.add_argument(
        "--max_concurrent_pages",
        metavar="N",
        type="positive_int",
        default=5,
        help="capture at most N pages at once (default: 5)",
    )
    group.add_argument(
        "--max_retries",
        metavar="N",
        type="count",
        default=1,
        help="retry a page at most N times if its failure may be temporary (default: 1)",
    )
    group.add_argument(
        "--overall_timeout",
        metavar="S",
        type="positive_seconds",
        default=120.0,
        help="seconds for one page, with its retries (default: 120)",
    )
    window = {
        "--headless": Flag(False, "use a browser without a window (the default)"),
        "--headed": Flag(True, "use a browser with a window"),
    }
    names = [
        "headed",
        "cdp_url",
        "proxy",
        "no_sandbox",
        "allow_private_network",
    ]
    parser.add_settings(names, changed={"headed": {"flags": window}}, group=group)
    parser.add_settings(["engine"])
