"""An evaluation of an agent's answers: its plan, and what its report tells when it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.results.answers import RunFolders, TaskWork
from mind2web2.runs.settings import RunSettings

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget
    from mind2web2.judge.caching import CachingJudge
    from mind2web2.judge.check_record import CheckRecord
    from mind2web2.runs.answer import AnswerOutcome
    from mind2web2.runs.run import RemoteRunner
    from mind2web2.runs.session import Session

OVERWRITE_CONTINUED = (
    "The same command asks everything again from the start. Answers without a new result keep "
    "their earlier one."
)


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluation of an agent's answers.

    Args:
        checked: the settings under whose results checks of judges are kept, where they are others.
        budget: in place of one of ``--max_cost``.
        is_quiet: print neither a line for each answer nor the judge's use.
        shows_scores: print tables of the scores, and how to see more of them.
        other_stores: files whose judgments are reused (default: those of the other agents).
        machines: opens what has the answers judged in place of this machine.
    """

    settings: RunSettings
    agent_name: str
    work: Sequence[TaskWork]
    checked: RunSettings | None = None
    budget: Budget | None = None
    is_quiet: bool = False
    shows_scores: bool = True
    other_stores: Sequence[Path] | None = None
    machines: Callable[[Session], AbstractAsyncContextManager[RemoteRunner]] | None = None


@dataclass(frozen=True)
class EndedRun:
    """A run that is over.

    Args:
        judge_check: the judge's last check on the labelled set.
        problems: failures beside the answers, one line each. The report adds its own.
    """

    plan: EvaluationPlan
    folders: RunFolders
    outcomes: Sequence[AnswerOutcome]
    judge: CachingJudge
    judge_check: CheckRecord | None
    problems: list[str]
    elapsed_s: float
