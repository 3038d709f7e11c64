"""The files of one cached page: their names and contents (layouts.md)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote_to_bytes

from mind2web2.errors import CacheReadError, DocumentError
from mind2web2.utils.foreign_files import MAX_JSON_BYTES, read_regular_file

PageKind = Literal["web", "pdf"]

_log = logging.getLogger(__name__)

_MAIN_SUFFIX: dict[PageKind, str] = {"web": ".txt", "pdf": ".pdf"}
# A capture keeps four million characters, a download 100 MB.
_MAX_BYTES = {".txt": 64 * 1024**2, ".jpg": 128 * 1024**2, ".pdf": 128 * 1024**2}
_PAGE_FILE = re.compile(r"[0-9a-f]{32}\.(?:txt|jpg|pdf)")
_DATA_URL = re.compile(r"data:[^,]*?(;base64)?,", re.IGNORECASE)


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
        stem = _stem(key)
        suffixes = (".txt", ".jpg", ".pdf", ".capture.json")
        return cls(*(folder / f"{stem}{suffix}" for suffix in suffixes))

    def of_kind(self, kind: PageKind) -> tuple[Path, ...]:
        """Return the files that a page of this kind may have, the indispensable one first."""
        return (self.text, self.screenshot) if kind == "web" else (self.pdf,)


def known_kind(listed_kind: object) -> PageKind | None:
    """Return what an index lists a page as, ``None`` for what this program does not know."""
    return "web" if listed_kind == "web" else "pdf" if listed_kind == "pdf" else None


def main_file_name(key: str, kind: PageKind) -> str:
    """Return the name of the file without which the page counts as not stored."""
    return _stem(key) + _MAIN_SUFFIX[kind]


def is_page_file(name: str) -> bool:
    """Tell whether a file in a cache folder belongs to a page."""
    return _PAGE_FILE.fullmatch(name) is not None


def file_names_in(folder: Path) -> set[str]:
    """Return the names of all files in a folder, none if it does not exist."""
    try:
        return {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def screenshot_bytes(screenshot: bytes | str | None) -> bytes | None:
    """Return a screenshot given as bytes, base64 text or ``data:`` URL as JPEG, ``None`` where there is none.

    Raises:
        DocumentError: it is not base64 or no image that can be read.
    """
    if not screenshot:
        return None
    from mind2web2.utils.images import to_jpeg  # Pillow is slow to load

    return to_jpeg(_decoded(screenshot) if isinstance(screenshot, str) else bytes(screenshot))


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
            f"cannot read {path}: {error.strerror}; check its permissions and the disk, or remove it"
        ) from error


def max_file_bytes(path: Path) -> int:
    """Return how large a file of a cache may be: more is read by nobody, so that nobody shall write it."""
    return _MAX_BYTES.get(path.suffix, MAX_JSON_BYTES)


def file_state(path: Path | str) -> tuple[int, int, int] | None:
    """Return what differs once a file is replaced, ``None`` where there is none.

    Raises:
        CacheReadError: it exists and cannot be looked at.
    """
    try:
        stat = os.stat(path)  # noqa: PTH116 - every lookup passes here: twice as fast
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CacheReadError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def decoded_text(raw: bytes, path: Path) -> str:
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


def _stem(key: str) -> str:
    return hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()


def _decoded(screenshot: str) -> bytes:
    header = _DATA_URL.match(screenshot)
    payload = screenshot[header.end() :] if header else screenshot
    if header and not header[1]:
        return unquote_to_bytes(payload)
    try:
        return base64.b64decode("".join(payload.split()), validate=True)
    except binascii.Error as error:
        raise DocumentError(f"the screenshot is not base64 text: {error}") from error
