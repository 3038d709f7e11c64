"""A judge on loopback that misbehaves by a plan: chat completions over real HTTP.

with FaultyJudge(RecordedReplies()) as judge:
    visit = judge.expect("key-1", plan)
    client = LLMClient("openai", is_async=True, base_url=judge.base_url, api_key="key-1")

Each key has a plan and a count of its own, so that a request of one run that arrives late is not
counted with the next run's.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

from servers.faulty_replies import (
    HARMLESS,
    TOO_FAST,
    Fault,
    Reply,
    Words,
    falsified,
    reply_to,
)
from servers.recorded_replies import Question, RecordedReplies, question_in

_BETWEEN_PIECES_S = 0.004
_BETWEEN_BLANKS_S = 0.02

# The fault of a request, by its number from 0, its question, and how often that was asked before.
Plan = Callable[[int, Question, int], Fault | None]


def no_faults(_number: int, _question: Question, _asked_before: int) -> None:
    """Let everything go well."""


def key_refused(_number: int, _question: Question, _asked_before: int) -> Fault:
    """Know no such key."""
    return Fault.KEY_REVOKED


@dataclass
class Visit:
    """The faults planned for one key, with its requests and replies.

    Args:
        asked: how often each question.
        let_in: likewise, without those refused for coming too fast.
        answered: good replies that were sent whole.
    """

    plan: Plan
    requests: int = 0
    answered: int = 0
    asked: Counter[Question] = field(default_factory=Counter)
    let_in: Counter[Question] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)

    def next_fault(self, question: Question) -> Fault | None:
        """Count a request and return what is to be wrong with its reply."""
        fault = self.plan(self.requests, question, self.asked[question])
        self.requests += 1
        self.asked[question] += 1
        self.let_in[question] += fault not in TOO_FAST
        if fault is not None:
            self.faults[fault] += 1
        return fault


class FaultyJudge:
    """Serves from a thread with an event loop of its own while the ``with`` block runs.

    Args:
        replies: what a healthy judge says.
        of_unknown: said where nothing is recorded, as when a claim is judged that would have been
            skipped.
    """

    def __init__(
        self,
        replies: RecordedReplies,
        *,
        of_unknown: str = '{"reasoning": "nobody read this", "result": false}',
    ) -> None:
        self._replies = replies
        self._of_unknown = of_unknown
        self._visits: dict[str, Visit] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        """Return the address to give as OpenAI's base URL."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def expect(self, key: str, plan: Plan = no_faults) -> Visit:
        """Misbehave by a plan towards whoever comes with this key; any other key is refused."""
        visit = self._visits[key] = Visit(plan)
        return visit

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=512)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            # A client goes away when it likes.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request and tell whether the connection goes on."""
        headers = _headers(await reader.readuntil(b"\r\n\r\n"))
        if "content-length" not in headers:
            # GET /models, by which a run checks that the server can be reached.
            await _send(writer, Reply(b'{"object": "list", "data": []}'))
            return True
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        visit = self._visits.get(
            headers["authorization"].removeprefix("Bearer "), Visit(key_refused)
        )
        question = question_in(body)
        fault = visit.next_fault(question)
        if fault is Fault.ENDLESS_DRIP:
            await _drip(reader, writer)
            return False
        reply = reply_to(self._words(body, question), fault)
        await _send(writer, reply)
        visit.answered += fault is None or fault in HARMLESS
        if reply.ends == "hang" and await reader.read(1):
            # The client gave up, but not the connection: the next reply it reads belongs to this
            # question.
            await _send(writer, replace(reply, share=1))
            await reader.read()
        if reply.ends == "reset":
            _reset(writer)
        return reply.ends == "keep" and reply.tells_length

    def _words(self, body: dict[str, Any], question: Question) -> Words:
        true = self._replies.to(question, self._of_unknown)
        false = json.dumps(falsified(json.loads(true)), ensure_ascii=False)
        return Words(body["model"], true, false)


def _headers(head: bytes) -> dict[str, str]:
    lines = [line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:]]
    return {name.lower(): value.strip() for name, _, value in lines}


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> None:
    if not reply.share:
        return
    writer.write(_head(reply))
    body = reply.body[: math.ceil(len(reply.body) * reply.share)]
    size = math.ceil(len(body) / reply.pieces)
    for start in range(0, len(body), size):
        if start:
            await asyncio.sleep(_BETWEEN_PIECES_S)
        writer.write(body[start : start + size])
        await writer.drain()


def _head(reply: Reply) -> bytes:
    headers = {"Content-Type": "application/json", **reply.headers}
    if reply.tells_length:
        headers["Content-Length"] = str(len(reply.body))
    else:
        headers["Connection"] = "close"
    lines = [
        f"HTTP/1.1 {reply.status} -",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send blanks, which may stand before JSON, until the client gives up."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    while not reader.at_eof():
        writer.write(b" ")
        await writer.drain()
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1), _BETWEEN_BLANKS_S)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Make the end of the connection an error for the other side."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
