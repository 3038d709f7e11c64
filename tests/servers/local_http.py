"""An HTTP server on loopback that answers as a function says.

with LocalHttp(lambda request: Answer(b"hello")) as server:
    ... server.url + "/path" ... server.requests
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """A response; ``promised_bytes`` above the body's length cuts it short."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    promised_bytes: int | None = None
    drops: bool = False


class LocalHttp:
    """Serves ``answer`` on a free port of loopback while its ``with`` block runs.

    It keeps the requests.
    """

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """Where the server is, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@dataclass
class Service:
    """A web service; ``faults`` are answered first, one a request, then what a subclass answers."""

    faults: list[Answer] = field(default_factory=list)

    def serve(self) -> LocalHttp:
        """Return the server, to be used in a ``with`` block."""
        return LocalHttp(
            lambda request: self.faults.pop(0) if self.faults else self.answer(request)
        )

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        raise NotImplementedError


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = dict(parse_qsl(parts.query))
        request = Request(self.command, parts.path, query, dict(self.headers), body)
        owner = self.server.owner
        owner.requests.append(request)
        answer = owner.answer(request)
        # One request a connection: nothing is left open when a test ends.
        self.close_connection = True
        if answer.drops:
            return
        self.send_response(answer.status)
        length = len(answer.body) if answer.promised_bytes is None else answer.promised_bytes
        headers = {
            "Content-Length": str(length),
            "Connection": "close",
        } | answer.headers
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_POST = do_HEAD = do_GET  # noqa: N815 (names that the base class looks for)

    def handle(self) -> None:
        """Answer; a client that hangs up early is its own business."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Keep quiet."""
