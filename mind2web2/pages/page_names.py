"""The names of the files of stored pages, and the index that lists them (file-layouts.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

# A page index as its file has it: URL to kind. Entries of other programs may be anything; they are
# kept.
IndexEntries = Mapping[str, object]


def page_stem(key: str) -> str:
    """Return the name of a page's files without suffix."""
    return hashlib.md5(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def index_bytes(entries: IndexEntries) -> bytes:
    """Return the content of an index's file; half a surrogate becomes its JSON escape."""
    text = json.dumps(entries, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace")


def index_entries(content: bytes) -> IndexEntries | None:
    """Return the entries in the content of an index's file, ``None`` where it is damaged."""
    try:
        entries = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return entries if isinstance(entries, dict) else None
