"""Ask an agent the questions of a benchmark, and write its answers."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mind2web2.benchmark.answering import RunPlace, write_run
from mind2web2.errors import UsageError
from mind2web2.plugins.agents.agents import (
    Agent,
    AgentFailedError,
    AgentUnavailableError,
    Question,
)
from mind2web2.results.answers import (
    MAX_ANSWER_BYTES,
    RunRecord,
    is_empty_answer,
    read_run_record,
)
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.files import remove_leftovers
from mind2web2.utils.process_lock import ProcessLock
from mind2web2.utils.text import counted

_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How to ask.

    Args:
        runs: answers to each question.
        parallel: questions at once.
        max_cost: dollars for all runs of the agent, earlier ones included.
        retry_failed: ask again where earlier runs ended with an error or an empty answer.
    """

    runs: int = 1
    parallel: int = 4
    timeout_s: float = 3600.0
    retries: int = 2
    max_cost: float | None = None
    retry_failed: bool = False


class _Budget:
    """Lets a run start as long as the dearest run so far still fits beside those that go on."""

    def __init__(self, limit: float | None, spent: Sequence[float]) -> None:
        self._limit = limit
        self._spent = sum(spent)
        self._dearest = max(spent, default=0.0)
        self._going = 0
        self._changed = asyncio.Condition()

    async def starts(self) -> bool:
        """Wait until it is known whether another run fits, and return whether it does."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._fits() or self._going == 0)
            if not self._fits():
                return False
            self._going += 1
            return True

    def _fits(self) -> bool:
        if self._limit is None:
            return True
        if self._dearest == 0 and self._going:
            return False  # one run shows what a run costs
        return (
            self._spent < self._limit
            and self._spent + self._dearest * (self._going + 1) <= self._limit
        )

    async def ends(self, cost_usd: float) -> None:
        """Count a run's cost."""
        async with self._changed:
            self._going -= 1
            self._spent += cost_usd
            self._dearest = max(self._dearest, cost_usd)
            self._changed.notify_all()


async def answer_questions(
    agent: Agent,
    questions: Mapping[str, str],
    agent_folder: Path,
    plan: Plan,
    on_run: Callable[[RunPlace, RunRecord], None] = lambda _place, _record: None,
) -> dict[str, RunRecord]:
    """Ask each question ``plan.runs`` times and return the records by task and answer.

    Raises:
        UsageError: another command answers for the agent, or no question can be answered.
        AgentUnavailableError: the agent's server fails; the same command continues.
    """
    if plan.max_cost is not None and not agent.reports_cost:
        raise UsageError(
            f"--max_cost: the cost of {agent.name} is not known: give {{meta_file}} in --command, "
            "or the "
            "model's price in mind2web2.toml"
        )
    lock = ProcessLock(agent_folder / ".answering.lock")
    with lock.hold(f"another mind2web2 answer writes to {agent_folder}: wait until it ends"):
        budget = _Budget(plan.max_cost, await asyncio.to_thread(_costs, agent_folder))
        asking = _Asking(agent, plan, budget, asyncio.Semaphore(plan.parallel), on_run)
        # Run by run, so that a budget that ends leaves whole runs.
        places = [
            RunPlace(agent_folder / task, k + 1) for k in range(plan.runs) for task in questions
        ]
        records = await all_or_first_error(
            asking.run(place, questions[place.folder.name]) for place in places
        )
    return {place.name: record for place, record in zip(places, records, strict=True)}


def _costs(agent_folder: Path) -> list[float]:
    records = [read_run_record(path) for path in agent_folder.glob("*/answer_*.run.json")]
    return [record.cost_usd or 0.0 for record in records if record is not None]


@dataclass(frozen=True, slots=True)
class _Asking:
    agent: Agent
    plan: Plan
    budget: _Budget
    places: asyncio.Semaphore
    on_run: Callable[[RunPlace, RunRecord], None]

    async def run(self, place: RunPlace, text: str) -> RunRecord:
        """Return the record of a run, after asking the agent unless the run is complete."""
        earlier = read_run_record(place.record)
        if is_empty_answer(place.answer):  # a file of the user's own, or edited since
            earlier = replace(earlier or RunRecord("empty"), status="empty")
        elif place.answer.exists():
            return earlier if earlier and earlier.status == "answered" else RunRecord("answered")
        if earlier and earlier.status in ("empty", "error") and not self.plan.retry_failed:
            return earlier
        async with self.places:
            before = 0.0 if earlier is None else earlier.cost_usd or 0.0
            record = RunRecord("running", cost_usd=before or None, agent=self.agent.name)
            if earlier is not None and earlier.agent == self.agent.name:
                record = replace(record, response_id=earlier.response_id)
            if not await self.budget.starts():
                record = replace(record, status="out_of_budget")
                write_run(place, record, None, {})
            else:
                remove_leftovers(place.folder)
                record = await self._ask(place, text, record)
        self.on_run(place, record)
        return record

    async def _ask(self, place: RunPlace, text: str, record: RunRecord) -> RunRecord:
        before = record.cost_usd or 0.0
        try:
            for attempt in range(1, self.plan.retries + 2):
                record = replace(record, status="running", reason=None, attempts=attempt)
                write_run(place, record, None, {})
                try:
                    record = await self._attempt(place, text, record)
                except AgentUnavailableError as error:
                    if attempt > self.plan.retries:
                        raise AgentUnavailableError(
                            f"{place.name}: {error} ({counted(attempt, 'attempt')}); the same "
                            "command continues"
                        ) from error
                    wait_s = 2.0**attempt if error.wait_s is None else error.wait_s
                    await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))
                    record = read_run_record(place.record) or record
                if record.status in ("answered", "empty"):
                    break
            return record
        finally:
            await self.budget.ends((record.cost_usd or 0.0) - before)

    async def _attempt(self, place: RunPlace, text: str, record: RunRecord) -> RunRecord:
        """Ask once and return the record, which is stored."""
        scratch = Path(tempfile.mkdtemp(prefix="mind2web2-"))
        started_s = time.monotonic()
        created = datetime.now(UTC).isoformat(timespec="seconds")

        def keep_response_id(response_id: str | None) -> None:
            write_run(place, replace(record, response_id=response_id), None, {})

        question = Question(
            task_id=place.folder.name,
            run=place.number,
            text=text,
            scratch=scratch,
            log=place.folder / f"answer_{place.number}.run.log",
            timeout_s=self.plan.timeout_s,
            response_id=record.response_id,
            keep_response_id=keep_response_id,
        )
        answer, reason, cost_usd = None, None, None
        try:
            reply = await self.agent.ask(question)
            answer, cost_usd = reply.text, reply.cost_usd
            if len(answer.encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
                answer = None
                reason = f"its answer has more than {MAX_ANSWER_BYTES:,} bytes"
        except TimeoutError:
            reason = f"no answer within {self.plan.timeout_s:g} s"
        except AgentFailedError as error:
            reason, cost_usd = " ".join(str(error).split()), error.cost_usd
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = round(time.monotonic() - started_s, 3)
        if answer is None:
            status = "error"
        else:
            status = "answered" if answer.strip() else "empty"
        costs = [cost for cost in (record.cost_usd, cost_usd) if cost is not None]
        record = replace(
            record,
            status=status,
            reason=reason,
            seconds=seconds,
            cost_usd=sum(costs) if costs else None,
            response_id=None,
        )
        stored = answer if status == "answered" else None
        write_run(place, record, stored, {"time_seconds": seconds, "created": created})
        return record
