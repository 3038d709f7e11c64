"""The URLs of an answer as a judge lists them, for links that are written as plain words."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError

from mind2web2.errors import (
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.judge.client_judge import ScriptedClient, as_provider
from mind2web2.llm_client.chat import (
    ChatProvider,
    ChatReply,
    ChatRequest,
    Message,
    Parameters,
    chat_twice,
)
from mind2web2.pages.cache_files import read_file
from mind2web2.pages.citations import one_spelling_each
from mind2web2.prompts import BlockChain, instructions
from mind2web2.urls.markdown import URLs
from mind2web2.urls.parts import (
    ascii_host,
    site_of,
    split_url,
    undo_markdown_escapes,
)
from mind2web2.utils.files import write_whole
from mind2web2.utils.text import as_unicode_text

log = logging.getLogger(__name__)

# example[.]org, example (dot) org, example dot org
_SPELLED_DOT = re.compile(
    r"[ \t]?[\[({][ \t]?(?:\.|dot)[ \t]?[\])}][ \t]?|[ \t]dot[ \t]", re.IGNORECASE
)
_LINE_BREAK = re.compile(r"[ \t>]{0,20}\n[ \t>]{0,20}")
_HOST_IN_TEXT = re.compile(r"[\w%-]++(?:\.[\w%-]++)*|\[[0-9a-f:.]++\]", re.IGNORECASE)


async def judged_urls(
    answer_markdown: str,
    client: ChatProvider | ScriptedClient,
    model: str,
    extra: Parameters,
) -> tuple[list[str], ChatReply]:
    """Return the pages that a judge model finds cited.

    The model's reply is returned as well, with its usage.

    A URL whose host does not occur in the answer is left out: models invent addresses.

    Args:
        client: who asks the model; not closed.
        extra: further parameters of the request.

    Raises:
        JudgeError: the judge failed for good, or declined to read the answer.
    """
    messages = discovery_messages(answer_markdown)
    request = ChatRequest(model=model, messages=messages, template=URLs, extra=extra)
    reply = await chat_twice(as_provider(client), request, nullcontext())
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


# Hidden: to other tools every other folder beside it is a task.
FOLDER_NAME = ".judged_urls"


AskForUrls = Callable[[str], Awaitable[list[str]]]


class _StoredReply(BaseModel):
    """A kept reply of the model, as its file has it."""

    model: str | None
    urls: list[str]


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
    if raw is None:
        return None
    try:
        reply = _StoredReply.model_validate_json(raw)
    except ValidationError:
        return None
    if model is not None and reply.model != model:
        return None
    return reply.urls
