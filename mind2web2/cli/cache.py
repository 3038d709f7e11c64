"""``mind2web2 cache``, ``batch_answer_cache.py`` and ``cache_all_answers.sh``: store the cited pages."""

from __future__ import annotations

import argparse

from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    Subcommands,
    add_browser_options,
    add_engine_options,
    add_folder_options,
    add_task_option,
    check_caching_options,
    count,
    paths_of,
    positive_int,
    positive_seconds,
    web_address,
)
from mind2web2.cli.settings_file import add_judge_server_options, apply_settings_file

DESCRIPTION = """\
Find every page that an agent's answers cite and store it as a judge needs it: text and screenshot, or PDF.

  mind2web2 cache my_agent                       all pages that are not cached yet
  mind2web2 cache my_agent --task_id TASK        those of one task; may be repeated
  mind2web2 cache my_agent --only failed         try failed pages again
  mind2web2 cache my_agent --only suspect --cdp_url http://127.0.0.1:9222
                                                 capture pages that look wrong again, through your own
                                                 Chrome, started with --remote-debugging-port=9222

The same command continues where it stopped: it captures only missing pages. Exit status: 0 every cited page
is cached, 1 some are unavailable or an answer could not be read, 2 the run could not start. If a model could
not be asked for links (a server that is down), a line says so; the exit status does not.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``cache`` to ``mind2web2``."""
    parser = commands.add_parser("cache", help="store the pages that answers cite", description=DESCRIPTION)
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
    add_task_option(parser)
    add_options(parser)


def add_task_command(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``batch_answer_cache.py``."""
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
    parser.add_argument("task_ids", metavar="TASK", nargs=1, help="the task, a folder under answers/AGENT/")
    add_options(parser)


def add_agents_command(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``cache_all_answers.sh``."""
    parser.add_argument(
        "agent", metavar="AGENT", nargs="?", help="the agent, a folder under answers/ (default: each of them)"
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all three spellings of the command."""
    parser.add_argument(
        "--only",
        choices=("failed", "suspect"),
        help="only pages that failed before, or only cached ones that look wrong; a cached page is replaced "
        "only by one that is as good",
    )
    parser.add_argument(
        "--archive",
        action="store_true",
        help="take the Internet Archive's copy of each page that is unavailable or looks wrong: the one "
        "nearest to the date of the answer",
    )
    parser.add_argument(
        "--archive_url",
        metavar="URL",
        type=web_address,
        help="another archive that has the Internet Archive's availability API (default: https://archive.org)",
    )
    add_folder_options(parser, "answer_folder", "cache_root")
    _add_link_options(parser)
    _add_browser_options(parser)
    parser.set_defaults(run=run)


def _add_link_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "links written as plain words",
        "are found by a model, if one of these options or mind2web2.toml names it; normal links are found "
        "without",
    )
    group.add_argument("--no_llm", action="store_true", help="ask no model, whatever mind2web2.toml names")
    group.add_argument(
        "--llm_provider",
        choices=JUDGE_PROVIDERS,
        default="openai",
        help="ask this provider's model (default: openai); keys as for mind2web2 evaluate",
    )
    group.add_argument("--judge_model", metavar="M", help="ask this model (default: o4-mini)")
    add_judge_server_options(group)


def _add_browser_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("browser")
    group.add_argument(
        "--max_concurrent_pages", metavar="N", type=positive_int, default=5, help="pages at once (default: 5)"
    )
    group.add_argument(
        "--max_retries",
        metavar="N",
        type=count,
        default=1,
        help="of a page whose failure may be temporary (default: 1)",
    )
    group.add_argument(
        "--overall_timeout",
        metavar="S",
        type=positive_seconds,
        default=120.0,
        help="seconds for a page, its retries included (default: 120)",
    )
    window = group.add_mutually_exclusive_group()
    window.add_argument(
        "--headless", action="store_true", default=True, help="without a window (the default)"
    )
    window.add_argument("--headed", action="store_false", dest="headless", help="with a window")
    add_browser_options(group)
    add_engine_options(parser)


def run(options: argparse.Namespace) -> int:
    """Cache the cited pages and return the exit status."""
    from mind2web2.runs.answers import agent_names, select_answers

    check_caching_options(options)
    if not options.no_llm:
        apply_settings_file(options)
    paths = paths_of(options)
    agents = [options.agent.rstrip("/")] if options.agent else agent_names(paths)
    task_ids = getattr(options, "task_ids", None) or ()
    selected = {agent: select_answers(paths, agent, task_ids) for agent in agents}
    # Only now: the browser's libraries take a while to load.
    from mind2web2.cli.cache_run import cache_agents

    return cache_agents(options, paths, selected)
