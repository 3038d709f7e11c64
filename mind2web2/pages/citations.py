"""The URLs that an agent's answers to a task cite; a parser and a model find them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mind2web2.errors import (
    CacheReadError,
    CacheWriteError,
)
from mind2web2.pages.cache_files import read_file
from mind2web2.urls.markdown import markdown_addresses
from mind2web2.urls.parts import (
    clean_url,
    lookup_key,
    split_url,
    storage_key,
)
from mind2web2.utils.files import (
    remove_leftovers,
    write_whole,
)
from mind2web2.utils.names import natural_key
from mind2web2.utils.text import as_unicode_text

if TYPE_CHECKING:
    from mind2web2.capture.models import PageKind
    from mind2web2.pages.cache import CacheFileSys

# Servers with HTTPS only redirect there; servers with HTTP only answer nothing else.
_ASSUMED_SCHEME = "http"


def cited_urls(answer_markdown: str) -> list[str]:
    """Return the web pages that an answer cites, in order, one spelling a page (file-layouts.md).

    URLs without a scheme get ``http``; other schemes are left out. Takes any text.
    """
    return one_spelling_each(markdown_addresses(answer_markdown))


def addresses_to_open(answer_markdown: str) -> list[str]:
    """Return the pages of ``cited_urls`` in the answer's own spelling."""
    return as_cited(markdown_addresses(answer_markdown))


def one_spelling_each(urls: Iterable[str]) -> list[str]:
    """Return each page once, as a cache's index writes the first of its spellings."""
    return [storage_key(url) for url in as_cited(urls)]


def as_cited(urls: Iterable[str]) -> list[str]:
    """Return each page once, in the first of its spellings.

    A spelling without a scheme gives way to a later one with it, as the scheme would be a guess.
    """
    spellings: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        page = lookup_key(url)
        if page is None or split_url(clean_url(url)).scheme not in (None, "http", "https"):
            continue
        known = spellings.get(page)
        if known is None or (not split_url(known).scheme and split_url(url).scheme):
            spellings[page] = clean_url(url)
    return [
        url if split_url(url).scheme else f"{_ASSUMED_SCHEME}://{url}" for url in spellings.values()
    ]


class CitationList(TypedDict):
    """The citations of a task's answers, as their file has them (file-layouts.md)."""

    agent_name: str
    task_id: str
    total_unique_urls: int
    all_unique_urls: list[str]
    urls: dict[str, list[str]]
    url_types: dict[str, PageKind]
    cached_url_count: int


def citations_as_json(
    agent_name: str,
    task_id: str,
    urls_by_answer: Mapping[str, Sequence[str]],
    pages: CacheFileSys,
) -> CitationList:
    """Return the list of a task's citations (file-layouts.md), each page under one spelling."""
    names = sorted(urls_by_answer, key=natural_key)
    spellings = one_spelling_each(url for name in names for url in urls_by_answer[name])
    by_page = {lookup_key(url): url for url in spellings}
    urls = sorted(spellings, key=lambda url: (url.lower(), url))
    answers: dict[str, list[str]] = {url: [] for url in urls}
    for name in names:
        for url in dict.fromkeys(by_page.get(lookup_key(url)) for url in urls_by_answer[name]):
            if url is not None:
                answers[url].append(name)
    kinds = {url: kind for url in urls if (kind := pages.has(url)) is not None}
    return {
        "agent_name": agent_name,
        "task_id": task_id,
        "total_unique_urls": len(urls),
        "all_unique_urls": urls,
        # Most cited first.
        "urls": dict(sorted(answers.items(), key=lambda item: -len(item[1]))),
        "url_types": kinds,
        "cached_url_count": len(kinds),
    }


def write_citations(
    agent_folder: Path,
    task_id: str,
    urls_by_answer: Mapping[str, Sequence[str]],
    pages: CacheFileSys,
) -> None:
    """Replace the list of a task's citations, with the kinds of the stored pages.

    Raises:
        CacheWriteError: the folder cannot be written.
    """
    citations = citations_as_json(agent_folder.resolve().name, task_id, urls_by_answer, pages)
    path = agent_folder / f"{task_id}.json"
    try:
        write_whole(
            path,
            as_unicode_text(json.dumps(citations, ensure_ascii=False, indent=2)) + "\n",
        )
        remove_leftovers(agent_folder)
    except OSError as error:
        raise CacheWriteError(
            f"cannot write {path}: {error.strerror or error}; make it writable or choose another "
            "cache root"
        ) from error


def listed_urls(path: Path) -> list[str]:
    """Return the URLs in a list of citations, also of an older tool's.

    None if there is no such file.

    Raises:
        CacheReadError: the file cannot be read or is damaged.
    """
    try:
        content = json.loads(read_file(path) or b"{}")
        urls = (content.get("all_unique_urls") or []) + list(content.get("urls") or ())
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise CacheReadError(
            f"{path} is damaged: delete it, and the next caching run writes a new one"
        ) from error
    return list(dict.fromkeys(url for url in urls if isinstance(url, str)))
