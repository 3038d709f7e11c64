"""The demo site with teeth: pages and servers that make a capture hard.

Each is under a path of its own.

    with ToothedSite() as site:
        site.at("redirect-loop"), site.at("status", code=403)   # addresses under a mapped host name
        site.hits("/teeth/slow-body")

Pages contain ``FACT`` as soon as they contain any text, and ``BEHIND`` once the tooth is overcome.
Everything that waits ends with the server.
"""

import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from fixtures.pdf_files import pdf
from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from site_server import DropConnection, Reply, Request, SiteServer, certificate

__all__ = ["Reply", "SiteServer", "ToothedSite", "certificate"]

HOST = "www.toothed.example"
FACT = "The weir of Ottermoss was rebuilt in 1874."
BEHIND = "The new sluice lets 17 boats pass in an hour."
PAGES = Path(__file__).with_name("toothed_pages")
ENDLESS_S = 120.0


class ToothedSite(SiteServer):
    """Serves the teeth under ``/teeth/`` of every host, and the demo site."""

    def __init__(self) -> None:
        super().__init__(more_hosts=(HOST,))

    def at(self, name: str, scheme: str = "https", **query: object) -> str:
        """Return a tooth's address for a client that maps hosts."""
        return f"{scheme}://{HOST}/teeth/{name}" + (f"?{urlencode(query)}" if query else "")

    def reply(self, request: Request) -> Reply:
        """Answer with a tooth.

        A tooth is a function below, a file, or a page of the folder ``toothed_pages``.
        """
        head, _, name = request.path.partition("/teeth/")
        page = PAGES / f"{name}.html"
        if head or not name:
            return super().reply(request)
        if name in FILES:
            return FILES[name]
        if name in TEETH:
            return TEETH[name](self, request)
        if not page.exists():
            return Reply(status=404)
        text = page.read_text(encoding="utf-8")
        return Reply(text.replace("{{fact}}", FACT).replace("{{behind}}", BEHIND).encode())

    def is_first_visit(self, request: Request) -> bool:
        """Tell whether exactly this address was not asked for before."""
        seen = [(other.path, other.query) for other in list(self.requests)]
        return seen.count((request.path, request.query)) == 1


def _html(body: str, title: str = "The weir") -> bytes:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    return f"{head}<body><h1>{title}</h1>{body}</body></html>".encode()


WHOLE = _html(f"<p>{FACT}</p><p>{BEHIND}</p>")
HALF = _html(f"<p>{FACT}</p>" + "<p>Padding.</p>" * 200)[:-14]


def items(site: ToothedSite, request: Request) -> Reply:
    """Answer with the boats ``?from`` to ``?to`` as JSON.

    The sixtieth is what is behind the tooth.
    """
    site.pause(0.05)
    first, last = int(request.query["from"]), int(request.query["to"])
    boats = [
        f"Boat {number} of the fleet" if number != 60 else BEHIND
        for number in range(first, last + 1)
    ]
    return Reply(json.dumps(boats).encode(), "application/json")


def slow_headers(site: ToothedSite, request: Request) -> Reply:
    """Wait ``?s`` before anything is sent."""
    site.pause(float(request.query.get("s", 2)))
    return Reply(WHOLE)


def slow_body(site: ToothedSite, request: Request) -> Reply:
    """Wait ``?s`` between the first and the second half of the page."""

    def halves() -> Iterator[bytes]:
        yield WHOLE[:-80]
        site.pause(float(request.query.get("s", 2)))
        yield WHOLE[-80:]

    return Reply(halves())


def drip(site: ToothedSite, _: Request) -> Reply:
    """Send ten bytes every 20 ms."""

    def drops() -> Iterator[bytes]:
        for start in range(0, len(WHOLE), 10):
            yield WHOLE[start : start + 10]
            site.pause(0.02)

    return Reply(drops())


def silent(site: ToothedSite, _: Request) -> Reply:
    """Take the request and send nothing."""
    site.pause(ENDLESS_S)
    raise DropConnection


def silent_body(site: ToothedSite, _: Request) -> Reply:
    """Send the first half of the page and then nothing."""

    def half() -> Iterator[bytes]:
        yield HALF
        site.pause(ENDLESS_S)

    return Reply(half())


def endless_stream(site: ToothedSite, _: Request) -> Reply:
    """Send paragraphs until the server stops, about 100 kB in a second."""

    def paragraphs() -> Iterator[bytes]:
        yield HALF
        while True:
            yield b"<p>And there is more to tell about the weir.</p>\n" * 40
            site.pause(0.02)

    return Reply(paragraphs())


def drop(_: ToothedSite, __: Request) -> Reply:
    """Close the connection instead of answering."""
    raise DropConnection


def drop_body(_: ToothedSite, __: Request) -> Reply:
    """Close the connection within the body, short of the length promised."""
    return Reply(iter([HALF]), headers={"Content-Length": str(len(HALF) + 5000)})


def drop_then_fine(site: ToothedSite, request: Request) -> Reply:
    """Close the connection the first time; then answer."""
    if site.is_first_visit(request):
        raise DropConnection
    return Reply(WHOLE)


def limited_then_fine(site: ToothedSite, request: Request) -> Reply:
    """Answer 429 with ``Retry-After: 1`` the first time; then the page."""
    if not site.is_first_visit(request):
        return Reply(WHOLE)
    return Reply(
        _html("<p>Slow down.</p>", "Too Many Requests"),
        status=429,
        headers={"Retry-After": "1"},
    )


def error_then_fine(site: ToothedSite, request: Request) -> Reply:
    """Answer 500 the first time; then the page."""
    return (
        Reply(_html("<p>Try again.</p>"), status=500)
        if site.is_first_visit(request)
        else Reply(WHOLE)
    )


def redirect(_: ToothedSite, request: Request) -> Reply:
    """Redirect ``?n`` times, each to another address, and end at ``plain``."""
    left = int(request.query.get("n", 1))
    to = f"redirect?n={left - 1}" if left > 1 else "plain"
    return Reply(status=302, headers={"Location": f"/teeth/{to}"})


def status(_: ToothedSite, request: Request) -> Reply:
    """Answer with ``?code`` and a page that names it."""
    code = int(request.query["code"])
    return Reply(_html(f"<p>Error {code}. Sorry about that.</p>", "An error"), status=code)


def challenge(_: ToothedSite, request: Request) -> Reply:
    """Challenge once: set a cookie and reload after a second; then the page."""
    if "passed=1" in request.headers.get("cookie", ""):
        return Reply(WHOLE)
    script = (
        "<script>document.cookie='passed=1; path=/'; setTimeout(() => location.reload(), "
        "1000)</script>"
    )
    body = "<p>Checking your browser before accessing this site.</p>" + script
    return Reply(_html(body, "Just a moment..."), status=503)


def picture(form: str) -> bytes:
    """Return a small picture: its left half red, its right half blue."""
    image = Image.new("RGB", (400, 300), "red")
    image.paste("blue", (200, 0, 400, 300))
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


def _file(
    content: str | bytes, content_type: str = "text/html; charset=utf-8", **headers: str
) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(
        content if isinstance(content, bytes) else content.encode(),
        content_type,
        headers=named,
    )


TEETH = {
    "items": items,
    "slow-headers": slow_headers,
    "slow-body": slow_body,
    "drip": drip,
    "silent": silent,
    "silent-body": silent_body,
    "endless-stream": endless_stream,
    "drop": drop,
    "drop-body": drop_body,
    "drop-then-fine": drop_then_fine,
    "limited-then-fine": limited_then_fine,
    "error-then-fine": error_then_fine,
    "redirect": redirect,
    "status": status,
    "challenge": challenge,
}
_ATTACHED = "attachment; filename="
FILES = {
    "redirect-loop": Reply(status=302, headers={"Location": "/teeth/redirect-loop"}),
    "wrong-charset": Reply(
        f"<!doctype html><title>Café</title><p>{FACT}</p><p>Café Möwe, “open”</p>".encode("cp1252"),
        "text/html",
    ),
    "packed": _file(gzip.compress(WHOLE), Content_Encoding="gzip"),
    "document": _file(pdf([FACT, BEHIND]), "application/pdf"),
    "table.csv": _file(f'lock,"note"\nweir,"{FACT}"\nsluice,"{BEHIND}"\n', "text/csv"),
    "record.json": _file(json.dumps({"a": FACT, "b": BEHIND}), "application/json"),
    "note.txt": _file(f"{FACT}\n{BEHIND}\nÄ\n", "text/plain; charset=utf-8"),
    "feed.xml": _file(f"<feed><title>{FACT}</title><a>{BEHIND}</a></feed>", "application/xml"),
    "picture.png": _file(picture("PNG"), "image/png"),
    "attached.csv": _file(
        f"lock,note\nweir,{FACT}\n",
        "application/octet-stream",
        Content_Disposition=f"{_ATTACHED}a.csv",
    ),
    "attached.html": _file(WHOLE, Content_Disposition="attachment"),
    "archive.zip": _file(
        b"PK\x05\x06" + bytes(18),
        "application/zip",
        Content_Disposition=f"{_ATTACHED}a.zip",
    ),
}
