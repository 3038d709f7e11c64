"""Batch jobs at the provider: the endpoints of OpenAI and Azure, with retries."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.http_pool import (
    MAX_REPLY_BYTES,
    HttpPool,
    PoolPerLoop,
    RequestContent,
)
from mind2web2.llm_client.openai_protocol import (
    Connection,
    azure_connection,
    openai_connection,
)
from mind2web2.llm_client.retries import SECOND_CONNECTION_S, RetryPolicy
from mind2web2.llm_client.transport import ReplyPart
from mind2web2.plugins.batch.state import BatchError, BatchFolder, JobInput, JobRecord
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.shown_text import start_of

log = logging.getLogger(__name__)

# The lower of both providers' limits; the bytes leave room for what an upload adds.
MAX_REQUESTS_A_FILE = 50_000
MAX_BYTES_A_FILE = 190_000_000
# An average of results: more than the longest output of any model in JSON.
_MAX_BYTES_A_REPLY = 1_000_000

_NAME = "mind2web2_job"
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
# Azure validates an upload before a job may name it.
_FILE_PENDING = frozenset({"pending", "running"})
_FILE_WAIT_S = 1.0
# Statuses of servers without these endpoints.
_NOT_THERE = (404, 405, 501)

_POLL_GROWTH = 1.5
_DAY_S = 86_400.0
# A deletion is tried once, because nothing depends on it.
_DELETION_TIMEOUT_S = 20.0
# Statuses for a job that has ended or does not exist.
_NOT_TO_BE_CANCELLED = (400, 404, 409)

Part = TypeVar("Part", bound=BaseModel)
Answer = TypeVar("Answer")


class _File(ReplyPart):
    id: str
    status: str | None = None


class _Counts(ReplyPart):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Errors(ReplyPart):
    data: list[BatchError] | None = None


class BatchReport(ReplyPart):
    """A job as the provider describes it."""

    id: str
    status: str
    created_at: int | None = None
    request_counts: _Counts | None = None
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Errors | None = None
    metadata: JsonObject | None = None

    @property
    def is_over(self) -> bool:
        """Tell whether the job has ended."""
        return self.status in _OVER

    @property
    def done(self) -> int:
        """Return the number of its finished requests."""
        counts = self.request_counts or _Counts()
        return counts.completed + counts.failed

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Return code and message of each error of the job as a whole."""
        listed = (self.errors.data if self.errors else None) or []
        return [(error.code or "", error.message or "") for error in listed]


class _Page(ReplyPart):
    data: list[BatchReport]
    has_more: bool = False


class BatchEndpoints:
    """One provider's files and batches; retries nothing.

    A job's requests name ``url`` as their endpoint.
    """

    def __init__(self, connection: Connection, url: str) -> None:
        self.service = connection.service
        self.url = url
        self._pools = PoolPerLoop(partial(HttpPool, connection.server))

    async def check(self) -> None:
        """Check that the server has these endpoints.

        Raises:
            UsageError: it has none, or refuses the key.
            RequestFailedError: it cannot be reached.
        """
        try:
            await self._list(limit=1)
        except RequestFailedError as failure:
            if failure.status in _NOT_THERE:
                raise UsageError(
                    f"{self.service.shown} has no batch endpoints ({failure}): evaluate without "
                    "--batch"
                ) from failure
            if failure.status in (401, 403):
                raise UsageError(
                    f"{self.service.shown} refuses the key for its batch endpoints, check "
                    f"{self.service.key_name}: {failure}"
                ) from failure
            raise

    async def upload(self, path: Path) -> str:
        """Upload a job's input and return the file's id once a job may name it."""
        file = await asyncio.to_thread(path.open, "rb")
        with file:
            form = aiohttp.FormData({"purpose": "batch"})
            form.add_field("file", file, filename=path.name, content_type="application/jsonl")
            uploaded = await self._reply(_File, "POST", "/files", RequestContent(form=form))
        while uploaded.status in _FILE_PENDING:
            await asyncio.sleep(_FILE_WAIT_S)
            uploaded = await self._reply(_File, "GET", f"/files/{_quote(uploaded.id)}")
        if uploaded.status == "error":
            raise RequestFailedError(f"the provider cannot read the uploaded file {uploaded.id}")
        return uploaded.id

    async def create(self, file_id: str, name: str) -> BatchReport:
        """Start a job; ``name`` is our own, to find it by."""
        job = {
            "input_file_id": file_id,
            "endpoint": self.url,
            "completion_window": "24h",
            "metadata": {_NAME: name},
        }
        content = RequestContent(json_body=json.dumps(job).encode())
        return await self._reply(BatchReport, "POST", "/batches", content)

    async def find(self, name: str, since_s: float) -> BatchReport | None:
        """Return the job with this name, ``None`` if none was started since that moment."""
        after: str | None = None
        while True:
            page = await self._list(limit=100, after=after)
            for report in page.data:
                if (report.metadata or {}).get(_NAME) == name:
                    return report
            oldest_s = min((report.created_at or 0 for report in page.data), default=0)
            if not page.has_more or not page.data or oldest_s < since_s:
                return None
            if page.data[-1].id == after:
                return None  # a server that turns no pages
            after = page.data[-1].id

    async def report(self, batch_id: str) -> BatchReport:
        """Return the state of a job."""
        return await self._reply(BatchReport, "GET", f"/batches/{_quote(batch_id)}")

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to stop a job."""
        pool = await self._pools.here()
        await pool.request("POST", f"/batches/{_quote(batch_id)}/cancel")

    async def download(self, file_id: str, path: Path, most_bytes: int) -> None:
        """Append a file of results to the one at ``path``, piece by piece.

        Raises:
            RequestFailedError: the file cannot be fetched, or is larger than ``most_bytes``.
        """
        pool = await self._pools.here()
        content = pool.chunks(f"/files/{_quote(file_id)}/content")
        size_bytes = 0
        async with aclosing(content) as chunks:
            async for chunk in chunks:
                size_bytes += len(chunk)
                if size_bytes > most_bytes:
                    raise RequestFailedError(
                        f"the file of results {file_id} is larger than {most_bytes // 10**6} MB",
                        is_final=True,
                    )
                await asyncio.to_thread(_append, path, chunk)

    async def delete(self, file_id: str) -> None:
        """Delete a file at the provider."""
        pool = await self._pools.here()
        await pool.request("DELETE", f"/files/{_quote(file_id)}")

    async def close(self) -> None:
        """Close the connection pool."""
        await self._pools.close()

    async def _list(self, limit: int, after: str | None = None) -> _Page:
        query: dict[str, int | str] = {"limit": limit}
        if after is not None:
            query["after"] = after
        return await self._reply(_Page, "GET", "/batches", RequestContent(query=query))

    async def _reply(
        self,
        kind: type[Part],
        method: str,
        path: str,
        content: RequestContent | None = None,
    ) -> Part:
        content = content or RequestContent()
        pool = await self._pools.here()
        reply = await pool.request(method, path, content)
        try:
            return kind.model_validate_json(reply.content)
        except ValidationError:
            start = start_of(reply.content, self.service.secrets)
            raise RequestFailedError(
                f"the reply is not of a batch endpoint but {start!r}"
            ) from None


def batch_endpoints(provider: str, base_url: str | None = None) -> BatchEndpoints:
    """Return a provider's batch endpoints, its key and address from the environment.

    Raises:
        UsageError: the provider has none, or a setting is missing.
    """
    if provider == "openai":
        return BatchEndpoints(openai_connection(base_url), "/v1/chat/completions")
    if provider == "azure_openai":
        return BatchEndpoints(azure_connection(base_url), "/chat/completions")
    raise UsageError(f"--batch needs --llm_provider openai or azure_openai, not {provider}")


@dataclass(frozen=True)
class BatchPace:
    """When jobs are sent and polled.

    Args:
        pause_s: between the end of all passes and a job, for the questions that are still prepared.
        first_poll_s: between polls of a new job; each later wait is half as long again.
        longest_poll_s: most seconds between two polls.
        transfer_timeout_s: for the upload or download of one file.
    """

    pause_s: float = 1.0
    first_poll_s: float = 5.0
    longest_poll_s: float = 60.0
    most_requests: int = MAX_REQUESTS_A_FILE
    most_bytes: int = MAX_BYTES_A_FILE
    retry: RetryPolicy = field(
        default=RetryPolicy(tries=200, total_s=3600.0, request_timeout_s=60.0)
    )
    transfer_timeout_s: float = 3600.0


@dataclass
class JobProgress:
    """The progress of a job, for a display.

    Args:
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
    """Submits jobs, polls them until their end and downloads their results, with retries."""

    def __init__(self, endpoints: BatchEndpoints, folder: BatchFolder, pace: BatchPace) -> None:
        self._endpoints = endpoints
        self._folder = folder
        self._pace = pace

    async def check(self) -> None:
        """Check that the server has batch endpoints, as ``BatchEndpoints.check`` promises.

        A server that takes no connection at all is tried twice only: its address may be wrong.
        """
        timeout_s = self._pace.retry.request_timeout_s
        try:
            await _in_time(self._endpoints.check, timeout_s)
        except RequestFailedError as failure:
            if not failure.can_pass:
                raise
            await asyncio.sleep(SECOND_CONNECTION_S)
            if failure.is_sent:
                await self._retry(self._endpoints.check)
            else:
                await _in_time(self._endpoints.check, timeout_s)

    async def submit(self, record: JobRecord, job_input: JobInput) -> JobRecord:
        """Start a job and return its record with the provider's name in it.

        Raises:
            RequestFailedError: the job was not started. If the failure is temporary, the job may
                exist all the same, and its record stays for a later run to look for it.
        """
        file_id = await self._retry(
            lambda: self._endpoints.upload(job_input.path),
            self._pace.transfer_timeout_s,
        )
        # Before the job is created: if this run is killed, the next one looks for it at the
        # provider.
        await asyncio.to_thread(self._folder.save, record)
        is_first = True

        async def create() -> BatchReport:
            nonlocal is_first
            # An earlier try may have succeeded although its reply was lost.
            found = None if is_first else await self._find(record)
            is_first = False
            return found or await self._endpoints.create(file_id, record.name)

        try:
            report = await self._retry(create)
        except RequestFailedError as failure:
            if not failure.can_pass:
                await asyncio.to_thread(self._folder.remove, record)
                await self._delete(file_id)
            raise
        return await self._save_confirmation(record, report)

    async def found(self, record: JobRecord) -> JobRecord | None:
        """Return the record with the provider's name in it.

        The result is ``None`` if the provider does not have such a job.
        """
        if record.batch_id is not None:
            return record
        report = await self._retry(lambda: self._find(record))
        return None if report is None else await self._save_confirmation(record, report)

    async def end_of(self, record: JobRecord, progress: JobProgress) -> BatchReport:
        """Wait until a job has ended, download its results and return the last report.

        Raises:
            RequestFailedError: the provider does not answer.
        """
        batch_id = str(record.batch_id)
        wait_s = self._pace.first_poll_s
        while True:
            try:
                report = await self._retry(lambda: self._endpoints.report(batch_id))
            except RequestFailedError as failure:
                if failure.status == 404:
                    return BatchReport(id=batch_id, status="unknown to the provider")
                raise
            progress.status, progress.done = report.status, report.done
            if report.is_over:
                break
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * _POLL_GROWTH, self._pace.longest_poll_s)
        await self._retry(lambda: self._fetch(record, report), self._pace.transfer_timeout_s)
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
            await self._retry(lambda: self._endpoints.cancel(batch_id))
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
            log.info(
                "batch file not deleted at the provider file=%s reason=%s",
                file_id,
                failure,
            )

    async def _find(self, record: JobRecord) -> BatchReport | None:
        # A day: the provider's clock may differ from ours.
        return await self._endpoints.find(record.name, record.created_s - _DAY_S)

    async def _save_confirmation(self, record: JobRecord, report: BatchReport) -> JobRecord:
        confirmed = record.model_copy(update={"batch_id": report.id})
        await asyncio.to_thread(self._folder.save, confirmed)
        return confirmed

    async def _fetch(self, record: JobRecord, report: BatchReport) -> None:
        path = self._folder.results_path(record)
        part = path.with_suffix(".part")
        most_bytes = MAX_REPLY_BYTES + len(record.questions) * _MAX_BYTES_A_REPLY
        await asyncio.to_thread(part.write_bytes, b"")
        try:
            for file_id in (report.output_file_id, report.error_file_id):
                if file_id:
                    await self._endpoints.download(file_id, part, most_bytes)
                    await asyncio.to_thread(_end_line, part)
            await asyncio.to_thread(part.replace, path)
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)

    async def _retry(
        self, call: Callable[[], Awaitable[Answer]], timeout_s: float | None = None
    ) -> Answer:
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
                if (
                    not failure.can_pass
                    or tries >= retry.tries
                    or time.monotonic() + pause_s >= give_up_at_s
                ):
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


def _quote(provider_id: str) -> str:
    return quote(provider_id, safe="")


def _append(path: Path, chunk: bytes) -> None:
    with path.open("ab") as file:
        file.write(chunk)


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
