"""Which entry of a cache index a URL means (layouts.md); values in, values out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mind2web2.utils.cache_pages import PageKind, known_kind
from mind2web2.utils.url_key import lookup_key, storage_key
from mind2web2.utils.url_parts import split_url

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PageIndex:
    """The pages that an index lists, found by any spelling of their URL at a cost that does not grow.

    Args:
        listed: the index as its file has it; other programs' kinds of entries are kept, not read.
        kinds: index key to kind, for the entries that can be read.
        page_of: index key to what all spellings of its page share.
        keys_of: the reverse of ``page_of``.
    """

    listed: Mapping[str, object] = field(default_factory=dict)
    kinds: Mapping[str, PageKind] = field(default_factory=dict)
    page_of: Mapping[str, str] = field(default_factory=dict)
    keys_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def updated(self, listed: Mapping[str, object]) -> PageIndex:
        """Return the index of other entries, reusing what is known of those that both have."""
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
