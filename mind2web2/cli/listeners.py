"""The listeners of a run, which plugins bring."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from mind2web2.errors import UsageError
from mind2web2.judge.protocol import AskedQuestion
from mind2web2.plugin import Listener
from mind2web2.results.answers import AnswerJob
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.run import AnswerRunner
from mind2web2.utils.entry_points import load_parts


@dataclass(frozen=True)
class Listeners:
    """All listeners of a run."""

    listeners: Sequence[Listener]

    def question_asked(self, asked: AskedQuestion) -> None:
        """Tell each listener."""
        for listener in self.listeners:
            listener.question_asked(asked)

    def following(self, runner: AnswerRunner) -> AnswerRunner:
        """Return a runner whose answers the listeners follow."""
        return _Followed(runner, self.listeners) if self.listeners else runner


@dataclass(frozen=True)
class _Followed:
    runner: AnswerRunner
    listeners: Sequence[Listener]

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        for listener in self.listeners:
            listener.answer_begins(job)
        outcome = None
        try:
            outcome = await self.runner.evaluate(job)
        finally:
            for listener in self.listeners:
                listener.answer_ends(job, outcome)
        return outcome


@asynccontextmanager
async def listeners_opened(
    print_line: Callable[[str], None],
) -> AsyncIterator[Listeners]:
    """Open the listeners of all plugins; a run goes on without one that cannot be opened."""
    async with AsyncExitStack() as stack:
        opened = []
        for name, opener in load_parts("listeners").items():
            try:
                listener = await stack.enter_async_context(opener(print_line))
            except UsageError as error:
                print_line(f"Warning: no {name}: {error}")
                continue
            if listener is not None:
                opened.append(listener)
        yield Listeners(opened)
