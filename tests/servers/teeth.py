"""What a tooth of the site answers; ``toothed_site`` says which tooth is where."""

import io
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from fixtures.pdf_files import pdf
from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from site_server import DropConnection, Reply, Request

FACT = "The weir of Ottermoss was rebuilt in 1874."
BEHIND = "The new sluice lets 17 boats pass in an hour."
PAGES = Path(__file__).with_name("toothed_pages")
ENDLESS_S = 120.0


class Site(Protocol):
    """What a tooth needs of the server."""

    def pause(self, seconds: float) -> None:
        """Wait, unless the server stops."""

    def visits(self, request: Request) -> int:
        """Return how often exactly this address was asked for, this time included."""

    def other_origin(self, request: Request) -> str:
        """Return an origin of another site that is this server too."""


Tooth = Callable[[Site, Request], Reply]


def _html(body: str, title: str = "The weir") -> bytes:
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    return f"{head}<body><h1>{title}</h1>{body}</body></html>".encode()


WHOLE = _html(f"<p>{FACT}</p><p>{BEHIND}</p>")


def page(site: Site, request: Request) -> Reply:
    """Answer with the page of that name in ``toothed_pages``, its placeholders filled in."""
    text = (PAGES / f"{request.path.rpartition('/')[2]}.html").read_text(encoding="utf-8")
    places = {"fact": FACT, "behind": BEHIND, "other": site.other_origin(request)}
    for place, value in places.items():
        text = text.replace("{{" + place + "}}", value)
    return Reply(text.encode())


def fragment(site: Site, request: Request) -> Reply:
    """Answer with a part that pages fetch, after ``?ms``."""
    site.pause(float(request.query.get("ms", 100)) / 1000)
    return Reply(f"<p>{BEHIND}</p>".encode())


def items(site: Site, request: Request) -> Reply:
    """Answer with the boats ``?from`` to ``?to`` as JSON; the sixtieth is what is behind the tooth."""
    site.pause(0.05)
    first, last = int(request.query["from"]), int(request.query["to"])
    boats = [f"Boat {number} of the fleet" if number != 60 else BEHIND for number in range(first, last + 1)]
    return Reply(json.dumps(boats).encode(), "application/json")


# What servers do.


def slow_headers(site: Site, request: Request) -> Reply:
    """Wait ``?s`` before anything is sent."""
    site.pause(float(request.query.get("s", 2)))
    return Reply(WHOLE)


def slow_body(site: Site, request: Request) -> Reply:
    """Wait ``?s`` between the first and the second half of the page."""

    def halves() -> Iterator[bytes]:
        yield WHOLE[: len(WHOLE) - 80]
        site.pause(float(request.query.get("s", 2)))
        yield WHOLE[len(WHOLE) - 80 :]

    return Reply(halves())


def drip(site: Site, request: Request) -> Reply:
    """Send ten bytes every ``?ms``."""

    def drops() -> Iterator[bytes]:
        for start in range(0, len(WHOLE), 10):
            yield WHOLE[start : start + 10]
            site.pause(float(request.query.get("ms", 20)) / 1000)

    return Reply(drops())


def silent(site: Site, _: Request) -> Reply:
    """Take the request and say nothing."""
    site.pause(ENDLESS_S)
    raise DropConnection


def silent_body(site: Site, _: Request) -> Reply:
    """Send the first half of the page and then nothing."""

    def half() -> Iterator[bytes]:
        yield _html(f"<p>{FACT}</p>" + "<p>Padding.</p>" * 200)[:-14]
        site.pause(ENDLESS_S)

    return Reply(half())


def drop(_: Site, __: Request) -> Reply:
    """Close the connection instead of answering."""
    raise DropConnection


def drop_body(_: Site, __: Request) -> Reply:
    """Close the connection within the body, short of the length promised."""
    return _cut_short()


def drop_then_fine(site: Site, request: Request) -> Reply:
    """Close the connection the first ``?times``, within the body with ``?within=body``; then answer."""
    if site.visits(request) > int(request.query.get("times", 1)):
        return Reply(WHOLE)
    if request.query.get("within") == "body":
        return _cut_short()
    raise DropConnection


def _cut_short() -> Reply:
    start = _html(f"<p>{FACT}</p>")[:-14]
    return Reply(iter([start]), headers={"Content-Length": str(len(start) + 5000)})


def redirect(site: Site, request: Request) -> Reply:
    """Redirect by ``?status`` to ``?to``, or to ``plain``; ``?site=other`` on another site."""
    to = request.query.get("to", "/teeth/plain")
    origin = site.other_origin(request) if request.query.get("site") == "other" else ""
    return Reply(status=int(request.query.get("status", 302)), headers={"Location": origin + to})


def redirect_chain(_: Site, request: Request) -> Reply:
    """Redirect ``?n`` times, each to another address, and end at ``plain``."""
    left = int(request.query.get("n", 5))
    to = f"/teeth/redirect-chain?n={left - 1}" if left > 1 else "/teeth/plain"
    return Reply(status=302, headers={"Location": to})


def redirect_loop(_: Site, __: Request) -> Reply:
    """Redirect to itself, for ever."""
    return Reply(status=302, headers={"Location": "/teeth/redirect-loop"})


def status(_: Site, request: Request) -> Reply:
    """Answer with ``?code`` and a page that says so, or nothing with ``?empty=1``."""
    code = int(request.query.get("code", 500))
    body = b"" if "empty" in request.query else _html(f"<p>Error {code}. Sorry about that.</p>", "An error")
    return Reply(body, status=code)


def limited_then_fine(site: Site, request: Request) -> Reply:
    """Answer 429 with ``Retry-After: ?after`` the first ``?times``; then the page."""
    if site.visits(request) > int(request.query.get("times", 1)):
        return Reply(WHOLE)
    headers = {"Retry-After": request.query.get("after", "1")}
    return Reply(_html("<p>Slow down.</p>", "Too Many Requests"), status=429, headers=headers)


def error_then_fine(site: Site, request: Request) -> Reply:
    """Answer ``?code`` the first ``?times``; then the page."""
    if site.visits(request) > int(request.query.get("times", 1)):
        return Reply(WHOLE)
    return Reply(_html("<p>Try again.</p>", "Error"), status=int(request.query.get("code", 500)))


def endless_stream(site: Site, _: Request) -> Reply:
    """Send paragraphs for two minutes, about 500 kB in a second."""

    def paragraphs() -> Iterator[bytes]:
        ends = time.monotonic() + ENDLESS_S
        yield _html(f"<p>{FACT}</p>")[:-14]
        while time.monotonic() < ends:
            yield b"<p>And there is more to tell about the weir.</p>\n" * 200
            site.pause(0.02)

    return Reply(paragraphs())


def gzip_bomb(_: Site, request: Request) -> Reply:
    """Send a page of ``?mb`` megabytes, a thousandth of it over the wire."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(_html(f"<p>{FACT}</p>")[:-14] + b"<pre>") + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same input gives the same output, whatever came before.
    block = packer.compress(b"bomb " * 200_000 + b"\n") + packer.flush(zlib.Z_FULL_FLUSH)
    count = int(request.query.get("mb", 300))
    return Reply(iter([head] + [block] * count), headers={"Content-Encoding": "gzip"})


def wrong_charset(_: Site, request: Request) -> Reply:
    """Send Windows-1252 undeclared, or with ``?lie=1`` UTF-8 declared as Latin-1 by the server."""
    text = f"<!doctype html><title>Café</title><p>{FACT}</p><p>Café Möwe, “open”</p>"
    if "lie" in request.query:
        return Reply(text.encode(), "text/html; charset=iso-8859-1")
    return Reply(text.encode("cp1252"), "text/html")


# What is not HTML.


def document(_: Site, request: Request) -> Reply:
    """Send a PDF as ``?type``, with ``?attachment=1`` as an attachment."""
    disposition = {"Content-Disposition": 'attachment; filename="weir.pdf"'}
    headers = disposition if "attachment" in request.query else {}
    return Reply(pdf([FACT, BEHIND]), request.query.get("type", "application/pdf"), headers=headers)


def file_of(content: bytes, content_type: str, **headers: str) -> Tooth:
    """Make a tooth that sends these bytes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _, __: Reply(content, content_type, headers=named)


def picture(form: str) -> bytes:
    """Return a small picture: its left half red, its right half blue."""
    image = Image.new("RGB", (400, 300), "red")
    image.paste("blue", (200, 0, 400, 300))
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


# What stands before the content.


def challenge(_: Site, request: Request) -> Reply:
    """Challenge once: set a cookie and reload after a second; then the page."""
    if "passed=1" in request.headers.get("cookie", ""):
        return Reply(WHOLE)
    script = "<script>document.cookie='passed=1; path=/'; setTimeout(() => location.reload(), 1000)</script>"
    body = "<p>Checking your browser before accessing this site.</p>" + script
    return Reply(_html(body, "Just a moment..."), status=int(request.query.get("code", 503)))


def challenge_vendor(_: Site, request: Request) -> Reply:
    """Challenge for ever, with the look of ``?vendor``'s."""
    title, body, headers = VENDORS[request.query.get("vendor", "cloudflare")]
    return Reply(_html(body, title), status=int(request.query.get("code", 403)), headers=headers)


VENDORS: dict[str, tuple[str, str, dict[str, str]]] = {
    "cloudflare": (
        "Just a moment...",
        "<p>Verify you are human by completing the action below.</p><div id='cf-chl-widget-x'></div>"
        "<p>www.toothed.example needs to review the security of your connection before proceeding.</p>"
        "<p>Ray ID: 8f00c0ffee</p>"
        "<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script>",
        {"Server": "cloudflare", "cf-mitigated": "challenge", "CF-RAY": "8f00c0ffee-FRA"},
    ),
    "datadome": (
        "toothed.example",
        "<p>Please enable JS and disable any ad blocker</p>"
        "<script>var dd={'rt':'c','host':'geo.captcha-delivery.com'}</script>",
        {"X-DataDome": "protected", "X-DD-B": "1"},
    ),
    "perimeterx": (
        "Access to this page has been denied",
        "<div id='px-captcha'></div><p>Press &amp; Hold to confirm you are a human (and not a bot).</p>"
        "<p>Reference ID 5c0ffee0</p>",
        {},
    ),
    "akamai": (
        "Access Denied",
        "<p>You don't have permission to access http&#58;&#47;&#47;www.toothed.example&#47;</p>"
        "<p>Reference #18.5c0ffee0.1700000000.1a2b3c</p>",
        {"Server": "AkamaiGHost"},
    ),
    "imperva": (
        "Pardon Our Interruption",
        "<p>As you were browsing something about your browser made us think you were a bot.</p>"
        "<p>Incapsula incident ID: 1234-5678</p>"
        "<iframe id='main-iframe' src='/_Incapsula_Resource'></iframe>",
        {"X-CDN": "Imperva"},
    ),
    "recaptcha": (
        "Are you a robot?",
        "<p>Our systems have detected unusual traffic from your computer network.</p>"
        "<div class='g-recaptcha' data-sitekey='x'></div>",
        {},
    ),
}
