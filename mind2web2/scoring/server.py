"""A ``Scorer`` over HTTP, for programs in other processes."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
)
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from types import FrameType
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from mind2web2.errors import AnswerError, UsageError
from mind2web2.llm_client.structured_output import InvalidOutputError, unambiguous_json
from mind2web2.scoring.scorer import CLOSED, NoScore, Score, Scorer
from mind2web2.utils.aio import end_all
from mind2web2.utils.json_text import mapping

MAX_BODY_BYTES = 64 * 1024**2
# The limit for all requests that are not answered yet.
MAX_BODIES_BYTES = 4 * MAX_BODY_BYTES
# A larger one is parsed beside the event loop.
_SMALL_BODY_BYTES = 1024**2
# The limit of one call to /scores.
MAX_ANSWERS = 1000
HEAD_TIMEOUT_S = 10.0
BODY_TIMEOUT_S = 30.0
# For the replies to calls that the stop has cut off.
_REPLY_GRACE_S = 30
_CLIENT_GONE = 499

Value = TypeVar("Value")


class _Reply(JSONResponse):
    def render(self, content: object) -> bytes:
        """Return JSON in ASCII: a script may return half a surrogate pair, which is not UTF-8."""
        return json.dumps(content, separators=(",", ":")).encode()


def application(scorer: Scorer, token: str | None = None) -> Starlette:
    """Return the web application; every request but ``/health`` needs the token, if there is one.

    Without a token, only requests that name this machine are answered: a page of another site may
    reach the server under a name of its own that it lets lead here.
    """
    bodies = _Bodies()

    async def score(request: Request) -> Response:
        async with bodies.read(request) as body:
            work = _outcome(scorer, *_call(body))
            outcome = await _unless_gone(request, work)
        return _Reply(_as_json(outcome), 503 if isinstance(outcome, NoScore) else 200)

    async def scores(request: Request) -> Response:
        async with bodies.read(request) as body:
            _check_keys(body, "answers")
            answers = body.get("answers")
            if not isinstance(answers, list):
                raise HTTPException(400, "'answers' is missing or no list")
            if len(answers) > MAX_ANSWERS:
                raise HTTPException(413, f"{len(answers):,} answers: send {MAX_ANSWERS:,} at most")
            work = asyncio.gather(*(one(entry) for entry in answers))
            outcomes = await _unless_gone(request, work)
        return _Reply({"outcomes": outcomes})

    async def one(entry: object) -> dict[str, Any]:
        try:
            return _as_json(await _outcome(scorer, *_call(entry)))
        except HTTPException as error:
            return {"error": error.detail}

    async def health(request: Request) -> Response:
        _check_host(request, token)
        if scorer.is_open:
            return _Reply({"status": "ok"})
        return _Reply({"status": "stopping"}, 503)

    def guarded(
        handle: Callable[[Request], Awaitable[Response]],
    ) -> Callable[..., Awaitable[Response]]:
        async def handled(request: Request) -> Response:
            _check_host(request, token)
            _check_sender(request, token)
            return await handle(request)

        return handled

    return Starlette(
        routes=[
            Route("/score", guarded(score), methods=["POST"]),
            Route("/scores", guarded(scores), methods=["POST"]),
            Route("/health", health),
        ],
        exception_handlers={HTTPException: _refusal},
    )


def _check_host(request: Request, token: str | None) -> None:
    """Refuse a Host that is neither an address nor this machine's own name for itself."""
    if token is None and not _is_own_name(request.headers.get("host", "")):
        raise HTTPException(
            421, "this server answers under 127.0.0.1 and localhost, or with a token under any name"
        )


def _is_own_name(host: str) -> bool:
    if not host.isascii():
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


def serve(
    scorer: Scorer, listener: socket.socket, token: str | None, stop_timeout_s: float
) -> None:
    """Serve until Ctrl-C or SIGTERM; a second one does not wait for the calls in flight.

    Args:
        stop_timeout_s: for the calls in flight; the rest is answered as closed.
    """
    config = uvicorn.Config(
        application(scorer, token),
        http=TimedProtocol,
        log_level="warning",
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=round(stop_timeout_s) + _REPLY_GRACE_S,
    )
    _Server(config, scorer, stop_timeout_s).run(sockets=[listener])


class TimedProtocol(H11Protocol):
    """Closes a connection on which the head of a request is not complete in time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._wait_for_head()

    def shutdown(self) -> None:
        """Close the connection, after the reply to a call in flight, which says so."""
        if self._has_request:
            headers = self.cycle.scope["headers"]
            self.cycle.scope["headers"] = [*headers, (b"connection", b"close")]
        super().shutdown()

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        if self._timer is None and not self._has_request:
            self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self._close_if_late, self.cycle)

    def _close_if_late(self, before: object) -> None:
        self._timer = None
        if self.transport.is_closing() or self._has_request:
            return
        if self.cycle is before:
            self.transport.close()
        else:
            self._wait_for_head()


class _Server(uvicorn.Server):
    """Closes the scorer some time after the stop, so that each call gets a reply."""

    def __init__(self, config: uvicorn.Config, scorer: Scorer, stop_timeout_s: float) -> None:
        super().__init__(config)
        self._scorer = scorer
        self._stop_timeout_s = stop_timeout_s

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more calls, and end when those in flight are answered."""

        async def close_later() -> None:
            await asyncio.sleep(self._stop_timeout_s)
            await self._scorer.aclose()

        closing = asyncio.create_task(close_later())
        await super().shutdown(sockets)
        await end_all([closing])

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at signals, without raising them again once the server has stopped."""
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 (as the base class has it)
        """Begin to stop; the second time, wait for nothing."""
        self.force_exit = self.should_exit
        self.should_exit = True


def _check_sender(request: Request, token: str | None) -> None:
    if "origin" in request.headers:
        # A page of any site could spend the user's dollars; programs send no Origin.
        raise HTTPException(403, "requests of web pages are refused")
    key = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token is not None and not secrets.compare_digest(key.encode(), token.encode()):
        raise HTTPException(401, "give the server's token: Authorization: Bearer TOKEN")


class _Bodies:
    """Reads the bodies of requests; all that are in work together have a bound."""

    def __init__(self) -> None:
        self._bytes = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[Mapping[str, Any]]:
        """Yield a body's object, which counts until its request is answered.

        Raises:
            HTTPException: it is too large, or no JSON object; the reply's status and reason.
        """
        content = bytearray()
        try:
            try:
                async with asyncio.timeout(BODY_TIMEOUT_S):
                    await self._receive(request, content)
            except TimeoutError as error:
                seconds = f"{BODY_TIMEOUT_S:g} s"
                raise HTTPException(408, f"the body did not come within {seconds}") from error
            if len(content) > _SMALL_BODY_BYTES:
                yield await asyncio.to_thread(_json_object, content)
            else:
                yield _json_object(content)
        finally:
            self._bytes -= len(content)

    async def _receive(self, request: Request, content: bytearray) -> None:
        async for piece in request.stream():
            content += piece
            self._bytes += len(piece)
            if len(content) > MAX_BODY_BYTES:
                raise HTTPException(
                    413,
                    f"the body is over {MAX_BODY_BYTES // 1024**2} MB: send fewer answers at once",
                )
            if self._bytes > MAX_BODIES_BYTES:
                raise HTTPException(
                    429,
                    "the server has too many large requests in work: try again",
                    {"Retry-After": "5"},
                )


def _json_object(content: bytearray) -> Mapping[str, Any]:
    try:
        body = unambiguous_json(content.decode("utf-8-sig"))
    except InvalidOutputError as error:
        raise HTTPException(400, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON, uncompressed: {error}") from error
    if not isinstance(body, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return body


def _check_keys(body: Mapping[str, Any], *known: str) -> None:
    if unknown := sorted(body.keys() - set(known)):
        listed = " and ".join(map(repr, known))
        raise HTTPException(400, f"unknown key {unknown[0][:100]!r}: give {listed}")


def _call(entry: object) -> tuple[str, str]:
    fields = mapping(entry)
    _check_keys(fields, "task", "answer")
    for name in ("task", "answer"):
        if not isinstance(fields.get(name), str):
            raise HTTPException(400, f"'{name}' is missing or no text")
    return fields["task"], fields["answer"]


async def _outcome(scorer: Scorer, task: str, answer: str) -> Score | NoScore:
    try:
        return await scorer.score(task, answer)
    except (UsageError, AnswerError) as error:
        if not scorer.is_open:
            return CLOSED
        raise HTTPException(400, " ".join(str(error).split())) from error


async def _unless_gone(request: Request, work: Awaitable[Value]) -> Value:
    """Return the result of the work, which is cancelled if the client goes away.

    Raises:
        HTTPException: it has gone away.
    """
    working = asyncio.ensure_future(work)
    # The body has been read: only the end of the connection is left to receive.
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(_CLIENT_GONE, "the client has gone away")
        return working.result()
    finally:
        await end_all([working, leaving])


def _as_json(outcome: Score | NoScore) -> dict[str, Any]:
    if isinstance(outcome, NoScore):
        return {"kind": outcome.kind, "reason": outcome.reason}
    return {
        "score": outcome.score,
        "tree": outcome.tree,
        "evidence": outcome.evidence,
        "cost_usd": outcome.cost_usd,
    }


def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _Reply({"error": error.detail}, error.status_code, headers=error.headers)
