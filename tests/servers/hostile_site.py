"""A page that tries every way a page knows to reach another host, and the server that counts who succeeds.

Each way asks for a host of its own, ``<way>.canary.example``, so that a record tells which ways were tried.
"""

import asyncio
import re
from contextlib import asynccontextmanager
from types import SimpleNamespace

from servers.tcp_server import tcp_server

# {at} stands for http://<way>.canary.example:<port>, {way} for the way's name.
ELEMENTS = {
    "img": '<img src="{at}/x">',
    "srcset": '<img srcset="{at}/x 1x">',
    "svg-image": '<svg><image href="{at}/x"/></svg>',
    "input-image": '<input type="image" src="{at}/x">',
    "script": '<script src="{at}/x"></script>',
    "module": '<script type="module" src="{at}/x"></script>',
    "stylesheet": '<link rel="stylesheet" href="{at}/x">',
    "css-import": '<style>@import url("{at}/x");</style>',
    "css-background": '<div style="background: url({at}/x); width: 9px; height: 9px"></div>',
    "font": """<style>@font-face {{ font-family: f; src: url("{at}/x"); }}</style>
               <p style="font-family: f">text</p>""",
    "iframe": '<iframe src="{at}/x"></iframe>',
    "object": '<object data="{at}/x"></object>',
    "embed": '<embed src="{at}/x">',
    "video": '<video src="{at}/x" preload="auto"></video>',
    "poster": '<video poster="{at}/x"></video>',
    "audio": '<audio src="{at}/x" preload="auto"></audio>',
    "preload": '<link rel="preload" as="image" href="{at}/x">',
    "modulepreload": '<link rel="modulepreload" href="{at}/x">',
    "prefetch": '<link rel="prefetch" href="{at}/x">',
    "image-redirect": '<img src="/to/{way}">',
    "frame-redirect": '<iframe src="/to/{way}"></iframe>',
    "meta-refresh": """<iframe srcdoc='<meta http-equiv="refresh" content="0; url={at}/x">'></iframe>""",
    "sandboxed": """<iframe sandbox srcdoc='<img src="{at}/x">'></iframe>""",
    "csp-report": '<iframe src="/csp/{way}"></iframe>',
}
SCRIPTS = {
    "fetch": 'fetch("{at}/x", {{mode: "no-cors"}})',
    "fetch-redirect": 'fetch("/to/{way}", {{mode: "no-cors"}})',
    "keepalive": 'fetch("{at}/x", {{mode: "no-cors", keepalive: true, method: "POST", body: "x"}})',
    "xhr": 'const x = new XMLHttpRequest(); x.open("GET", "{at}/x"); x.send()',
    "beacon": 'navigator.sendBeacon("{at}/x", "x")',
    "websocket": 'new WebSocket("{at}/x".replace("http", "ws"))',
    "eventsource": 'new EventSource("{at}/x")',
    "image-object": 'new Image().src = "{at}/x"',
    "worker": 'new Worker("/worker/{way}")',
    "worker-import": 'new Worker("/import/{way}")',
    "sharedworker": 'new SharedWorker("/worker/{way}")',
    "blob-worker": 'new Worker(URL.createObjectURL(new Blob([`fetch("{at}/x", {{mode: "no-cors"}})`])))',
    "serviceworker": 'navigator.serviceWorker.register("/worker/{way}", {{scope: "/worker/"}})',
    "form": """const f = document.createElement("form"), frame = document.createElement("iframe");
               f.action = "{at}/x"; f.method = "post"; f.target = frame.name = "frame-of-form";
               document.body.append(frame, f); f.submit()""",
    "frame-script": """const f = document.createElement("iframe"); document.body.append(f);
                       f.contentWindow.location = "{at}/x" """,
    "turn-tcp": """const p = new RTCPeerConnection({{iceServers: [{{urls: "turn:{host}?transport=tcp",
                   username: "u", credential: "c"}}]}}); p.createDataChannel("x");
                   p.createOffer().then(o => p.setLocalDescription(o)); window.keep = p""",
}
WAYS = ELEMENTS | SCRIPTS
# Opens a connection and asks for nothing in HTTP.
WITHOUT_REQUEST = {"turn-tcp"}
# On the page as well; some browsers follow them, the headless shell does not.
HINTS = {
    "preconnect": '<link rel="preconnect" href="{at}">',
    "dns-prefetch": '<link rel="dns-prefetch" href="{at}">',
}


def host_of(way):
    """Return the host that a way tries to reach."""
    return f"{way}.canary.example"


def hostile_page(port):
    """Return a page that tries every way to reach hosts whose canary listens on a port."""

    def fill(way, template):
        host = f"{host_of(way)}:{port}"
        return template.format(at=f"http://{host}", way=way, host=host)

    elements = "\n".join(fill(way, template) for way, template in (ELEMENTS | HINTS).items())
    scripts = "\n".join(f"<script>{{{fill(way, template)}}}</script>" for way, template in SCRIPTS.items())
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
                return 200, {"Content-Type": "text/javascript"}, f'fetch("{at}/x", {{mode: "no-cors"}})'
            case "import":
                return 200, {"Content-Type": "text/javascript"}, f'importScripts("{at}/x")'
            case "csp":
                policy = f"img-src 'none'; report-uri {at}/x"
                return 200, {"Content-Security-Policy": policy, "Content-Type": "text/html"}, "<img src=/y>"
            case "":
                return 200, {"Content-Type": "text/html"}, hostile_page(canary_port)
        return 404, {}, ""

    async with http_server(answer) as served:
        yield served


@asynccontextmanager
async def http_server(answer, awaited=frozenset()):
    """Answer each request with what ``answer(path)`` says: status, headers, body.

    Yields port, hosts asked for, count of connections, and an event for when all awaited hosts have come.
    """
    told = SimpleNamespace(port=0, hosts=set(), count=lambda: 0, complete=asyncio.Event())

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        told.hosts.add(re.search(r"(?im)^host: ([^:\r\n]*)", head)[1])
        if awaited <= told.hosts:
            told.complete.set()
        status, headers, body = answer(head.split(" ")[1])
        headers = {"Content-Length": str(len(body)), "Connection": "close"} | headers
        lines = [f"HTTP/1.1 {status} OK", *(f"{name}: {value}" for name, value in headers.items())]
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
        """What has not been asked for yet."""
        return self._wanted - self.asked
