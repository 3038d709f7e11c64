"""The record beside a cached page: where it came from and what looks wrong about it."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.utils.cache_pages import PageKind, file_state, read_file, screenshot_bytes
from mind2web2.utils.unicode_text import as_unicode_text
from mind2web2.utils.url_key import lookup_key
from mind2web2.utils.url_parts import clean_url, split_url

if TYPE_CHECKING:
    from mind2web2.capture.record import CapturedPage, CaptureRecord

_log = logging.getLogger(__name__)

_WORTH_UNRECORDED = 2
FAILURES_NAME = "failures.json"
REDIRECTS_NAME = "redirects.json"
_SIDECAR_FILE = re.compile(r"[0-9a-f]{32}\.capture\.json")


def is_sidecar(name: str) -> bool:
    """Tell whether a file in a cache folder is the record of a capture."""
    return _SIDECAR_FILE.fullmatch(name) is not None


def sidecar_text(record: CaptureRecord) -> str:
    """Return a record as its file has it."""
    # Through json: a title may hold lone surrogates, which pydantic refuses to write.
    return as_unicode_text(json.dumps(record.model_dump(), ensure_ascii=False, indent=2)) + "\n"


def read_sidecar(path: Path) -> CaptureRecord | None:
    """Return the record in a file, ``None`` where there is none or it is damaged, the latter with a warning.

    Raises:
        CacheReadError: the file exists and cannot be read.
    """
    raw = read_file(path)
    if raw is None:
        return None
    from pydantic import ValidationError  # slow to load, and most readers of a cache read no records

    from mind2web2.capture.record import CaptureRecord

    try:
        return CaptureRecord.model_validate_json(raw)
    except ValidationError as error:
        _log.warning("capture record ignored, it is damaged file=%s fields=%d", path, error.error_count())
        return None


class UrlNotes:
    """A JSON object by URL that another tool keeps in a cache folder, read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[object, dict[str, tuple[str, object]]] = (None, {})

    def get(self, url: str) -> object | None:
        """Return what is noted for any spelling of a URL, ``None`` for nothing."""
        page = lookup_key(url)
        noted = self._current().get(page) if page is not None else None
        return None if noted is None else noted[1]

    def urls(self) -> list[str]:
        """Return the URLs as the file spells them."""
        return [url for url, _ in self._current().values()]

    def _current(self) -> dict[str, tuple[str, object]]:
        state = file_state(str(self._path))
        if state != self._read[0]:
            self._read = (state, self._notes())
        return self._read[1]

    def _notes(self) -> dict[str, tuple[str, object]]:
        raw = read_file(self._path)
        try:
            notes = {} if raw is None else json.loads(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            notes = None
        if not isinstance(notes, dict):
            _log.warning("%s is damaged and ignored", self._path)
            return {}
        pages = ((lookup_key(url), url, note) for url, note in notes.items())
        return {page: (url, note) for page, url, note in pages if page is not None}


def listed_failure_record(url: str, note: object) -> CaptureRecord | None:
    """Return the record of a page that ``failures.json`` lists, ``None`` for one that it does not."""
    from mind2web2.capture.record import CaptureRecord

    if note is None:
        return None
    fields = note if isinstance(note, dict) else {}
    reason, time, attempts = (fields.get(name) for name in ("reason", "time", "attempts"))
    return CaptureRecord(
        requested_url=url,
        final_url=url,
        kind=None,
        captured_at=str(time or ""),
        failure=str(reason or f"listed in {FAILURES_NAME} without a reason"),
        tries=attempts if isinstance(attempts, int) else 1,
    )


def may_replace(
    captured: CaptureRecord, stored: CaptureRecord | None, *, must_be_better: bool = False
) -> bool:
    """Tell whether a capture is as good as the stored page's, whose record may be missing.

    A page without a record is an older tool's: it gives way to a clean capture, not to a suspect one.

    Args:
        must_be_better: as good is not enough, but for what a server sent while it was out of order.
    """
    before = _WORTH_UNRECORDED if stored is None else _worth(stored)
    if must_be_better and not (stored is not None and stored.is_transient):
        return _worth(captured) > before
    return _worth(captured) >= before


def redirect_target(record: CaptureRecord) -> str | None:
    """Return the other URL that a capture is as good for: where the page was redirected to."""
    final = lookup_key(record.final_url)
    if record.kind is None or record.is_suspect or final is None:
        # Where a login or an error page is the target, its own URL may well show something else.
        return None
    if _route(record.final_url) != _route(record.requested_url):
        # One view of an application is not its others.
        return None
    is_web = record.final_url.lower().startswith(("http://", "https://"))
    return record.final_url if is_web and final != lookup_key(record.requested_url) else None


def _route(url: str) -> str:
    """Return the client-side route in a URL's fragment, empty where there is none."""
    return split_url(clean_url(url)).route


def content_of(page: CapturedPage) -> tuple[PageKind, list[bytes | None]] | None:
    """Return the contents of the files that a page of this kind has, ``None`` if it yielded nothing.

    Raises:
        DocumentError: the screenshot is no image.
    """
    if page.record.kind is None:
        return None
    if page.record.kind == "pdf":
        if page.pdf is None:
            raise ValueError(f"a PDF without its bytes: {page.record.requested_url}")
        return "pdf", [page.pdf]
    return "web", [as_unicode_text(page.text or "").encode(), screenshot_bytes(page.screenshot)]


def _worth(record: CaptureRecord) -> int:
    if record.kind is None:
        return 0
    return 1 if record.is_suspect else 3
