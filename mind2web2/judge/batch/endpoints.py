"""OpenAI's and Azure's files and batches endpoints, over the official SDK: jobs of many requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.base_client import azure_connection, openai_connection
from mind2web2.llm_client.chat import Completion, ReplyPart
from mind2web2.llm_client.failures import RequestFailedError, Service, failure_from_body, one_line
from mind2web2.llm_client.openai_protocol import (
    PoolPerLoop,
    SdkPool,
    read_completion,
    sdk_failures,
)

if TYPE_CHECKING:
    from collections.abc import Callable


# The lower of both providers' limits; the bytes leave room for what an upload adds.
MOST_REQUESTS_A_FILE = 50_000
MOST_BYTES_A_FILE = 190_000_000

_NAME = "mind2web2_job"
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
# Azure takes a moment to look at an upload before a job may name it.
_FILE_PENDING = frozenset({"pending", "running"})
_FILE_WAIT_S = 1.0
_CHUNK_BYTES = 1 << 20
# What servers without these endpoints answer.
_NOT_THERE = (404, 405, 501)

Part = TypeVar("Part", bound=BaseModel)


class _File(ReplyPart):
    id: str
    status: str | None = None


class _Counts(ReplyPart):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Error(ReplyPart):
    code: str | None = None
    message: str | None = None


class _Errors(ReplyPart):
    data: list[_Error] | None = None


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
    metadata: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more will come."""
        return self.status in _OVER

    @property
    def done(self) -> int:
        """Return how many of its requests have been dealt with."""
        counts = self.request_counts or _Counts()
        return counts.completed + counts.failed

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Return code and words of what went wrong with the job as a whole."""
        listed = (self.errors.data if self.errors else None) or []
        return [(error.code or "", error.message or "") for error in listed]


class _Page(ReplyPart):
    data: list[BatchReport]
    has_more: bool = False


class _LineResponse(ReplyPart):
    status_code: int
    body: Any = None


class _Line(ReplyPart):
    custom_id: str
    response: _LineResponse | None = None
    error: _Error | None = None


@dataclass(frozen=True, slots=True)
class LineHead:
    """Whose reply a line of a job's results is, and whether it is one."""

    custom_id: str
    is_reply: bool


def line_frame(custom_id: str, url: str) -> tuple[bytes, bytes]:
    """Return what comes before and after a request's body in the line of a job's input that asks it."""
    head = json.dumps({"custom_id": custom_id, "method": "POST", "url": url}).encode()
    return head[:-1] + b', "body": ', b"}\n"


def line_head(line: bytes) -> LineHead | None:
    """Return whose reply a line of results is, ``None`` where it is damaged."""
    try:
        read = _Line.model_validate_json(line)
    except ValidationError:
        return None
    return LineHead(read.custom_id, read.response is not None and read.response.status_code == 200)


def read_line(line: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return what a line of a job's results brought.

    Raises:
        RequestFailedError: an error, as the same request sent on its own would have met.
    """
    read = _Line.model_validate_json(line)
    if read.response is not None:
        body = json.dumps(read.response.body, ensure_ascii=False)
        if read.response.status_code == 200:
            return read_completion(body.encode("utf-8", "replace"), secrets)
        raise failure_from_body(read.response.status_code, body, secrets=secrets)
    error = read.error or _Error(message="neither a response nor an error")
    codes = (error.code,) if error.code else ()
    raise RequestFailedError(one_line(f"{error.code or ''} {error.message or ''}", secrets), codes=codes)


class BatchEndpoints:
    """One provider's files and batches; retries nothing.

    Args:
        connect: makes the SDK's client and its connections.
        service: where it leads.
        url: what the requests of a job are sent to, as the provider calls it.
    """

    def __init__(self, connect: Callable[[], SdkPool], service: Service, url: str) -> None:
        self.service = service
        self.url = url
        self._pools = PoolPerLoop(connect)

    async def check(self) -> None:
        """Ask for a list of jobs, as a server with these endpoints can give.

        Raises:
            UsageError: it has none, or refuses the key.
            RequestFailedError: it cannot be reached.
        """
        try:
            await self._list(limit=1)
        except RequestFailedError as failure:
            if failure.status in _NOT_THERE:
                raise UsageError(
                    f"{self.service.endpoint} has no batch endpoints ({failure}): evaluate without --batch"
                ) from failure
            if failure.status in (401, 403):
                raise UsageError(
                    f"{self.service.endpoint} refuses the key for its batch endpoints, check "
                    f"{self.service.key_name}: {failure}"
                ) from failure
            raise

    async def upload(self, path: Path) -> str:
        """Hand in a job's input and return the file's id once a job may name it."""
        file = await asyncio.to_thread(path.open, "rb")
        try:
            with sdk_failures(self.service.secrets):
                sent = await self._pools.here().sdk.files.with_raw_response.create(
                    file=(path.name, file, "application/jsonl"), purpose="batch"
                )
        finally:
            file.close()
        uploaded = self._read(_File, sent.content)
        while uploaded.status in _FILE_PENDING:
            await asyncio.sleep(_FILE_WAIT_S)
            with sdk_failures(self.service.secrets):
                looked = await self._pools.here().sdk.files.with_raw_response.retrieve(uploaded.id)
            uploaded = self._read(_File, looked.content)
        if uploaded.status == "error":
            raise RequestFailedError(f"the provider cannot read the uploaded file {uploaded.id}")
        return uploaded.id

    async def create(self, file_id: str, name: str) -> BatchReport:
        """Start a job; ``name`` is of ours, to find it by."""
        with sdk_failures(self.service.secrets):
            made = await self._pools.here().sdk.batches.with_raw_response.create(
                input_file_id=file_id,
                endpoint=cast(Any, self.url),  # Azure's are not among the SDK's literals
                completion_window="24h",
                metadata={_NAME: name},
            )
        return self._read(BatchReport, made.content)

    async def find(self, name: str, since_s: float) -> BatchReport | None:
        """Return the job with this name, ``None`` where none was started since that moment."""
        after: str | None = None
        while True:
            page = await self._list(limit=100, after=after)
            for report in page.data:
                if (report.metadata or {}).get(_NAME) == name:
                    return report
            oldest_s = min((report.created_at or 0 for report in page.data), default=0)
            if not page.has_more or not page.data or oldest_s < since_s:
                return None
            after = page.data[-1].id

    async def report(self, batch_id: str) -> BatchReport:
        """Return how far a job is."""
        with sdk_failures(self.service.secrets):
            looked = await self._pools.here().sdk.batches.with_raw_response.retrieve(batch_id)
        return self._read(BatchReport, looked.content)

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to stop a job."""
        with sdk_failures(self.service.secrets):
            await self._pools.here().sdk.batches.with_raw_response.cancel(batch_id)

    async def download(self, file_id: str, path: Path) -> None:
        """Append a file of results to the one at ``path``, piece by piece."""
        import httpx2

        sdk = self._pools.here().sdk
        try:
            with sdk_failures(self.service.secrets):
                async with sdk.files.with_streaming_response.content(file_id) as response:
                    async for chunk in response.iter_bytes(_CHUNK_BYTES):
                        await asyncio.to_thread(_append, path, chunk)
        except httpx2.HTTPError as error:
            raise RequestFailedError(one_line(str(error), self.service.secrets)) from error

    async def delete(self, file_id: str) -> None:
        """Delete a file at the provider."""
        with sdk_failures(self.service.secrets):
            await self._pools.here().sdk.files.with_raw_response.delete(file_id)

    async def close(self) -> None:
        """Close the connection pool."""
        await self._pools.close()

    async def _list(self, limit: int, after: str | None = None) -> _Page:
        query: Mapping[str, object] = {"limit": limit} | ({} if after is None else {"after": after})
        with sdk_failures(self.service.secrets):
            listed = await self._pools.here().sdk.batches.with_raw_response.list(extra_query=query)
        return self._read(_Page, listed.content)

    def _read(self, kind: type[Part], content: bytes) -> Part:
        try:
            return kind.model_validate_json(content)
        except ValidationError as error:
            start = one_line(content[:200].decode(errors="replace"), self.service.secrets)
            raise RequestFailedError(f"the reply is not of a batch endpoint but {start!r}") from error


def batch_endpoints(provider: str, base_url: str | None = None) -> BatchEndpoints:
    """Return a provider's batch endpoints, its key and address from the environment.

    Raises:
        UsageError: the provider has none, or a setting is missing.
    """
    if provider == "openai":
        return BatchEndpoints(*openai_connection(base_url), "/v1/chat/completions")
    if provider == "azure_openai":
        return BatchEndpoints(*azure_connection(base_url), "/chat/completions")
    raise UsageError(f"--batch needs --llm_provider openai or azure_openai, not {provider}")


def _append(path: Path, chunk: bytes) -> None:
    with path.open("ab") as file:
        file.write(chunk)
