"""The evaluation of one task from Python, as published callers know it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.judge.client_judge import as_provider
from mind2web2.judge.store import STORE_NAME
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.answers import RunFolders, TaskWork, answer_files, without_empty
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import (
    RunProgress,
    evaluate_work,
)
from mind2web2.runs.session import OwnParts, open_run
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.names import check_name

log = logging.getLogger(__name__)


class _TaskFolders(RunFolders):
    """Finds a task's pages.

    They are below the root of all agents, the agent's folder, or the task's own folder.
    """

    def task_cache(self, task_id: str) -> Path:
        """Return the folder of a task's pages."""
        root = self.cache_root
        folder = _innermost(root, self.agent_name, task_id)
        if folder is not None:
            return folder
        # Nothing is stored yet: the folder's name shows its level.
        if root.name == task_id or CacheFileSys(root).get_all_urls():
            return root
        return root / task_id if root.name == self.agent_name else super().task_cache(task_id)


def _innermost(root: Path, agent_name: str, task_id: str) -> Path | None:
    """Return the task's folder below the root of all agents or below one agent's folder."""
    candidates = (root / agent_name / task_id, root / task_id)
    return next((folder for folder in candidates if folder.is_dir()), None)


def _task_work(root: Path, agent_name: str, task_id: str, script_path: Path) -> TaskWork:
    folder = _innermost(root, agent_name, task_id) or root
    answers, problems = answer_files(folder)
    if not answers:
        raise UsageError(f"no answers to task {task_id} under {folder}: expected answer_<k>.md")
    answers, empty = without_empty(answers)
    version = script_path.parent.name
    return TaskWork(task_id, answers, script_path, version, problems=problems, failed_runs=empty)


async def evaluate_task(
    client: Any,
    task_id: str,
    agent_name: str,
    answer_dir: str | Path,
    cache_dir: str | Path,
    output_dir: str | Path,
    script_path: str | Path,
    dump_cache: bool = True,
    is_self_debug: bool = False,
    overwrite: bool = False,
    max_concurrent_answers: int = 3,
    webpage_semaphore: Any = None,
    llm_semaphore: Any = None,
) -> list[dict[str, Any]]:
    """Evaluate one task's answers and return the results of those that have one.

    Pages that are not cached are captured, and are in the cache next time.

    Args:
        client: an ``LLMClient`` with ``is_async=True``, or any object with ``async_response``; it
            judges as ``o4-mini``. An attribute ``endpoint``, a text, names the object's judge;
            without it, nothing that another object has judged is reused.
        answer_dir: the task's answers, the agent's folder of tasks, or the root of all agents.
        cache_dir: likewise for cached pages.
        output_dir: the root of all results (file-layouts.md).
        script_path: the task's eval script.
        dump_cache: make the cache index list exactly the pages on disk afterwards.
        is_self_debug: show the log on the console.
        overwrite: reuse neither earlier results nor stored judgments.
        webpage_semaphore: limits page captures, 10 by default.
        llm_semaphore: limits judge requests, 30 by default.

    Raises:
        UsageError: there are no such answers, or a name is not a plain one.
        JudgeUnusableError: the judge cannot be reached, or rejects all requests.
    """
    script = Path(script_path)
    folders = _TaskFolders(agent_name, Path(cache_dir), Path(output_dir))
    work = _task_work(
        Path(answer_dir),
        check_name("agent", agent_name),
        check_name("task", task_id),
        script,
    )
    settings = RunSettings(
        llm_provider="client",
        overwrite=overwrite,
        answer_timeout=None,
        self_debug=is_self_debug,
    )
    own = OwnParts(
        provider=as_provider(client),
        limits=DualSemaphore(
            webpage_semaphore or asyncio.Semaphore(settings.max_webpage_retrieval),
            llm_semaphore or asyncio.Semaphore(settings.max_llm_requests),
        ),
    )
    async with (
        open_run(settings, folders.agent_results / STORE_NAME, own=own) as run,
        run.at_work(),
    ):
        outcomes = await evaluate_work(
            [work],
            folders,
            run.parts,
            Concurrency(max_answers=max_concurrent_answers),
            RunProgress(),
            dump_cache=dump_cache,
        )
    for name, reason in work.failed_runs.items():
        log.warning("counts as 0 task=%s answer=%s reason=%s", task_id, name, reason)
    for outcome in outcomes:
        if outcome.result is None:
            log.warning(
                "no result task=%s answer=%s reason=%s",
                task_id,
                outcome.answer_name,
                outcome.reason,
            )
    return [dict(outcome.result.document) for outcome in outcomes if outcome.result is not None]
