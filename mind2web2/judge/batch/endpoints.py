"""The files and batches endpoints of OpenAI and Azure, over the official SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError

from mind2web2.errors import UsageError
from mind2web2.llm_client.chat import Completion, ReplyPart
from mind2web2.llm_client.failures import RequestFailedError, Service, failure_from_body, one_line
from mind2web2.llm_client.openai_protocol import (
    PoolPerLoop,
    SdkPool,
    azure_connection,
    openai_connection,
    read_completion,
    sdk_failures,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from openai import AsyncOpenAI


# The lower of both providers' limits; the bytes leave room for what an upload adds.
MOST_REQUESTS_A_FILE = 50_000
MOST_BYTES_A_FILE = 190_000_000

_NAME = "mind2web2_job"
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
# Azure validates an upload before a job may name it.
_FILE_PENDING = frozenset({"pending", "running"})
_FILE_WAIT_S = 1.0
_CHUNK_BYTES = 1 << 20
# Statuses of servers without these endpoints.
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


class _LineResponse(ReplyPart):
    status_code: int
    body: Any = None


class _Line(ReplyPart):
    custom_id: str
    response: _LineResponse | None = None
    error: _Error | None = None


class LineHead(NamedTuple):
    """The request that a line of results belongs to, and whether it holds a reply rather than an error."""

    custom_id: str
    is_reply: bool


def line_frame(custom_id: str, url: str) -> tuple[bytes, bytes]:
    """Return the start and the end of an input line, between which the request's body stands."""
    head = json.dumps({"custom_id": custom_id, "method": "POST", "url": url}).encode()
    return head[:-1] + b', "body": ', b"}\n"


def line_head(line: bytes) -> LineHead | None:
    """Return the head of a line of results, ``None`` if the line is damaged."""
    try:
        read = _Line.model_validate_json(line)
    except ValidationError:
        return None
    return LineHead(read.custom_id, read.response is not None and read.response.status_code == 200)


def read_line(line: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """Return the completion in a line of results.

    Raises:
        RequestFailedError: the line holds an error, the same as for a direct request.
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
        service: the server and the settings that a user can correct.
        url: the endpoint that a job's requests name.
    """

    def __init__(self, connect: Callable[[], SdkPool], service: Service, url: str) -> None:
        self.service = service
        self.url = url
        self._pools = PoolPerLoop(connect)

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
                    f"{self.service.shown} has no batch endpoints ({failure}): evaluate without --batch"
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
        try:
            content = (path.name, file, "application/jsonl")
            creation = self._sdk.files.with_raw_response.create(file=content, purpose="batch")
            uploaded = await self._reply(_File, creation)
        finally:
            file.close()
        while uploaded.status in _FILE_PENDING:
            await asyncio.sleep(_FILE_WAIT_S)
            uploaded = await self._reply(_File, self._sdk.files.with_raw_response.retrieve(uploaded.id))
        if uploaded.status == "error":
            raise RequestFailedError(f"the provider cannot read the uploaded file {uploaded.id}")
        return uploaded.id

    async def create(self, file_id: str, name: str) -> BatchReport:
        """Start a job; ``name`` is our own, to find it by."""
        creation = self._sdk.batches.with_raw_response.create(
            input_file_id=file_id,
            endpoint=cast(Any, self.url),  # Azure's are not among the SDK's literals
            completion_window="24h",
            metadata={_NAME: name},
        )
        return await self._reply(BatchReport, creation)

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
            after = page.data[-1].id

    async def report(self, batch_id: str) -> BatchReport:
        """Return the state of a job."""
        return await self._reply(BatchReport, self._sdk.batches.with_raw_response.retrieve(batch_id))

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to stop a job."""
        with sdk_failures(self.service.secrets):
            await self._sdk.batches.with_raw_response.cancel(batch_id)

    async def download(self, file_id: str, path: Path) -> None:
        """Append a file of results to the one at ``path``, piece by piece."""
        import httpx2

        try:
            with sdk_failures(self.service.secrets):
                async with self._sdk.files.with_streaming_response.content(file_id) as response:
                    async for chunk in response.iter_bytes(_CHUNK_BYTES):
                        await asyncio.to_thread(_append, path, chunk)
        except httpx2.HTTPError as error:
            raise RequestFailedError(one_line(str(error), self.service.secrets)) from error

    async def delete(self, file_id: str) -> None:
        """Delete a file at the provider."""
        with sdk_failures(self.service.secrets):
            await self._sdk.files.with_raw_response.delete(file_id)

    async def close(self) -> None:
        """Close the connection pool."""
        await self._pools.close()

    @property
    def _sdk(self) -> AsyncOpenAI:
        return self._pools.here().sdk

    async def _list(self, limit: int, after: str | None = None) -> _Page:
        query: Mapping[str, object] = {"limit": limit} | ({} if after is None else {"after": after})
        return await self._reply(_Page, self._sdk.batches.with_raw_response.list(extra_query=query))

    async def _reply(self, kind: type[Part], call: Awaitable[Any]) -> Part:
        with sdk_failures(self.service.secrets):
            response = await call
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            start = one_line(response.content[:200].decode(errors="replace"), self.service.secrets)
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
