"""The names of the files of stored pages (file-layouts.md)."""

from __future__ import annotations

import hashlib


def page_stem(key: str) -> str:
    """Return the name of a page's files without suffix."""
    return hashlib.md5(
        key.encode("utf-8", "surrogatepass"), usedforsecurity=False
    ).hexdigest()
