"""Working copies of roots in object stores, in a folder of the user's cache directory.

A command's files are brought here before it works, and its changes are taken away afterwards, so
that all else reads and writes folders. A list beside the files has the edition that store and
folder agree on: a file that differs has changed here. A killed process leaves whole files, and the
next command takes its changes away.

Where another machine has changed the same file in the meantime, the store's one stands, but for two
that have entries of several machines: page indexes and ``all_results.json`` are merged.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ValidationError

from mind2web2.errors import StorageError
from mind2web2.pages.page_names import (
    IndexEntries,
    index_bytes,
    index_entries,
    page_stem,
)
from mind2web2.plugins.cluster.bucket import Bucket, Edition, checked_url, server_of
from mind2web2.utils.files import is_leftover, write_whole
from mind2web2.utils.process_lock import ProcessLock

_REQUESTS_AT_ONCE = 16
_MAX_MERGES = 20
_LIST_NAME = ".copies.json"
_LOCK_NAME = ".copying.lock"
_LOCK_TIMEOUT_S = 600.0
_INDEX = "index.json"
_INDEX_LOCK = ".index.lock"
_INDEX_LOCK_TIMEOUT_S = 60.0
_ALL_RESULTS = "all_results.json"
_PAGE_FILE = re.compile(r"[0-9a-f]{32}(\.txt|\.jpg|\.pdf|\.capture\.json)")
_RESULT_FILE = re.compile(r"results/[^/]*\.md\.json$")
_SUMMARY_NAMES = ("summary.json", "unscored.json", "shards.json", "usage.json")
# Checks of judges, beside the agents' results.
_CHECKS = ".judge_checks"
# Judgments have stores of their own, and open batches belong to the machine that waits for them.
_LOCAL_FILE = re.compile(r"(^|/)(judgments\.sqlite3[^/]*|batches/.*|\.[^/]*)$|\.damaged-[0-9]+$")
_LOG_FILE = re.compile(r"(^|/)logs/|\.log$")


class _Copy(BaseModel):
    """A file as store and folder last had it.

    Args:
        state: of the local file then.
        base: the content of a merged file then.
    """

    etag: str
    version: str | None = None
    state: tuple[int, int] | None = None
    base: str = "{}"

    @property
    def edition(self) -> Edition:
        """Return the edition in the store."""
        return Edition(self.etag, self.version)


class _Copies(BaseModel):
    """The content of the list beside the files, by name."""

    copies: dict[str, _Copy] = {}


class WorkingCopy:
    """The local files of one root.

    Args:
        bucket: the root.
        folder: for the files.
    """

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self.folder = folder
        self._bucket = bucket
        self._brought: set[str] = set()
        self._copies: dict[str, _Copy] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def bring(self, names: Iterable[str]) -> None:
        """Bring files, or folders and what is below, up to date, unless this process has done so.

        Raises:
            StorageError: the store fails.
        """
        new = [name for name in names if not {name, ""} & self._brought]
        if new:
            with self._lock():
                for name in new:
                    self._bring(name)
            self._brought.update(new)

    def take_away(self) -> None:
        """Bring the changes in the files that were brought here to the store.

        Raises:
            StorageError: the store fails, or another machine has changed the same file.
        """
        with self._lock():
            changed = sorted({each for name in self._brought for each in self._changes(name)})
            pages = [each for each in changed if _is_page_file(each)]
            self._put_pages(pages)
            rest = [each for each in changed if not _is_page_file(each)]
            for rank in range(3):
                self._in_parallel(self._take_away, [each for each in rest if _rank(each) == rank])

    # Bring files here

    def _bring(self, name: str) -> None:
        found = {
            each: etag
            for each, etag in self._bucket.listing(name).items()
            if not _LOCAL_FILE.search(each) and not _LOG_FILE.search(each)
        }
        for gone in [each for each in self._copies_in(name) if each not in found]:
            if not self._has_changed(gone):
                self._path(gone).unlink(missing_ok=True)
            del self._copies[gone]
        stale = [each for each, etag in found.items() if not self._is_current(each, etag)]
        self._in_parallel(self._receive, stale)

    def _is_current(self, name: str, etag: str) -> bool:
        copy = self._copies.get(name)
        return copy is not None and copy.etag == etag and self._path(name).exists()

    def _receive(self, name: str) -> None:
        found = self._bucket.get(name)
        if found is None:  # deleted since it was listed
            return
        content, edition = found
        if not _is_merged(name):
            write_whole(self._path(name), content)
            self._note(name, edition, _state(self._path(name)))
            return
        with self._lock_index(name):
            published, merged = self._merge_with_published(name, content)
            write_whole(self._path(name), index_bytes(merged))
            state = _state(self._path(name)) if merged == published else None
            self._note(name, edition, state, published)

    # Bring changes to the store

    def _changes(self, name: str) -> Iterator[str]:
        """Yield the files that have changed here, and those that were removed."""
        for each in {*self._files(name), *self._copies_in(name)}:
            if self._has_changed(each):
                yield each

    def _take_away(self, name: str) -> None:
        state = _state(self._path(name))
        content = self._content(name)
        if content is None:
            self._bucket.delete(name)
            del self._copies[name]
        elif _is_merged(name):
            with self._lock_index(name):
                self._merge(name)
        elif _rank(name) == 0:
            self._note(name, self._bucket.put(name, content), state)
        else:
            edition = self._exchange(name, content, self._copies.get(name))
            if edition is None:
                raise StorageError(
                    f"another machine has changed {self._bucket.url}/{name}, and that stands: run "
                    "the same "
                    "command again"
                )
            self._note(name, edition, state)

    def _exchange(self, name: str, content: bytes, seen: _Copy | None) -> Edition | None:
        """Write in place of the edition that was seen, or of none; ``None`` if there is another."""
        if seen is None:
            return self._bucket.create(name, content)
        return self._bucket.replace(name, content, seen.edition)

    def _put_pages(self, changed: Sequence[str]) -> None:
        """Write files of pages; the index that lists them follows."""
        folders: dict[str, list[str]] = {}
        for name in changed:
            folders.setdefault(_parent(name), []).append(name)
        for folder, names in folders.items():
            index = f"{folder}/{_INDEX}".lstrip("/")
            other_stems = self._stems_of_others(index)
            self._in_parallel(
                self._put_page_file,
                [name for name in names if Path(name).name[:32] not in other_stems],
            )
            for name in names:
                if Path(name).name[:32] in other_stems:
                    # The first machine's capture stays; the next command brings it here.
                    self._path(name).unlink(missing_ok=True)

    def _stems_of_others(self, index: str) -> set[str]:
        """Return the pages that other machines have added to an index since it was brought here."""
        found = self._bucket.get(index)
        if found is None:
            return set()
        copy = self._copies.get(index)
        known = _entries("{}" if copy is None else copy.base)
        return {page_stem(key) for key in _entries(found[0]) if key not in known}

    def _put_page_file(self, name: str) -> None:
        state = _state(self._path(name))
        content = self._content(name)
        if content is not None:
            self._note(name, self._bucket.put(name, content), state)
        elif self._copies.pop(name, None) is not None:
            self._bucket.delete(name)

    def _merge(self, name: str) -> None:
        """Merge the changes of both sides into the file and the published file."""
        for _ in range(_MAX_MERGES):
            found = self._bucket.get(name)
            theirs, merged = self._merge_with_published(name, b"{}" if found is None else found[0])
            content = index_bytes(merged)
            seen = None
            edition: Edition | None
            if found is not None:
                seen = _Copy(etag=found[1].etag, version=found[1].version)
            if merged == theirs and found is not None:
                edition = found[1]
            else:
                edition = self._exchange(name, content, seen)
            if edition is not None:
                write_whole(self._path(name), content)
                self._note(name, edition, _state(self._path(name)), merged)
                return
        raise StorageError(
            f"{self._bucket.url}/{name} changes too often: run the same command again"
        )

    def _merge_with_published(self, name: str, content: bytes) -> tuple[IndexEntries, IndexEntries]:
        """Return the entries of a published file, and those with the changes here."""
        theirs = index_entries(content)
        ours = index_entries(self._content(name) or b"{}")
        if theirs is None or ours is None:
            place = self._path(name) if ours is None else f"{self._bucket.url}/{name}"
            raise StorageError(f"{place} is damaged: replace it by a whole one, or delete it")
        if name == _ALL_RESULTS:
            agents = {brought.partition("/")[0] for brought in self._brought}
            if "" in agents:
                agents.update(path.name for path in self.folder.iterdir())
            return theirs, _with_agents(theirs, ours, agents)
        copy = self._copies.get(name)
        base = _entries("{}" if copy is None else copy.base)
        return theirs, _merge_entries(base, ours, theirs)

    # Files and their editions

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

    def _copies_in(self, name: str) -> list[str]:
        return [each for each in self._copies if name in ("", each) or each.startswith(f"{name}/")]

    def _has_changed(self, name: str) -> bool:
        copy = self._copies.get(name)
        return copy is None or _state(self._path(name)) != copy.state

    def _note(
        self,
        name: str,
        edition: Edition,
        state: tuple[int, int] | None,
        base: IndexEntries | None = None,
    ) -> None:
        """Note which edition a file equals.

        Without a state, it has changes that the store lacks.
        """
        text = "{}" if base is None else index_bytes(base).decode()
        self._copies[name] = _Copy(
            etag=edition.etag, version=edition.version, state=state, base=text
        )

    def _content(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def _path(self, name: str) -> Path:
        return self.folder / name

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep other processes from this folder, and the list beside the files up to date."""
        place = self.folder / _LIST_NAME
        lock = ProcessLock(self.folder / _LOCK_NAME)
        if not lock.take(_LOCK_TIMEOUT_S):
            raise StorageError(
                f"another process does not release {self.folder / _LOCK_NAME}: end it"
            )
        try:
            self._copies = _read_copies(place)
            yield
        finally:
            write_whole(place, _Copies(copies=self._copies).model_dump_json())
            lock.give_back()

    @contextmanager
    def _lock_index(self, name: str) -> Iterator[None]:
        """Keep the processes that store pages from a folder's index."""
        path = self._path(name).parent / _INDEX_LOCK
        lock = ProcessLock(path)
        if not lock.take(_INDEX_LOCK_TIMEOUT_S):
            raise StorageError(f"another process does not release {path}: end it")
        try:
            yield
        finally:
            lock.give_back()

    def _in_parallel(self, act: Callable[[str], None], names: Collection[str]) -> None:
        if len(names) == 1:
            act(*names)
        elif names:
            with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads:
                try:
                    for done in [threads.submit(act, name) for name in names]:
                        done.result()
                except BaseException:
                    threads.shutdown(wait=False, cancel_futures=True)
                    raise


@dataclass(frozen=True)
class ObjectFolders:
    """The roots of one command that are in object stores."""

    used: dict[str, WorkingCopy]

    def bring(
        self,
        roots: Mapping[str, Path | str | None],
        agents: Sequence[str],
        task_ids: Sequence[str],
    ) -> Mapping[str, Path | str | None]:
        """Return the roots with the folders of working copies in place of URLs, brought up to date.

        Args:
            roots: by the names of their settings.
            agents: whose files are brought; all if there are none.
            task_ids: likewise, of the pages.

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
        results = [*agents, _CHECKS, _ALL_RESULTS] if agents else [""]
        wanted = {
            "eval_scripts_root": [""],
            "answer_folder": agents or [""],
            "eval_results_root": results,
            "cache_root": pages or agents or [""],
        }
        return {
            option: self._working_folder(root, wanted[option]) if isinstance(root, str) else root
            for option, root in roots.items()
        }

    def _working_folder(self, root: str, names: Sequence[str]) -> Path:
        url = checked_url(root)
        if url not in self.used:
            self.used[url] = WorkingCopy(Bucket(url), _folder_of(url))
        self.used[url].bring(names)
        return self.used[url].folder

    def take_away(self) -> None:
        """Bring the changes in all working copies to their stores.

        The next command brings files again.

        Raises:
            StorageError: a store fails, or another machine has changed the same file.
        """
        while self.used:
            _, copy = self.used.popitem()
            copy.take_away()


FOLDERS = ObjectFolders({})


def _folder_of(url: str) -> Path:
    parts = urlsplit(url)
    place = parts.netloc
    # The same bucket name on another server is another bucket.
    if server := server_of(url):
        place += "@" + hashlib.sha256(server.encode()).hexdigest()[:8]
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = quote(parts.path.strip("/"), safe="") or "_"
    return Path(home, "mind2web2", parts.scheme, place, name).absolute()


def _read_copies(place: Path) -> dict[str, _Copy]:
    try:
        return _Copies.model_validate_json(place.read_bytes()).copies
    except (FileNotFoundError, ValidationError):
        # Every file then counts as changed. Writing the same content again changes nothing.
        return {}


def _entries(content: str | bytes) -> IndexEntries:
    raw = content.encode() if isinstance(content, str) else content
    return index_entries(raw) or {}


def _merge_entries(base: IndexEntries, ours: IndexEntries, theirs: IndexEntries) -> IndexEntries:
    """Return a published index with our changes, except entries that others changed too."""
    merged = dict(theirs)
    for key in {**base, **ours}:
        if theirs.get(key) == base.get(key) != ours.get(key):
            if key in ours:
                merged[key] = ours[key]
            else:
                del merged[key]
    return merged


def _with_agents(theirs: IndexEntries, ours: IndexEntries, agents: Collection[str]) -> IndexEntries:
    """Return the published results of all agents, with ours of those whose results are here."""
    merged: dict[str, object] = {}
    for task in {**theirs, **ours}:
        published, local_entries = theirs.get(task), ours.get(task)
        others = published if isinstance(published, dict) else {}
        by_agent = {name: each for name, each in others.items() if name not in agents}
        by_agent |= {
            name: each
            for name, each in (local_entries if isinstance(local_entries, dict) else {}).items()
            if name in agents
        }
        if by_agent:
            merged[task] = by_agent
    return merged


def _state(path: Path) -> tuple[int, int] | None:
    """Return a value that changes when a file is replaced; ``None`` where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _is_page_file(name: str) -> bool:
    return _PAGE_FILE.fullmatch(Path(name).name) is not None


def _rank(name: str) -> int:
    """Return when a file is written: first answers' files, then results, then summaries.

    Only results and what sums them up may not replace what another machine has written.
    """
    if Path(name).name in _SUMMARY_NAMES:
        return 2
    return 1 if _RESULT_FILE.search(name) else 0


def _is_merged(name: str) -> bool:
    return Path(name).name == _INDEX or name == _ALL_RESULTS
