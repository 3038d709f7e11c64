"""Which answer a view is of, and the error of one that is not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.results.scored_answer import ScoredAnswer

Json = dict[str, Any]


class NoSuchResultError(UsageError):
    """There is no such agent, answer or page among the results that are shown."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """One answer: ``answer`` is the file's name without ``.md``."""

    agent: str
    task: str
    answer: str

    @classmethod
    def of(cls, agent: str, answer: ScoredAnswer) -> AnswerKey:
        """Return the key of one of an agent's answers."""
        return cls(agent, answer.task_id, answer.answer_name.removesuffix(".md"))
