"""A web server for folders ``<root>/<host>/<path>``: HTTP and HTTPS on one port.

    with SiteServer() as server:
        NetworkSettings(host_map=server.host_map, trusted_keys=(server.spki,))

The first byte tells whether a client speaks TLS, so that a host can be mapped to the server
whatever port it is asked for. Tests build on it: a subclass overrides ``reply``.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SITE = Path(__file__).resolve().parent / "site"
ADDRESS = "127.0.0.1"
TLS_HANDSHAKE = b"\x16"
IDLE_TIMEOUT_S = 60.0


class DropConnection(Exception):  # noqa: N818 (an order, not an error)
    """A reply, or its body while it is sent, raises this to cut the connection there."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a page; ``path`` is as sent, without the query."""

    method: str
    scheme: str
    host: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; a body in pieces is sent as it comes and ends with the connection."""

    body: bytes | Iterator[bytes] = b""
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate.

    ``spki`` is the base64 SHA-256 of its public key, as Chromium takes it.
    """

    context: ssl.SSLContext
    spki: str


@cache
def certificate() -> Certificate:
    """Return the certificate of this process's servers.

    A client that trusts the key ignores the names.
    """
    issued = trustme.CA().issue_cert("localhost", ADDRESS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    public_key = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes()).public_key()
    spki = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return Certificate(context, base64.b64encode(hashlib.sha256(spki).digest()).decode())


class SiteServer:
    """Serves a folder of sites while its ``with`` block runs, and keeps the requests.

    Args:
        root: with a folder for each host.
        port: of loopback; 0 takes a free one.
        more_hosts: host names besides those with a folder.
    """

    def __init__(self, root: Path = SITE, port: int = 0, more_hosts: tuple[str, ...] = ()) -> None:
        self.root = root
        self.requests: list[Request] = []
        self._hosts = [*_folder_hosts(root), *more_hosts]
        self._certificate = certificate()
        self._stopping = threading.Event()
        self._server = _Listener((ADDRESS, port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def port(self) -> int:
        """The one port of HTTP and HTTPS."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Where the server is without any mapped host, without a slash at the end."""
        return f"http://{ADDRESS}:{self.port}"

    @property
    def spki(self) -> str:
        """The public key to be trusted: base64 SHA-256 of its SPKI."""
        return self._certificate.spki

    @property
    def host_map(self) -> dict[str, tuple[str, int]]:
        """Where each host is found, as ``NetworkSettings`` takes it; ``www.`` may be left out."""
        bare = [host.removeprefix("www.") for host in self._hosts]
        return dict.fromkeys([*self._hosts, *bare], (ADDRESS, self.port))

    def hits(self, path: str) -> int:
        """Return how often a path was asked for, whatever the host and query."""
        return sum(request.path == path for request in list(self.requests))

    def reply(self, request: Request) -> Reply:
        """Return the file behind an address, a folder's ``index.html``, or 404."""
        file = site_file(self.root, request.host, request.path)
        if file is None:
            # Nothing to look at: such a page cannot be had, and is not one that says "not found".
            return Reply(status=404)
        kind, _ = mimetypes.guess_type(file.name)
        charset = "; charset=utf-8" if kind in ("text/html", "text/css", "text/javascript") else ""
        return Reply(file.read_bytes(), (kind or "application/octet-stream") + charset)

    def pause(self, seconds: float) -> None:
        """Wait within a reply; the connection is dropped when the server stops meanwhile."""
        if self._stopping.wait(seconds):
            raise DropConnection

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._stopping.set()
        self._server.drop_all()
        self._thread.join()
        self._server.server_close()

    def wrapped(self, connection: socket.socket) -> socket.socket:
        """Return a new connection ready for HTTP, behind TLS if the client speaks it."""
        connection.settimeout(IDLE_TIMEOUT_S)
        if connection.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
            return self._certificate.context.wrap_socket(connection, server_side=True)
        return connection


def site_file(root: Path, host: str, path: str) -> Path | None:
    """Return the file that an address means, or ``None``; ``www.`` may be left out."""
    steps = unquote(urlsplit(path).path).strip("/")
    for name in sorted({host, f"www.{host}"} & set(_folder_hosts(root))):
        for file in (root / name / steps / "index.html", root / name / steps):
            if file.is_file() and (root / name).resolve() in file.resolve().parents:
                return file
    return None


def _folder_hosts(root: Path) -> list[str]:
    return sorted(folder.name for folder in root.iterdir() if folder.is_dir())


class _Listener(ThreadingHTTPServer):
    """A thread for each connection; all of them end with the server."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], site: SiteServer) -> None:
        self.site = site
        self._open: set[socket.socket] = set()
        self._is_closed = False
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection until either side ends it."""
        connection = self._kept(request, self.site.wrapped)
        try:
            super().finish_request(connection, client_address)
        finally:
            self._open.discard(connection)
            connection.close()

    def _kept(
        self, request: socket.socket, wrap: Callable[[socket.socket], socket.socket]
    ) -> socket.socket:
        # While the handshake lasts, the bare connection is the one to cut.
        self._keep(request)
        try:
            connection = wrap(request)
        finally:
            self._open.discard(request)
        self._keep(connection)
        return connection

    def _keep(self, connection: socket.socket) -> None:
        with self._lock:
            if self._is_closed:
                connection.close()
                raise ConnectionAbortedError
            self._open.add(connection)

    def drop_all(self) -> None:
        """Cut every connection, so that the threads that serve them end."""
        with self._lock:
            self._is_closed = True
            for connection in list(self._open):
                try:
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was first

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that hang up or refuse the certificate; show everything else."""
        if not isinstance(sys.exception(), OSError | ValueError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def do_GET(self) -> None:
        """Answer one request."""
        parts = urlsplit(self.path)
        request = Request(
            method=self.command,
            scheme="https" if isinstance(self.connection, ssl.SSLSocket) else "http",
            host=self.headers.get("Host", "").partition(":")[0].lower(),
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )
        self.server.site.requests.append(request)
        try:
            self._send(self.server.site.reply(request))
        except (DropConnection, OSError):
            self.close_connection = True

    do_HEAD = do_POST = do_GET  # noqa: N815 (names that the base class looks for)

    def _send(self, reply: Reply) -> None:
        headers = {"Content-Type": reply.content_type, **reply.headers}
        is_chunked = not isinstance(reply.body, bytes) and "Content-Length" not in headers
        if isinstance(reply.body, bytes):
            headers = {"Content-Length": str(len(reply.body)), **headers}
        else:
            headers["Connection"] = "close"
        if is_chunked:
            headers["Transfer-Encoding"] = "chunked"
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(reply.body, is_chunked)

    def _send_body(self, body: bytes | Iterator[bytes], is_chunked: bool) -> None:
        for piece in [body] if isinstance(body, bytes) else body:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if is_chunked else piece)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""
