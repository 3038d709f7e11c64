"""Barred sources: pages about the benchmark itself, on which an answer should not rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote

from mind2web2.errors import UsageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import cited_urls
from mind2web2.urls.parts import lookup_key
from mind2web2.utils.files import read_text_file

DEFAULT_LIST = Path(__file__).with_name("barred.txt")
_MAX_BYTES = 1_000_000
_ADDRESS = re.compile(r"(?:https?://)?(?:www\.)?([^\s/?#:]+\.[^\s/?#]+(?:/\S*)?)", re.IGNORECASE)
_TITLE = "title:"


class BarredPage(TypedDict):
    """A page about the benchmark, and the rule that names it."""

    url: str
    rule: str
    shown: str


@dataclass(frozen=True, slots=True)
class BarredList:
    """Rules that name barred sources."""

    addresses: tuple[tuple[str, re.Pattern[str]], ...]
    titles: tuple[tuple[str, re.Pattern[str]], ...]

    @classmethod
    def read(cls, path: Path = DEFAULT_LIST) -> BarredList:
        """Read a file with one rule a line: a host, an address, or ``title: PATTERN``.

        Raises:
            UsageError: it cannot be read, or a line is not a rule.
        """
        text = read_text_file(path, str(path), _MAX_BYTES)
        addresses, titles = [], []
        for number, line in enumerate(text.splitlines(), start=1):
            rule = line.strip()
            if rule.lower().startswith(_TITLE) and rule[len(_TITLE) :].strip():
                titles.append((rule, re.compile(_pattern(_words(rule[len(_TITLE) :])))))
            elif address_parts := _ADDRESS.fullmatch(rule):
                # At the start, or within the address of an archive or a proxy.
                address = _pattern(address_parts[1].rstrip("/").lower())
                place = rf"(?:^|:/{{1,2}})(?:[^/?#&@]*\.)?{address}(?:[/?#&]|$)"
                addresses.append((rule, re.compile(place)))
            elif rule and not rule.startswith("#"):
                raise UsageError(
                    f"{path}, line {number}: {rule[:80]!r} is not a host, address or title: PATTERN"
                )
        return cls(tuple(addresses), tuple(titles))

    def rule_for_url(self, url: str) -> str | None:
        """Return the first rule that names a URL, also one within the address of an archive."""
        address = unquote(lookup_key(url) or url).lower()
        return next((rule for rule, pattern in self.addresses if pattern.search(address)), None)

    def rule_for_title(self, title: str) -> str | None:
        """Return the first rule that names a page's title."""
        words = _words(title)
        return next((rule for rule, pattern in self.titles if pattern.fullmatch(words)), None)

    def sources_of(
        self,
        answer: str,
        judged: Iterable[str],
        pages: CacheFileSys,
    ) -> list[BarredPage]:
        """Return the barred sources among the pages that an answer cites or was judged on.

        Reads files.
        """
        sources: list[BarredPage] = []
        for url in dict.fromkeys([*cited_urls(answer), *judged]):
            for shown, rule in self._matches(url, pages):
                if rule is not None:
                    sources.append({"url": url, "rule": rule, "shown": shown})
                    break
        return sources

    def _matches(self, url: str, pages: CacheFileSys) -> Iterator[tuple[str, str | None]]:
        yield url, self.rule_for_url(url)
        record = pages.capture_record(url)
        if record is not None:
            for address in filter(None, (record.final_url, record.archived_from)):
                yield address, self.rule_for_url(address)
            yield record.title, self.rule_for_title(record.title)


def _words(text: str) -> str:
    return " ".join(text.split()).lower()


def _pattern(text: str) -> str:
    return ".*".join(map(re.escape, re.split(r"\*+", text)))


@cache
def default_barred() -> BarredList:
    """Return the list of this package: the benchmark's dataset, code, paper and leaderboard."""
    return BarredList.read()


def barred_list(path: Path | None = None) -> BarredList:
    """Return the list in a file, by default that of this package."""
    return default_barred() if path is None else BarredList.read(path)
