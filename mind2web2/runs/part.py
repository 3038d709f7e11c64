"""Some answers of a run that are judged elsewhere: in a folder and with limits of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mind2web2.errors import JudgeUnusableError, UsageError
from mind2web2.judge.budget import Budget
from mind2web2.judge.protocol import AskedQuestion
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client.prices import set_own_prices
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.runs.session import OwnParts, concurrency_of, open_run
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.limits import DualSemaphore


@dataclass(frozen=True)
class JudgedPart:
    """The outcome of a part.

    Args:
        reasons: why answers have no result, by name.
        reused: answers whose result is the earlier one.
    """

    reasons: Mapping[str, str] = field(default_factory=dict)
    reused: frozenset[str] = frozenset()
    usage: RunUsage = field(default_factory=RunUsage)
    spent_usd: float = 0.0


@dataclass(frozen=True)
class PartOfRun:
    """An agent's answers to a task, as far as they are in the folders of the settings.

    Args:
        limit: of requests to the judge, an asynchronous context manager.
        lease: is asked for more dollars where there is a budget, and returns how many it has.
        on_judgment: is called with each new judgment, as JSON.
    """

    settings: RunSettings
    agent_name: str
    task_id: str
    limit: Any  # as scripts and callers bring them
    lease: Callable[[float], Awaitable[float]]
    on_judgment: Callable[[str], None]

    async def judged(self, judgments: Sequence[str]) -> JudgedPart:
        """Judge the answers and write their results.

        Args:
            judgments: that are stored elsewhere, each as JSON.

        Raises:
            UsageError: no answer can be judged.
        """
        settings = self.settings
        set_own_prices(settings.prices)
        paths = settings.paths
        folders = RunFolders(self.agent_name, paths.cache_root, paths.eval_results_root)
        stored = folders.agent_results / STORE_NAME
        await asyncio.to_thread(_store, stored, judgments)
        limits = DualSemaphore(asyncio.Semaphore(settings.max_webpage_retrieval), self.limit)
        budget = self._budget()
        own = OwnParts(limits=limits, budget=budget, observer=self._note)
        try:
            async with open_run(settings, stored, own=own) as session:
                outcomes = await evaluate_work(
                    select_work(paths, self.agent_name, [self.task_id]),
                    folders,
                    session.parts,
                    concurrency_of(settings, limits),
                    RunProgress(),
                )
        except JudgeUnusableError as error:
            raise UsageError(str(error)) from error
        return JudgedPart(
            {each.answer_name: each.reason for each in outcomes if each.reason},
            frozenset(each.answer_name for each in outcomes if each.reused),
            session.judge.usage,
            0.0 if budget is None else budget.spent_usd,
        )

    def _budget(self) -> Budget | None:
        settings = self.settings
        if settings.max_cost is None:
            return None
        judge = judge_spec(settings).with_prices(settings.prices)
        return Budget(
            settings.max_cost, judge.model, judge.own_price, judge.price_share, self.lease
        )

    def _note(self, asked: AskedQuestion) -> None:
        if asked.judgment is not None:
            self.on_judgment(asked.judgment.model_dump_json())


def _store(path: Path, judgments: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with JudgmentStore(path) as store:
        store.add_texts(judgments)
