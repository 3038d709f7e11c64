"""The plan of a command that evaluates an agent's answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.results.answers import TaskWork
from mind2web2.runs.settings import RunSettings

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget
    from mind2web2.runs.run import RemoteRunner
    from mind2web2.runs.session import Session


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluation of an agent's answers.

    Args:
        checked: the settings under whose results checks of judges are kept, where they are others.
        budget: in place of one of ``--max_cost``.
        is_quiet: print neither a line for each answer nor the judge's use.
        other_stores: files whose judgments are reused (default: those of the other agents).
        machines: opens what has the answers judged in place of this machine.
    """

    settings: RunSettings
    agent_name: str
    work: Sequence[TaskWork]
    checked: RunSettings | None = None
    budget: Budget | None = None
    is_quiet: bool = False
    other_stores: Sequence[Path] | None = None
    machines: Callable[[Session], AbstractAsyncContextManager[RemoteRunner]] | None = None
