"""Prepared pages kept in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from mind2web2.prepared_page import PageContent


class PageMemory:
    """Contents by key; over the limit, those used longest ago are dropped.

    Args:
        limit_bytes: of all contents together; the last one kept stays in any case.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._contents: OrderedDict[Hashable, PageContent] = OrderedDict()

    def get(self, key: Hashable) -> PageContent | None:
        """Return a content, which counts as used now, or ``None`` where it is not kept."""
        if key in self._contents:
            self._contents.move_to_end(key)
        return self._contents.get(key)

    def keep(self, key: Hashable, content: PageContent) -> list[Hashable]:
        """Keep a content under a new key, and return the keys of those that are dropped for it."""
        self._contents[key] = content
        self._used_bytes += content.memory_bytes
        dropped = []
        while self._used_bytes > self._limit_bytes and len(self._contents) > 1:
            oldest, oldest_content = self._contents.popitem(last=False)
            self._used_bytes -= oldest_content.memory_bytes
            dropped.append(oldest)
        return dropped
