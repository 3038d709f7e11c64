"""A pool of servers that serve one model: each request goes to the one that will answer it first.

Each server has a rate limiter of its own, which also stops its requests while it is down, and
probes it. Learned capabilities (images, forms of structured output) belong to the pool, as all
serve the same model.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mind2web2.errors import JudgeAccessError, JudgeUnusableError, UsageError
from mind2web2.llm_client.chat import Limit, Retries, Slowdown
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.judge_errors import Service
from mind2web2.llm_client.openai_protocol import OpenAITransport, openai_connection
from mind2web2.llm_client.provider import AsyncProviderClient
from mind2web2.llm_client.rate_limiter import RateLimiter, Sent
from mind2web2.llm_client.retries import Attempts, RetryPolicy
from mind2web2.llm_client.transport import Completion, Transport, WireRequest
from mind2web2.plugins.pool.source import POOL_ENDPOINT, PoolServer, ServerList

log = logging.getLogger(__name__)

_READ_EVERY_S = 15.0
# A server that rejects the key or the model is asked again after so long.
_REJECTED_FOR_S = 300.0
# Another server may accept the request.
_REJECTIONS = (401, 402, 403, 404)
_MAX_MODELS = 5


class _Server:
    """One server of a pool: its connections, rate limiter and state."""

    def __init__(self, listed: PoolServer, slowdown: Slowdown, retry: RetryPolicy) -> None:
        self.listed = listed
        self.transport = OpenAITransport(
            openai_connection(listed.base_url, key_name=listed.key_name)
        )
        self.address = self.transport.service.address
        name = f"Judge server {self.address}"
        self.limiter = RateLimiter(
            slowdown, retry.total_s, retry.outage_wait_s, name, "it is left out"
        )
        # Requests in flight, the oldest first.
        self.running: dict[Sent, None] = {}
        self.replies = 0
        self.rejection: RequestFailedError | None = None
        self._rejected_until_s = -math.inf
        # ``None`` until it was asked for the list.
        self._models: list[str] | None = None
        self._listing = asyncio.Lock()

    @property
    def is_out(self) -> bool:
        """Tell whether only single requests probe the server."""
        return self.rejection is not None or self.limiter.is_closed

    def opens_at_s(self, now_s: float) -> float:
        """Return when the next request may be sent; infinity if another must end first."""
        if self.is_out and self.running:
            return math.inf
        return max(self._rejected_until_s, self.limiter.opens_at_s(now_s))

    def needed_s(self, now_s: float, usual_latency_s: float) -> float:
        """Return how long the server needs for its requests and one more, by its latest replies."""
        oldest = next(iter(self.running), None)
        latency_s = max(
            self.limiter.latency_s or usual_latency_s,
            0.0 if oldest is None else now_s - oldest.at_s,
        )
        return (len(self.running) + 1) * latency_s / self.listed.weight

    def succeeded(self, sent: Sent, completion: Completion) -> None:
        """Learn from a reply."""
        self.replies += 1
        self.rejection, self._rejected_until_s = None, -math.inf
        self.limiter.succeeded(sent, completion)

    def failed(self, sent: Sent, failure: RequestFailedError, question: object) -> None:
        """Learn from a failure."""
        is_rejection = failure.is_for_all or failure.status == 404
        if is_rejection or failure.is_unreachable:
            # It may serve another model when it is back.
            self._models = None
        if not is_rejection:
            self.limiter.failed(sent, failure, question, is_down=failure.can_pass)
            return
        if self.rejection is None:
            log.warning("Judge server %s is left out: %s", self.address, failure)
        self.rejection = failure
        self._rejected_until_s = asyncio.get_running_loop().time() + _REJECTED_FOR_S

    async def check(self, source: ServerList) -> None:
        """Check that the server serves the pool's model, if the server lists its models.

        Raises:
            RequestFailedError: it serves others, or cannot be reached.
        """
        if self._models is None:
            async with self._listing:
                if self._models is None:
                    self._models = await self._listed_models()
        if self._models and not any(map(source.serves, self._models)):
            served = ", ".join(self._models[:_MAX_MODELS])
            raise RequestFailedError(f"it serves {served}, not {source.model}", status=404)

    async def _listed_models(self) -> list[str]:
        try:
            return await self.transport.models()
        except RequestFailedError as failure:
            if not failure.is_sent:
                raise
            return []


class PoolClient(AsyncProviderClient):
    """A judge behind a pool of servers.

    Args:
        source: the servers; a file is read again while requests are sent.
    """

    def __init__(self, source: ServerList, retry: RetryPolicy) -> None:
        slowdown = Slowdown()
        self.servers = [_Server(listed, slowdown, retry) for listed in source.servers]
        super().__init__(self.servers[0].transport, retry)
        self.slowdown = slowdown
        self.source = source
        self._removed: list[_Server] = []
        self._turn = asyncio.Lock()
        self.changed = asyncio.Event()
        self._read_at_s = math.inf if source.file is None else 0.0
        self._problem = ""

    @property
    def endpoint(self) -> str:
        """Return the name of all pools, so that judgments do not depend on the servers."""
        return POOL_ENDPOINT

    async def _connection_failure(self) -> RequestFailedError | None:
        """Return a failure if no server can be reached, and log those that cannot.

        Raises:
            JudgeUnusableError: a server serves another model.
        """
        servers = self.servers
        checks = [server.check(self.source) for server in servers]
        results = await asyncio.gather(*checks, return_exceptions=True)
        unreachable: dict[str, str] = {}
        for server, failure in zip(servers, results, strict=True):
            if isinstance(failure, RequestFailedError) and failure.is_sent:
                raise JudgeUnusableError(
                    f"the servers of a judge pool must serve the same model, {self.source.model}: "
                    f"{server.address}: {failure.text}"
                ) from failure
            if isinstance(failure, RequestFailedError):
                unreachable[server.address] = str(failure).removeprefix("connection error: ")
            elif failure is not None:
                raise failure
        reasons = "; ".join(f"{address}: {reason}" for address, reason in unreachable.items())
        if len(unreachable) == len(servers):
            # The message begins with the first server's address.
            return RequestFailedError(
                reasons.removeprefix(f"{servers[0].address}: "), is_sent=False
            )
        if unreachable:
            log.warning("Judge servers out of reach, asked again during the run: %s", reasons)
        return None

    def _route(self, model: str, limit: Limit | None) -> tuple[Transport, Attempts]:
        if model != self.source.model:
            # A server that takes any name would answer as another model than the judgment says.
            raise JudgeUnusableError(f"the judge pool serves {self.source.model}, not {model}")
        route = _Route(self)
        return route, _PoolAttempts(self._retry, limit, route, self.retries)

    def check_served(self, address: str, served: str | None) -> None:
        """Check the model that a server names in a reply, if it names one.

        Raises:
            JudgeAccessError: it is another one, so that the reply is not the judge's.
        """
        if served is None or self.source.serves(served):
            return
        model = self.source.model
        raise JudgeAccessError(
            f"judge server {address} answers as {served}, not {model}: leave the server out, or "
            "say with "
            f'judge_alias = "{model}={served}" in mind2web2.toml that both names mean one model',
            is_for_all=True,
        )

    async def next_server(self, failed: Collection[_Server]) -> _Server:
        """Wait for a server that takes a request now; the requests are served in order of arrival.

        Args:
            failed: servers that have failed this question; only used if no other one is free.

        Raises:
            RequestFailedError: all servers have failed for too long, or reject all requests.
        """
        loop = asyncio.get_running_loop()
        async with self._turn:
            while True:
                await self._read_again(loop.time())
                now_s = loop.time()
                free: list[_Server] = []
                next_at_s = self._read_at_s
                for server in self.servers:
                    opens_at_s = server.opens_at_s(now_s)
                    next_at_s = min(next_at_s, opens_at_s)
                    if opens_at_s <= now_s:
                        free.append(server)
                if free:
                    others = [server for server in free if server not in failed]
                    return self._first_to_answer(others or free, now_s)
                # A probe in flight may succeed, unless a failure of the same answer's others
                # cancels it.
                is_asking = any(server.running for server in self.servers)
                if self.has_given_up() and not is_asking:
                    raise self._failure()
                await self._wait_until(next_at_s)
                self.slowdown.waited_s += loop.time() - now_s

    def _first_to_answer(self, servers: list[_Server], now_s: float) -> _Server:
        # A server without a reply is taken for as fast as the others.
        latencies_s = [server.limiter.latency_s for server in self.servers]
        usual_s = min(filter(None, latencies_s), default=1.0)
        return min(servers, key=lambda server: server.needed_s(now_s, usual_s))

    async def _wait_until(self, at_s: float) -> None:
        self.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(at_s if at_s < math.inf else None):
                await self.changed.wait()

    def has_given_up(self, wait_s: float = 0.0) -> bool:
        """Tell whether each server is given up.

        A server is given up if it rejects all requests, or will have failed for too long after this
        wait.
        """
        return all(
            server.rejection is not None or server.limiter.has_given_up(wait_s)
            for server in self.servers
        )

    @property
    def is_out(self) -> bool:
        """Tell whether every server is left out."""
        return all(server.is_out for server in self.servers)

    def _failure(self) -> RequestFailedError:
        for server in self.servers:
            if server.rejection is None:
                return server.limiter.failure
        rejections = [server.rejection for server in self.servers if server.rejection]
        return rejections[0]

    async def _read_again(self, now_s: float) -> None:
        """Read the file if it is time; a faulty file changes nothing."""
        if now_s < self._read_at_s:
            return
        self._read_at_s = now_s + _READ_EVERY_S
        known = {server.listed: server for server in self.servers}
        try:
            listed = await asyncio.to_thread(self.source.read)
            servers = []
            for one in listed:
                server = known.pop(one, None)
                servers.append(server or _Server(one, self.slowdown, self._retry))
        except UsageError as error:
            if str(error) != self._problem:
                log.warning("The judge pool keeps its servers: %s", error)
            self._problem = str(error)
            return
        self._problem = ""
        before = [server.listed for server in self.servers]
        after = [server.listed for server in servers]
        if after != before:
            addresses = ", ".join(server.address for server in servers)
            log.info("judge pool: %s", addresses)
        self.servers = servers
        self._removed += known.values()

    def limiters(self) -> dict[str, RateLimiter]:
        """Return the rate limiter of each server."""
        return {server.address: server.limiter for server in self.servers}

    async def close(self) -> None:
        """Close all connection pools."""
        for server in [*self.servers, *self._removed]:
            log.info("judge server %s gave %d replies", server.address, server.replies)
            await server.transport.close()


class _Route:
    """The way of one question's requests.

    It chooses a server for each request, and is the request's limiter and transport.
    """

    modes = OpenAITransport.modes

    def __init__(self, pool: PoolClient) -> None:
        self._pool = pool
        self._server = pool.servers[0]
        self._failed: set[_Server] = set()

    @property
    def others(self) -> int:
        """Return the number of servers that have not failed this question."""
        return len(set(self._pool.servers) - self._failed)

    @property
    def service(self) -> Service:
        """Return the server that the latest request went to."""
        return self._server.transport.service

    def is_outage(self, failure: RequestFailedError, since_s: float) -> bool:
        """Tell whether a failure is this server's own."""
        return self._server.limiter.is_outage(failure, since_s)

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Sent]:
        """Wait until a server takes a request."""
        self._server = server = await self._pool.next_server(self._failed)
        async with server.limiter.passing() as sent:
            server.running[sent] = None
            try:
                yield sent
            finally:
                del server.running[sent]
                self._pool.changed.set()

    def succeeded(self, sent: Sent, completion: Completion) -> None:
        """Learn from a reply."""
        self._server.succeeded(sent, completion)

    def failed(self, sent: Sent, failure: RequestFailedError, question: object) -> None:
        """Learn from a failure."""
        self._failed.add(self._server)
        was_out = self._pool.is_out
        self._server.failed(sent, failure, question)
        if self._pool.is_out and not was_out:
            log.warning("No judge server is left, all requests wait")

    def has_given_up(self, wait_s: float) -> bool:
        """Tell whether no server is left that may answer."""
        return self._pool.has_given_up(wait_s)

    @property
    def is_left_out(self) -> bool:
        """Tell whether the latest server rejects all requests, and another one may answer."""
        return self._server.rejection is not None and not self._pool.has_given_up()

    async def send(self, wire: WireRequest) -> Completion:
        """Make one HTTP request to the server that was chosen."""
        server = self._server
        await server.check(self._pool.source)
        completion = await server.transport.send(wire)
        self._pool.check_served(server.address, completion.served_model)
        return completion

    async def models(self) -> list[str]:
        """Return the models of the server that was chosen."""
        return await self._server.transport.models()

    async def close(self) -> None:
        """Leave the connections open: they are the pool's."""


class _PoolAttempts(Attempts):
    """Asks the other servers at once after a failure, then retries as usual.

    It asks them only if the failure may be a server's own.
    """

    def __init__(
        self, policy: RetryPolicy, limit: Limit | None, route: _Route, retries: Retries
    ) -> None:
        super().__init__(policy, limit, route, retries)
        self._route = route

    async def send(self, request: Callable[[], Awaitable[Completion]]) -> Completion:
        """Return the completion.

        The last ``RequestFailedError`` is raised when no server gives one.
        """
        for _ in range(self._route.others - 1):
            try:
                return await self._send_once(request)
            except RequestFailedError as failure:
                if not (failure.can_pass or failure.is_for_all or failure.status in _REJECTIONS):
                    raise
                self._retries.note(failure.kind)
        while True:
            try:
                return await super().send(request)
            except RequestFailedError as failure:
                if failure.can_pass or not self._route.is_left_out:
                    raise
                self._retries.note(failure.kind)


@dataclass(frozen=True, slots=True)
class PoolSource(ServerList):
    """The servers of a pool, as a judge has them in place of its base URL."""

    def client(self, retry: RetryPolicy) -> PoolClient:
        """Return what asks the servers."""
        return PoolClient(self, retry)
