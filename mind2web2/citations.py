"""The file that lists which URLs an agent's answers to a task cite (layouts.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mind2web2.discovery import one_spelling_each
from mind2web2.errors import CacheReadError, CacheWriteError
from mind2web2.utils.cache_pages import PageKind, known_kind, read_file
from mind2web2.utils.files import remove_leftovers, write_whole
from mind2web2.utils.names import natural_key
from mind2web2.utils.unicode_text import as_unicode_text
from mind2web2.utils.url_key import lookup_key


class StoredPages(Protocol):
    """Where pages are kept, such as ``CacheFileSys``."""

    def has(self, url: str) -> PageKind | None:
        """Return what is stored for the URL, ``None`` for nothing."""


@dataclass(frozen=True)
class Citations:
    """What the answers of one agent to one task cite.

    Args:
        answers_by_url: the names of the answer files that cite a URL, in natural order.
        kinds: how the pages are stored that are.
    """

    agent_name: str
    task_id: str
    answers_by_url: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, PageKind]

    def as_json(self) -> dict[str, Any]:
        """Return the file's content."""
        urls = sorted(self.answers_by_url, key=_ignoring_case)
        most_cited_first = sorted(urls, key=lambda url: -len(self.answers_by_url[url]))
        kinds = {url: self.kinds[url] for url in urls if url in self.kinds}
        return {
            "agent_name": self.agent_name,
            "task_id": self.task_id,
            "total_unique_urls": len(urls),
            "all_unique_urls": urls,
            "urls": {url: list(self.answers_by_url[url]) for url in most_cited_first},
            "url_types": kinds,
            "cached_url_count": len(kinds),
        }


def gathered_citations(
    agent_name: str,
    task_id: str,
    urls_by_answer: Mapping[str, Iterable[str]],
    pages: StoredPages | None = None,
) -> Citations:
    """Return the citations of a task's answers, given by file name, each page under one spelling.

    Args:
        pages: where it is looked up how a page is stored; ``None`` for nowhere yet.
    """
    names = sorted(urls_by_answer, key=natural_key)
    urls_by_name = {name: list(urls_by_answer[name]) for name in names}
    spellings = one_spelling_each(url for urls in urls_by_name.values() for url in urls)
    by_page = {lookup_key(url): url for url in spellings}
    answers: dict[str, list[str]] = {url: [] for url in spellings}
    for name, urls in urls_by_name.items():
        cited = dict.fromkeys(by_page.get(lookup_key(url)) for url in urls)
        for url in cited:
            if url is not None:
                answers[url].append(name)
    kinds = {url: pages.has(url) for url in spellings} if pages else {}
    return Citations(
        agent_name=agent_name,
        task_id=task_id,
        answers_by_url={url: tuple(names) for url, names in answers.items()},
        kinds={url: kind for url, kind in kinds.items() if kind is not None},
    )


def citations_path(agent_folder: Path, task_id: str) -> Path:
    """Return the file of a task in an agent's cache folder."""
    return agent_folder / f"{task_id}.json"


def write_citations(
    agent_folder: Path,
    task_id: str,
    urls_by_answer: Mapping[str, Iterable[str]],
    pages: StoredPages | None = None,
) -> None:
    """Replace the file of a task by what its answers cite, and how that is stored now.

    Raises:
        CacheWriteError: the folder cannot be written.
    """
    citations = gathered_citations(agent_folder.resolve().name, task_id, urls_by_answer, pages)
    text = json.dumps(citations.as_json(), ensure_ascii=False, indent=2)
    path = citations_path(agent_folder, task_id)
    try:
        write_whole(path, as_unicode_text(text) + "\n")
        remove_leftovers(agent_folder)
    except OSError as error:
        raise CacheWriteError(
            f"cannot write {path}: {error.strerror or error}; make it writable or choose another cache root"
        ) from error


def read_citations(agent_folder: Path, task_id: str) -> Citations | None:
    """Return what a task's file says, ``None`` where there is none.

    Files of older tools may lack parts: URLs that no answer is named for are cited by nobody known, and pages
    of unknown kind count as not cached. Totals are counted anew.

    Raises:
        CacheReadError: the file cannot be read or is damaged.
    """
    path = citations_path(agent_folder, task_id)
    raw = read_file(path)
    if raw is None:
        return None
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "is no JSON") from error
    if not isinstance(content, dict):
        raise _damaged(path, "holds no JSON object")
    listed = [url for url in _as_list(content.get("all_unique_urls")) if isinstance(url, str)]
    named = {url: _names(names) for url, names in _as_dict(content.get("urls")).items()}
    kinds = {url: known_kind(kind) for url, kind in _as_dict(content.get("url_types")).items()}
    return Citations(
        agent_name=_as_text(content.get("agent_name")) or agent_folder.resolve().name,
        task_id=_as_text(content.get("task_id")) or task_id,
        answers_by_url=dict.fromkeys(listed, ()) | named,
        kinds={url: kind for url, kind in kinds.items() if kind is not None},
    )


def _ignoring_case(url: str) -> tuple[str, str]:
    return url.lower(), url


def _damaged(path: Path, fault: str) -> CacheReadError:
    return CacheReadError(f"{path} {fault}: delete it, and the next caching run writes it anew")


def _names(answers: object) -> tuple[str, ...]:
    names = {name for name in _as_list(answers) if isinstance(name, str)}
    return tuple(sorted(names, key=natural_key))


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""
