"""Working copies of roots in object stores, in a folder of the user's cache directory.

A working copy has the layout of a root on disk, so that everything else reads and writes local files.
Answers, scripts, results and indexes are pulled; files of pages are fetched when they are read, and those
used longest ago are removed here when they take more than a limit. A file is published when it is whole:

- pages: their files first, the first machine's capture stays; then ``index.json``, merged and replaced by
  compare-and-swap, so that the pages that it lists are there
- result files: once, under a name that is free
- summaries: replaced by compare-and-swap; who comes second sums up again
- other files: replaced

A database beside the files has the edition that each one was published or pulled as: a file that differs has
changed here. A process killed at any moment leaves whole files; the next command publishes the rest.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from mind2web2.errors import PublishedElsewhereError, StorageError, UsageError
from mind2web2.storage.bucket import Bucket, Edition, checked_url, server_of
from mind2web2.storage.mirror import Mirror, use_mirror
from mind2web2.storage.page_names import (
    IndexEntries,
    index_bytes,
    index_entries,
    page_stem,
)
from mind2web2.utils.files import is_leftover, write_new, write_whole
from mind2web2.utils.mounts import network_file_system
from mind2web2.utils.process_lock import ProcessLock

log = logging.getLogger(__name__)

LIMIT_VARIABLE = "MIND2WEB2_CLOUD_CACHE_GB"
_DEFAULT_LIMIT_GB = 20.0
# Space is made for some pages at once.
_KEPT_SHARE = 0.9
_REQUESTS_AT_ONCE = 16
_MOST_MERGES = 20
# Another machine that has begun to publish a page has that long to list it.
_LISTING_WAIT_S = 30.0
_LISTING_POLL_S = 0.5
_INDEX = "index.json"
_INDEX_LOCK = ".index.lock"
_INDEX_LOCK_TIMEOUT_S = 60.0
_DATABASE = ".copies.sqlite3"
_PAGE_FILE = re.compile(r"[0-9a-f]{32}(\.txt|\.jpg|\.pdf|\.capture\.json)")
_MAIN_SUFFIX = {"web": ".txt", "pdf": ".pdf"}
# Checks of judges, beside the agents' results.
_CHECKS = ".judge_checks"
_RESULT_FILE = re.compile(r"results/[^/]*\.md\.json$")
_SUMMARY_NAMES = ("summary.json", "unscored.json", "all_results.json", "shards.json")
# Judgments have stores of their own, and open batches belong to the machine that waits for them.
_LOCAL_FILE = re.compile(
    r"(^|/)(judgments\.sqlite3[^/]*|batches/.*|\.[^/]*)$|\.damaged-[0-9]+$"
)
_LOG_FILE = re.compile(r"(^|/)logs/|\.log$")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS copies (
  name TEXT PRIMARY KEY, etag TEXT NOT NULL, version TEXT, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  is_page INTEGER NOT NULL, used_at REAL NOT NULL, base BLOB
)
"""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A file as it was last published or pulled.

    Args:
        state: of the local file then.
        base: the content of an index then.
    """

    edition: Edition
    state: tuple[int, int]
    base: bytes | None


class WorkingCopy(Mirror):
    """The local files of one root.

    Args:
        bucket: the root.
        folder: for the files.
        limit_bytes: of page files together.
    """

    is_remote = True

    def __init__(self, bucket: Bucket, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self._bucket = bucket
        self._limit_bytes = limit_bytes
        # By folder: its files with their etags, and when the request for that list began.
        self._listed: dict[str, dict[str, str]] = {}
        self._listed_at_s: dict[str, float] = {}
        self._pulled: set[str] = set()
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        if kind := network_file_system(folder):
            raise UsageError(
                f"the working copy {folder} is on a network file system ({kind}), which cannot lock it: set "
                "XDG_CACHE_HOME to a disk of this machine"
            )
        self._database = sqlite3.connect(
            folder / _DATABASE,
            timeout=60.0,
            isolation_level=None,
            check_same_thread=False,
        )
        self._database.execute("PRAGMA journal_mode=WAL")
        # A lost row only makes a file count as changed, and publishing the same content changes nothing.
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute(_SCHEMA)

    # Reading

    def is_current(self, folder: Path) -> bool:
        """Tell whether this process has brought a folder up to date."""
        return bool({self._name(folder), ""} & self._pulled)

    def place(self, path: Path) -> str:
        """Return the URL of a file or folder."""
        return f"{self._bucket.url}/{self._name(path)}".rstrip("/")

    def pull(self, path: Path) -> None:
        """Bring a file or folder up to date."""
        name = self._name(path)
        for _ in range(_MOST_MERGES):
            before, found = self._list(name)
            stale, wanted = [], []
            for each, etag in found.items():
                copy = before.get(each)
                if (
                    copy is not None
                    and copy.edition.etag == etag
                    and self._path(each).exists()
                ):
                    continue
                if _is_page_file(each):
                    stale.append(each)
                elif not _LOCAL_FILE.search(each) and not _LOG_FILE.search(each):
                    wanted.append(each)
            for gone in [each for each in before if each not in found] + stale:
                self._drop(gone, before.get(gone))
            files = [each for each in wanted if not _is_index(each)]
            self._in_parallel(self._receive, files)
            # A summary that was replaced since may count results that are not in this list.
            if all(self._listed_etag(each) == found[each] for each in files):
                break
        else:
            raise StorageError(
                f"{self._bucket.url}/{name} changes too often: run the same command again"
            )
        self._in_parallel(
            self._merge_index, (each for each in wanted if _is_index(each))
        )
        self._pulled.add(name)

    def fetch(self, *paths: Path) -> bool:
        """Bring page files here."""
        names = [self._name(path) for path in paths]
        missing = [name for name in names if not self._path(name).exists()]
        wanted = [name for name in missing if self._is_listed(name)]
        self._in_parallel(self._receive, wanted)
        marks = ",".join("?" * len(names))
        self._execute(
            f"UPDATE copies SET used_at = ? WHERE name IN ({marks})",
            time.time(),
            *names,
        )
        if wanted:
            self._make_room(names)
        return bool(wanted)

    def names_in(self, folder: Path) -> Collection[str]:
        """Return the names of a folder's files in the store."""
        with self._lock:
            return frozenset(self._listed.get(self._name(folder), ()))

    # Publishing

    def push(self, path: Path, *, is_locked: bool = False) -> None:
        """Publish the changes in a file or folder; in the whole root, those in folders that were pulled."""
        names = [self._name(path)]
        if path == self.folder:
            names = sorted(self._pulled)
        found: set[str] = set()
        for name in names:
            found.update(self._changed(name))
        changed = sorted(found)
        page_folders = {
            _parent(each) for each in changed if _is_page_file(each) or _is_index(each)
        }
        for folder in sorted(page_folders):
            with self._index_locked(folder, is_locked):
                self._push_pages(
                    folder, [each for each in changed if _parent(each) == folder]
                )
                self._merge_index(_index_of(folder), is_locked=True, with_push=True)
        rest = [
            each for each in changed if not _is_page_file(each) and not _is_index(each)
        ]
        # A result says that its answer is done: it comes last.
        self._in_parallel(
            self._publish, (each for each in rest if not _RESULT_FILE.search(each))
        )
        self._in_parallel(
            self._publish, (each for each in rest if _RESULT_FILE.search(each))
        )

    def remove(self, path: Path) -> None:
        """Remove a file or a folder, here and in the store."""
        super().remove(path)

        def delete(each: str) -> None:
            self._bucket.delete(each)
            self._forget(each)

        self._in_parallel(delete, self._bucket.listing(self._name(path)))

    def _publish(self, name: str) -> None:
        state = _state(self._path(name))
        content = self._content(name)
        if content is None:
            return
        if _RESULT_FILE.search(name) or Path(name).name in _SUMMARY_NAMES:
            copy = self._copies(name).get(name)
            edition = self._exchanged(
                name, content, None if copy is None else copy.edition
            )
            if edition is None:
                raise PublishedElsewhereError(
                    f"{self._bucket.url}/{name} was written by another machine first: run the same command "
                    "again"
                )
        else:
            edition = self._bucket.put(name, content)
        self._note(name, edition, state)

    def _exchanged(
        self, name: str, content: bytes, seen: Edition | None
    ) -> Edition | None:
        """Publish in place of the edition that was seen, or of none; ``None`` if there is another."""
        if seen is None:
            return self._bucket.create(name, content)
        return self._bucket.replace(name, content, seen)

    def _push_pages(self, folder: str, changed: Iterable[str]) -> None:
        stems: dict[str, list[str]] = {}
        for name in filter(_is_page_file, changed):
            stem = Path(name).name[:32]
            stems.setdefault(stem, []).append(name)
        known: set[str] = set()
        for copy in self._copies(_index_of(folder)).values():
            listed = index_entries(copy.base or b"{}")
            known.update(map(page_stem, listed or {}))
        self._in_parallel(
            lambda stem: self._push_page(folder, stem, stems[stem], stem not in known),
            stems,
        )
        if stems:
            self._make_room(())

    def _push_page(
        self, folder: str, stem: str, names: list[str], is_new: bool
    ) -> None:
        """Publish the files of one page; a new one gives way to that of a machine that was faster."""
        main = next((name for name in names if name.endswith((".txt", ".pdf"))), None)
        state = None if main is None else _state(self._path(main))
        content = None if main is None else self._content(main)
        if (
            main is not None
            and content is not None
            and is_new
            and main not in self._copies(main)
        ):
            edition = self._bucket.create(main, content)
            if edition is not None:
                self._note(main, edition, state)
                names = [name for name in names if name != main]
            elif self._is_published(folder, stem):
                log.info(
                    "page was published by another machine first folder=%s stem=%s",
                    folder,
                    stem,
                )
                for name in names:
                    self._path(name).unlink(missing_ok=True)
                self._list(folder)
                return
        for name in names:
            state = _state(self._path(name))
            content = self._content(name)
            if content is not None:
                edition = self._bucket.put(name, content)
                self._note(name, edition, state)
        if main is not None:
            self._delete_replaced(folder, stem)

    def _delete_replaced(self, folder: str, stem: str) -> None:
        """Delete the files of an earlier capture that the page no longer has, such as its screenshot."""
        for path in [
            self._path(folder) / name for name in self.names_in(self._path(folder))
        ]:
            if path.name.startswith(stem) and not path.exists():
                self._bucket.delete(self._name(path))
                self._forget(self._name(path))

    def _is_published(self, folder: str, stem: str) -> bool:
        """Wait until the machine that has begun to publish a page lists it; ``False`` if it does not."""
        deadline = time.monotonic() + _LISTING_WAIT_S
        while True:
            found = self._bucket.get(_index_of(folder))
            listed = None if found is None else index_entries(found[0])
            if stem in map(page_stem, listed or {}):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_LISTING_POLL_S)

    def _merge_index(
        self, name: str, *, is_locked: bool = False, with_push: bool = False
    ) -> None:
        """Make index and published index equal, with the changes of both sides since they last were."""
        with self._index_locked(_parent(name), is_locked):
            for _ in range(_MOST_MERGES):
                copy = self._copies(name).get(name)
                own = self._content(name)
                if with_push and (own is None or not self._has_changed(name, copy)):
                    return
                found = self._bucket.get(name)
                theirs = {} if found is None else index_entries(found[0])
                ours = index_entries(own or b"{}")
                if theirs is None or ours is None:
                    which = (
                        self._path(name)
                        if ours is None
                        else f"{self._bucket.url}/{name}"
                    )
                    raise StorageError(
                        f"{which} is damaged: replace it by a whole one, or delete it"
                    )
                base = index_entries(copy.base or b"{}") if copy is not None else {}
                merged = _merged(base or {}, ours, theirs)
                content = (
                    own if own is not None and merged == ours else index_bytes(merged)
                )
                edition = None if found is None else found[1]
                if with_push and merged != theirs:
                    edition = self._exchanged(name, content, edition)
                    if edition is None:
                        continue  # another machine was faster
                if content != own:
                    write_whole(self._path(name), content)
                if edition is not None:
                    is_same = with_push or merged == theirs
                    state = _state(self._path(name)) if is_same else None
                    self._note(
                        name,
                        edition,
                        state,
                        index_bytes(merged if with_push else theirs),
                    )
                if not self._lists_files_of(
                    name, merged
                ):  # those of pages published since the listing
                    self._list(_parent(name))
                return
        raise StorageError(
            f"{self._bucket.url}/{name} changes too often: run the same command again"
        )

    # Local files

    def _receive(self, name: str) -> None:
        found = self._bucket.get(name)
        path = self._path(name)
        if _is_page_file(name) and (
            found is None or found[1].etag != self._listed_etag(name)
        ):
            # The page's other files may be of another capture, or the page may be gone.
            raise StorageError(
                f"{self._bucket.url}/{name} was replaced by another machine while it was read: run the same "
                "command again"
            )
        if found is None:  # deleted since it was listed
            return
        if not _is_page_file(name):
            write_whole(path, found[0])
        else:
            try:
                write_new(path, found[0])
            except FileExistsError:  # fetched or captured in the meantime
                return
        self._note(name, found[1], _state(path))

    def _changed(self, name: str) -> list[str]:
        copies = self._copies(name)
        return [
            each
            for each in self._files(name)
            if self._has_changed(each, copies.get(each))
        ]

    def _has_changed(self, name: str, copy: _Copy | None) -> bool:
        return copy is None or _state(self._path(name)) != copy.state

    def _files(self, name: str) -> Iterator[str]:
        path = self._path(name)
        if path.is_file():
            yield name
        for folder, folders, files in os.walk(path):
            folders.sort()
            below = Path(folder).relative_to(self.folder).as_posix()
            for file in sorted(files):
                each = file if below == "." else f"{below}/{file}"
                if not _LOCAL_FILE.search(each) and not is_leftover(file):
                    yield each

    def _drop(self, name: str, copy: _Copy | None) -> None:
        """Remove a file that the store has no longer, or in another edition, unless it has changed here."""
        path = self._path(name)
        if copy is not None and path.exists() and not self._has_changed(name, copy):
            path.unlink(missing_ok=True)
        if copy is not None and not path.exists():
            self._execute(
                "DELETE FROM copies WHERE name = ? AND etag = ?",
                name,
                copy.edition.etag,
            )

    def _make_room(self, needed: Collection[str]) -> None:
        """Remove the page files that were used longest ago, where all take more than the limit."""
        (used_bytes,) = self._execute(
            "SELECT COALESCE(SUM(size), 0) FROM copies WHERE is_page"
        )[0]
        if used_bytes <= self._limit_bytes:
            return
        for name, size in self._execute(
            "SELECT name, size FROM copies WHERE is_page ORDER BY used_at"
        ):
            if name in needed or self._has_changed(name, self._copies(name).get(name)):
                continue
            self._path(name).unlink(missing_ok=True)
            self._execute("DELETE FROM copies WHERE name = ?", name)
            used_bytes -= size
            if used_bytes <= self._limit_bytes * _KEPT_SHARE:
                return

    def _content(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _name(self, path: Path) -> str:
        name = path.relative_to(self.folder).as_posix()
        return "" if name == "." else name

    def _lists_files_of(self, index: str, entries: IndexEntries) -> bool:
        mains = (
            page_stem(key) + _MAIN_SUFFIX[str(kind)]
            for key, kind in entries.items()
            if kind in _MAIN_SUFFIX
        )
        return all(
            self._is_listed(f"{_parent(index)}/{main}".lstrip("/")) for main in mains
        )

    @contextmanager
    def _index_locked(self, folder: str, is_locked: bool) -> Iterator[None]:
        lock = ProcessLock(self._path(folder) / _INDEX_LOCK)
        if not is_locked and not lock.take(_INDEX_LOCK_TIMEOUT_S):
            raise StorageError(
                f"another process does not release {self._path(folder) / _INDEX_LOCK}"
            )
        try:
            yield
        finally:
            lock.give_back()

    # Editions of both sides

    def _is_listed(self, name: str) -> bool:
        return self._listed_etag(name) is not None

    def _listed_etag(self, name: str) -> str | None:
        with self._lock:
            return self._listed.get(_parent(name), {}).get(Path(name).name)

    def _list(self, name: str) -> tuple[dict[str, _Copy], dict[str, str]]:
        """Return the copies of a folder and the etags of its files in the store, and remember these."""
        began_s, before = time.monotonic(), self._copies(name)
        found = self._bucket.listing(name)
        # Files that this process has published since are not in it.
        since = {
            each: copy.edition.etag
            for each, copy in self._copies(name).items()
            if each not in before
        }
        folders: dict[str, dict[str, str]] = {}
        for each, etag in {**since, **found}.items():
            folders.setdefault(_parent(each), {})[Path(each).name] = etag
        with self._lock:
            for folder, etags in folders.items():
                # A list that another thread asked for later may have arrived earlier.
                if self._listed_at_s.get(folder, began_s) <= began_s:
                    self._listed[folder], self._listed_at_s[folder] = etags, began_s
        return before, found

    def _note(
        self,
        name: str,
        edition: Edition,
        state: tuple[int, int] | None,
        base: bytes | None = None,
    ) -> None:
        """Note which edition a file equals; without a state, it has changes that are not published."""
        self._execute(
            "INSERT OR REPLACE INTO copies VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(
                name,
                edition.etag,
                edition.version,
                *(state or (0, 0)),
                _is_page_file(name),
                time.time(),
                base,
            ),
        )
        with self._lock:
            self._listed.setdefault(_parent(name), {})[Path(name).name] = edition.etag

    def _forget(self, name: str) -> None:
        self._execute("DELETE FROM copies WHERE name = ?", name)
        with self._lock:
            self._listed.get(_parent(name), {}).pop(Path(name).name, None)

    def _copies(self, name: str) -> dict[str, _Copy]:
        """Return the copies of a file, or of a folder and below."""
        # "0" is the character after "/".
        rows = self._execute(
            "SELECT name, etag, version, size, mtime_ns, base FROM copies "
            "WHERE ? = '' OR name = ? OR (name > ? || '/' AND name < ? || '0')",
            *(name, name, name, name),
        )
        return {
            row[0]: _Copy(Edition(row[1], row[2]), (row[3], row[4]), row[5])
            for row in rows
        }

    def _execute(self, statement: str, *values: object) -> list[Any]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    def _in_parallel(self, act: Callable[[str], None], names: Iterable[str]) -> None:
        names = list(names)
        if len(names) == 1:
            act(names[0])
        elif names:
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads:
                try:
                    for done in [threads.submit(act, name) for name in names]:
                        done.result()
                except BaseException:
                    threads.shutdown(wait=False, cancel_futures=True)
                    raise


_used: dict[str, WorkingCopy] = {}


def working_copies(
    roots: Mapping[str, Path | str | None],
    agents: Collection[str],
    task_ids: Collection[str],
) -> dict[str, Path | None]:
    """Return the roots with the folders of working copies in place of URLs, pulled once in a process.

    Args:
        roots: by the names of their options.
        agents: whose files are pulled; all if there are none.
        task_ids: likewise, of the page caches.

    Raises:
        UsageError: a URL cannot be used.
        StorageError: a store fails.
    """
    pages = [
        f"{agent}/{name}"
        for agent in agents
        for task in task_ids
        for name in (task, f"{task}.json")
    ]
    wanted = {
        "eval_scripts_root": [""],
        "answer_folder": agents or [""],
        "eval_results_root": [*agents, _CHECKS] if agents else [""],
        "cache_root": pages or agents or [""],
    }
    return {
        option: _opened(root, wanted[option]) if isinstance(root, str) else root
        for option, root in roots.items()
    }


def _opened(root: str, names: Iterable[str]) -> Path:
    url = checked_url(root)
    copy = _used.get(url)
    if copy is None:
        copy = _used[url] = WorkingCopy(Bucket(url), _folder_of(url), _limit_bytes())
        use_mirror(copy.folder, copy)
    for folder in (copy.folder / name for name in names):
        if not copy.is_current(folder):
            copy.pull(folder)
    return copy.folder


def _folder_of(url: str) -> Path:
    parts = urlsplit(url)
    place = parts.netloc
    # The same bucket name on another server is another bucket.
    if server := server_of(url):
        place += "@" + hashlib.sha256(server.encode()).hexdigest()[:8]
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(
        home,
        "mind2web2",
        parts.scheme,
        place,
        quote(parts.path.strip("/"), safe="") or "_",
    ).absolute()


def _limit_bytes() -> int:
    given = os.environ.get(LIMIT_VARIABLE)
    try:
        gigabytes = float(given or _DEFAULT_LIMIT_GB)
    except ValueError:
        gigabytes = -1.0
    if not 0 < gigabytes < float("inf"):
        raise UsageError(f"{LIMIT_VARIABLE} takes a number of gigabytes, not {given!r}")
    return int(gigabytes * 1024**3)


def _merged(
    base: IndexEntries, ours: IndexEntries, theirs: IndexEntries
) -> IndexEntries:
    """Return a published index with our changes to ``base``, except of entries that others changed too."""
    merged = dict(theirs)
    for key in {**base, **ours}:
        if theirs.get(key) == base.get(key) != ours.get(key):
            if key in ours:
                merged[key] = ours[key]
            else:
                del merged[key]
    return merged


def _state(path: Path) -> tuple[int, int] | None:
    """Return a value that changes when a file is replaced; ``None`` where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _index_of(folder: str) -> str:
    """Return the name of a folder's page index."""
    return f"{folder}/{_INDEX}".lstrip("/")


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _is_page_file(name: str) -> bool:
    return _PAGE_FILE.fullmatch(Path(name).name) is not None


def _is_index(name: str) -> bool:
    return Path(name).name == _INDEX
