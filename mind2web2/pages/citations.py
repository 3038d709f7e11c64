"""The URLs that an agent's answers to a task cite; a parser and a model find them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol, TypedDict
from urllib.parse import unquote

from mind2web2.capture.models import PageKind
from mind2web2.errors import (
    CacheReadError,
    CacheWriteError,
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.judge.client_judge import ScriptedClient, as_provider
from mind2web2.judge.session import ask_twice_if_declined
from mind2web2.llm_client.chat import (
    ChatProvider,
    ChatReply,
    ChatRequest,
    Limit,
    Message,
    Parameters,
)
from mind2web2.pages.cache_files import read_file
from mind2web2.prompts import BlockChain, instructions
from mind2web2.urls.markdown import URLs, markdown_addresses
from mind2web2.urls.parts import (
    ascii_host,
    clean_url,
    lookup_key,
    site_of,
    split_url,
    storage_key,
    undo_markdown_escapes,
)
from mind2web2.utils.files import (
    remove_leftovers,
    write_whole,
)
from mind2web2.utils.names import natural_key
from mind2web2.utils.text import as_unicode_text

# Servers with HTTPS only redirect there; servers with HTTP only answer nothing else.
_ASSUMED_SCHEME = "http"
# example[.]org, example (dot) org, example dot org
_SPELLED_DOT = re.compile(
    r"[ \t]?[\[({][ \t]?(?:\.|dot)[ \t]?[\])}][ \t]?|[ \t]dot[ \t]", re.IGNORECASE
)
_LINE_BREAK = re.compile(r"[ \t>]{0,20}\n[ \t>]{0,20}")
_HOST_IN_TEXT = re.compile(r"[\w%-]++(?:\.[\w%-]++)*|\[[0-9a-f:.]++\]", re.IGNORECASE)


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
        if page is None or (split_url(clean_url(url)).scheme or "http").lower() not in (
            "http",
            "https",
        ):
            continue
        known = spellings.get(page)
        if known is None or (not split_url(known).scheme and split_url(url).scheme):
            spellings[page] = _without_fragment(clean_url(url))
    return [
        url if split_url(url).scheme else f"{_ASSUMED_SCHEME}://{url}" for url in spellings.values()
    ]


def _without_fragment(url: str) -> str:
    return url.partition("#")[0] + split_url(url).route


async def judged_urls(
    answer_markdown: str,
    client: ChatProvider | ScriptedClient,
    model: str,
    limit: Limit | None = None,
    extra: Parameters | None = None,
) -> tuple[list[str], ChatReply]:
    """Return the pages that a judge model finds cited.

    The model's reply is returned as well, with its usage.

    A URL whose host does not occur in the answer is left out: models invent addresses.

    Args:
        client: who asks the model; not closed.
        limit: entered around each HTTP request.
        extra: further parameters of the request.

    Raises:
        JudgeError: the judge failed for good, or declined to read the answer.
    """
    messages = discovery_messages(answer_markdown)
    request = ChatRequest(model=model, messages=messages, template=URLs, extra=extra or {})
    reply = await ask_twice_if_declined(
        as_provider(client).chat, request, nullcontext() if limit is None else limit
    )
    if reply.declined is not None:
        raise JudgeDeclinedError(
            f"judge {model} declined to list the links of an answer: {reply.declined}"
        )
    if not isinstance(reply.value, URLs):
        raise JudgeOutputError(f"judge {model} gave no list of links")
    hosts = _hosts_in(answer_markdown)
    return [url for url in one_spelling_each(reply.value.urls) if _host_of(url) in hosts], reply


def discovery_messages(answer: str) -> list[Message]:
    """Return the question which pages an answer cites."""
    block = BlockChain().block("answer", answer)
    question = f"{block}\nList the addresses of the web pages that this answer cites."
    return [
        {"role": "system", "content": instructions("discover")},
        {"role": "user", "content": [{"type": "text", "text": question}]},
    ]


def _host_of(url: str) -> str | None:
    site = site_of(split_url(url))
    return site.without_www().host if site else None


def _hosts_in(answer: str) -> set[str]:
    """Return all words of an answer that could be hosts, also with dots spelled out."""
    text = _SPELLED_DOT.sub(".", undo_markdown_escapes(answer))
    words = {
        word
        for form in (answer, text, _LINE_BREAK.sub("", text))
        for word in _HOST_IN_TEXT.findall(form)
    }
    hosts = (ascii_host(unquote(word)) for word in words if "." in word or ":" in word)
    return {host.removeprefix("www.") for host in hosts if host}


class StoredPages(Protocol):
    """Where pages are kept, such as ``CacheFileSys``."""

    def has(self, url: str) -> PageKind | None:
        """Return the kind of the stored page; ``None`` if none is stored."""


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
    urls_by_answer: Mapping[str, Iterable[str]],
    pages: StoredPages | None = None,
) -> CitationList:
    """Return the list of a task's citations (file-layouts.md), each page under one spelling."""
    names = sorted(urls_by_answer, key=natural_key)
    urls_by_name = {name: list(urls_by_answer[name]) for name in names}
    spellings = one_spelling_each(url for urls in urls_by_name.values() for url in urls)
    by_page = {lookup_key(url): url for url in spellings}
    urls = sorted(spellings, key=lambda url: (url.lower(), url))
    answers: dict[str, list[str]] = {url: [] for url in urls}
    for name, cited in urls_by_name.items():
        for url in dict.fromkeys(by_page.get(lookup_key(url)) for url in cited):
            if url is not None:
                answers[url].append(name)
    kinds = {
        url: kind for url in urls if pages is not None and (kind := pages.has(url)) is not None
    }
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
    urls_by_answer: Mapping[str, Iterable[str]],
    pages: StoredPages | None = None,
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


log = logging.getLogger(__name__)

# Hidden: to other tools every other folder beside it is a task.
FOLDER_NAME = ".judged_urls"

AskForUrls = Callable[[str], Awaitable[list[str]]]


class LinkJudge:
    """Asks a judge for the URLs of answers and keeps its replies.

    Where it fails, the parser has to do.

    Args:
        folder: of the kept replies, a file for each answer, named by the answer's SHA-256.
        model: the model whose kept replies count; ``None`` for any model.
        ask: gives the URLs of an answer, raising ``JudgeError``; ``None`` to use kept replies
            alone.
    """

    def __init__(self, folder: Path, model: str | None, ask: AskForUrls | None) -> None:
        self._folder = folder
        self._model = model
        self._ask = ask
        # The first is asked alone: a judge that cannot be reached is found out once, not by all at
        # once.
        self._trying = asyncio.Lock()
        self._has_answered = False
        self.answers_not_judged = 0

    @property
    def is_asking(self) -> bool:
        """Return whether there is a judge that may be asked."""
        return self._ask is not None

    async def urls(self, answer: str, name: str = "an answer") -> list[str]:
        """Return the model's links, new or stored; none if it was not asked or failed."""
        path = self._folder / f"{hashlib.sha256(as_unicode_text(answer).encode()).hexdigest()}.json"
        stored_urls = await asyncio.to_thread(_stored_urls, path, self._model)
        if stored_urls is not None:
            return stored_urls
        if self._has_answered:
            urls = await self._ask_model(answer, name)
        else:
            async with self._trying:
                urls = await self._ask_model(answer, name)
        if urls is None:
            self.answers_not_judged += 1
            return []
        reply = json.dumps({"model": self._model, "urls": urls}, ensure_ascii=False, indent=2)
        await asyncio.to_thread(write_whole, path, as_unicode_text(reply))
        return urls

    async def _ask_model(self, answer: str, name: str) -> list[str] | None:
        ask = self._ask
        if ask is None:
            return None
        try:
            urls = await ask(answer)
        except JudgeError as error:
            if self._ask is not None:
                log.warning("%s: links that only a model sees are left out: %s", name, error)
            if isinstance(error, JudgeRequestError | JudgeUnavailableError):
                # The next answer would fare no better: a wrong key, a server that is down.
                self._ask = None
            else:
                self._has_answered = True
            return None
        self._has_answered = True
        return urls


def _stored_urls(path: Path, model: str | None) -> list[str] | None:
    raw = read_file(path)
    try:
        reply = json.loads(raw or b"null")
    except (ValueError, RecursionError):
        return None
    if not isinstance(reply, dict) or not isinstance(reply.get("urls"), list):
        return None
    if model is not None and reply.get("model") != model:
        return None
    return [url for url in reply["urls"] if isinstance(url, str)]
