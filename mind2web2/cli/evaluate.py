"""``mind2web2 evaluate`` and ``run_eval.py``: judge an agent's answers."""

from __future__ import annotations

import argparse
from dataclasses import replace

from mind2web2.cli.evaluation import AgentEvaluation
from mind2web2.cli.options import given_settings, load_function, settings_of
from mind2web2.errors import UsageError
from mind2web2.runs.settings import PLAIN


def run(options: argparse.Namespace) -> int:
    """Evaluate and return the exit status."""
    agent_name = _agent_name(given_settings(options).agent_name, options.agent)
    settings = settings_of(options, is_announced=True, agent_name=agent_name)
    # Captures fill a new folder; without them, a typing error would fail every claim.
    root, captures = settings.paths.cache_root, settings.captures_pages
    if settings.cache_root is not None and not root.is_dir() and (root.exists() or not captures):
        raise UsageError(f"--cache_root {root} is not a folder: name the one with the cached pages")
    evaluation = AgentEvaluation.of(settings, agent_name)
    if settings.shard is not None:
        evaluation = replace(evaluation, work=settings.shard.share_of(evaluation.work))
    if settings.estimate:
        return evaluation.estimate()
    if settings.engine != PLAIN:
        evaluate = load_function(f"mind2web2_{settings.engine}.engine:evaluate")
        status: int = evaluate(evaluation)
        return status
    return evaluation.run()


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
