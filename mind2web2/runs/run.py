"""Evaluates tasks and their answers concurrently; an error costs the result of one answer only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mind2web2.analysis.summaries import write_task_summary
from mind2web2.errors import (
    AnswerError,
    CacheReadError,
    Mind2Web2Error,
    ResultWriteError,
    UsageError,
)
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import cited_urls, listed_urls
from mind2web2.results.answers import AnswerJob, RunFolders, TaskWork, read_answer
from mind2web2.results.stored_results import answer_dir, answer_results_dir, newest_result_name
from mind2web2.runs.answer import (
    AnswerOutcome,
    until_unlocked,
)
from mind2web2.runs.concurrency import Concurrency
from mind2web2.utils.aio import all_or_first_error

log = logging.getLogger(__name__)


@dataclass
class RunProgress:
    """The progress of a run, for a display.

    Args:
        waiting: answers that other processes are judging.
        problems: errors that concern no single answer, one line each.
        lets_results_go: outcomes keep no results, which are in their files: a run may have
            thousands.
    """

    lets_results_go: bool = False
    answers_total: int = 0
    tasks_total: int = 0
    tasks_done: int = 0
    outcomes: list[AnswerOutcome] = field(default_factory=list)
    running: dict[str, None] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class AnswerRunner(Protocol):
    """Evaluates single answers: in this process (``RunParts``), or on the nodes of a cluster."""

    async def evaluate(self, job: AnswerJob) -> AnswerOutcome | None:
        """Evaluate one answer, as ``evaluate_answer`` does."""


class RemoteRunner(Protocol):
    """Has answers judged by other machines, and writes the files of their results."""

    async def judged(self, job: AnswerJob) -> tuple[str | None, bool]:
        """Return why an answer has no result, and whether an earlier one was taken.

        Raises:
            Mind2Web2Error: no answer can be judged.
        """


async def evaluate_work(
    work: Sequence[TaskWork],
    folders: RunFolders,
    run: AnswerRunner,
    concurrency: Concurrency,
    progress: RunProgress,
    *,
    dump_cache: bool = False,
) -> list[AnswerOutcome]:
    """Evaluate every answer of the tasks and write their summaries.

    The outcomes are in the order of the work.

    Args:
        work: the tasks, with or without a script.
        dump_cache: make each task's cache index list exactly the pages on disk when the task is
            done.
    """
    progress.tasks_total = len(work)
    progress.answers_total = sum(len(task.answers) for task in work)
    places = asyncio.Semaphore(concurrency.max_tasks)

    async def one_task(task: TaskWork) -> list[AnswerOutcome]:
        async with places:
            evaluations = await _evaluate_answers_of_task(task, folders, run, concurrency, progress)
        # Answers of other processes come last: waiting for them delays no other task.
        outcomes = await all_or_first_error(
            _final_outcome(done, run, concurrency, places, progress) for done in evaluations
        )
        if dump_cache:
            await asyncio.to_thread(_tidy_cache, folders.task_cache(task.task_id))
        try:
            await asyncio.to_thread(_write_summary, task, folders, outcomes)
        except ResultWriteError as error:
            progress.problems.append(str(error))
        progress.tasks_done += 1
        return outcomes

    by_task = await all_or_first_error(one_task(task) for task in work)
    return [outcome for outcomes in by_task for outcome in outcomes]


async def _evaluate_answers_of_task(
    task: TaskWork,
    folders: RunFolders,
    run: AnswerRunner,
    concurrency: Concurrency,
    progress: RunProgress,
) -> Sequence[AnswerOutcome | AnswerJob]:
    """Return the outcome of each answer, or its job where another process judges it."""
    try:
        jobs = await asyncio.to_thread(answer_jobs, task, folders)
    except Mind2Web2Error as error:
        # No script, or an unreadable cache: only this task's answers have no result.
        log.info("no answer can be judged task=%s reason=%s", task.task_id, error)
        outcomes = await asyncio.to_thread(_without_result, task, folders, str(error))
        progress.outcomes.extend(outcomes)
        return outcomes
    places = asyncio.Semaphore(concurrency.max_answers)

    async def one_answer(job: AnswerJob) -> AnswerOutcome | AnswerJob:
        async with places:
            return await _evaluate_answer_when_admitted(job, run, concurrency, progress) or job

    return await all_or_first_error(one_answer(job) for job in jobs)


async def _evaluate_answer_when_admitted(
    job: AnswerJob, run: AnswerRunner, concurrency: Concurrency, progress: RunProgress
) -> AnswerOutcome | None:
    name = f"{job.task_id}/{job.answer.stem}"
    async with concurrency.admission or nullcontext():
        progress.running[name] = None
        try:
            outcome = await run.evaluate(job)
        finally:
            del progress.running[name]
    if outcome is None:
        return None
    if progress.lets_results_go:
        outcome = outcome.without_result()
    progress.outcomes.append(outcome)
    return outcome


async def _final_outcome(
    done: AnswerOutcome | AnswerJob,
    run: AnswerRunner,
    concurrency: Concurrency,
    places: asyncio.Semaphore,
    progress: RunProgress,
) -> AnswerOutcome:
    """Wait until no other process judges the answer, then evaluate it.

    Mostly its result is reused.
    """
    if isinstance(done, AnswerOutcome):
        return done
    job = done
    name = f"{job.task_id}/{job.answer.stem}"
    log.info("waiting for another process task=%s answer=%s", job.task_id, job.answer.name)
    while True:
        progress.waiting[name] = None
        try:
            await until_unlocked(job.folder)
        finally:
            del progress.waiting[name]
        async with places:
            outcome = await _evaluate_answer_when_admitted(job, run, concurrency, progress)
        if outcome is not None:
            return outcome


def _without_result(task: TaskWork, folders: RunFolders, reason: str) -> list[AnswerOutcome]:
    outcomes = []
    for answer in task.answers:
        earlier = newest_result_name(_results_dir(task, answer.name, folders))
        outcomes.append(
            AnswerOutcome(task.task_id, answer.name, None, reason, earlier_result=earlier)
        )
    return outcomes


def _write_summary(task: TaskWork, folders: RunFolders, outcomes: Sequence[AnswerOutcome]) -> None:
    unscored = {
        outcome.answer_name: outcome.reason
        for outcome in outcomes
        if outcome.reason is not None
        # Otherwise another process has written a result since.
        and outcome.earlier_result
        == newest_result_name(_results_dir(task, outcome.answer_name, folders))
    }
    names = {answer.name for answer in task.answers}
    root, agent_name = folders.eval_results_root, folders.agent_name
    write_task_summary(
        root,
        agent_name,
        task.task_id,
        unscored,
        names,
        task.failed_runs,
        task.elsewhere,
    )


def _results_dir(task: TaskWork, answer_name: str, folders: RunFolders) -> Path:
    return answer_results_dir(
        folders.eval_results_root, folders.agent_name, task.task_id, answer_name
    )


def answer_jobs(task: TaskWork, folders: RunFolders) -> list[AnswerJob]:
    """Return the answers to a task with everything that their evaluation needs.

    Raises:
        UsageError: no script judges the task.
        CacheReadError: its page cache cannot be read.
    """
    script_path = task.script_path
    if script_path is None:
        raise UsageError(task.unscored_reason or f"no script for task {task.task_id}")
    cache = CacheFileSys(folders.task_cache(task.task_id))
    return [
        AnswerJob(
            agent_name=folders.agent_name,
            task_id=task.task_id,
            answer=answer,
            script_path=script_path,
            script_version=task.script_version or script_path.parent.name,
            task_cache=cache,
            folder=answer_dir(
                folders.eval_results_root, folders.agent_name, task.task_id, answer.name
            ),
        )
        for answer in task.answers
    ]


def _tidy_cache(folder: Path) -> None:
    if not folder.is_dir():
        return
    try:
        CacheFileSys(folder).save()
    except Mind2Web2Error as error:
        log.warning("cache index not rewritten: %s", error)


def uncached_pages(folders: RunFolders, task: TaskWork) -> int:
    """Return how many cited pages of a task are not stored.

    ``cache`` lists them with what a model has found; without its list, the answers say them.
    """
    folder = folders.task_cache(task.task_id)
    try:
        cache = CacheFileSys(folder)
        urls = listed_urls(folder.with_name(f"{task.task_id}.json"))
        if not urls:
            texts = [read_answer(answer.path) for answer in task.answers]
            urls = cited_urls("\n\n".join(texts))
        return sum(cache.has(url) is None for url in urls)
    except (AnswerError, CacheReadError) as error:
        log.debug("citations not known task=%s reason=%s", task.task_id, error)
        return 0
