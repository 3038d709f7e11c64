"""The index file of a cache folder, shared with other threads and processes."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.errors import CacheReadError, CacheWriteError
from mind2web2.pages.cache_files import (
    PageKind,
    file_names_in,
    file_state,
    finish_replacing,
    known_kind,
    main_file_name,
    read_file,
)
from mind2web2.urls.parts import lookup_key, split_url, storage_key
from mind2web2.utils.files import is_leftover, mirror, write_whole
from mind2web2.utils.text import is_unicode_text

if TYPE_CHECKING:
    from filelock import BaseFileLock

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PageIndex:
    """The pages that an index lists, found by any spelling of their URL at a cost that does not grow.

    Args:
        listed: the index as its file has it; other programs' kinds of entries are kept, not read.
        kinds: index key to kind, for the entries that can be read.
        page_of: index key to lookup key.
        keys_of: the reverse of ``page_of``.
    """

    listed: Mapping[str, object] = field(default_factory=dict)
    kinds: Mapping[str, PageKind] = field(default_factory=dict)
    page_of: Mapping[str, str] = field(default_factory=dict)
    keys_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def updated(self, listed: Mapping[str, object]) -> PageIndex:
        """Return the index of other entries, reusing the parsed keys of those in both."""
        kinds: dict[str, PageKind] = {}
        page_of: dict[str, str] = {}
        keys_of: dict[str, tuple[str, ...]] = {}
        for key, listed_kind in listed.items():
            kind = known_kind(listed_kind)
            page = self.page_of.get(key) or _page_of_index_key(key)
            if page is None or kind is None:
                if key not in self.listed:
                    _log.warning("cache index entry ignored: no URL, or neither web nor pdf key=%.200r", key)
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
        yield from keys if len(keys) < 2 else sorted(keys, key=_unlikeness_to(storage_key(url)))


def _unlikeness_to(exact: str) -> Callable[[str], tuple[bool, int, str]]:
    # Without the exact spelling, the one that begins most alike, whichever program listed it first.
    return lambda key: (key != exact, -_common_start_chars(key, exact), key)


def _common_start_chars(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((position for position, (a, b) in pairs if a != b), min(len(one), len(other)))


def _page_of_index_key(key: str) -> str | None:
    # Keys have no fragments but routes, so that any other "#" is one that an older tool decoded from "%23".
    if "#" in key and not split_url(key).route:
        key = key.replace("#", "%23")
    return lookup_key(key)


_INDEX_NAME = "index.json"
_LOCK_NAME = ".index.lock"
_LOCK_TIMEOUT_S = 60.0
_LOCK_POLL_S = 0.005

FileState = tuple[int, int, int]


class IndexFile:
    """``index.json`` of one cache folder: read again when it has changed, replaced whole under a lock."""

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
                # The state is taken before the file is read: one replaced in between is read once more.
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
                        try:
                            mirror(self._folder).push(self._folder, is_locked=True)
                        finally:
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

    def unlist(self, keys: Set[str]) -> None:
        """Remove entries, keeping those of other processes; call inside ``writing()``."""
        listed = self.current().listed
        kept = {key: kind for key, kind in listed.items() if key not in keys}
        if len(kept) < len(listed):
            self._write(kept)

    def tidy(self) -> None:
        """Make the file list exactly the pages on disk; call inside ``writing()``."""
        self._list_what_exists(self.current().listed)

    def list_nothing(self) -> None:
        """Empty the index; call inside ``writing()``."""
        self._write({})

    def _list_what_exists(self, entries: Mapping[str, object]) -> None:
        file_names = file_names_in(self._folder)
        for leftover in filter(is_leftover, file_names):
            # No other process writes it: the lock is ours.
            (self._folder / leftover).unlink(missing_ok=True)
        kept = {key: kind for key, kind in entries.items() if not _is_lost(key, kind, file_names)}
        if len(kept) < len(entries):
            aside = self._set_aside()
            _log.warning(
                "entries without files dropped count=%d old_index=%s", len(entries) - len(kept), aside
            )
        if kept != self._index.listed or self._state is None:
            self._write(kept)

    def _write(self, entries: Mapping[str, object]) -> None:
        # Other programs' entries are kept as they are; half a surrogate in them becomes its JSON escape.
        listing = json.dumps(entries, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace")
        write_whole(self._path, listing)
        self._index = self._index.updated(entries)
        self._state = self._state_on_disk()

    def _read(self, state: FileState | None) -> None:
        raw = read_file(self._path)
        listed = {} if raw is None else _parsed(raw)
        if listed is None:
            raise CacheReadError(
                f"{self._path} is damaged: repair it (a JSON object of URLs and kinds) or restore a copy; "
                "without it the folder counts as empty"
            )
        self._index = self._index.updated(listed)
        self._state = state

    def _set_aside(self) -> Path:
        """Keep the index file under a name of its own; it stays in place until it is replaced."""
        taken = file_names_in(self._folder)
        names = (f"{_INDEX_NAME}.damaged-{number}" for number in range(1, len(taken) + 2))
        aside = self._folder / next(name for name in names if name not in taken)
        try:
            # A link rather than a copy: a program that writes in place and is not done yet completes it.
            aside.hardlink_to(self._path)
        except OSError:
            self._path.rename(aside)
        return aside

    def _state_on_disk(self) -> FileState | None:
        return file_state(self._path_text)

    def _lock_of_processes(self) -> BaseFileLock:
        if self._process_lock is None:
            from filelock import FileLock  # brings asyncio, and most readers never write

            self._process_lock = FileLock(
                self._lock_path, timeout=_LOCK_TIMEOUT_S, poll_interval=_LOCK_POLL_S
            )
        return self._process_lock


def _parsed(raw: bytes) -> dict[str, object] | None:
    try:
        listed = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return listed if isinstance(listed, dict) and all(map(is_unicode_text, listed)) else None


def _is_lost(key: str, listed_kind: object, file_names: set[str]) -> bool:
    kind = known_kind(listed_kind)
    return kind is not None and main_file_name(key, kind) not in file_names
