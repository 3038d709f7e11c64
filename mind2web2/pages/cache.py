"""The page cache of one task: captured pages, in files that other tools share."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.capture.models import CapturedPage, PageKind
from mind2web2.errors import CacheMiss, CacheWriteError
from mind2web2.pages.cache_files import (
    FAILURES_NAME,
    REDIRECTS_NAME,
    IndexFile,
    PageFiles,
    StoredPage,
    UrlNotes,
    content_digest,
    content_of,
    decode_text,
    file_names_in,
    file_state,
    is_page_file,
    is_sidecar,
    listed_failure_record,
    main_file_name,
    max_file_bytes,
    may_replace,
    read_file,
    read_sidecar,
    redirect_target,
    replace_page,
    screenshot_bytes,
    sidecar_text,
)
from mind2web2.urls.parts import likely_keys, lookup_key, storage_key
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.files import is_leftover, write_whole
from mind2web2.utils.text import as_unicode_text

if TYPE_CHECKING:
    from mind2web2.capture.models import CaptureRecord

_log = logging.getLogger(__name__)


@script_api
class CacheFileSys:
    """The pages stored in ``task_dir``, found by any spelling of their URL.

    A page is on disk and listed when ``put_web`` or ``put_pdf`` returns. Pages that other threads
    and processes store are kept and found. The first write creates the folder. All methods may be
    called from any thread.
    """

    def __init__(self, task_dir: str | os.PathLike[str]) -> None:
        self.task_dir = Path(task_dir)
        self._folder_text = str(self.task_dir)
        self._index_file = IndexFile(self.task_dir)
        self._failures = UrlNotes(self.task_dir / FAILURES_NAME)
        self._redirects = UrlNotes(self.task_dir / REDIRECTS_NAME)
        self._reported_missing: set[str] = set()
        # How often a page was put here: what was read of it before may be another one.
        self.writes = 0
        # By URL; many answers to a task ask for the same pages.
        self._digests: dict[str, tuple[Hashable, str | None]] = {}
        self._index_file.current()  # a damaged index is an error now, not in the middle of a run

    def put_web(self, url: str, text: str, screenshot: bytes | str | None) -> None:
        """Store a web page's text, and its screenshot (bytes, base64 or ``data:`` URL) as JPEG.

        Raises:
            CacheWriteError: the folder cannot be written, or ``url`` is not a URL.
            DocumentError: the screenshot is damaged.
        """
        key = _key_for_storing(url)
        self.writes += 1
        files = PageFiles.of(self.task_dir, key)
        text_bytes = as_unicode_text(text).encode()
        self._store(
            key,
            "web",
            {files.text: text_bytes, files.screenshot: screenshot_bytes(screenshot)},
        )

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:
        """Store a PDF as it is.

        Raises:
            CacheWriteError: the folder cannot be written, or ``url`` is not a URL.
        """
        key = _key_for_storing(url)
        self.writes += 1
        self._store(key, "pdf", {PageFiles.of(self.task_dir, key).pdf: pdf_bytes})

    def put_capture(
        self,
        page: CapturedPage,
        *,
        url: str | None = None,
        must_be_better: bool = False,
    ) -> bool:
        """Store a captured page with its record, and return whether it was stored.

        A stored page is not replaced by a failure or by a page that looks worse. For a failure,
        only the record is stored. A page that a redirect led to without trouble is found by the
        target's URL as well.

        Args:
            url: the URL to store it under instead of the requested one.
            must_be_better: an equally good stored page stays, since claims may already rest on it.

        Raises:
            CacheWriteError: the folder cannot be written, or the URL is not a URL.
            DocumentError: the screenshot is damaged.
        """
        url = url or page.record.requested_url
        new_key = _key_for_storing(url)
        content = content_of(page)
        with self._index_file.writing():
            stored = self._find(url)
            if stored is not None:
                known = self._record_of(stored)
                if not may_replace(page.record, known, must_be_better=must_be_better):
                    _log.info(
                        "capture not stored, the stored page is better url=%s dir=%s",
                        url,
                        self.task_dir,
                    )
                    return False
            if content is None:
                sidecar = PageFiles.of(self.task_dir, new_key).sidecar
                write_whole(sidecar, sidecar_text(page.record))
                return True
            kind, contents = content
            text = as_unicode_text(page.text or "")
            digest = content_digest(kind, contents)
            facts = {"sha256": digest, "text_chars": len(text)}
            record = page.record.model_copy(update=facts)
            # A page has one entry, whatever its spelling.
            key = stored.key if stored else new_key
            self._store_capture(key, record, kind, contents)
            target = redirect_target(record)
            if target is not None and self._find(target) is None:
                self._store_capture(_key_for_storing(target), record, kind, contents)
        return True

    def copy_page(self, url: str, source: CacheFileSys) -> bool:
        """Store the page of another cache with its record; ``False`` if that cache has none.

        Raises:
            CacheWriteError: the folder cannot be written.
        """
        kind = source.has(url)
        record = source.capture_record(url)
        text, screenshot, pdf = "", None, None
        try:
            if kind == "pdf":
                pdf = source.get_pdf(url)
            else:
                text, screenshot = source.get_web(url)
        except CacheMiss:  # not stored, or removed or replaced since
            return False
        if record is not None and record.kind == kind:
            self.put_capture(CapturedPage(record, text, screenshot, pdf), url=url)
        elif pdf is not None:
            self.put_pdf(url, pdf)
        else:
            self.put_web(url, text, screenshot)
        return True

    def capture_record(self, url: str) -> CaptureRecord | None:
        """Return the record of the stored page, or of the failed capture where no page is stored.

        ``None`` for a page stored without one, as by older tools, or replaced by them since.
        """
        stored = self._find(url)
        if stored is not None:
            return self._record_of(stored)
        for key in likely_keys(url):
            record = read_sidecar(PageFiles.of(self.task_dir, key).sidecar)
            if record is not None and record.kind is None:
                return record
        return listed_failure_record(url, self._failures.get(url))

    def listed_failure(self, url: str) -> str | None:
        """Return why ``failures.json`` lists a page that is not stored, ``None`` where it does not.

        Such a page is not captured during an evaluation (file-layouts.md).
        """
        record = None if self._find(url) else listed_failure_record(url, self._failures.get(url))
        return None if record is None else record.failure

    def redirected_urls(self) -> list[str]:
        """Return the URLs that ``redirects.json`` leads to stored pages."""
        return [url for url in self._redirects.urls() if self._find(url) is not None]

    def capture_records(self) -> dict[str, CaptureRecord]:
        """Return the records of all stored pages by index key, and of failed captures by URL.

        Unlike ``capture_record`` this does not read the pages, so that a record may be that of a
        page which an older tool has replaced since.
        """
        kinds = self._stored_kinds()
        stems = {main_file_name(key, kind)[:32]: key for key, kind in kinds.items()}
        records: dict[str, CaptureRecord] = {}
        sidecars = sorted(filter(is_sidecar, file_names_in(self.task_dir)))
        for name in sidecars:
            record = read_sidecar(self.task_dir / name)
            key = stems.get(name[:32], "")
            if record is None or kinds.get(key) != record.kind:
                continue
            if key:
                records[key] = record
            elif self._find(record.requested_url) is None:
                records[record.requested_url] = record
        for url in self._failures.urls():
            listed = listed_failure_record(url, self._failures.get(url))
            if listed is not None and url not in records and self._find(url) is None:
                records[url] = listed
        return records

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return a web page's text and, if asked for and stored, its screenshot.

        Raises:
            CacheMiss: no web page is stored for the URL.
        """
        stored = self._seen(url)
        paths = stored.paths if stored and stored.kind == "web" else ()
        contents = self._contents_of(paths if get_screenshot else paths[:1])
        if contents[0] is None:
            raise CacheMiss(f"no web page is stored for {url} in {self.task_dir}")
        return decode_text(contents[0], paths[0]), contents[1] if get_screenshot else None

    def get_pdf(self, url: str) -> bytes:
        """Return a stored PDF. Raises CacheMiss: no PDF is stored for the URL."""
        stored = self._seen(url)
        content = read_file(stored.paths[0]) if stored and stored.kind == "pdf" else None
        if content is None:
            raise CacheMiss(f"no PDF is stored for {url} in {self.task_dir}")
        return content

    def get_text(self, url: str) -> str:
        """Return the text of a stored page or PDF.

        Raises:
            CacheMiss: nothing is stored for the URL.
            DocumentError: the PDF has no text that can be read.
        """
        if self.has(url) == "pdf":
            # Few programs read PDFs.
            text: str = import_module("mind2web2.capture.pdf").text_of(self.get_pdf(url))
            return text
        return self.get_web(url, get_screenshot=False)[0]

    def has(self, url: str) -> PageKind | None:
        """Return the kind of the stored page; ``None`` if none is stored."""
        stored = self._seen(url)
        return stored.kind if stored else None

    def has_web(self, url: str) -> bool:
        """Return whether a web page is stored for the URL."""
        return self.has(url) == "web"

    def has_pdf(self, url: str) -> bool:
        """Return whether a PDF is stored for the URL."""
        return self.has(url) == "pdf"

    def digest(self, url: str) -> str | None:
        """Return a SHA-256 hex digest that changes when the stored page does, ``None`` for no page.

        A person's decision that the page is right changes it where judges were shown signs of
        trouble.
        """
        stored = self._seen(url)
        if stored is None:
            return None
        # Before the files are read: if they are replaced meanwhile, the next call reads them again.
        state = stored.state
        known = self._digests.get(url, (None, None))
        if state is None or known[0] != state:
            known = self._digests[url] = (state, self._digest_of(stored))
        return known[1]

    def page_files(self, url: str) -> tuple[Path, ...]:
        """Return the files of the stored page: its text and screenshot, or its PDF.

        None for no page.
        """
        stored = self._seen(url)
        return tuple(path for path in stored.paths if path.exists()) if stored else ()

    def get_all_urls(self) -> list[str]:
        """Return the index keys of all stored pages, sorted."""
        return sorted(self._stored_kinds())

    def summary(self) -> dict[str, int]:
        """Return how many pages are stored: ``total_urls``, ``web_pages``, ``pdf_pages``."""
        kinds = list(self._stored_kinds().values())
        return {
            "total_urls": len(kinds),
            "web_pages": kinds.count("web"),
            "pdf_pages": kinds.count("pdf"),
        }

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
                if is_page_file(name) or is_sidecar(name) or is_leftover(name):
                    (self.task_dir / name).unlink(missing_ok=True)

    def _store_capture(
        self,
        key: str,
        record: CaptureRecord,
        kind: PageKind,
        contents: Sequence[bytes | None],
    ) -> None:
        paths = PageFiles.of(self.task_dir, key).of_kind(kind)
        self._store(key, kind, dict(zip(paths, contents, strict=True)), sidecar_text(record))

    def _store(
        self,
        key: str,
        kind: PageKind,
        contents: Mapping[Path, bytes | None],
        sidecar: str | None = None,
    ) -> None:
        files = PageFiles.of(self.task_dir, key)
        _check_sizes(key, contents)
        with self._index_file.writing():
            # Without a record of its own, the page must not keep that of the one it replaces.
            written = {**contents, files.sidecar: sidecar}
            replace_page(self.task_dir, written)
            self._index_file.list_page(key, kind)
            for path in files.of_kind("pdf" if kind == "web" else "web"):
                path.unlink(missing_ok=True)
            self._reported_missing.discard(key)

    def _seen(self, url: str) -> StoredPage | None:
        """Return the stored page, as all readers see it; a subclass may hide some."""
        return self._find(url)

    def _find(self, url: str) -> StoredPage | None:
        page = self._find_listed(url)
        if page is None:
            requested = self._redirects.get(url)
            page = self._find_listed(requested) if isinstance(requested, str) else None
        return page

    def _find_listed(self, url: str) -> StoredPage | None:
        index = self._index_file.current()
        for key in index.keys_for(url):
            kind = index.kinds[key]
            name = main_file_name(key, kind)
            is_here = os.path.exists(f"{self._folder_text}/{name}")  # noqa: PTH110 - twice as fast
            if is_here:
                return StoredPage(self.task_dir, key, kind)
            self._report_missing(key)
        return None

    def _record_of(self, page: StoredPage) -> CaptureRecord | None:
        record = read_sidecar(page.sidecar)
        if record is None or record.kind != page.kind or record.sha256 != self._digest_of(page):
            return None
        return record

    def _digest_of(self, page: StoredPage) -> str | None:
        contents = self._contents_of(page.paths)
        return None if contents[0] is None else content_digest(page.kind, contents)

    def _contents_of(self, paths: Sequence[Path]) -> list[bytes | None]:
        """Return the contents of one page's files, all of the same version."""
        if not paths:
            return [None]
        before = file_state(paths[0])
        contents = [read_file(path) for path in paths]
        if len(paths) == 1:
            return contents
        if file_state(paths[0]) == before and not self._index_file.is_being_written():
            return contents
        try:
            with self._index_file.writing():
                return [read_file(path) for path in paths]
        except CacheWriteError:  # a read-only folder, which no process changes
            return contents

    def _stored_kinds(self) -> dict[str, PageKind]:
        kinds = self._index_file.current().kinds
        file_names = file_names_in(self.task_dir)
        stored = {
            key: kind for key, kind in kinds.items() if main_file_name(key, kind) in file_names
        }
        for key in kinds.keys() - stored.keys():
            self._report_missing(key)
        return stored

    def _report_missing(self, key: str) -> None:
        if key not in self._reported_missing:
            self._reported_missing.add(key)
            _log.warning(
                "a cached page's file is gone, the page counts as not cached: %s in %s",
                key,
                self.task_dir,
            )


def _check_sizes(key: str, contents: Mapping[Path, bytes | None]) -> None:
    for path, content in contents.items():
        if content is not None and len(content) > max_file_bytes(path):
            raise CacheWriteError(
                f"cannot store the page {key[:200]!r}: {len(content):,} bytes are more than the "
                f"{max_file_bytes(path):,} that a {path.suffix} file of a cache may have"
            )


def _key_for_storing(url: str) -> str:
    if lookup_key(url) is None:
        raise CacheWriteError(f"cannot store a page under {url[:200]!r}: it is not a URL")
    return storage_key(url)


def listing_sha256(cache: CacheFileSys) -> str:
    """Return a digest of which pages a cache holds."""
    return hashlib.sha256("\n".join(cache.get_all_urls()).encode("utf-8", "replace")).hexdigest()
