"""A judge that is asked in batch jobs, and answers as the same judge asked directly would."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial

from mind2web2.judge.batch.endpoints import read_line
from mind2web2.judge.batch.jobs import BatchJobs, TokensWaitingError
from mind2web2.llm_client.chat import Completion, Limit, WireRequest
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.openai_protocol import OpenAITransport, request_body
from mind2web2.llm_client.provider import AsyncProviderClient, Sending
from mind2web2.llm_client.retry import Retries, RetryPolicy

log = logging.getLogger(__name__)

# How many jobs a question goes out with at most, when each brings an error that can pass or nothing.
_MOST_ROUNDS = 4


class BatchTransport:
    """Sends each request with a batch job.

    Args:
        jobs: entered by whoever asks.
    """

    modes = OpenAITransport.modes

    def __init__(self, jobs: BatchJobs) -> None:
        self._jobs = jobs
        self.service = jobs.endpoints.service

    async def send(self, wire: WireRequest) -> Completion:
        """Return what one request brought, with the first job that its provider takes on."""
        while True:
            try:
                line = await self._jobs.line(wire.name, partial(request_body, wire))
            except TokensWaitingError:
                continue
            return read_line(line, self.service.secrets)

    async def models(self) -> list[str]:
        """Return nothing: batch jobs check the server themselves."""
        return []

    async def close(self) -> None:
        """Leave the jobs to whoever entered them."""


class _Rounds:
    """Sends each request at once, and with another job where an error can pass.

    What waits in a job is not under way at the server, and keeps no pace.
    """

    def __init__(self, limit: Limit | None, retries: Retries) -> None:
        self.made = 0
        self._limit: Limit = nullcontext() if limit is None else limit
        self._retries = retries

    async def send(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return what the request brought."""
        for _ in range(_MOST_ROUNDS - 1):
            try:
                return await self._one_round(request)
            except RequestFailedError as failure:
                if not failure.can_pass:
                    raise
                log.info("asked again in another batch reason=%s", failure)
                self._retries.note(failure.kind)
        return await self._one_round(request)

    async def _one_round(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        async with self._limit:
            try:
                completion = await request()
            except RequestFailedError:
                self.made += 1
                raise
            # Who is stopped meanwhile has made none: the run that fetches the reply counts it.
            self.made += 1
            return completion


class BatchClient(AsyncProviderClient):
    """A judge behind batch jobs.

    Args:
        jobs: entered while it is asked.
    """

    def __init__(self, jobs: BatchJobs) -> None:
        # One that goes alone would take a batch job of its own.
        super().__init__(BatchTransport(jobs), RetryPolicy(), one_by_one=False)

    def _attempts(self, model: str, limit: Limit | None) -> Sending:  # noqa: ARG002 (all are sent alike)
        return _Rounds(limit, self.retries)
