"""``mind2web2 evaluate`` and ``run_eval.py``: judge an agent's answers."""

from __future__ import annotations

import argparse
from dataclasses import replace

from mind2web2.cli.options import Subcommands, add_settings, given_settings
from mind2web2.cli.settings_file import settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.setting import Setting
from mind2web2.runs.settings import PLAIN, RunSettings, all_settings
from mind2web2.utils.entry_points import hook_names
from mind2web2.utils.own_memory import hide_memory

_DESCRIPTION = """\
Judge an agent's answers: run each task's eval script, check every claim against the cited pages, score
the rubric trees, and show the scores with the agent's metrics.

  {command}                    judge with OpenAI's o4-mini (OPENAI_API_KEY)
  {command} --estimate         print first what that will cost, and ask nothing
  {command} --max_cost 20      stop asking when the run has cost $20
  {command} --batch            for half the price, if it may take a day
  {command} --task_id TASK     one task only; may be repeated
  {command} --judge_base_url http://localhost:8000/v1 --judge_model NAME
  {indent}                    a server of your own
  {command} --llm_provider replay
  {indent}                    score again from stored judgments, offline

The same command continues a run that was stopped: results that are up to date are reused, and so is every
stored judgment. Exit status: 0 every selected answer has a result, 1 some have none, 2 the run could not
start.
"""


def description(command: str) -> str:
    """Return the purpose of the command, with examples spelled as the user has started it."""
    return _DESCRIPTION.format(command=command, indent=" " * len(command))


def evaluation_settings() -> dict[str, Setting]:
    """Return the settings of the command: all but that of commands that count."""
    return {name: each for name, each in all_settings().items() if name != "task_list"}


def add_command(commands: Subcommands) -> None:
    """Add ``evaluate`` to ``mind2web2``."""
    parser = commands.add_parser(
        "evaluate",
        help="judge an agent's answers",
        description=description("mind2web2 evaluate my_agent"),
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of both spellings of the command."""
    parser.add_argument(
        "agent", nargs="?", metavar="AGENT", help="the agent; the same as --agent_name"
    )
    add_settings(parser, evaluation_settings())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate and return the exit status."""
    from mind2web2.utils.garbage_collection import gc_paused

    agent_name = _agent_name(given_settings(options).agent_name, options.agent)
    settings = prepared(replace(settings_of(options, is_announced=True), agent_name=agent_name))
    if settings.barred is not None:
        from mind2web2.pages.citations import BarredList

        BarredList.read(settings.barred)
    with gc_paused():
        from mind2web2.results.answers import select_work
        from mind2web2.runs.paths import paths_of
    paths = paths_of(settings)
    # Captures fill a new folder; without them, a typing error would fail every claim.
    root, captures = paths.cache_root, settings.captures_pages
    if settings.cache_root is not None and not root.is_dir() and (root.exists() or not captures):
        raise UsageError(f"--cache_root {root} is no folder: name the one with the cached pages")
    if isinstance(settings.cache_root, str) and not captures and not (root / agent_name).is_dir():
        raise UsageError(
            f"--cache_root {settings.cache_root} has no pages of {agent_name}: check the URL"
        )
    work = select_work(paths, agent_name, settings.task_ids)
    if settings.shard is not None:
        work = settings.shard.share_of(work)
    if settings.estimate:
        from mind2web2.cli.evaluate_report import print_estimate

        return print_estimate(settings, agent_name, paths, work)
    if settings.engine in hook_names("engines"):
        from mind2web2.hooks import engine_named

        engine = engine_named(settings.engine)
        return engine.evaluate(settings, agent_name, paths, work)
    # Only now: the judge's libraries take a while to load.
    with gc_paused():
        from mind2web2.cli.evaluate_run import run_evaluation

    return run_evaluation(settings, agent_name, paths, work)


def prepared(settings: RunSettings) -> RunSettings:
    """Check the settings, and start the process that starts scripts if this machine runs any.

    Raises:
        UsageError: settings contradict each other, or this system lacks something that they need.
    """
    settings.check()
    hide_memory()
    if not settings.estimate and settings.engine == PLAIN:
        # It loads what scripts need while this process loads what judges need.
        from mind2web2.scripts.isolation.processes import fork_server

        fork_server.warm_up()
    return settings


def _agent_name(*given: str | None) -> str:
    names = [name for name in given if name]
    if not names:
        raise UsageError(
            "which agent? Name a folder under answers/: --agent_name NAME, or mind2web2 evaluate AGENT"
        )
    if len(set(names)) > 1:
        raise UsageError(f"which agent? Both {' and '.join(names)} are named")
    return names[0].rstrip("/")  # which a shell's completion adds
