"""The suite's attacks as a judge meets them, on stored or captured pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from injection_suite.attack import Attack
from injection_suite.carriers import (
    HOST,
    answer_with,
    html_page,
    is_html,
    is_pdf,
    is_shown_a_page,
    page_text,
    page_url,
    pdf_page,
)
from servers.local_http import Answer, LocalHttp

from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import PageSettings, PreparedPage
from mind2web2.pages.run_browser import run_browser

log = logging.getLogger(__name__)

_PAGES_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Material:
    """The texts that a judge sees with one attack.

    Args:
        page: ``None`` where the answer alone decides.
    """

    attack: Attack
    answer: str
    page: PreparedPage | None = None


async def materials(attacks: Sequence[Attack], folder: Path) -> list[Material]:
    """Return the attacks' answers and prepared pages, stored under ``folder``."""
    cache = CacheFileSys(folder)
    await asyncio.to_thread(_store, attacks, cache)
    await _capture([attack for attack in attacks if is_html(attack)], cache)
    library = PageLibrary()
    return [await _material(attack, cache, library) for attack in attacks]


def _store(attacks: Sequence[Attack], cache: CacheFileSys) -> None:
    for attack in attacks:
        if is_pdf(attack):
            cache.put_pdf(page_url(attack), pdf_page(attack))
        elif is_shown_a_page(attack) and not is_html(attack):
            cache.put_web(page_url(attack), page_text(attack), None)


async def _capture(attacks: Sequence[Attack], cache: CacheFileSys) -> None:
    """Capture pages from a server of our own into the cache."""
    pages = {urlsplit(page_url(attack)).path: html_page(attack).encode() for attack in attacks}
    headers = {"Content-Type": "text/html; charset=utf-8"}
    with LocalHttp(lambda request: Answer(pages.get(request.path, b""), headers=headers)) as server:
        network = NetworkSettings(host_map={HOST: ("127.0.0.1", urlsplit(server.url).port)})
        async with SharedCaptures(
            run_browser(CaptureSettings(network=network), _PAGES_AT_ONCE)
        ) as captures:
            bring = (
                captures.capture_into(page_url(attack), cache, nullcontext(), log)
                for attack in attacks
            )
            await asyncio.gather(*bring)


async def _material(attack: Attack, cache: CacheFileSys, library: PageLibrary) -> Material:
    answer = answer_with(attack)
    if not is_shown_a_page(attack):
        return Material(attack, answer)
    request = PageRequest(cache, page_url(attack), PageSettings(), True, None, nullcontext(), log)
    return Material(attack, answer, await library.page(request))
