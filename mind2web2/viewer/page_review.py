"""A person's decisions about pages: right, wrong, capture, upload, remove, undo."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.routing import Route

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import (
    CapturedPage,
    CaptureRecord,
    CaptureSettings,
    PageKind,
    Review,
)
from mind2web2.errors import CacheReadError, CacheWriteError, UsageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cache_files import screenshot_bytes
from mind2web2.pages.citations import listed_urls
from mind2web2.pages.found_pages import Fault
from mind2web2.pages.importing import reader_of
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import is_file_name
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import Json, NoSuchResultError
from mind2web2.viewer.routes import TARGET_PATH, json_route, page_key
from mind2web2.viewer.stored_pages import PageKey, StoredPages

log = logging.getLogger(__name__)

_TARGET_VALID_S = 600.0
MAX_UPLOAD_BYTES = 200 * 1024**2
Model = TypeVar("Model", bound=BaseModel)
Decision = Literal["right", "wrong", "remove"]
# This folder beside a task's pages holds all decisions, a line each, and each page as it was before
# its decision.
REVIEWS_NAME = "reviews.jsonl"
KEPT_NAME = ".reviewed"
_ORDER = {"failed": 0, "suspect": 1, "stored": 2}


@dataclass(frozen=True, slots=True)
class Reviewer:
    """The reviewer, and the browser with which pages are captured again."""

    name: str
    capture: CaptureSettings


class _Decision(BaseModel):
    """A decision about a page, which is one line of the reviews.

    Args:
        kept: the folder with the page as it was before.
        after: the state of the page after the decision.
    """

    url: str
    kept: str
    decision: str | None = None
    after: str | None = None


class PageReview:
    """The pages of the agents that a viewer shows."""

    def __init__(self, catalog: Catalog, reviewer: Reviewer) -> None:
        self._catalog = catalog
        self._reviewer = reviewer
        self._pages = StoredPages(catalog.paths)
        self._capturing = asyncio.Lock()

    def listed(self, agent: str) -> list[Json]:
        """Return all cited or stored pages of an agent, failed and suspect ones first."""
        tasks = dict.fromkeys(answer.task_id for answer in self._catalog.answers(agent))
        rows = [row for task in tasks for row in self._rows(agent, task)]
        return sorted(rows, key=lambda row: (_ORDER[row["state"]], row["task"], row["url"]))

    def decide(self, key: PageKey, decision: Decision) -> Json:
        """Record a person's decision about a page, and return the page's new row."""
        cache = self._pages.cache(key)
        record = cache.capture_record(key.url)
        kind = cache.has(key.url)
        if kind is None and decision != "remove":
            raise UsageError("the page is not stored: capture it or upload it")
        kept = self._keep(key)
        if decision == "remove":
            cache.remove(key.url)
        elif decision == "wrong":
            why = f"{self._reviewer.name} marked the stored page as wrong"
            cache.remove(key.url, self._record(key, None, "wrong", record, failure=why))
        else:
            cache.replace_record(key.url, self._record(key, kind, "right", record))
        return self._note_decision(key, decision, kept)

    def undo(self, key: PageKey) -> Json:
        """Put back a page as it was before its latest decision, and return the page's new row.

        Where the page has changed since that decision, this can be undone, too.

        Raises:
            UsageError: there is no decision to undo, or the page of before was deleted.
        """
        latest = self._undoable(key.agent, key.task).get(_page(key.url))
        if latest is None:
            raise UsageError("there is no decision about this page to undo")
        folder = self._backup_folder(key, latest.kept)
        if not folder.is_dir():
            raise UsageError(f"cannot be undone: the copy of the page in {folder} was deleted")
        kept = CacheFileSys(folder)
        # Another command's capture is not lost.
        if latest.after != self._state(key):
            since = self._keep(key)
        else:
            since = None
        # Use the key, because the page's address may redirect to it.
        self._pages.cache(key).mirror_page(next(iter(kept.get_all_urls()), key.url), kept)
        if since is not None:
            self._note_decision(key, f"undo of {latest.decision}", since)
        row = self._note_decision(key, "undo", latest.kept)
        shutil.rmtree(folder, ignore_errors=True)
        return row

    def upload(
        self,
        key: PageKey,
        *,
        text: str | None = None,
        screenshot: bytes | str | None = None,
        pdf: bytes | None = None,
        actual_url: str | None = None,
    ) -> Json:
        """Store a person's capture of a page in place of the stored page.

        Args:
            actual_url: where the browser ended up.

        Raises:
            UsageError: there is neither a text nor a picture nor a PDF.
            DocumentError: the screenshot is damaged.
        """
        picture = screenshot_bytes(screenshot)
        if pdf is None and picture is None and not (text or "").strip():
            raise UsageError("nothing to store: neither text nor picture nor PDF")
        if pdf is not None and not pdf.startswith(b"%PDF"):
            raise UsageError("the file is not a PDF")
        kind: PageKind = "web" if pdf is None else "pdf"
        record = self._record(key, kind, "uploaded", None)
        if actual_url:
            record = record.model_copy(update={"final_url": actual_url})
        return self._replace(key, CapturedPage(record, None if pdf else text or "", picture, pdf))

    async def upload_mhtml(self, key: PageKey, content: bytes) -> Json:
        """Render an MHTML file without a network, and store the page in place of the stored one.

        Raises:
            UsageError: it is not an MHTML file, or shows nothing.
            MachineError: there is no browser.
        """
        with tempfile.TemporaryDirectory(prefix="mind2web2-upload-") as folder:
            path = Path(folder) / "upload.mhtml"
            await asyncio.to_thread(path.write_bytes, content)
            found = await asyncio.to_thread(lambda: next(iter(reader_of(path, key.url)())))
        if isinstance(found, Fault) or found.stored is None:
            raise UsageError(f"not an MHTML file of a page: {found}")
        async with self._browser() as browser:
            page = await browser.render(key.url, found.stored)
        if page.record.kind is None:
            raise UsageError(f"cannot be rendered: {page.record.failure}")
        record = self._record(key, page.record.kind, "uploaded", page.record)
        return await asyncio.to_thread(self._replace, key, replace(page, record=record))

    def _replace(self, key: PageKey, page: CapturedPage) -> Json:
        kept = self._keep(key)
        self._pages.cache(key).put_capture(page, url=key.url, must_replace=True)
        return self._note_decision(key, "upload", kept)

    @asynccontextmanager
    async def _browser(self) -> AsyncIterator[BatchBrowserManager]:
        # Captures run one at a time, because a person waits for each.
        async with self._capturing:
            settings = self._reviewer.capture
            async with BatchBrowserManager(settings.headless, 1, settings=settings) as browser:
                yield browser

    async def recapture(self, key: PageKey) -> Json:
        """Capture a page again and return its new row.

        The stored page stays where the new capture is worse.

        Raises:
            MachineError: there is no browser.
            UsageError: the page yields nothing, or a worse one than is stored.
        """
        async with self._browser() as browser:
            page = await browser.capture(key.url, log)
        if page.record.failure:
            raise UsageError(f"not captured: {page.record.failure}")
        kept = await asyncio.to_thread(self._keep, key)
        if not await asyncio.to_thread(self._pages.cache(key).put_capture, page, url=key.url):
            shutil.rmtree(self._backup_folder(key, kept), ignore_errors=True)
            raise UsageError(
                "captured, but the stored page looks better and stays; remove it first"
            )
        return await asyncio.to_thread(self._note_decision, key, "recapture", kept)

    def _record(
        self,
        key: PageKey,
        kind: PageKind | None,
        decision: Literal["right", "wrong", "uploaded"],
        before: CaptureRecord | None,
        failure: str | None = None,
    ) -> CaptureRecord:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        earlier = self._pages.cache(key).capture_record(key.url)
        troubles = () if earlier is None else earlier.troubles
        if earlier is not None and earlier.reviewed is not None:
            troubles += earlier.reviewed.troubles
        review = Review(decision=decision, by=self._reviewer.name, created=now, troubles=troubles)
        if before is None:
            before = CaptureRecord(
                requested_url=key.url, final_url=key.url, kind=kind, captured_at=now
            )
        changes = {
            "kind": kind,
            "troubles": (),
            "failure": failure,
            "is_transient": False,
            "reviewed": review,
        }
        return before.model_copy(update=changes)

    def _keep(self, key: PageKey) -> str:
        """Copy the page, so that a decision can be undone, and return the copy's name."""
        name = f"{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"
        CacheFileSys(self._backup_folder(key, name)).mirror_page(key.url, self._pages.cache(key))
        return name

    def _backup_folder(self, key: PageKey, name: str) -> Path:
        return self._pages.cache(key).task_dir / KEPT_NAME / name

    def _note_decision(self, key: PageKey, decision: str, kept: str) -> Json:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        by = self._reviewer.name
        made = {
            "url": key.url,
            "decision": decision,
            "by": by,
            "created": now,
            "kept": kept,
            "after": self._state(key),
        }
        _append(self._pages.cache(key).task_dir / REVIEWS_NAME, made)
        return self._row(key, self._pages.cache(key), self._undoable(key.agent, key.task))

    def _state(self, key: PageKey) -> str:
        """Return a hash of the page's files and record."""
        cache = self._pages.cache(key)
        record = cache.capture_record(key.url)
        parts = [
            b"" if record is None else record.model_dump_json().encode(),
            *map(read_regular_file, cache.page_files(key.url)),
        ]
        return hashlib.sha256(
            b"".join(hashlib.sha256(part).digest() for part in parts)
        ).hexdigest()[:16]

    def _undoable(self, agent: str, task: str) -> dict[str, _Decision]:
        """Return the latest decision about each page that can be undone."""
        path = self._pages.cache(PageKey(agent, task, "")).task_dir / REVIEWS_NAME
        made: dict[str, _Decision] = {}
        for line in read_regular_file(path).splitlines() if path.is_file() else ():
            try:
                decision = _Decision.model_validate_json(line)
            except ValueError:
                continue  # cut short by a crash
            if decision.decision == "undo":
                made.pop(decision.kept, None)
            elif is_file_name(decision.kept):
                made[decision.kept] = decision
        return {_page(decision.url): decision for decision in made.values()}

    def _rows(self, agent: str, task: str) -> Iterator[Json]:
        cache = self._pages.cache(PageKey(agent, task, ""))
        urls = [*cache.get_all_urls(), *cache.capture_records()]
        try:
            urls += listed_urls(self._catalog.paths.cache_root / agent / f"{task}.json")
        except CacheReadError as error:
            log.warning("list of cited pages not read: %s", error)
        pages: dict[str, str] = {}
        for url in urls:
            pages.setdefault(_page(url), url)
        undoable = self._undoable(agent, task)
        yield from (self._row(PageKey(agent, task, url), cache, undoable) for url in pages.values())

    def _row(self, key: PageKey, cache: CacheFileSys, undoable: Mapping[str, _Decision]) -> Json:
        record, kind = cache.capture_record(key.url), cache.has(key.url)
        latest = undoable.get(_page(key.url))
        is_suspect = record is not None and record.is_suspect
        return {
            "agent": key.agent,
            "task": key.task,
            "url": key.url,
            "kind": kind,
            "state": "failed" if kind is None else "suspect" if is_suspect else "stored",
            "reason": "not captured yet"
            if record is None and kind is None
            else record and record.failure,
            "troubles": [trouble.kind for trouble in record.troubles] if record is not None else [],
            "reviewed": record.reviewed.model_dump()
            if record is not None and record.reviewed
            else None,
            "undo": None if latest is None else latest.decision,
        }


def _page(url: str) -> str:
    return lookup_key(url) or url


def _append(path: Path, made: Json) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(made, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CacheWriteError(f"cannot write to {path}: {error.strerror or error}") from error


# Routes for the front end and the browser extension


class Asked(BaseModel):
    """A page, and the decision about it."""

    model_config = ConfigDict(frozen=True)

    agent: str
    task: str
    url: str
    decision: Decision = "right"

    @property
    def key(self) -> PageKey:
        """Return the page."""
        return PageKey(self.agent, self.task, self.url)


class ExtensionCapture(BaseModel):
    """A page as the browser extension sends it; ``actual_url`` is where the browser ended up."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    url: str
    text: str = ""
    screenshot_base64: str | None = None
    actual_url: str | None = None


class ExtensionTarget(BaseModel):
    """The page that the extension is to capture next."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    url: str
    agent: str | None = None


class PageRoutes:
    """The routes of one session; they share the page that the extension is to capture.

    The extension has no key: any program of this machine can speak in its name. So it may send only
    the page for which a person pressed the button, once, and not long after.

    Args:
        clock: returns the seconds by which a choice of a page expires.
    """

    def __init__(
        self,
        review: PageReview,
        agents: list[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._review = review
        self._agents = agents
        self._clock = clock
        self._target: ExtensionTarget | None = None
        self._target_expires_s = 0.0

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            json_route("/api/pages", self._list),
            json_route("/api/page-decision", self._decide, "POST"),
            json_route("/api/page-undo", self._undo, "POST"),
            json_route("/api/page-recapture", self._recapture, "POST"),
            json_route("/api/page-upload", self._upload, "POST"),
            json_route(TARGET_PATH, self._shown_target),
            json_route(TARGET_PATH, self._set_target, "POST"),
            json_route("/api/capture", self._extension_capture, "POST"),
            json_route("/api/upload-pdf/{task}", self._upload_pdf, "POST"),
            json_route("/api/upload-mhtml/{task}", self._upload_mhtml, "POST"),
        ]

    def _list(self, request: Request) -> list[Json]:
        return self._review.listed(request.query_params.get("agent", ""))

    async def _decide(self, request: Request) -> Json:
        asked = await _read(request, Asked)
        return await run_in_threadpool(self._review.decide, asked.key, asked.decision)

    async def _undo(self, request: Request) -> Json:
        return await run_in_threadpool(self._review.undo, (await _read(request, Asked)).key)

    async def _recapture(self, request: Request) -> Json:
        return await self._review.recapture((await _read(request, Asked)).key)

    async def _upload(self, request: Request) -> Json:
        """Store an uploaded file: a PDF, an MHTML file, an image or a text."""
        key = page_key(request)
        content = await _body(request)
        kind = request.headers.get("content-type", "").partition(";")[0]
        if _is_mhtml(content):
            return await self._review.upload_mhtml(key, content)
        stored: dict[str, Any] = {}
        if kind == "application/pdf" or content.startswith(b"%PDF"):
            stored["pdf"] = content
        elif kind.startswith("image/"):
            stored["screenshot"] = content
        elif kind.startswith("text/"):
            stored["text"] = content.decode("utf-8", "replace")
        else:
            raise UsageError(
                f"cannot store a file of type {kind or 'unknown'}: choose a PDF, MHTML, image or "
                "text"
            )
        return await run_in_threadpool(lambda: self._review.upload(key, **stored))

    async def _set_target(self, request: Request) -> Json:
        self._target = await _read(request, ExtensionTarget)
        self._target_expires_s = self._clock() + _TARGET_VALID_S
        return self._target.model_dump()

    def _shown_target(self, _: Request) -> Json | None:
        target = self._valid_target()
        return None if target is None else target.model_dump()

    def _valid_target(self) -> ExtensionTarget | None:
        return self._target if self._clock() < self._target_expires_s else None

    async def _extension_capture(self, request: Request) -> Json:
        sent = await _read(request, ExtensionCapture)
        key = self._chosen_page(sent.task_id, sent.url)
        screenshot, actual_url = sent.screenshot_base64, sent.actual_url
        row = await run_in_threadpool(
            lambda: self._review.upload(
                key, text=sent.text, screenshot=screenshot, actual_url=actual_url
            )
        )
        return self._finish_upload(row)

    async def _upload_pdf(self, request: Request) -> Json:
        key, content = self._uploaded_page(request), await _body(request)
        return self._finish_upload(
            await run_in_threadpool(lambda: self._review.upload(key, pdf=content))
        )

    async def _upload_mhtml(self, request: Request) -> Json:
        key, content = self._uploaded_page(request), await _body(request)
        return self._finish_upload(await self._review.upload_mhtml(key, content))

    def _finish_upload(self, row: Json) -> Json:
        self._target = None
        return {"success": True, "page": row}

    def _uploaded_page(self, request: Request) -> PageKey:
        task = request.path_params["task"]
        return self._chosen_page(task, request.query_params.get("url", ""))

    def _chosen_page(self, task: str, url: str) -> PageKey:
        """Return the key of the page that the extension sends.

        Raises:
            UsageError: no person has chosen this page, or too long ago.
        """
        target = self._valid_target()
        if target is None or target.task_id != task or _page(target.url) != _page(url):
            raise UsageError(
                "not the chosen page: press For the extension beside the page in the viewer first"
            )
        if target.agent in self._agents:
            return PageKey(str(target.agent), task, target.url)
        if len(self._agents) == 1:
            return PageKey(self._agents[0], task, target.url)
        raise UsageError("several agents are shown: choose the page in the viewer first")


async def _read(request: Request, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(await _body(request))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _is_mhtml(content: bytes) -> bool:
    head = content[:4096].lower()
    return b"mime-version:" in head and b"multipart/related" in head


async def _body(request: Request) -> bytes:
    """Return the body, or the one file of a form."""
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_UPLOAD_BYTES:
            raise UsageError(
                f"the form is larger than {MAX_UPLOAD_BYTES // 1024**2} MB, or does not say how "
                "large"
            )
        async with request.form(max_files=1, max_part_size=MAX_UPLOAD_BYTES) as form:
            for value in form.values():
                if isinstance(value, UploadFile):
                    return await value.read()
        raise NoSuchResultError("the form holds no file")
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_UPLOAD_BYTES:
            raise UsageError(f"the file is larger than {MAX_UPLOAD_BYTES // 1024**2} MB")
        chunks.append(chunk)
    return b"".join(chunks)
