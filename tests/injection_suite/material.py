"""The suite's attacks as a judge meets them: pages stored or captured, prepared and held against claims."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
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

from mind2web2.capture.settings import CaptureSettings, NetworkSettings
from mind2web2.errors import CaptureError, MachineError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.captures import PageSettings, PreparedPage, SharedCaptures
from mind2web2.pages.library import PageLibrary, PageRequest

log = logging.getLogger(__name__)

_PAGES_AT_ONCE = 4
_HEAD_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Material:
    """What a judge is shown with one attack.

    Args:
        page: ``None`` where the answer alone decides.
        missing: why there is nothing to show, in one line: a page that has to be captured needs a browser.
    """

    attack: Attack
    answer: str
    page: PreparedPage | None = None
    missing: str | None = None


async def materials(attacks: Sequence[Attack], folder: Path) -> list[Material]:
    """Return the attacks' answers and pages, each page stored in a cache under ``folder`` and prepared."""
    cache = CacheFileSys(folder)
    await asyncio.to_thread(_store, attacks, cache)
    trouble = await _capture([attack for attack in attacks if is_html(attack)], cache)
    library = PageLibrary()
    return [await _material(attack, cache, library, trouble) for attack in attacks]


def _store(attacks: Sequence[Attack], cache: CacheFileSys) -> None:
    for attack in attacks:
        if is_pdf(attack):
            cache.put_pdf(page_url(attack), pdf_page(attack))
        elif is_shown_a_page(attack) and not is_html(attack):
            cache.put_web(page_url(attack), page_text(attack), None)


async def _capture(attacks: Sequence[Attack], cache: CacheFileSys) -> str | None:
    """Capture pages from a server of our own into the cache; return why none can be."""
    pages = {urlsplit(page_url(attack)).path: html_page(attack) for attack in attacks}
    async with _served(pages) as port:
        network = NetworkSettings(host_map={HOST: ("127.0.0.1", port)})
        async with SharedCaptures.of_run(CaptureSettings(network=network), _PAGES_AT_ONCE) as captures:
            bring = (captures.capture_into(page_url(attack), cache, nullcontext(), log) for attack in attacks)
            results = await asyncio.gather(*bring, return_exceptions=True)
    for result in results:
        if isinstance(result, MachineError):
            return "no browser"
        if isinstance(result, BaseException) and not isinstance(result, CaptureError):
            raise result
    return None


async def _material(
    attack: Attack, cache: CacheFileSys, library: PageLibrary, trouble: str | None
) -> Material:
    answer = answer_with(attack)
    if not is_shown_a_page(attack):
        return Material(attack, answer)
    request = PageRequest(cache, page_url(attack), PageSettings(), True, None, nullcontext(), log)
    try:
        return Material(attack, answer, await library.page(request))
    except CaptureError as error:
        return Material(attack, answer, missing=trouble or str(error))


@asynccontextmanager
async def _served(pages: Mapping[str, str]) -> AsyncIterator[int]:
    """Serve pages by path on loopback while the block runs, and tell the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            path = urlsplit(head.split(b" ", 2)[1].decode("latin-1")).path
            page = pages.get(path)
            body = (page or "").encode()
            status = b"404 Not Found" if page is None else b"200 OK"
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"
                b"Connection: close\r\n\r\n%s" % (status, len(body), body)
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug("request not answered: %s", error)
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
