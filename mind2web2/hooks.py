"""The hooks of plugins: what a plugin may add, and what it gets. ``docs/plugins.md`` explains each.

A plugin names its parts in the groups of its entry points. This module has the types of those
parts; a part that is a plain function is described where it is called.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mind2web2.capture.models import CaptureSettings, PageCapturer
from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.judge.protocol import AskedQuestion
from mind2web2.results.answers import AnswerJob, TaskWork
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.run import AnswerRunner
from mind2web2.runs.session import Session
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.entry_points import load_part, load_parts
from mind2web2.utils.path_config import PathConfig

__all__ = [
    "AnswerJob",
    "AnswerOutcome",
    "AnswerRunner",
    "AskedQuestion",
    "Elsewhere",
    "Engine",
    "Export",
    "Figure",
    "FigureMaker",
    "Listener",
    "ListenerOpener",
    "Listeners",
    "agent_figures",
    "engine_named",
    "judge_figures",
    "listeners_opened",
]

# Listeners: the events of a run


class Listener:
    """Follows a run; a plugin overrides what it wants to hear of."""

    def question_asked(self, asked: AskedQuestion) -> None:
        """Note a question that was sent to the judge, with its judgment or failure."""

    def answer_begins(self, job: AnswerJob) -> None:
        """Note that an answer is evaluated, or that its earlier result is looked for."""

    def answer_ends(self, job: AnswerJob, outcome: AnswerOutcome | None) -> None:
        """Note what an answer got; ``None`` if another process evaluates it, or the run fails."""


# ``listeners``: opens a listener for a run, ``None`` if it does not want to follow it. It may print
# a line.
ListenerOpener = Callable[[Callable[[str], None]], AbstractAsyncContextManager[Listener | None]]


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
        found = []
        for name, opener in load_parts("listeners").items():
            try:
                listener = await stack.enter_async_context(opener(print_line))
            except UsageError as error:
                print_line(f"Warning: no {name}: {error}")
                continue
            if listener is not None:
                found.append(listener)
        yield Listeners(found)


# Engines: other ways to run ``evaluate`` and ``cache``


class Engine(Protocol):
    """Runs a command's work elsewhere than in this process; ``--engine NAME`` chooses it."""

    def evaluate(
        self,
        settings: RunSettings,
        agent_name: str,
        paths: PathConfig,
        work: Sequence[TaskWork],
    ) -> int:
        """Evaluate the work of ``mind2web2 evaluate`` and return the exit status."""

    def capturer(
        self,
        settings: RunSettings,
        capture: CaptureSettings,
        pages_at_once: int,
        retries: int,
    ) -> AbstractAsyncContextManager[PageCapturer]:
        """Open what captures the pages of ``mind2web2 cache``."""


class Elsewhere(Protocol):
    """Other machines that evaluate the answers of a run.

    They serve an engine that calls ``run_evaluation``.
    """

    def connect(self) -> AbstractAsyncContextManager[None]:
        """Reach the machines, before the run writes anything."""

    def at_work(
        self, session: Session, work: Sequence[TaskWork]
    ) -> AbstractAsyncContextManager[AnswerRunner]:
        """Have the machines evaluate the work for as long as this is entered."""


def engine_named(name: str) -> Engine:
    """Return the engine of a plugin.

    Raises:
        UsageError: there is none of this name that can be loaded.
    """
    engine: Engine | None = load_part("engines", name)
    if engine is None:
        raise UsageError(f"--engine {name} is of a plugin that cannot be loaded")
    return engine


# Exports: files in other formats


class Export(Protocol):
    """A format of ``mind2web2 export``, with the option ``--NAME FILE``."""

    help: str

    def write(self, output: Path, agents: Sequence[str], results_root: Path) -> str:
        """Write the newest results of agents and return the line that says so."""


# Figures: what a plugin adds to ``metrics`` and ``check-judge``


@dataclass(frozen=True)
class Figure:
    """A plugin's figures about one agent or judge.

    Args:
        lines: are printed below the command's own figures; a warning begins with ``Warning: ``.
        content: stands in the JSON, under the plugin's name; anything that ``json`` can write.
    """

    lines: Sequence[str]
    content: Any


class FigureMaker:
    """Adds figures to commands; a plugin overrides the methods of the commands that it knows."""

    def of_agent(self, eval_results_root: Path, agent_name: str) -> Figure | None:  # noqa: ARG002
        """Return figures for ``mind2web2 metrics``, ``None`` if there are none."""
        return None

    def of_judge(self, eval_results_root: Path, judge: JudgeIdentity) -> Figure | None:  # noqa: ARG002
        """Return figures for ``mind2web2 check-judge``, ``None`` if there are none."""
        return None


def agent_figures(eval_results_root: Path, agent_name: str) -> dict[str, Figure]:
    """Return what plugins know of an agent, by the plugins' names."""
    return _figures(lambda maker: maker.of_agent(eval_results_root, agent_name))


def judge_figures(eval_results_root: Path, judge: JudgeIdentity) -> dict[str, Figure]:
    """Return what plugins know of a judge, by the plugins' names."""
    return _figures(lambda maker: maker.of_judge(eval_results_root, judge))


def _figures(make: Callable[[FigureMaker], Figure | None]) -> dict[str, Figure]:
    found = {}
    for name, maker in load_parts("figures").items():
        try:
            figure = make(maker)
        except Mind2Web2Error as error:
            figure = Figure((f"Warning: no figures of the plugin {name}: {error}",), None)
        if figure is not None:
            found[name] = figure
    return found
