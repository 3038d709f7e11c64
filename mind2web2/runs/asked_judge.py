"""A judge that is asked single questions outside of a run, with a store of their replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge.store import STORE_NAME
from mind2web2.judge.usage import TaskUsage
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.runs.session import open_run
from mind2web2.runs.settings import RunSettings
from mind2web2.verification.single_questions import GivenPages, SingleQuestion, ask_all

_Reply = TypeVar("_Reply")


@dataclass(frozen=True)
class AskedJudge:
    """A judge that is asked single questions.

    Args:
        source: the store names this where it names a task.
    """

    _judge: CachingJudge
    _source: str
    _limit: asyncio.Semaphore

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: RunSettings, folder: Path, source: str) -> AsyncIterator[Self]:
        """Open the judge of the settings; a folder keeps the replies.

        Raises:
            UsageError: the judge cannot be asked.
        """
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        async with open_run(settings, folder / STORE_NAME) as session:
            yield cls(session.judge, source, asyncio.Semaphore(settings.max_llm_requests))

    @property
    def identity(self) -> JudgeIdentity:
        """Return the judge as records name it."""
        return self._judge.identity

    @property
    def usage(self) -> TaskUsage:
        """Return the use of all questions."""
        return self._judge.usage.total()

    @property
    def repairs(self) -> int:
        """Return how many invalid replies were asked for again."""
        return self._judge.usage.retries.reasons["unusable output"]

    def question(
        self, name: str, task: str, answer: str, pages: GivenPages, votes: int = DEFAULT_TRIALS
    ) -> SingleQuestion:
        """Return a question, by whose name logs and the store know it."""
        return SingleQuestion(
            self._judge, self._source, name, self._limit, task, answer, pages, votes
        )

    async def ask_all(self, questions: Iterable[Coroutine[Any, Any, _Reply]]) -> list[_Reply]:
        """Await all questions at once, within the limit of requests, and store the replies.

        Raises:
            JudgmentStoreError: replies could not be stored.
        """
        return await ask_all(self._judge, questions)

    def raise_if_unusable(self) -> None:
        """Raise ``JudgeUnusableError`` if the judge has answered no question at all."""
        self._judge.raise_if_unusable()
