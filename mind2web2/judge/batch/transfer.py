"""A batch job at the provider: submit it, poll it until its end, download its results."""

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
from mind2web2.judge.batch.state import BatchFolder, JobInput, JobRecord
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retry import RetryPolicy

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_POLL_GROWTH = 1.5
_DAY_S = 86_400.0
# Tried once, as nothing depends on it.
_DELETION_TIMEOUT_S = 20.0
# Statuses for a job that has ended or does not exist.
_NOT_TO_BE_CANCELLED = (400, 404, 409)


@dataclass(frozen=True)
class BatchPace:
    """When jobs are sent and polled.

    Args:
        quiet_s: a job is sent after so long without a new question, multiplied by one more than the number
            of open jobs.
        first_poll_s: between polls of a new job; each later wait is half as long again.
        longest_poll_s: most seconds between two polls.
        most_requests: in one job.
        most_bytes: in one job's input.
        retry: for each call of the provider.
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
    """The progress of a job, for a display.

    Args:
        submitted_s: seconds since the epoch.
        is_resumed: an earlier run has submitted it.
        status: in the provider's words.
    """

    number: int
    total: int
    submitted_s: float
    is_resumed: bool = False
    status: str = "uploading"
    done: int = 0
    is_over: bool = False


class BatchTransfer:
    """Submits jobs and downloads their results, with retries.

    Args:
        endpoints: the provider's.
        folder: holds records and results.
    """

    def __init__(self, endpoints: BatchEndpoints, folder: BatchFolder, pace: BatchPace) -> None:
        self._endpoints = endpoints
        self._folder = folder
        self._pace = pace

    async def check(self) -> None:
        """Check that the server has batch endpoints, as ``BatchEndpoints.check`` promises."""
        await self._retried(self._endpoints.check)

    async def submit(self, record: JobRecord, job_input: JobInput) -> JobRecord:
        """Start a job and return its record with the provider's name in it.

        Raises:
            RequestFailedError: the job was not started. If the failure is temporary, the job may exist all
                the same, and its record stays for a later run to look for it.
        """
        file_id = await self._retried(
            lambda: self._endpoints.upload(job_input.path), self._pace.transfer_timeout_s
        )
        # Before the job is created: if this run is killed, the next one looks for it at the provider.
        await asyncio.to_thread(self._folder.save, record)
        is_first = True

        async def create() -> BatchReport:
            nonlocal is_first
            # An earlier try may have succeeded although its reply was lost.
            found = None if is_first else await self._find(record)
            is_first = False
            return found or await self._endpoints.create(file_id, record.name)

        try:
            report = await self._retried(create)
        except RequestFailedError as failure:
            if not failure.can_pass:
                await asyncio.to_thread(self._folder.remove, record)
                await self._delete(file_id)
            raise
        return await self._confirmed(record, report)

    async def found(self, record: JobRecord) -> JobRecord | None:
        """Return the record with the provider's name in it, ``None`` if the provider has no such job."""
        if record.batch_id is not None:
            return record
        report = await self._retried(lambda: self._find(record))
        return None if report is None else await self._confirmed(record, report)

    async def end_of(self, record: JobRecord, progress: JobProgress) -> BatchReport:
        """Wait until a job has ended, download its results and return the last report.

        Raises:
            RequestFailedError: the provider does not answer.
        """
        batch_id = str(record.batch_id)
        wait_s = self._pace.first_poll_s
        while True:
            try:
                report = await self._retried(lambda: self._endpoints.report(batch_id))
            except RequestFailedError as failure:
                if failure.status == 404:
                    return BatchReport(id=batch_id, status="unknown to the provider")
                raise
            progress.status, progress.done = report.status, report.done
            if report.is_over:
                break
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * _POLL_GROWTH, self._pace.longest_poll_s)
        await self._retried(lambda: self._fetch(record, report), self._pace.transfer_timeout_s)
        return report

    async def cancel(self, record: JobRecord) -> None:
        """Stop a job at the provider, if it is there.

        Raises:
            RequestFailedError: the provider does not answer, and the job may go on.
        """
        found = None if record.is_over else await self.found(record)
        if found is None:
            return
        batch_id = str(found.batch_id)
        try:
            await self._retried(lambda: self._endpoints.cancel(batch_id))
        except RequestFailedError as failure:
            if failure.status not in _NOT_TO_BE_CANCELLED:
                raise

    async def delete_files(self, report: BatchReport) -> None:
        """Delete a job's files at the provider, after its results were downloaded."""
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

    async def _confirmed(self, record: JobRecord, report: BatchReport) -> JobRecord:
        confirmed = record.model_copy(update={"batch_id": report.id})
        await asyncio.to_thread(self._folder.save, confirmed)
        return confirmed

    async def _fetch(self, record: JobRecord, report: BatchReport) -> None:
        path = self._folder.results_path(record)
        part = path.with_suffix(".part")
        await asyncio.to_thread(part.write_bytes, b"")
        for file_id in (report.output_file_id, report.error_file_id):
            if file_id:
                await self._endpoints.download(file_id, part)
                await asyncio.to_thread(_end_line, part)
        await asyncio.to_thread(part.replace, path)

    async def _retried(self, call: Callable[[], Awaitable[Answer]], timeout_s: float | None = None) -> Answer:
        """Return the result of a call, with retries for as long as an outage may last."""
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
                    # One warning: an outage may last for an hour.
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
    """End the last line, in case the file did not."""
    with path.open("ab") as file:
        file.write(b"\n")
