"""WARC files: pages that crawlers stored."""

from __future__ import annotations

import gzip
import json
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from gzip import BadGzipFile
from pathlib import Path
from typing import Any
from zlib import error as ZlibError  # noqa: N812 - an exception's name

from mind2web2.capture.models import StoredResponse
from mind2web2.errors import DocumentError, UsageError
from mind2web2.pages.cache_files import screenshot_bytes
from mind2web2.pages.found_pages import Fault, FoundPage, FoundPages
from mind2web2.urls.parts import lookup_key

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 100 * 1024**2
# A packed file unpacks to no more than this and so many times its size; pages pack to a tenth, or
# to a third.
_MAX_UNPACKED_BYTES = 256 * 1024**2
_MAX_UNPACKED_RATIO = 20
_MAX_READ_S = 600.0
# As Browsertrix names a page's text and screenshot.
_TEXT, _SCREENSHOT = "urn:text:", "urn:view:"
_DROPPED_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a file has its records on one URL, as offsets."""

    place: str
    url: str
    response: int | None = None
    text: int | None = None
    screenshot: int | None = None
    metadata: int | None = None
    status: int | None = None
    date: str | None = None


class WarcFile:
    """A WARC file, compressed or not; only where its records are is kept in memory.

    Raises:
        UsageError: it is damaged; the text says after which record.
    """

    def __init__(self, path: Path) -> None:
        from warcio.archiveiterator import ArchiveIterator
        from warcio.exceptions import ArchiveLoadFailed

        self._path = path
        self._entries: dict[str, _Entry] = {}
        number = 0
        ends_at = time.monotonic() + _MAX_READ_S
        _check_unpacked_size(path, ends_at)
        try:
            with path.open("rb") as file:
                records = ArchiveIterator(file)
                for record in records:
                    number += 1
                    _check_time(ends_at)
                    self._note(record, f"record {number}", records.get_record_offset())
            _check_end(path)
        except (
            ArchiveLoadFailed,
            EOFError,
            ValueError,
            ZlibError,
            BadGzipFile,
        ) as error:
            reason = " ".join(str(error).split())[:200]
            raise UsageError(f"the file is damaged after record {number}: {reason}") from error

    def pages(self) -> Iterator[FoundPage | Fault]:
        """Yield the pages, in the order of the file."""
        for entry in self._entries.values():
            if entry.response is None and entry.text is None:
                continue
            status, date = entry.status, entry.date
            if entry.metadata is not None:
                status, date = _status_and_time(self._read(entry.metadata).body, status, date)
            screenshot = None if entry.screenshot is None else self._read(entry.screenshot).body
            try:
                yield FoundPage(
                    place=entry.place,
                    url=entry.url,
                    text=None
                    if entry.text is None
                    else self._read(entry.text).body.decode(errors="replace"),
                    screenshot=screenshot_bytes(screenshot),
                    stored=None if entry.response is None else self,
                    status=status,
                    fetched_at=_in_utc(date),
                )
            except DocumentError as error:
                yield Fault(entry.place, str(error))

    def get(self, url: str) -> StoredResponse | None:
        """Return the response to any spelling of a URL, ``None`` for none; reads the file."""
        entry = self._entries.get(lookup_key(url) or "") if url.startswith("http") else None
        return None if entry is None or entry.response is None else self._read(entry.response)

    def _note(self, record: Any, place: str, offset: int) -> None:
        target = record.rec_headers.get_header("WARC-Target-URI") or ""
        url = target.removeprefix(_TEXT).removeprefix(_SCREENSHOT)
        key = lookup_key(url)
        if key is None or not url.startswith("http"):
            return
        entry = self._entries.get(key) or _Entry(place, url)
        if target.startswith(_TEXT):
            entry = replace(entry, text=offset)
        elif target.startswith(_SCREENSHOT):
            entry = replace(entry, screenshot=offset)
        elif record.rec_type == "metadata":
            entry = replace(entry, metadata=offset)
        elif record.rec_type in ("response", "resource"):
            status = int(record.http_headers.get_statuscode() or 0) if record.http_headers else 200
            # If there are several responses, the last good one counts.
            if entry.response is None or status < 400:
                date = record.rec_headers.get_header("WARC-Date")
                entry = replace(
                    entry,
                    place=place,
                    url=url,
                    response=offset,
                    status=status,
                    date=date,
                )
        self._entries[key] = entry

    def _read(self, offset: int) -> StoredResponse:
        from warcio.archiveiterator import ArchiveIterator

        with self._path.open("rb") as file:
            file.seek(offset)
            record = next(ArchiveIterator(file))
            body = bytearray()
            try:
                while len(body) <= MAX_BODY_BYTES and (
                    chunk := record.content_stream().read(256 * 1024)
                ):
                    body += chunk
            except (OSError, ValueError, ZlibError) as error:
                log.warning(
                    "body cut short, it is damaged file=%s offset=%d: %s",
                    self._path,
                    offset,
                    error,
                )
            fields = record.http_headers.headers if record.http_headers else ()
            headers = {name.lower(): value for name, value in fields}
            for name in _DROPPED_HEADERS:
                headers.pop(name, None)
            if not fields:
                headers["content-type"] = record.rec_headers.get_header("Content-Type") or ""
            status = (
                int(record.http_headers.get_statuscode() or 200) if record.http_headers else 200
            )
        return StoredResponse(bytes(body[:MAX_BODY_BYTES]), headers, status)


def importer(path: Path, _url: str | None) -> FoundPages:
    """Return what reads the pages of a WARC file."""
    return partial(warc_pages, path)


def warc_pages(path: Path) -> Iterator[FoundPage | Fault]:
    """Yield the pages of a WARC file, or why it cannot be read."""
    try:
        warc = WarcFile(path)
    except UsageError as error:
        yield Fault(path.name, str(error))
        return
    yield from warc.pages()


def _check_unpacked_size(path: Path, ends_at: float) -> None:
    """Make sure that a packed file does not fill memory or disk.

    Raises:
        UsageError: it unpacks to too many bytes, or takes too long.
    """
    if not _is_packed(path):
        return
    most = _MAX_UNPACKED_BYTES + _MAX_UNPACKED_RATIO * path.stat().st_size
    size = 0
    # Damage is found, and its place named, when the records are read.
    with suppress(EOFError, ZlibError, BadGzipFile), gzip.open(path) as content:
        while chunk := content.read(1024**2):
            size += len(chunk)
            _check_time(ends_at)
            if size > most:
                raise UsageError(
                    f"the file unpacks to more than {most // 1024**2:,} MB, which no pages do"
                )


def _check_time(ends_at: float) -> None:
    if time.monotonic() > ends_at:
        raise UsageError(f"the file cannot be read within {_MAX_READ_S:g} s: divide it")


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _check_end(path: Path) -> None:
    """Refuse a file that ends within a record, which warcio would take for a whole one.

    Raises:
        EOFError: it ends earlier.
    """
    end = b""
    with gzip.open(path) if _is_packed(path) else path.open("rb") as content:
        while chunk := content.read(1024**2):
            end = (end + chunk)[-4:]
    if not end.endswith((b"\r\n\r\n", b"\n\n")):
        raise EOFError("it ends within the next one")


def _status_and_time(
    metadata: bytes, status: int | None, date: str | None
) -> tuple[int | None, str | None]:
    """Return status and time by the record of a capture, if it is one."""
    try:
        record = json.loads(metadata)
    except ValueError:
        return status, date
    if not isinstance(record, dict) or not isinstance(record.get("captured_at"), str):
        return status, date
    recorded_status = record.get("status")
    return (recorded_status if isinstance(recorded_status, int) else status), record["captured_at"]


def _in_utc(date: str | None) -> str | None:
    try:
        moment = datetime.fromisoformat(date or "")
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")
