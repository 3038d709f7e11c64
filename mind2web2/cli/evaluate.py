"""``mind2web2 evaluate`` and ``run_eval.py``: judge an agent's answers."""

from __future__ import annotations

import argparse
from dataclasses import replace

from mind2web2.cli.options import given_settings, load_function, settings_of
from mind2web2.errors import UsageError
from mind2web2.results.answers import select_work
from mind2web2.runs.settings import PLAIN, RunSettings
from mind2web2.scripts.isolation.homes import fork_server
from mind2web2.utils.hidden_keys import hide_memory


def run(options: argparse.Namespace) -> int:
    """Evaluate and return the exit status."""
    agent_name = _agent_name(given_settings(options).agent_name, options.agent)
    settings = prepare_settings(
        replace(settings_of(options, is_announced=True), agent_name=agent_name)
    )
    paths = settings.paths
    # Captures fill a new folder; without them, a typing error would fail every claim.
    root, captures = paths.cache_root, settings.captures_pages
    if settings.cache_root is not None and not root.is_dir() and (root.exists() or not captures):
        raise UsageError(f"--cache_root {root} is not a folder: name the one with the cached pages")
    work = select_work(paths, agent_name, settings.task_ids)
    if settings.shard is not None:
        work = settings.shard.share_of(work)
    # Only now: the judge's libraries take a while to load.
    if settings.estimate:
        way = "mind2web2.cli.estimate:print_estimate"
    elif settings.engine != PLAIN:
        way = f"mind2web2_{settings.engine}.engine:evaluate"
    else:
        way = "mind2web2.cli.evaluate_run:run_evaluation"
    status: int = load_function(way)(settings, agent_name, paths, work)
    return status


def prepare_settings(settings: RunSettings) -> RunSettings:
    """Check the settings, and start the process that starts scripts if this machine runs any.

    Raises:
        UsageError: settings contradict each other, or this system lacks something that they need.
    """
    settings.check()
    hide_memory()
    if not settings.estimate and settings.engine == PLAIN:
        # It loads what scripts need while this process loads what judges need.
        fork_server.warm_up()
    return settings


def _agent_name(*candidates: str | None) -> str:
    names = [name for name in candidates if name]
    if not names:
        raise UsageError(
            "name the agent to evaluate, a folder under answers/: mind2web2 evaluate AGENT, or "
            "--agent_name NAME"
        )
    if len(set(names)) > 1:
        raise UsageError(f"name one agent, not {' and '.join(names)}")
    return names[0].rstrip("/")  # which a shell's completion adds
