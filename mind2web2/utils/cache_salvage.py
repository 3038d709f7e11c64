"""What can be saved of a damaged cache index: the files are whole, but their names do not tell their URLs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from mind2web2.utils.cache_pages import PageKind, main_file_name, read_file
from mind2web2.utils.unicode_text import is_unicode_text
from mind2web2.utils.url_key import storage_key

_PAIR = re.compile(r'("(?:[^"\\]|\\.)*+")\s*+:\s*+"(web|pdf)"')


def salvaged_entries(folder: Path, damaged: bytes, file_names: Set[str]) -> dict[str, PageKind]:
    """Return the index entries that the damaged text or the task's URL list names and whose files exist."""
    entries = {
        key: kind
        for key, kind in (*_pairs_in(damaged), *_pages_of_known_urls(folder, file_names))
        if is_unicode_text(key) and main_file_name(key, kind) in file_names
    }
    return dict(sorted(entries.items()))


def _pairs_in(damaged: bytes) -> Iterator[tuple[str, PageKind]]:
    for quoted_key, kind in _PAIR.findall(damaged.decode(errors="replace")):
        try:
            yield json.loads(quoted_key, strict=False), cast(PageKind, kind)
        except ValueError:  # an invalid escape: the key itself is damaged
            continue


def _pages_of_known_urls(folder: Path, file_names: Set[str]) -> Iterator[tuple[str, PageKind]]:
    """Yield what the list of cited URLs beside the folder (layouts.md) adds."""
    kinds: tuple[PageKind, ...] = ("web", "pdf")
    for url in _known_urls(folder):
        if not is_unicode_text(url):
            continue
        fully_decoded = unquote(url.partition("#")[0]).rstrip("/")  # the key of older tools
        for key in (storage_key(url), fully_decoded):
            yield from ((key, kind) for kind in kinds if main_file_name(key, kind) in file_names)


def _known_urls(folder: Path) -> list[str]:
    raw = read_file(folder.absolute().parent / f"{folder.absolute().name}.json")
    try:
        cited = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        return []
    urls = cited.get("all_unique_urls") if isinstance(cited, dict) else None
    return [url for url in urls if isinstance(url, str)] if isinstance(urls, list) else []
