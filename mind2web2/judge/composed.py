"""A judge of several judges, behind the interface of one: the base of what plugins add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.llm_client.chat import Limit


class JudgeMaker(Protocol):
    """Makes the judge of a run from the spec of a single judge."""

    def __call__(self, spec: JudgeSpec, kind: type[CachingJudge] = CachingJudge) -> CachingJudge:
        """Return the judge, an object of ``kind``."""


class ComposedSpec(JudgeSpec, ABC):
    """A judge that asks other judges, too. It decides, and extracts."""

    @abstractmethod
    def opened(self, make: JudgeMaker) -> CachingJudge:
        """Return the judge of a run, with those that it asks."""

    @abstractmethod
    def of_answer(
        self, run: CachingJudge, task_id: str, answer_name: str, limit: Limit | None
    ) -> AnswerJudge:
        """Return the judge as one answer asks it."""


def opened_judge(spec: JudgeSpec, make: JudgeMaker) -> CachingJudge:
    """Return the judge of a run."""
    return spec.opened(make) if isinstance(spec, ComposedSpec) else make(spec)


def judge_of_answer(
    run: CachingJudge, task_id: str, answer_name: str, limit: Limit | None = None
) -> AnswerJudge:
    """Return the run's judge as one answer asks it.

    Args:
        limit: entered around each HTTP request.
    """
    spec = run.settings
    if isinstance(spec, ComposedSpec):
        return spec.of_answer(run, task_id, answer_name, limit)
    return AnswerJudge(run, task_id, answer_name, limit)
