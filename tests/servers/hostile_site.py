"""A page that tries every way a page knows to reach another host.

The server counts who succeeds.

Each way asks for a host of its own, ``<way>.canary.example``, so that a record tells which ways
were tried.
"""

import asyncio
import re
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

from servers.tcp_server import tcp_server


def _ways(kind):
    """Return HTML or scripts by way, in which {at} stands for http://<way>.canary.example:<port>."""
    lines = Path(__file__).with_name("hostile_ways.txt").read_text(encoding="utf-8").splitlines()
    return {
        way: template
        for of_kind, way, template in (line.split(" ", 2) for line in lines)
        if of_kind == kind
    }


ELEMENTS, SCRIPTS = _ways("element"), _ways("script")
WAYS = ELEMENTS | SCRIPTS
# On the page as well; some browsers follow them, the headless shell does not.
HINTS = _ways("hint")
# Opens a connection and asks for nothing in HTTP.
WITHOUT_REQUEST = {"turn-tcp"}


def host_of(way):
    """Return the host that a way tries to reach."""
    return f"{way}.canary.example"


def hostile_page(port):
    """Return a page that tries every way to reach hosts whose canary listens on a port."""

    def fill(way, template):
        host = f"{host_of(way)}:{port}"
        return template.format(at=f"http://{host}", way=way, host=host)

    elements = "\n".join(fill(way, template) for way, template in (ELEMENTS | HINTS).items())
    scripts = "\n".join(
        f"<script>{{{fill(way, template)}}}</script>" for way, template in SCRIPTS.items()
    )
    return f"<!DOCTYPE html><title>hostile</title><body>{elements}{scripts}"


@asynccontextmanager
async def hostile_site(canary_port):
    """Serve the page and what it needs on its own host; yields the port."""

    def answer(path):
        way = path.rpartition("/")[2]
        at = f"http://{host_of(way)}:{canary_port}"
        match path.split("/")[1]:
            case "to":
                return 302, {"Location": f"{at}/x"}, ""
            case "worker":
                return (
                    200,
                    {"Content-Type": "text/javascript"},
                    f'fetch("{at}/x", {{mode: "no-cors"}})',
                )
            case "import":
                return (
                    200,
                    {"Content-Type": "text/javascript"},
                    f'importScripts("{at}/x")',
                )
            case "csp":
                policy = f"img-src 'none'; report-uri {at}/x"
                return (
                    200,
                    {"Content-Security-Policy": policy, "Content-Type": "text/html"},
                    "<img src=/y>",
                )
            case "":
                return 200, {"Content-Type": "text/html"}, hostile_page(canary_port)
        return 404, {}, ""

    async with http_server(answer) as served:
        yield served


@asynccontextmanager
async def http_server(answer, awaited=frozenset()):
    """Answer each request with what ``answer(path)`` says: status, headers, body.

    Yields port, hosts asked for, count of connections, and an event for when all awaited hosts have
    come.
    """
    told = SimpleNamespace(port=0, hosts=set(), count=lambda: 0, complete=asyncio.Event())

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        told.hosts.add(re.search(r"(?im)^host: ([^:\r\n]*)", head)[1])
        if awaited <= told.hosts:
            told.complete.set()
        status, headers, body = answer(head.split(" ")[1])
        headers = {"Content-Length": str(len(body)), "Connection": "close"} | headers
        lines = [
            f"HTTP/1.1 {status} OK",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", body]).encode())
        await writer.drain()

    async with tcp_server(serve) as server:
        told.port = server.port
        told.count = lambda: server.connections
        yield told


class CanaryNames:
    """A resolver to which every name is this machine's, and which notes what it was asked."""

    def __init__(self, address, ways=()):
        self.asked = set()
        self.all_asked = asyncio.Event()
        self._address = address
        self._wanted = {host_of(way) for way in ways}

    async def __call__(self, host):
        """Return the address of this machine."""
        self.asked.add(host)
        if self._wanted <= self.asked:
            self.all_asked.set()
        return [self._address]

    @property
    def missing(self):
        return self._wanted - self.asked
