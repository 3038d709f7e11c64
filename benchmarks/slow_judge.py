"""A judge of fixed latency, in a process of its own, cheaper than a usual server.

Measuring a client at hundreds of requests a second on two cores leaves little for the server: this
one reads no more of a request than where it ends, and answers all of them alike.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import TracebackType
from typing import Self

VERDICT = {
    "reasoning": "The page says so in its second paragraph, in the words of the claim.",
    "result": True,
}
_HEAD_END = b"\r\n\r\n"


def completion() -> bytes:
    """Return the whole HTTP response that every request gets."""
    message = {"role": "assistant", "content": json.dumps(VERDICT), "refusal": None}
    body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": "o4-mini-2025-04-16",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": 2000,
                "completion_tokens": 60,
                "total_tokens": 2060,
                "prompt_tokens_details": {"cached_tokens": 1024},
            },
        }
    ).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


class _Connection(asyncio.Protocol):
    """Answers each request of a connection after the latency."""

    def __init__(self, latency_s: float, answer: bytes) -> None:
        self._latency_s = latency_s
        self._answer = answer
        self._head = b""
        self._body_left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, received: bytes) -> None:
        # Clients send a request only when the one before has been answered.
        if self._body_left == 0:
            self._head += received
            head, found, received = self._head.partition(_HEAD_END)
            if not found:
                return
            self._head = b""
            lengths = [
                line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            ]
            if not lengths:
                # The run asks for the list of models first.
                self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                return
            self._body_left = int(lengths[0].partition(b":")[2])
        self._body_left -= len(received)
        if self._body_left == 0:
            asyncio.get_running_loop().call_later(self._latency_s, self._reply)

    def _reply(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._answer)


class SlowJudge:
    """Runs the server while its ``with`` block runs.

    Args:
        latency_s: from the end of a request to its answer.
    """

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._latency_s)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.base_url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


async def serve(latency_s: float) -> None:
    """Serve for ever, and print the port first."""
    answer = completion()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(latency_s, answer), "127.0.0.1", 0, backlog=1024
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
