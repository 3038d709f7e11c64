"""The HTTP proxy of a company's network, through which the filtering proxy reaches the internet."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Mapping

from mind2web2.urls.proxies import HTTPS_PORT, Upstream, is_reached_without_proxy, parse_upstream

CONNECT_TIMEOUT_S = 30.0

# Names that public name servers do not resolve, but a company's may.
_PRIVATE_NAME = re.compile(
    r"[^.]+|.*\.(?:localhost|local|localdomain|internal|intranet|private|corp|home|lan|home\.arpa)"
)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_REQUEST_LINE = re.compile(rb"([A-Z]+) (/[^ ]*|\*) (HTTP/1\.[01])")
_HOP_HEADERS = (
    b"connection:",
    b"proxy-connection:",
    b"proxy-authorization:",
    b"keep-alive:",
)
# By these, proxies refuse tunnels to other ports than 443, and take plain HTTP requests in their
# stead.
_NO_TUNNEL_STATUSES = (400, 403, 405, 501)
# TLS does not begin with a letter.
_METHOD_START = re.compile(rb"[A-Z]")

Rewrite = Callable[[bytes], bytes]
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class UpstreamError(Exception):
    """The proxy gave no connection; the text names the proxy without its credentials."""


def upstream_for(host: str, port: int, proxies: Mapping[str, str]) -> Upstream | None:
    """Return the proxy for a connection, ``None`` for a direct one.

    Args:
        proxies: URL by scheme, and under ``no`` the hosts to reach without, as
            ``getproxies_environment`` has them. A connection names no scheme: port 80 counts as
            http, 443 as https, others as either.
    """
    if port in (80, HTTPS_PORT):
        url = proxies.get("http" if port == 80 else "https")
    else:
        url = proxies.get("https") or proxies.get("http")
    if not url or is_reached_without_proxy(host, port, proxies.get("no", "")):
        return None
    return parse_upstream(url)


def is_private_name(host: str) -> bool:
    """Tell whether a name belongs to this machine or a local network, which a proxy may know."""
    return _PRIVATE_NAME.fullmatch(host) is not None


async def open_tunnel(upstream: Upstream, host: str, port: int) -> tuple[Stream, Rewrite | None]:
    """Return a connection to a host through a proxy.

    Returns:
        The streams, and where the proxy tunnels no plain HTTP, the function that turns the
        beginning of what a client sends into a request to the proxy, of which each connection takes
        one.

    Raises:
        UpstreamError: the proxy does not answer, or refuses.
    """
    if ":" in host:
        name = f"[{host}]:{port}"
    else:
        name = f"{host}:{port}"
    stream = await _connect(upstream)
    try:
        status = await _send_request(
            stream,
            b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % ((name.encode(),) * 2),
            upstream,
        )
        if 200 <= status < 300:
            return stream, None
    except BaseException:
        stream[1].transport.abort()
        raise
    stream[1].transport.abort()
    if status in _NO_TUNNEL_STATUSES and port != HTTPS_PORT:
        return await _connect(upstream), _request_rewriter(name, port, upstream)
    cure = ": check its user and password" if status == 407 else ""
    raise UpstreamError(f"the {upstream} answered HTTP {status} when asked for {name}{cure}")


async def _connect(upstream: Upstream) -> Stream:
    context = ssl.create_default_context() if upstream.is_tls else None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await asyncio.open_connection(
                upstream.host, upstream.port, ssl=context, limit=256 * 1024
            )
    except TimeoutError as error:
        raise UpstreamError(
            f"the {upstream} did not answer within {CONNECT_TIMEOUT_S:g} s"
        ) from error
    except OSError as error:
        raise UpstreamError(
            f"the {upstream} cannot be reached: {error.strerror or error}"
        ) from error


async def _send_request(stream: Stream, request: bytes, upstream: Upstream) -> int:
    reader, writer = stream
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            writer.write(request + upstream.authorization + b"\r\n")
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
    except TimeoutError as error:
        raise UpstreamError(
            f"the {upstream} did not answer within {CONNECT_TIMEOUT_S:g} s"
        ) from error
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        raise UpstreamError(f"the {upstream} closed the connection") from error
    status = _STATUS.match(head)
    if status is None:
        raise UpstreamError(f"the {upstream} does not speak HTTP")
    return int(status[1])


async def begin_request(reader: asyncio.StreamReader, rewrite: Rewrite) -> bytes:
    """Return the beginning of what a client sends, as the proxy takes it.

    Raises:
        UpstreamError: it is not a plain HTTP request.
        EOFError: the client hung up.
    """
    start = await reader.readexactly(1)
    if not _METHOD_START.match(start):
        return rewrite(start)  # which refuses it
    return rewrite(start + await reader.readuntil(b"\r\n\r\n"))


def _request_rewriter(name: str, port: int, upstream: Upstream) -> Rewrite:
    origin = b"http://" + (name.removesuffix(":80") if port == 80 else name).encode()

    def rewrite(head: bytes) -> bytes:
        line, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        request = _REQUEST_LINE.fullmatch(line)
        if request is None:
            raise UpstreamError(f"the {upstream} tunnels no connection to {name}")
        end_to_end = [header for header in headers if not header.lower().startswith(_HOP_HEADERS)]
        if request[2] != b"*":
            target = origin + request[2]
        else:
            target = origin
        first = b" ".join((request[1], target, request[3]))
        return (
            b"\r\n".join([first, *end_to_end, b"Connection: close"])
            + b"\r\n"
            + upstream.authorization
            + b"\r\n"
        )

    return rewrite
