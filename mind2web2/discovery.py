"""Which web pages an answer cites: what a parser finds, and what only a judge model sees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import nullcontext
from urllib.parse import unquote

from mind2web2.client_provider import ScriptedClient, as_provider
from mind2web2.errors import JudgeDeclinedError, JudgeOutputError
from mind2web2.judge import ask_twice_if_declined
from mind2web2.llm_client.chat import ChatProvider, ChatReply, ChatRequest, Limit, Message
from mind2web2.markdown_links import markdown_addresses
from mind2web2.prompts import BlockChain, instructions
from mind2web2.utils.url_key import lookup_key, storage_key
from mind2web2.utils.url_parts import clean_url, split_url, undo_markdown_escapes
from mind2web2.utils.url_site import ascii_host, site_of
from mind2web2.utils.url_tools import URLs

# Servers that speak HTTPS only redirect there, while servers that speak HTTP only cannot be had otherwise.
_ASSUMED_SCHEME = "http"
# example[.]org, example (dot) org, example dot org
_SPELLED_DOT = re.compile(r"[ \t]?[\[({][ \t]?(?:\.|dot)[ \t]?[\])}][ \t]?|[ \t]dot[ \t]", re.IGNORECASE)
_LINE_BREAK = re.compile(r"[ \t>]{0,20}\n[ \t>]{0,20}")
_HOST_IN_TEXT = re.compile(r"[\w%-]++(?:\.[\w%-]++)*+|\[[0-9a-f:.]++\]", re.IGNORECASE)


def cited_urls(answer_markdown: str) -> list[str]:
    """Return the web pages that an answer cites, in order, one spelling a page (layouts.md).

    What has no scheme gets ``http``; what is no URL of the web is left out. Takes any text.
    """
    return one_spelling_each(markdown_addresses(answer_markdown))


def one_spelling_each(urls: Iterable[str]) -> list[str]:
    """Return each page once, as a cache's index writes the first of its spellings.

    A spelling without a scheme gives way to a later one with it, as the scheme would be a guess.
    """
    spellings: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        page = lookup_key(url)
        if page is None or (split_url(clean_url(url)).scheme or "http").lower() not in ("http", "https"):
            continue
        known = spellings.get(page)
        if known is None or (not split_url(known).scheme and split_url(url).scheme):
            spellings[page] = storage_key(url)
    return [url if split_url(url).scheme else f"{_ASSUMED_SCHEME}://{url}" for url in spellings.values()]


async def judged_urls(
    answer_markdown: str, client: ChatProvider | ScriptedClient, model: str, limit: Limit | None = None
) -> tuple[list[str], ChatReply]:
    """Return the pages that a judge model finds cited, as ``cited_urls`` does and often the same ones.

    The model's reply is returned as well, for what it took.

    A URL whose host does not occur in the answer is left out: models invent addresses.

    Args:
        client: who asks the model; not closed.
        limit: entered around each HTTP request.

    Raises:
        JudgeError: the judge failed for good, or declined to read the answer.
    """
    request = ChatRequest(model=model, messages=discovery_messages(answer_markdown), template=URLs)
    reply = await ask_twice_if_declined(
        as_provider(client).chat, request, nullcontext() if limit is None else limit
    )
    if reply.declined is not None:
        raise JudgeDeclinedError(f"judge {model} declined to list the links of an answer: {reply.declined}")
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
    """Return all words of an answer that could be hosts, dots spelled out and broken lines included."""
    text = _SPELLED_DOT.sub(".", undo_markdown_escapes(answer))
    words = {
        word for form in (answer, text, _LINE_BREAK.sub("", text)) for word in _HOST_IN_TEXT.findall(form)
    }
    hosts = (ascii_host(unquote(word)) for word in words if "." in word or ":" in word)
    return {host.removeprefix("www.") for host in hosts if host}
