"""The batch jobs of a run: those of each judge, and the lines that a display shows of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from mind2web2.errors import UsageError
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.plugins.batch.endpoints import BatchPace, JobProgress, batch_endpoints
from mind2web2.plugins.batch.jobs import BatchClient, BatchJobs
from mind2web2.plugins.batch.settings import BatchSettings
from mind2web2.plugins.batch.state import BatchFolder
from mind2web2.runs.settings import RunSettings
from mind2web2.scripts.passes import any_pass_at_work
from mind2web2.utils.text import counted

# The folder of the first of two judges, within that of the other: a job has one model.
_OF_FIRST = "first"
MAY_STOP = (
    "A batch may take up to a day. You may stop this command at any time (Ctrl-C). The provider "
    "goes on, and the same command fetches the results."
)


class BatchSender:
    """The batch jobs of a run's judges, while entered.

    Args:
        jobs: of each judge; one list has the progress of all.
    """

    def __init__(self, jobs: Sequence[BatchJobs]) -> None:
        self._jobs = jobs
        self._progress: list[JobProgress] = []
        for each in jobs:
            each.progress = self._progress
        self._printed: dict[int, str] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for jobs in self._jobs:
                await stack.enter_async_context(jobs)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def clients(self) -> list[BatchClient]:
        """Return what asks each judge, in their order."""
        return [jobs.client() for jobs in self._jobs]

    def worked_s(self) -> float:
        """Return the seconds, from any start, in which no question waited for a job."""
        # Time in which two judges wait together is left out twice, in favour of the script.
        others = len(self._jobs) - 1
        return sum(jobs.worked_s() for jobs in self._jobs) - others * time.monotonic()

    def news(self, *, is_live: bool) -> Iterator[str]:
        """Yield a line for each job when it is sent and when it is over.

        Off a terminal there are also lines in between.
        """
        for job in self._progress:
            if job.status == "uploading":
                continue
            if not self._printed:
                yield MAY_STOP
            if job.number not in self._printed:
                self._printed[job.number] = _job_text(replace(job, done=0, is_over=False))
                yield f"batch {job.number}: {counted(job.total, 'request')}, {_submission(job)}"
            text = _job_text(job)
            if text != self._printed[job.number] and (job.is_over or not is_live):
                self._printed[job.number] = text
                yield text

    def state(self) -> Iterator[str]:
        """Yield a line for each job that is not over."""
        for job in self._progress:
            if not job.is_over:
                yield _job_text(job)


def _job_text(job: JobProgress) -> str:
    if job.is_over:
        return f"batch {job.number}: {job.status}, {job.done} of {counted(job.total, 'reply')}"
    return f"batch {job.number}: {job.done} of {job.total} done, {_submission(job)}"


def _submission(job: JobProgress) -> str:
    earlier = " by an earlier run" if job.is_resumed else ""
    return f"submitted {datetime.fromtimestamp(job.submitted_s).astimezone():%H:%M}{earlier}"


def batch_sender(
    settings: RunSettings, judges: Sequence[JudgeSpec], folder: Path, store: JudgmentStore
) -> BatchSender:
    """Return the jobs of a run's judges; the folder keeps their state."""
    names = [*[_OF_FIRST] * (len(judges) - 1), ""]
    return BatchSender(
        [
            _jobs_of(settings, folder / name, judge.model, store)
            for judge, name in zip(judges, names, strict=True)
        ]
    )


async def left_open(settings: RunSettings, folder: Path, store: JudgmentStore) -> str | None:
    """Return a warning if this judge's server has open batches that this run does not fetch."""
    endpoint = endpoint_of(settings.llm_provider, settings.judge_server())
    try:
        records = await asyncio.to_thread(BatchFolder(folder).records)
    except UsageError as error:
        return f"Batches of an earlier run may still be open: {error}."
    keys = [key for each in records if each.endpoint == endpoint for key in each.questions]
    missing = [key for key in keys if await store.get(key, endpoint) is None]
    if not missing:
        return None
    without = " and without --overwrite" if settings.overwrite else ""
    return (
        f"Warning: an earlier run with --batch left {counted(len(missing), 'request')} in open "
        "batches, which are paid for. This run asks again what it needs, and pays again. To "
        f"fetch the results of the batches instead, run the same command with --batch{without}."
    )


def _jobs_of(settings: RunSettings, folder: Path, model: str, store: JudgmentStore) -> BatchJobs:
    endpoints = batch_endpoints(settings.llm_provider, *settings.judge_base_url)

    async def is_stored(key: str) -> bool:
        return await store.get(key, endpoints.service.endpoint) is not None

    usual = BatchPace()
    first_poll_s = settings.of(BatchSettings).batch_poll or usual.first_poll_s
    pace = replace(
        usual,
        first_poll_s=first_poll_s,
        longest_poll_s=max(usual.longest_poll_s, first_poll_s),
    )
    return BatchJobs(
        endpoints,
        BatchFolder(folder),
        model,
        pace,
        overwrite=settings.overwrite,
        is_stored=is_stored,
        is_at_work=any_pass_at_work,
    )
