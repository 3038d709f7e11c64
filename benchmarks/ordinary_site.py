"""A local site of ordinary pages, served with a delay, for measuring captures."""

from __future__ import annotations

import io
import random
import sys
import tempfile
from functools import cache
from pathlib import Path

from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

from site_server import Reply, Request, SiteServer

from mind2web2.capture.models import CaptureSettings, NetworkSettings

HOSTS = tuple(f"www.paper{number}.example" for number in range(10))
DELAY_S = 0.2
PART_DELAY_S = 0.05
PICTURES = 6
PICTURE_PX = (320, 200)
PARAGRAPHS = 12
WORDS = (
    "town",
    "lake",
    "ferry",
    "museum",
    "opens",
    "daily",
    "since",
    "harbour",
    "tickets",
    "cost",
    "summer",
)
STYLE = (
    b"body { font: 16px/1.5 sans-serif; margin: 2rem auto; max-width: 60rem; } img { margin: 4px; }"
)
SCRIPT = b"""addEventListener('DOMContentLoaded', () => {
  const list = document.getElementById('list');
  for (let n = 1; n <= 10; n++) list.insertAdjacentHTML('beforeend', `<li>Entry ${n} by script</li>`);
});"""


class OrdinarySite(SiteServer):
    """Serves ``/page/<n>`` (about 2,000 px with pictures and script) and ``/plain/<n>``.

    A page comes after ``DELAY_S``, each of its parts after ``PART_DELAY_S``.
    """

    def __init__(self) -> None:
        self._no_files = tempfile.TemporaryDirectory()
        super().__init__(Path(self._no_files.name), more_hosts=HOSTS)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._no_files.cleanup()

    def reply(self, request: Request) -> Reply:
        """Answer with a page or a part of one."""
        _, kind, *name = request.path.split("/")
        if kind in ("page", "plain"):
            self.pause(DELAY_S)
            return Reply(page(int(name[0]), is_plain=kind == "plain"))
        self.pause(PART_DELAY_S)
        if kind == "picture":
            return Reply(picture(int(name[0])), "image/jpeg")
        if kind == "style.css":
            return Reply(STYLE, "text/css")
        return Reply(SCRIPT, "text/javascript") if kind == "script.js" else Reply(status=404)

    def settings(self) -> CaptureSettings:
        """Return how to capture from here."""
        return CaptureSettings(
            network=NetworkSettings(host_map=self.host_map, trusted_keys=(self.spki,))
        )


def address(kind: str, number: int) -> str:
    """Return a page's address; neighbours are on different hosts."""
    return f"https://{HOSTS[number % len(HOSTS)]}/{kind}/{number}"


def page(number: int, is_plain: bool) -> bytes:
    """Return a page's HTML, the same each time."""
    choose = random.Random(number)
    prose = [f"<p>{' '.join(choose.choices(WORDS, k=60))} {number}.</p>" for _ in range(PARAGRAPHS)]
    if is_plain:
        return (
            f"<!doctype html><title>Plain {number}</title><h1>Plain {number}</h1>{''.join(prose)}"
        ).encode()
    pictures = "".join(
        f'<img src="/picture/{number * PICTURES + place}" width="{PICTURE_PX[0]}" '
        f'height="{PICTURE_PX[1]}">'
        for place in range(PICTURES)
    )
    rows = "".join(
        f"<tr><td>Boat {row}</td><td>{choose.randint(1, 99)}</td></tr>" for row in range(12)
    )
    head = '<link rel="stylesheet" href="/style.css"><script src="/script.js"></script>'
    table = f"<table><tr><th>Boat</th><th>Seats</th></tr>{rows}</table>"
    body = f"{table}<ul id='list'></ul>{''.join(prose)}"
    start = f"<!doctype html><title>Paper {number}</title>{head}"
    return f"{start}<h1>Paper {number}</h1>{pictures}{body}".encode()


@cache
def _noise(variant: int) -> bytes:
    pixels = random.Random(variant).randbytes(40 * 25 * 3)
    image = Image.frombytes("RGB", (40, 25), pixels).resize(PICTURE_PX)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def picture(number: int) -> bytes:
    """Return one of a few pictures."""
    return _noise(number % 7)
