"""The files of a cache folder, pages and index, shared with other processes.

file-layouts.md describes their names and contents.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from mind2web2.capture.models import CaptureRecord, PageKind
from mind2web2.errors import CacheReadError, CacheWriteError, DocumentError
from mind2web2.urls.parts import clean_url, lookup_key, split_url, storage_key
from mind2web2.utils.files import (
    MAX_JSON_BYTES,
    is_leftover,
    read_regular_file,
    stage_file,
    write_whole,
)
from mind2web2.utils.images import to_jpeg
from mind2web2.utils.json_text import mapping
from mind2web2.utils.text import as_unicode_text, is_unicode_text

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from mind2web2.capture.models import CapturedPage


_log = logging.getLogger(__name__)

_MAIN_SUFFIX: dict[PageKind, str] = {"web": ".txt", "pdf": ".pdf"}
# A capture keeps four million characters, a download 100 MB.
_MAX_BYTES = {".txt": 64 * 1024**2, ".jpg": 128 * 1024**2, ".pdf": 128 * 1024**2}
_PAGE_FILE = re.compile(r"[0-9a-f]{32}\.(?:txt|jpg|pdf)")
_DATA_URL = re.compile(r"data:[^,]*?(;base64)?,", re.IGNORECASE)
_WORTH_UNRECORDED = 2
FAILURES_NAME = "failures.json"
REDIRECTS_NAME = "redirects.json"
_SIDECAR_FILE = re.compile(r"[0-9a-f]{32}\.capture\.json")
_NOTE_NAME = ".replacing.json"
_PLAIN_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_INDEX_NAME = "index.json"
_LOCK_NAME = ".index.lock"
_LOCK_TIMEOUT_S = 60.0
_LOCK_POLL_S = 0.005
FileState = tuple[int, int, int]
# A page index as its file has it: URL to kind. Entries of other programs may be anything; they are
# kept.
IndexEntries = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Where a page has its files; a web page may have no screenshot."""

    text: Path
    screenshot: Path
    pdf: Path
    sidecar: Path

    @classmethod
    def of(cls, folder: Path, key: str) -> PageFiles:
        """Return the files of the page that the folder's index lists as ``key``."""
        stem = page_stem(key)
        suffixes = (".txt", ".jpg", ".pdf", ".capture.json")
        return cls(*(folder / f"{stem}{suffix}" for suffix in suffixes))

    def __iter__(self) -> Iterator[Path]:
        """Yield all files that a page may have."""
        yield from (self.text, self.screenshot, self.pdf, self.sidecar)

    def of_kind(self, kind: PageKind) -> tuple[Path, ...]:
        """Return the files that a page of this kind may have, the indispensable one first."""
        if kind == "web":
            return (self.text, self.screenshot)
        return (self.pdf,)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page of a cache folder, as the folder's index lists it."""

    folder: Path
    key: str
    kind: PageKind

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return its files, the indispensable one first."""
        return PageFiles.of(self.folder, self.key).of_kind(self.kind)

    @property
    def sidecar(self) -> Path:
        """Return the file of its record."""
        return PageFiles.of(self.folder, self.key).sidecar

    @property
    def state(self) -> Hashable | None:
        """Return a value that changes when its files are replaced; ``None`` if none are here."""
        main, *others = (file_state(path) for path in (*self.paths, self.sidecar))
        return None if main is None else (main, *others)


def known_kind(listed_kind: object) -> PageKind | None:
    """Return the kind that an index lists for a page; ``None`` for a kind of another program."""
    return listed_kind if listed_kind in ("web", "pdf") else None


def main_file_name(key: str, kind: PageKind) -> str:
    """Return the name of the file without which the page counts as not stored."""
    return page_stem(key) + _MAIN_SUFFIX[kind]


def is_page_file(name: str) -> bool:
    """Return whether a file in a cache folder belongs to a page."""
    return _PAGE_FILE.fullmatch(name) is not None


def screenshot_bytes(screenshot: bytes | str | None) -> bytes | None:
    """Return a screenshot (bytes, base64 text or ``data:`` URL) as JPEG, or ``None``.

    Raises:
        DocumentError: it is not base64 or no image that can be read.
    """
    if not screenshot:
        return None
    return to_jpeg(_decode(screenshot) if isinstance(screenshot, str) else bytes(screenshot))


def read_file(path: Path) -> bytes | None:
    """Return a file's content, or ``None`` if it does not exist.

    Raises:
        CacheReadError: it exists and cannot be read.
    """
    try:
        return read_regular_file(path, max_file_bytes(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CacheReadError(
            f"cannot read {path}: {error.strerror}; check its permissions and the disk"
        ) from error


def max_file_bytes(path: Path) -> int:
    """Return how large a file of a cache may be, for reading and writing alike."""
    return _MAX_BYTES.get(path.suffix, MAX_JSON_BYTES)


def file_state(path: Path | str) -> tuple[int, int, int] | None:
    """Return a value that changes when a file is replaced; ``None`` if there is no file.

    Raises:
        CacheReadError: it exists and cannot be looked at.
    """
    try:
        stat = os.stat(path)  # noqa: PTH116 - every lookup passes here: twice as fast
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CacheReadError(
            f"cannot read {path}: {error.strerror}; check its permissions"
        ) from error
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def decode_text(raw: bytes, path: Path) -> str:
    """Return a page's text; bytes that are not UTF-8 become U+FFFD, with a warning."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        _log.warning("page text is not valid utf-8 file=%s offset=%d", path, error.start)
        return raw.decode(errors="replace")


def content_digest(kind: PageKind, contents: Sequence[bytes | None]) -> str:
    """Return the SHA-256 hex digest that changes when the kind or any content changes."""
    digest = hashlib.sha256(kind.encode())
    for content in contents:
        # The length in front keeps text and screenshot from running into each other.
        digest.update(b"\0-" if content is None else b"\0%d\0" % len(content))
        digest.update(content or b"")
    return digest.hexdigest()


def _decode(screenshot: str) -> bytes:
    header = _DATA_URL.match(screenshot)
    payload = screenshot[header.end() :] if header else screenshot
    if header and not header[1]:
        return unquote_to_bytes(payload)
    try:
        return base64.b64decode("".join(payload.split()), validate=True)
    except binascii.Error as error:
        raise DocumentError(f"the screenshot is not base64 text: {error}") from error


def is_sidecar(name: str) -> bool:
    """Return whether a file in a cache folder is the record of a capture."""
    return _SIDECAR_FILE.fullmatch(name) is not None


def sidecar_text(record: CaptureRecord) -> str:
    """Return a record as its file has it."""
    # Through json: a title may hold lone surrogates, which pydantic refuses to write.
    return as_unicode_text(json.dumps(record.model_dump(), ensure_ascii=False, indent=2)) + "\n"


def read_sidecar(path: Path) -> CaptureRecord | None:
    """Return the record in a file, or ``None``; warn if the file is damaged.

    Raises:
        CacheReadError: the file exists and cannot be read.
    """
    raw = read_file(path)
    if raw is None:
        return None
    from pydantic import (
        ValidationError,
    )  # slow to load, and most readers of a cache read no records

    try:
        return CaptureRecord.model_validate_json(raw)
    except ValidationError as error:
        _log.warning(
            "capture record ignored, it is damaged file=%s fields=%d",
            path,
            error.error_count(),
        )
        return None


class UrlNotes:
    """A JSON object by URL that another tool keeps in a cache folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[object, dict[str, tuple[str, object]]] = (None, {})

    def get(self, url: str) -> object | None:
        """Return the note on any spelling of a URL; ``None`` if there is none."""
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
    """Return the record of a page that ``failures.json`` lists, else ``None``."""
    if note is None:
        return None
    fields = mapping(note)
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
    captured: CaptureRecord,
    stored: CaptureRecord | None,
    *,
    must_be_better: bool = False,
) -> bool:
    """Return whether a capture is as good as the stored page's, whose record may be missing.

    A page without a record is an older tool's: it gives way to a clean capture, not to a suspect
    one.

    Args:
        must_be_better: an equally good one stays, unless its server was out of order.
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
    """Return the contents of the files of a page of this kind, or ``None``.

    Raises:
        DocumentError: the screenshot is not an image.
    """
    if page.record.kind is None:
        return None
    if page.record.kind == "pdf":
        if page.pdf is None:
            raise ValueError(f"a PDF without its bytes: {page.record.requested_url}")
        return "pdf", [page.pdf]
    return "web", [
        as_unicode_text(page.text or "").encode(),
        screenshot_bytes(page.screenshot),
    ]


def _worth(record: CaptureRecord) -> int:
    if record.kind is None:
        return 0
    return 1 if record.is_suspect else 3


def replace_page(folder: Path, contents: Mapping[Path, bytes | str | None]) -> None:
    """Replace a page's files, ``None`` removing one; call while the folder is locked.

    Readers that find the folder unlocked see all old files or all new ones, whenever the process is
    killed.
    """
    note: dict[str, str | None] = {}
    for path, content in contents.items():
        note[path.name] = None if content is None else stage_file(folder, content).name
    write_whole(folder / _NOTE_NAME, json.dumps(note))
    finish_replacing(folder)


def finish_replacing(folder: Path) -> None:
    """Complete a replacement that a killed process began; call while the folder is locked."""
    raw = read_file(folder / _NOTE_NAME)
    if raw is None:
        return
    for name, staged in _moves(raw).items():
        if staged is None:
            (folder / name).unlink(missing_ok=True)
        elif (folder / staged).exists():
            (folder / staged).replace(folder / name)
    (folder / _NOTE_NAME).unlink()


def _moves(raw: bytes) -> dict[str, str | None]:
    """Return the moves that a note lists.

    None if the note is not ours, since folders are exchanged.
    """
    try:
        note = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    is_ours = isinstance(note, dict) and all(
        (is_page_file(name) or is_sidecar(name)) and (staged is None or _is_staged(staged))
        for name, staged in note.items()
    )
    return note if is_ours else {}


def _is_staged(name: object) -> bool:
    return isinstance(name, str) and is_leftover(name) and _PLAIN_NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class PageIndex:
    """The pages that an index lists, found by any spelling of their URL in constant time.

    Args:
        listed: the index as its file has it; other programs' kinds of entries are kept, not read.
        kinds: index key to kind, for the entries that can be read.
        page_of: index key to lookup key.
        keys_of: the reverse of ``page_of``.
    """

    listed: IndexEntries = field(default_factory=dict)
    kinds: Mapping[str, PageKind] = field(default_factory=dict)
    page_of: Mapping[str, str] = field(default_factory=dict)
    keys_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def update(self, listed: IndexEntries) -> PageIndex:
        """Return the index of other entries, reusing the parsed keys of those in both."""
        kinds: dict[str, PageKind] = {}
        page_of: dict[str, str] = {}
        keys_of: dict[str, tuple[str, ...]] = {}
        for key, listed_kind in listed.items():
            kind = known_kind(listed_kind)
            page = self.page_of.get(key) or _page_of_index_key(key)
            if page is None or kind is None:
                if key not in self.listed:
                    _log.warning(
                        "cache index entry ignored: no URL, or neither web nor pdf key=%.200r",
                        key,
                    )
                continue
            kinds[key] = kind
            page_of[key] = page
            keys_of[page] = (*keys_of.get(page, ()), key)
        return PageIndex(listed, kinds, page_of, keys_of)

    def keys_for(self, url: str) -> Iterator[str]:
        """Yield the keys under which the page may be stored, the best match first."""
        if url in self.kinds:
            yield url
        page = lookup_key(url)
        keys = self.keys_of.get(page, ()) if page is not None else ()
        yield from (keys if len(keys) < 2 else sorted(keys, key=_unlikeness_to(storage_key(url))))


def _unlikeness_to(exact: str) -> Callable[[str], tuple[bool, int, str]]:
    # Without the exact spelling, the one that begins most alike, whichever program listed it first.
    return lambda key: (key != exact, -_common_start_chars(key, exact), key)


def _common_start_chars(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((position for position, (a, b) in pairs if a != b), min(len(one), len(other)))


def _page_of_index_key(key: str) -> str | None:
    # Keys have no fragments but routes, so that any other "#" is one that an older tool decoded
    # from "%23".
    if "#" in key and not split_url(key).route:
        key = key.replace("#", "%23")
    return lookup_key(key)


class IndexFile:
    """``index.json`` of one cache folder, replaced whole under a lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / _INDEX_NAME
        self._path_text = str(self._path)
        self._lock_path = folder / _LOCK_NAME
        self._index = PageIndex()
        self._state: FileState | None = None
        self._thread_lock = threading.RLock()
        self._process_lock: BaseFileLock | None = None

    def current(self) -> PageIndex:
        """Return the index as it is on disk now.

        Raises:
            CacheReadError: it is damaged.
        """
        if self._state_on_disk() != self._state:
            with self._thread_lock:
                # The state is taken before the file is read: one replaced in between is read once
                # more.
                state = self._state_on_disk()
                if state != self._state:
                    self._read(state)
        return self._index

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other threads and processes from writing this folder, which is made where needed.

        Raises:
            CacheWriteError: the folder cannot be written, or another process does not let go of it.
        """
        try:
            with self._thread_lock:
                self._folder.mkdir(parents=True, exist_ok=True)
                with self._lock_of_processes() as lock:
                    if lock.lock_counter == 1:
                        finish_replacing(self._folder)
                    yield
                    if lock.lock_counter == 1:
                        # A waiting process notices that its lock file was removed, and starts over.
                        self._lock_path.unlink(missing_ok=True)
        except OSError as error:
            raise CacheWriteError(
                f"cannot write cache folder {self._folder}: {error.strerror or error};"
                " make it writable or choose another cache root"
            ) from error

    def is_being_written(self) -> bool:
        """Return whether a process writes this folder, or was killed while it did."""
        return self._lock_path.exists()

    def list_page(self, key: str, kind: PageKind) -> None:
        """Add or change an entry, keeping those of other processes; call inside ``writing()``."""
        self._list_what_exists({**self.current().listed, key: kind})

    def tidy(self) -> None:
        """Make the file list exactly the pages on disk; call inside ``writing()``."""
        self._list_what_exists(self.current().listed)

    def list_nothing(self) -> None:
        """Empty the index; call inside ``writing()``."""
        self._write({})

    def _list_what_exists(self, entries: IndexEntries) -> None:
        file_names = file_names_in(self._folder)
        for leftover in filter(is_leftover, file_names):
            # No other process writes it: the lock is ours.
            (self._folder / leftover).unlink(missing_ok=True)
        remaining = {
            key: kind for key, kind in entries.items() if not _is_lost(key, kind, file_names)
        }
        if len(remaining) < len(entries):
            aside = self._set_aside()
            _log.warning(
                "entries without files dropped count=%d old_index=%s",
                len(entries) - len(remaining),
                aside,
            )
        if remaining != self._index.listed or self._state is None:
            self._write(remaining)

    def _write(self, entries: IndexEntries) -> None:
        # Half a surrogate becomes its JSON escape.
        text = json.dumps(entries, ensure_ascii=False, indent=2)
        write_whole(self._path, text.encode("utf-8", "backslashreplace"))
        self._index = self._index.update(entries)
        self._state = self._state_on_disk()

    def _read(self, state: FileState | None) -> None:
        raw = read_file(self._path)
        listed = {} if raw is None else _index_entries(raw)
        if listed is None:
            raise CacheReadError(
                f"{self._path} is damaged: repair it (a JSON object of URLs and kinds) or restore "
                "a copy; "
                "without it the folder counts as empty"
            )
        self._index = self._index.update(listed)
        self._state = state

    def _set_aside(self) -> Path:
        """Keep the index file under a name of its own; it stays in place until it is replaced."""
        taken = file_names_in(self._folder)
        names = (f"{_INDEX_NAME}.damaged-{number}" for number in range(1, len(taken) + 2))
        aside = self._folder / next(name for name in names if name not in taken)
        try:
            # A link rather than a copy: a program that writes in place and is not done yet
            # completes it.
            aside.hardlink_to(self._path)
        except OSError:
            self._path.rename(aside)
        return aside

    def _state_on_disk(self) -> FileState | None:
        return file_state(self._path_text)

    def _lock_of_processes(self) -> BaseFileLock:
        if self._process_lock is None:
            from filelock import (
                FileLock,
            )  # brings asyncio, and most readers never write

            self._process_lock = FileLock(
                self._lock_path, timeout=_LOCK_TIMEOUT_S, poll_interval=_LOCK_POLL_S
            )
        return self._process_lock


def _is_lost(key: str, listed_kind: object, file_names: set[str]) -> bool:
    kind = known_kind(listed_kind)
    return kind is not None and main_file_name(key, kind) not in file_names


def file_names_in(folder: Path) -> set[str]:
    """Return the names of all files in a folder, none if it does not exist."""
    try:
        return {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def page_stem(key: str) -> str:
    """Return the name of a page's files without suffix."""
    return hashlib.md5(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _index_entries(content: bytes) -> IndexEntries | None:
    """Return the entries in the content of an index's file, ``None`` where it is damaged."""
    try:
        entries = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict) or not all(map(is_unicode_text, entries)):
        return None
    return entries
