"""Whose results there are, for commands that read them."""

from __future__ import annotations

import argparse
from pathlib import Path

from mind2web2.cli.suggestions import suggested_command
from mind2web2.errors import UsageError
from mind2web2.utils.names import name_list


def has_record(eval_results_root: Path, agent_name: str) -> bool:
    """Tell whether a run has left results of an agent, or why there are none."""
    folder = eval_results_root / agent_name
    return any(any(folder.glob(files)) for files in ("*/*/results/*.md.json", "*/summary.json"))


def no_results(options: argparse.Namespace, eval_results_root: Path, agent_name: str) -> UsageError:
    """Return the error of a command that is to read results of an agent who has none."""
    others = {path.parts[-5] for path in eval_results_root.glob("*/*/*/results/*.md.json")} - {agent_name}
    there = f"; there are results of {name_list(others)}" if others else ""
    return UsageError(
        f"no results of agent {agent_name} under {eval_results_root}: run "
        f"{suggested_command(options, 'evaluate', agent_name)} first{there}"
    )
