"""PDF files that an agent read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mind2web2.capture.models import StoredResponse
from mind2web2.errors import UsageError
from mind2web2.pages.found_pages import (
    MAX_FILE_BYTES,
    Fault,
    FoundPage,
    FoundPages,
    StoredByUrl,
    file_time,
    is_web_address,
)
from mind2web2.utils.files import read_regular_file


def importer(path: Path, url: str | None) -> FoundPages:
    """Return what reads a PDF file.

    Raises:
        UsageError: nothing says which page it is.
    """
    if url is None:
        raise UsageError(f"{path} does not say where it comes from: add --url URL")
    return partial(_pdf_page, path, url)


def _pdf_page(path: Path, url: str) -> Iterator[FoundPage | Fault]:
    if not is_web_address(url):
        yield Fault("--url", f"no http or https address: {url[:200]!r}")
        return
    content = read_regular_file(path, MAX_FILE_BYTES)
    stored = StoredByUrl({url: StoredResponse(content, {"content-type": "application/pdf"})})
    yield FoundPage(path.name, url, stored=stored, fetched_at=file_time(path))
