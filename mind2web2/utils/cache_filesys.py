"""The page cache of one task: what was captured of the cited URLs, in files that other tools share."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from mind2web2.errors import CacheMiss, CacheWriteError
from mind2web2.utils.cache_index import IndexFile
from mind2web2.utils.cache_pages import (
    PageFiles,
    PageKind,
    content_digest,
    decoded_text,
    file_names_in,
    is_page_file,
    main_file_name,
    read_file,
    screenshot_bytes,
)
from mind2web2.utils.files import is_leftover, write_together
from mind2web2.utils.unicode_text import as_unicode_text
from mind2web2.utils.url_key import likely_keys, lookup_key, storage_key

_log = logging.getLogger(__name__)


class CacheFileSys:
    """The pages stored in ``task_dir``, found by any spelling of their URL.

    A page is on disk and listed when ``put_web`` or ``put_pdf`` returns, whatever happens to the process
    afterwards; pages that other threads and processes store meanwhile are kept and seen. The folder is
    made by the first write. All methods may be called from any thread.
    """

    def __init__(self, task_dir: str | os.PathLike[str]) -> None:
        self.task_dir = Path(task_dir)
        self._folder_text = str(self.task_dir)
        self._index_file = IndexFile(self.task_dir)
        self._reported_missing: set[str] = set()
        self._index_file.current()  # a damaged index is set aside now, not in the middle of a run
        # What a damaged index no longer names is still found by the names of its files, which are hashes of
        # its URLs: a page that was captured must not fail a claim as one that cannot be had.
        self._has_nameless_pages = any(self.task_dir.glob("index.json.damaged-*"))

    def put_web(self, url: str, text: str, screenshot: bytes | str | None) -> None:
        """Store a web page: its text, and its screenshot (bytes, base64 text or ``data:`` URL) as JPEG.

        Raises:
            CacheWriteError: the folder cannot be written, or ``url`` is no URL.
            DocumentError: the screenshot is damaged.
        """
        key = _key_for_storing(url)
        files = PageFiles.of(self.task_dir, key)
        text_bytes = as_unicode_text(text).encode()
        self._store(key, "web", {files.text: text_bytes, files.screenshot: screenshot_bytes(screenshot)})

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:
        """Store a PDF as it is.

        Raises:
            CacheWriteError: the folder cannot be written, or ``url`` is no URL.
        """
        key = _key_for_storing(url)
        self._store(key, "pdf", {PageFiles.of(self.task_dir, key).pdf: pdf_bytes})

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return a web page's text and, if asked for and stored, its screenshot.

        Raises:
            CacheMiss: no web page is stored for the URL.
        """
        files = self._files_of(url, "web")
        text = read_file(files.text) if files else None
        if files is None or text is None:
            raise CacheMiss(f"no web page is stored for {url} in {self.task_dir}")
        return decoded_text(text, files.text), read_file(files.screenshot) if get_screenshot else None

    def get_pdf(self, url: str) -> bytes:
        """Return a stored PDF.

        Raises:
            CacheMiss: no PDF is stored for the URL.
        """
        files = self._files_of(url, "pdf")
        content = read_file(files.pdf) if files else None
        if content is None:
            raise CacheMiss(f"no PDF is stored for {url} in {self.task_dir}")
        return content

    def has(self, url: str) -> PageKind | None:
        """Return what is stored for the URL, ``None`` for nothing."""
        stored = self._find(url)
        return stored[1] if stored else None

    def has_web(self, url: str) -> bool:
        """Tell whether a web page is stored for the URL."""
        return self.has(url) == "web"

    def has_pdf(self, url: str) -> bool:
        """Tell whether a PDF is stored for the URL."""
        return self.has(url) == "pdf"

    def digest(self, url: str) -> str | None:
        """Return a SHA-256 hex digest that changes when the stored page does, ``None`` for no page."""
        stored = self._find(url)
        if stored is None:
            return None
        key, kind = stored
        contents = [read_file(path) for path in PageFiles.of(self.task_dir, key).of_kind(kind)]
        return None if contents[0] is None else content_digest(kind, contents)

    def get_all_urls(self) -> list[str]:
        """Return the index keys of all stored pages, sorted."""
        return sorted(self._stored_kinds())

    def summary(self) -> dict[str, int]:
        """Return how many pages are stored: ``total_urls``, ``web_pages``, ``pdf_pages``."""
        kinds = list(self._stored_kinds().values())
        return {"total_urls": len(kinds), "web_pages": kinds.count("web"), "pdf_pages": kinds.count("pdf")}

    def save(self) -> None:
        """Make the index file list exactly the pages on disk, those of other processes included.

        Raises:
            CacheWriteError: the folder cannot be written.
        """
        with self._index_file.writing():
            self._index_file.tidy()

    def clear(self) -> None:
        """Remove all pages of this task, and no other file.

        Raises:
            CacheWriteError: the folder cannot be written.
        """
        if not self.task_dir.exists():
            return
        with self._index_file.writing():
            self._index_file.list_nothing()
            for name in file_names_in(self.task_dir):
                if is_page_file(name) or is_leftover(name):
                    (self.task_dir / name).unlink(missing_ok=True)

    def _store(self, key: str, kind: PageKind, contents: Mapping[Path, bytes | None]) -> None:
        files = PageFiles.of(self.task_dir, key)
        with self._index_file.writing():
            write_together(contents)
            self._index_file.list_page(key, kind)
            for path in files.of_kind("pdf" if kind == "web" else "web"):
                path.unlink(missing_ok=True)
            self._reported_missing.discard(key)

    def _find(self, url: str) -> tuple[str, PageKind] | None:
        index = self._index_file.current()
        for key in index.keys_for(url):
            kind = index.kinds[key]
            if os.path.exists(f"{self._folder_text}/{main_file_name(key, kind)}"):  # noqa: PTH110 - twice as fast
                return key, kind
            self._report_missing(key)
        return self._find_nameless(url) if self._has_nameless_pages else None

    def _find_nameless(self, url: str) -> tuple[str, PageKind] | None:
        kinds: tuple[PageKind, ...] = ("web", "pdf")
        for key in likely_keys(url):
            for kind in kinds:
                if (self.task_dir / main_file_name(key, kind)).exists():
                    return key, kind
        return None

    def _files_of(self, url: str, kind: PageKind) -> PageFiles | None:
        stored = self._find(url)
        return PageFiles.of(self.task_dir, stored[0]) if stored and stored[1] == kind else None

    def _stored_kinds(self) -> dict[str, PageKind]:
        kinds = self._index_file.current().kinds
        file_names = file_names_in(self.task_dir)
        stored = {key: kind for key, kind in kinds.items() if main_file_name(key, kind) in file_names}
        for key in kinds.keys() - stored.keys():
            self._report_missing(key)
        return stored

    def _report_missing(self, key: str) -> None:
        if key not in self._reported_missing:
            self._reported_missing.add(key)
            _log.warning(
                "page listed but its file is missing, counts as not cached url=%s dir=%s", key, self.task_dir
            )


def _key_for_storing(url: str) -> str:
    if lookup_key(url) is None:
        raise CacheWriteError(f"cannot store a page under {url[:200]!r}: it is not a URL")
    return storage_key(url)
