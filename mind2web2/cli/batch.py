"""A run with --batch as a command shows it: its jobs, and batches that earlier runs left open."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.text import Text

from mind2web2.cli.console import RunDisplay
from mind2web2.cli.options import BATCHES
from mind2web2.errors import UsageError
from mind2web2.judge.batch.endpoints import batch_endpoints
from mind2web2.judge.batch.jobs import BatchJobs
from mind2web2.judge.batch.state import BatchFolder
from mind2web2.judge.batch.transfer import BatchPace, JobProgress
from mind2web2.judge.protocol import RunUsage
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.runs.progress_file import ProgressFile
from mind2web2.runs.run import RunFolders, RunProgress

MAY_STOP = (
    "A batch may take up to a day. This command may be stopped at any time (Ctrl-C): batches go on at the "
    "provider, and the same command fetches their results."
)


def open_batches(
    options: argparse.Namespace, folders: RunFolders, model: str, store: JudgmentStore
) -> BatchJobs | None:
    """Return the run's batch jobs, to be entered while the judge is asked; ``None`` without ``--batch``."""
    if not options.batch:
        return None
    endpoints = batch_endpoints(options.llm_provider, options.judge_base_url)

    async def is_stored(key: str) -> bool:
        return await store.get(key, endpoints.service.endpoint) is not None

    return BatchJobs(
        endpoints,
        BatchFolder(folders.agent_results / BATCHES),
        model,
        _batch_pace(options),
        overwrite=options.overwrite,
        is_stored=is_stored,
    )


def _batch_pace(options: argparse.Namespace) -> BatchPace:
    usual = BatchPace()
    first_poll_s = options.batch_poll or usual.first_poll_s
    return replace(usual, first_poll_s=first_poll_s, longest_poll_s=max(usual.longest_poll_s, first_poll_s))


async def waiting_batches_text(
    options: argparse.Namespace, folders: RunFolders, store: JudgmentStore
) -> str | None:
    """Return a warning where batches of this judge's server are open that the run will not fetch."""
    endpoint = endpoint_of(options.llm_provider, options.judge_base_url)
    try:
        records = await asyncio.to_thread(BatchFolder(folders.agent_results / BATCHES).records)
    except UsageError as error:
        return f"Batches of an earlier run may be open: {error}."
    keys = [key for record in records if record.endpoint == endpoint for key in record.questions]
    missing = [key for key in keys if await store.get(key, endpoint) is None]
    if not missing:
        return None
    without = " and without --overwrite" if options.overwrite else ""
    return (
        f"Warning: an earlier run with --batch left {len(missing)} requests in batches that are open and "
        "paid for. What this run needs of them it asks and pays anew; the same command "
        f"with --batch{without} fetches their results."
    )


class BatchDisplay(RunDisplay):
    """Shows the run's batch jobs as well."""

    def __init__(
        self,
        console: Console,
        progress: RunProgress,
        usage: RunUsage,
        jobs: list[JobProgress],
        file: ProgressFile | None = None,
    ) -> None:
        super().__init__(console, progress, usage, file)
        self._jobs = jobs
        self._told_of: dict[int, str] = {}

    def news(self) -> Iterator[str]:
        """Yield a line for each job when it is sent and when it is over, elsewhere than live in between."""
        for job in self._jobs:
            if job.status == "uploading":
                continue
            if not self._told_of:
                yield MAY_STOP
            if job.number not in self._told_of:
                yield f"{_heading(job)}: {job.total} requests, {_submission(job)}"
            line = _line(job)
            told = self._told_of.setdefault(job.number, _line(replace(job, done=0, is_over=False)))
            if line != told and (job.is_over or not self.is_live):
                self._told_of[job.number] = line
                yield line
        yield from super().news()

    def state(self) -> RenderableType:
        """Return the state of the run with a line for each job that is under way."""
        under_way = [Text(_line(job)) for job in self._jobs if not job.is_over]
        return Group(super().state(), *under_way)


def _line(job: JobProgress) -> str:
    if job.is_over:
        return f"{_heading(job)}: {job.status}, {job.done} of {job.total} replies"
    return f"{_heading(job)}: {job.done} of {job.total} done, {_submission(job)}"


def _heading(job: JobProgress) -> str:
    return f"batch {job.number}"


def _submission(job: JobProgress) -> str:
    earlier = " by an earlier run" if job.is_resumed else ""
    return f"submitted {datetime.fromtimestamp(job.submitted_s).astimezone():%H:%M}{earlier}"
