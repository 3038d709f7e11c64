"""Pages that an agent saw, stored from JSON lines, and from files of plugins."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2.capture.models import (
    CapturedPage,
    CaptureRecord,
    StoredResponse,
    StoredResponses,
)
from mind2web2.capture.quality import PageObservation, signs_of_trouble
from mind2web2.errors import CacheWriteError, CaptureError, DocumentError, UsageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cache_files import screenshot_bytes
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.pages.found_pages import (
    MAX_FILE_BYTES,
    Fault,
    FoundPage,
    FoundPages,
    Importer,
    StoredByUrl,
    is_web_address,
)
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.entry_points import load_part, parts_of
from mind2web2.utils.files import read_regular_file

MAX_TEXT_CHARS = 4_000_000
_MAX_PATH_CHARS = 1000
_PAGES_AT_ONCE = 4
# Responses of these show no document in a browser.
_WITHOUT_CONTENT = (204, 205, 304)


class PageRenderer(Protocol):
    """Renders pages without a network; ``BatchBrowserManager`` does."""

    async def render(self, url: str, stored: StoredResponses) -> CapturedPage:
        """Return the rendered page; the record names a failure."""


RendererOpener = Callable[[], AbstractAsyncContextManager[PageRenderer]]


@dataclass(slots=True)
class ImportOutcome:
    """The outcome of an import; with faults, nothing was stored.

    Args:
        stored: index keys of stored pages, by task.
        kept: pages that stay as they are, since they look better than the imported ones.
        uncited: pages that no answer cites.
    """

    faults: list[Fault] = field(default_factory=list)
    stored: dict[str, list[str]] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    uncited: list[str] = field(default_factory=list)


async def import_file(
    path: Path,
    cache: AgentCache,
    tasks: Sequence[TaskCitations],
    open_renderer: RendererOpener,
    *,
    task_ids: Sequence[str] = (),
    url: str | None = None,
) -> ImportOutcome:
    """Store the pages of a file: each in the named tasks, or else in those whose answers cite it.

    All pages are read and rendered before the first is stored. No browser is opened where none is
    rendered.

    Args:
        url: the page's, for a file that does not say it.

    Raises:
        UsageError: the file is of no known type.
        CacheWriteError: the cache cannot be written.
    """
    found = reader_of(path, url)
    citing_tasks = _citing_tasks(tasks, task_ids)
    outcome = ImportOutcome(faults=await asyncio.to_thread(_faults, found))
    if outcome.faults:
        return outcome
    with tempfile.TemporaryDirectory(prefix="mind2web2-import-") as folder:
        staging = CacheFileSys(folder)
        staged = _Staging(found(), path.name, citing_tasks, task_ids, staging, outcome)
        await staged.run(open_renderer)
        if not outcome.faults:
            await asyncio.to_thread(_store, staging, staged.places, cache, outcome)
    return outcome


def _citing_tasks(
    tasks: Sequence[TaskCitations], task_ids: Sequence[str]
) -> dict[str | None, list[tuple[str, str]]]:
    """Return which tasks cite a page, each with its spelling, by lookup key."""
    citing_tasks: dict[str | None, list[tuple[str, str]]] = {}
    for task in tasks:
        if not task_ids or task.task_id in task_ids:
            for url in task.urls():
                citing_tasks.setdefault(lookup_key(url), []).append((task.task_id, url))
    return citing_tasks


def _faults(found: FoundPages) -> list[Fault]:
    """Return the faults of a file, twice the same page included."""
    faults = []
    places: dict[str | None, str] = {}
    try:
        for page in found():
            if isinstance(page, Fault):
                faults.append(page)
            elif (first := places.setdefault(lookup_key(page.url), page.place)) != page.place:
                faults.append(Fault(page.place, f"the same page as {first}: {page.url[:200]}"))
    except OSError as error:
        faults.append(Fault("the file", f"cannot be read: {error.strerror or error}"))
    if not places and not faults:
        faults.append(Fault("the file", "it holds no page"))
    return faults


@dataclass
class _Staging:
    """Puts the pages that a task wants into a cache of their own, before any is stored for good."""

    pages: Iterator[FoundPage | Fault]
    source: str
    wanted: Mapping[str | None, Sequence[tuple[str, str]]]
    task_ids: Sequence[str]
    staging: CacheFileSys
    outcome: ImportOutcome
    places: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _renderer: PageRenderer | None = None

    async def run(self, open_renderer: RendererOpener) -> None:
        """Read and render all pages."""
        async with AsyncExitStack() as exits:
            await all_or_first_error(
                self._work(exits, open_renderer) for _ in range(_PAGES_AT_ONCE)
            )

    async def _work(self, exits: AsyncExitStack, open_renderer: RendererOpener) -> None:
        while True:
            async with self._lock:
                page = await asyncio.to_thread(next, self.pages, None)
                if (
                    isinstance(page, FoundPage)
                    and page.stored is not None
                    and self._renderer is None
                ):
                    self._renderer = await exits.enter_async_context(open_renderer())
            if page is None:
                return
            assert isinstance(page, FoundPage), "the file has no faults"
            cited_by = dict(self.wanted.get(lookup_key(page.url), ()))
            tasks = {
                task_id: cited_by.get(task_id, page.url) for task_id in self.task_ids
            } or cited_by
            if not tasks:
                self.outcome.uncited.append(page.url)
                continue
            try:
                captured = await self._render(page)
                await asyncio.to_thread(self.staging.put_capture, captured, url=page.url)
            except (DocumentError, CaptureError, CacheWriteError) as error:
                self.outcome.faults.append(Fault(page.place, f"{page.url[:200]}: {error}"))
            self.places[page.url] = list(tasks.items())

    async def _render(self, found: FoundPage) -> CapturedPage:
        """Return a page as the file has it, completed by rendering it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rendered = CapturedPage(
            CaptureRecord(
                requested_url=found.url,
                final_url=found.url,
                kind="web",
                captured_at=now,
            )
        )
        if found.stored is not None and (found.text is None or found.screenshot is None):
            assert self._renderer is not None, "opened with the first such page"
            rendered = await self._renderer.render(found.url, found.stored)
            if rendered.record.kind is None:
                raise CaptureError(f"cannot be rendered: {rendered.record.failure}")
        record = rendered.record.model_copy(
            update={
                "captured_at": found.fetched_at or now,
                "imported_from": self.source,
                "status": found.status or rendered.record.status,
            }
        )
        if found.text is not None:
            seen = PageObservation(
                requested_url=found.url,
                final_url=record.final_url,
                status=record.status,
                title=record.title,
                text=found.text,
                text_chars=len(found.text),
            )
            record = record.model_copy(
                update={
                    "troubles": signs_of_trouble(seen),
                    "text_chars": len(found.text),
                }
            )
        return replace(
            rendered,
            record=record,
            text=rendered.text if found.text is None else found.text,
            screenshot=found.screenshot or rendered.screenshot,
        )


def _store(
    source: CacheFileSys,
    places: Mapping[str, Sequence[tuple[str, str]]],
    cache: AgentCache,
    outcome: ImportOutcome,
) -> None:
    for url, tasks in places.items():
        for task_id, spelling in tasks:
            task_cache = cache.of(task_id)
            task_cache.copy_page(spelling, source)
            if task_cache.digest(spelling) == source.digest(url):
                outcome.stored.setdefault(task_id, []).append(spelling)
            else:
                outcome.kept.append(spelling)


def reader_of(path: Path, url: str | None) -> FoundPages:
    """Return the function that reads the pages of a file, which may be called again.

    Raises:
        UsageError: the file's type is unknown, or it does not say a page's URL where none is given.
    """
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return lambda: _json_pages(path)
    ending = name.rpartition(".")[2]
    importer: Importer | None = load_part("page_importers", ending)
    if importer is not None:
        return importer(path, url)
    endings = "".join(f", .{ending}" for ending in parts_of("page_importers"))
    raise UsageError(f"{path} is none of .jsonl{endings}, or a cache folder")


class _PageLine(BaseModel):
    """A line of a JSON lines file; see docs/pages.md."""

    model_config = ConfigDict(strict=True)

    url: str
    text: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    html: str | None = None
    screenshot: str | None = None
    fetched_at: str | None = None
    status: int | None = Field(None, ge=200, le=599)


def _json_pages(path: Path) -> Iterator[FoundPage | Fault]:
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(MAX_FILE_BYTES):
            number += 1
            if line.strip():
                place = f"line {number}"
                try:
                    yield _json_page(place, _PageLine.model_validate_json(line), path.parent)
                except ValidationError as error:
                    yield Fault(
                        place,
                        "; ".join(map(_in_words, error.errors(include_url=False))),
                    )
                except (ValueError, DocumentError) as error:
                    yield Fault(place, str(error))


def _in_words(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))
    if where:
        return f"{where}: {error['msg']}"
    return str(error["msg"])


def _json_page(place: str, line: _PageLine, folder: Path) -> FoundPage:
    if not is_web_address(line.url):
        raise ValueError(f"url is no http or https address: {line.url[:200]!r}")
    if line.text is None and not line.html:
        raise ValueError("has neither text nor html")
    stored = None
    if line.html:
        status = 200 if line.status in (None, *_WITHOUT_CONTENT) else line.status
        headers = {"content-type": "text/html; charset=utf-8"}
        html = line.html.encode(errors="replace")
        stored = StoredByUrl({line.url: StoredResponse(html, headers, status or 200)})
    screenshot = _screenshot(line.screenshot, folder) if line.screenshot else None
    return FoundPage(
        place,
        line.url,
        line.text,
        screenshot,
        stored,
        line.status,
        _moment(line.fetched_at, "fetched_at"),
    )


def _screenshot(screenshot: str, folder: Path) -> bytes | None:
    if len(screenshot) <= _MAX_PATH_CHARS and not screenshot.startswith("data:"):
        file = folder / screenshot
        if not file.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"screenshot: {file} is outside of the folder of the imported file")
        if file.is_file():
            return screenshot_bytes(read_regular_file(file, MAX_FILE_BYTES))
        if file.suffix:
            raise ValueError(f"screenshot: there is no file {file}")
    return screenshot_bytes(screenshot)


def _moment(text: str | None, name: str) -> str | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} is no date such as 2025-03-14T09:30:00Z: {text[:50]!r}") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")
