"""A company's HTTP proxy on loopback.

It asks for credentials, looks names up itself, and notes its requests.
"""

import asyncio
import base64
from contextlib import asynccontextmanager
from types import SimpleNamespace
from urllib.parse import urlsplit

from servers.tcp_server import tcp_server

USER, PASSWORD = "reader", "p@ss:word"
CREDENTIALS = f"{USER}:p%40ss%3Aword"
_EXPECTED = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@asynccontextmanager
async def http_proxy(hosts, *, tunnels_to=None):
    """Serve a proxy; yields its URLs, its ``tunnels`` and its plain ``requests``.

    Args:
        hosts: where names lead, by name: an address and a port.
        tunnels_to: the only port to which it tunnels, as many proxies do.
    """
    seen = SimpleNamespace(tunnels=[], requests=[], url="", url_with_credentials="")

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.split("\r\n")
        method, target, _ = line.split()
        headers = {
            name.lower(): value.strip()
            for name, _, value in (each.partition(":") for each in lines)
        }
        if headers.get("proxy-authorization") != _EXPECTED:
            return await answer(writer, "407 Proxy Authentication Required")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            if tunnels_to not in (None, int(port)):
                return await answer(writer, "403 Forbidden")
            seen.tunnels.append(target)
            return await pass_on(
                reader, writer, host, b"HTTP/1.1 200 Connection established\r\n\r\n"
            )
        parts = urlsplit(target)
        seen.requests.append(target)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        sent = [each for each in lines if not each.lower().startswith("proxy-")]
        request = "\r\n".join([f"{method} {path} HTTP/1.1", *sent]).encode("latin-1")
        return await pass_on(reader, writer, parts.hostname, b"", request)

    async def pass_on(reader, writer, host, greeting, request=b""):
        if host not in hosts:
            return await answer(writer, "502 Bad Gateway")
        origin = await asyncio.open_connection(*hosts[host])
        writer.write(greeting)
        origin[1].write(request)
        try:
            await asyncio.gather(copy(reader, origin[1]), copy(origin[0], writer))
        finally:
            origin[1].close()

    async def copy(source, sink):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
        sink.close()

    async def answer(writer, status):
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()

    async with tcp_server(serve) as served:
        seen.url = f"http://127.0.0.1:{served.port}"
        seen.url_with_credentials = f"http://{CREDENTIALS}@127.0.0.1:{served.port}"
        yield seen
