"""One batch job's way: handed in, looked at until it is over, its results brought to disk."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mind2web2.judge.batch.endpoints import (
    MOST_BYTES_A_FILE,
    MOST_REQUESTS_A_FILE,
    BatchEndpoints,
    BatchReport,
)
from mind2web2.judge.batch.state import BatchFolder, Gathering, JobRecord
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retry import RetryPolicy

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_POLL_GROWTH = 1.5
_DAY_S = 86_400.0
# Once only, as nothing hangs on it.
_DELETION_TIMEOUT_S = 20.0
# What providers answer for a job that is over or not there, which is as good as cancelled.
_NOT_TO_BE_CANCELLED = (400, 404, 409)


@dataclass(frozen=True)
class BatchPace:
    """When jobs are sent and looked at.

    Args:
        quiet_s: nothing new must have been asked for so long before a job is sent; longer by as much for
            every job that is under way, since then there is less of a hurry.
        first_poll_s: between looks at a new job; each later wait is half as long again.
        longest_poll_s: at most between two looks.
        most_requests: in one job.
        most_bytes: in one job's input.
        retry: for each call of the provider; an outage shorter than this costs nothing.
        transfer_timeout_s: for the upload or download of one file.
    """

    quiet_s: float = 1.0
    first_poll_s: float = 5.0
    longest_poll_s: float = 60.0
    most_requests: int = MOST_REQUESTS_A_FILE
    most_bytes: int = MOST_BYTES_A_FILE
    retry: RetryPolicy = field(default=RetryPolicy(tries=200, total_s=3600.0, request_timeout_s=60.0))
    transfer_timeout_s: float = 3600.0


@dataclass
class JobProgress:
    """How far a job is; written by those who work on it, read by a display.

    Args:
        submitted_s: seconds since the epoch.
        is_resumed: an earlier run has sent it.
        status: the provider's word.
    """

    number: int
    total: int
    submitted_s: float
    is_resumed: bool = False
    status: str = "uploading"
    done: int = 0
    is_over: bool = False


class Courier:
    """Carries jobs to a provider and their results back, trying again what can pass.

    Args:
        endpoints: the provider's.
        folder: where jobs are written down, and results go.
    """

    def __init__(self, endpoints: BatchEndpoints, folder: BatchFolder, pace: BatchPace) -> None:
        self._endpoints = endpoints
        self._folder = folder
        self._pace = pace

    async def check(self) -> None:
        """Make sure that the server has batch endpoints, as ``BatchEndpoints.check`` promises."""
        await self._tried(self._endpoints.check)

    async def hand_in(self, record: JobRecord, gathering: Gathering) -> JobRecord:
        """Start a job with what was gathered and return its record with the provider's name in it.

        Raises:
            RequestFailedError: it was not started; where that can pass, it may have been all the same, and
                its record stays for a later run to look for it.
        """
        file_id = await self._tried(
            lambda: self._endpoints.upload(gathering.path), self._pace.transfer_timeout_s
        )
        # Written down before it is sent: a run that is killed now looks for it at the provider.
        await asyncio.to_thread(self._folder.save, record)
        is_first = True

        async def create() -> BatchReport:
            nonlocal is_first
            # An earlier try may have come through although its reply did not.
            found = None if is_first else await self._find(record)
            is_first = False
            return found or await self._endpoints.create(file_id, record.name)

        try:
            report = await self._tried(create)
        except RequestFailedError as failure:
            if not failure.can_pass:
                await asyncio.to_thread(self._folder.remove, record)
                await self._delete(file_id)
            raise
        return await self._named(record, report)

    async def found(self, record: JobRecord) -> JobRecord | None:
        """Return the record with the provider's name in it, ``None`` where the job never got there."""
        if record.batch_id is not None:
            return record
        report = await self._tried(lambda: self._find(record))
        return None if report is None else await self._named(record, report)

    async def end_of(self, record: JobRecord, progress: JobProgress) -> BatchReport:
        """Wait until a job is over, bring its results to disk and return the last report.

        Raises:
            RequestFailedError: the provider does not tell.
        """
        batch_id = str(record.batch_id)
        wait_s = self._pace.first_poll_s
        while True:
            try:
                report = await self._tried(lambda: self._endpoints.report(batch_id))
            except RequestFailedError as failure:
                if failure.status == 404:
                    return BatchReport(id=batch_id, status="unknown to the provider")
                raise
            progress.status, progress.done = report.status, report.done
            if report.is_over:
                break
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * _POLL_GROWTH, self._pace.longest_poll_s)
        await self._tried(lambda: self._fetch(record, report), self._pace.transfer_timeout_s)
        return report

    async def cancel(self, record: JobRecord) -> None:
        """Have the provider stop a job that may be under way, known by its name there or not.

        Raises:
            RequestFailedError: the provider does not answer, and the job may still be under way.
        """
        named = None if record.is_over else await self.found(record)
        if named is not None:
            await self._tried(lambda: self._stop(str(named.batch_id)))

    async def _stop(self, batch_id: str) -> None:
        try:
            await self._endpoints.cancel(batch_id)
        except RequestFailedError as failure:
            if failure.status not in _NOT_TO_BE_CANCELLED:
                raise

    async def delete_files(self, report: BatchReport) -> None:
        """Delete a job's files at the provider, whose results are on disk here."""
        file_ids = (report.input_file_id, report.output_file_id, report.error_file_id)
        await asyncio.gather(*(self._delete(file_id) for file_id in file_ids if file_id))

    async def _delete(self, file_id: str) -> None:
        try:
            await _in_time(lambda: self._endpoints.delete(file_id), _DELETION_TIMEOUT_S)
        except RequestFailedError as failure:
            log.info("batch file not deleted at the provider file=%s reason=%s", file_id, failure)

    async def _find(self, record: JobRecord) -> BatchReport | None:
        # A day: the provider's clock may differ from ours.
        return await self._endpoints.find(record.name, record.created_s - _DAY_S)

    async def _named(self, record: JobRecord, report: BatchReport) -> JobRecord:
        named = record.model_copy(update={"batch_id": report.id})
        await asyncio.to_thread(self._folder.save, named)
        return named

    async def _fetch(self, record: JobRecord, report: BatchReport) -> None:
        path = self._folder.results_path(record)
        part = path.with_suffix(".part")
        await asyncio.to_thread(part.write_bytes, b"")
        for file_id in (report.output_file_id, report.error_file_id):
            if file_id:
                await self._endpoints.download(file_id, part)
                await asyncio.to_thread(_end_line, part)
        await asyncio.to_thread(part.replace, path)

    async def _tried(self, call: Callable[[], Awaitable[Answer]], timeout_s: float | None = None) -> Answer:
        """Return what a call brings, made again for as long as an outage may last."""
        retry = self._pace.retry
        give_up_at_s = time.monotonic() + retry.total_s
        tries = 0
        while True:
            tries += 1
            try:
                return await _in_time(call, timeout_s or retry.request_timeout_s)
            except RequestFailedError as failure:
                pause_s = retry.wait_s(tries, failure)
                if not failure.can_pass or tries >= retry.tries or time.monotonic() + pause_s >= give_up_at_s:
                    raise
                log.log(
                    # Told once: an outage may last for an hour.
                    logging.WARNING if tries == 1 else logging.INFO,
                    "batch endpoints failed, trying again wait_s=%.2f give_up_s=%.0f reason=%s",
                    pause_s,
                    give_up_at_s - time.monotonic(),
                    failure,
                )
            await asyncio.sleep(pause_s)


async def _in_time(call: Callable[[], Awaitable[Answer]], timeout_s: float) -> Answer:
    try:
        async with asyncio.timeout(timeout_s):
            return await call()
    except TimeoutError as error:
        raise RequestFailedError(f"no answer within {timeout_s:g} s") from error


def _end_line(path: Path) -> None:
    """Keep the next file's first line apart, whatever the one before ended with."""
    with path.open("ab") as file:
        file.write(b"\n")
