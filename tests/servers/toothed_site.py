"""The demo site with teeth: what pages and servers do to a capture, each under a path of its own.

    with ToothedSite() as site:
        site.at("redirect-loop"), site.at("status", code=403)   # addresses under a mapped host name
        site.local("slow-body")                                 # the same without any host mapped
        site.hits("/teeth/slow-body")

Pages say ``FACT`` as soon as they say anything, and ``BEHIND`` once the tooth is overcome. Everything is
bounded, and everything that waits ends with the server.
"""

import gzip
import json
from urllib.parse import urlencode

from servers.teeth import (
    BEHIND,
    FACT,
    VENDORS,
    WHOLE,
    Tooth,
    challenge,
    challenge_vendor,
    document,
    drip,
    drop,
    drop_body,
    drop_then_fine,
    endless_stream,
    error_then_fine,
    file_of,
    fragment,
    gzip_bomb,
    items,
    limited_then_fine,
    page,
    picture,
    redirect,
    redirect_chain,
    redirect_loop,
    silent,
    silent_body,
    slow_body,
    slow_headers,
    status,
    wrong_charset,
)
from site_server import Reply, Request, SiteServer

HOST = "www.toothed.example"
OTHER_HOST = "www.elsewhere.example"


class ToothedSite(SiteServer):
    """Serves the teeth under ``/teeth/`` of every host, and the demo site."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port=port, more_hosts=(HOST, OTHER_HOST))

    def at(self, name: str, host: str = HOST, scheme: str = "https", **query: object) -> str:
        """Return a tooth's address for a client that maps hosts."""
        return f"{scheme}://{host}{_path(name, query)}"

    def local(self, name: str, **query: object) -> str:
        """Return a tooth's address for a client that may visit loopback."""
        return self.url + _path(name, query)

    def reply(self, request: Request) -> Reply:
        """Answer with a tooth, or a file of the demo site."""
        head, _, name = request.path.partition("/teeth/")
        if head or name not in TEETH:
            return super().reply(request)
        return TEETH[name][0](self, request)

    def visits(self, request: Request) -> int:
        """Return how often exactly this address was asked for, this time included."""
        seen = [(other.path, other.query) for other in list(self.requests)]
        return seen.count((request.path, request.query))

    def other_origin(self, request: Request) -> str:
        """Return an origin of another site that is this server too."""
        if request.host == HOST:
            return f"{request.scheme}://{OTHER_HOST}"
        return f"{request.scheme}://localhost:{self.port}"


def _path(name: str, query: dict[str, object]) -> str:
    return f"/teeth/{name}" + (f"?{urlencode(query)}" if query else "")


TEETH: dict[str, tuple[Tooth, str]] = {
    "plain": (page, "nothing bad: both sentences at once"),
    # Parts that pages fetch.
    "fragment": (fragment, "a piece of HTML, after ?ms"),
    "items": (items, "a piece of a list as JSON"),
    "frame-content": (page, "shown in the frames of other pages"),
    "consent-frame-content": (page, "the banner of consent-frame"),
    "elsewhere": (page, "another page, where windows and navigations go"),
    # Time and connections.
    "slow-headers": (slow_headers, "nothing for ?s seconds, then the page"),
    "slow-body": (slow_body, "half the page, ?s seconds, the other half"),
    "drip": (drip, "ten bytes every ?ms"),
    "silent": (silent, "no answer"),
    "silent-body": (silent_body, "half a page, and no end"),
    "drop": (drop, "connection closed instead of an answer"),
    "drop-body": (drop_body, "connection closed within the body"),
    "drop-then-fine": (drop_then_fine, "the same ?times (?within=body), then the page"),
    "endless-stream": (endless_stream, "HTML that goes on for two minutes"),
    "gzip-bomb": (gzip_bomb, "?mb of text from a few kB over the wire"),
    "wrong-charset": (wrong_charset, "undeclared Windows-1252; ?lie=1: UTF-8 declared as Latin-1"),
    # Status and redirects.
    "status": (status, "?code with an error page, or ?empty=1"),
    "limited-then-fine": (limited_then_fine, "429 with Retry-After ?after, ?times; then the page"),
    "error-then-fine": (error_then_fine, "?code ?times, then the page"),
    "redirect": (redirect, "?status to ?to, ?site=other"),
    "redirect-chain": (redirect_chain, "?n redirects, then the page"),
    "redirect-loop": (redirect_loop, "to itself"),
    "meta-refresh": (page, "to the plain page by meta refresh, at once, nothing shown before"),
    "js-redirect": (page, "to the plain page by script, at once, nothing shown before"),
    # Content that has to be waited or looked for.
    "late": (page, "rendered by a script after 700 ms"),
    "late-fetch": (page, "a list fetched after load, shown 300 ms after it came"),
    "list-scroll": (page, "a list of 60 that grows by ten a scroll to its end (scroll event)"),
    "list-observer": (page, "the same with IntersectionObserver"),
    "pane-scroll": (page, "the same within a pane, the page itself does not scroll"),
    "pane-observer": (page, "the same within a pane, with IntersectionObserver"),
    "endless-scroll": (page, "a list that grows for ever"),
    "frame-same-site": (page, "the fact behind is in a frame of the same site"),
    "frame-cross-site": (page, "in a frame of another site"),
    "frame-srcdoc": (page, "in a frame given as srcdoc"),
    "frame-nested": (page, "in a frame of another site within a frame of the same site"),
    "shadow-open": (page, "in an open shadow root"),
    "shadow-closed": (page, "in a closed shadow root"),
    "shadow-declarative": (page, "in a declarative shadow root"),
    # What covers content, or stands in for it.
    "consent-bar": (page, "a bar at the bottom asks for consent"),
    "consent-modal": (page, "a modal that blurs and locks the page asks for consent"),
    "consent-vendor": (page, "the markup of a widespread consent product"),
    "consent-shadow": (page, "a consent banner within a shadow root"),
    "consent-frame": (page, "a consent banner within a frame of another site"),
    "consent-wall": (page, "nothing but the question for consent"),
    "newsletter-modal": (page, "a modal offers a newsletter after 300 ms"),
    "challenge": (challenge, "challenge with ?code: cookie, reload after 1 s, then the page"),
    "challenge-vendor": (challenge_vendor, "the challenge of ?vendor, for ever: " + ", ".join(VENDORS)),
    "soft-404": (page, "status 200, but the page says that it does not exist"),
    "login-wall": (page, "only a form to log in"),
    "empty": (page, "a page with no content"),
    # Pages that misbehave.
    "navigates-away": (page, "goes to another page 300 ms after its content"),
    "opens-windows": (page, "opens windows in a loop, with other text in them"),
    "alerts": (page, "alerts, confirms and prompts in a loop"),
    "unload-dialog": (page, "asks whether one really wants to leave"),
    "busy": (page, "a script that never ends, 300 ms after the content"),
    "busy-at-once": (page, "a script that never ends, before the page is complete"),
    "reload-loop": (page, "reloads itself every 200 ms"),
    "history-loop": (page, "changes its address in a loop, without loading anything"),
    "crash": (page, "crashes its renderer 300 ms after the content"),
    "crash-at-once": (page, "crashes its renderer before anything is shown"),
    "huge-dom": (page, "60,000 elements, the fact behind is the last"),
    "print-loop": (page, "prints in a loop"),
    "fetch-loop": (page, "fetches all the time, so that the network is never quiet"),
    "animation": (page, "changes its DOM all the time"),
    "tampering": (page, "redefines DOM properties to forge its text"),
    # Not HTML.
    "document": (document, "a PDF without suffix, as ?type, ?attachment=1"),
    "landing.pdf": (page, "a web page about a PDF"),
    "table.csv": (file_of(f'lock,"note"\nweir,"{FACT}"\nsluice,"{BEHIND}"\n'.encode(), "text/csv"), "CSV"),
    "record.json": (file_of(json.dumps({"a": FACT, "b": BEHIND}).encode(), "application/json"), "JSON"),
    "note.txt": (file_of(f"{FACT}\n{BEHIND}\nÄ\n".encode(), "text/plain; charset=utf-8"), "plain text"),
    "feed.xml": (
        file_of(f"<feed><title>{FACT}</title><a>{BEHIND}</a></feed>".encode(), "application/xml"),
        "XML",
    ),
    "picture.png": (file_of(picture("PNG"), "image/png"), "a picture, red left and blue right"),
    "picture.jpg": (file_of(picture("JPEG"), "image/jpeg"), "the same as JPEG"),
    "picture.webp": (file_of(picture("WEBP"), "image/webp"), "the same as WebP"),
    "attached.csv": (
        file_of(
            f"lock,note\nweir,{FACT}\nsluice,{BEHIND}\n".encode(),
            "application/octet-stream",
            Content_Disposition='attachment; filename="attached.csv"',
        ),
        "CSV as an attachment of no declared type",
    ),
    "attached.html": (
        file_of(WHOLE, "text/html; charset=utf-8", Content_Disposition="attachment"),
        "HTML as an attachment",
    ),
    "archive.zip": (
        file_of(
            b"PK\x05\x06" + bytes(18), "application/zip", Content_Disposition='attachment; filename="a.zip"'
        ),
        "an archive, of no use to a judge",
    ),
    "packed": (
        file_of(gzip.compress(WHOLE), "text/html; charset=utf-8", Content_Encoding="gzip"),
        "the page gzipped, as servers do",
    ),
}
