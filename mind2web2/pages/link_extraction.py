"""Links that only a model finds in an answer: asked once for each answer, then stored."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from mind2web2.errors import JudgeError, JudgeRequestError, JudgeUnavailableError
from mind2web2.pages.cache_files import read_file
from mind2web2.utils.files import write_whole
from mind2web2.utils.text import as_unicode_text

log = logging.getLogger(__name__)

# Hidden: to other tools every other folder beside it is a task.
FOLDER_NAME = ".judged_urls"

AskForUrls = Callable[[str], Awaitable[list[str]]]


class LinkJudge:
    """Asks a judge for the URLs of answers and keeps its replies; where it fails, the parser has to do.

    Args:
        folder: of the kept replies, a file for each answer, named by the answer's SHA-256.
        model: the model whose kept replies count; ``None`` for any model.
        ask: gives the URLs of an answer, raising ``JudgeError``; ``None`` to use kept replies alone.
    """

    def __init__(self, folder: Path, model: str | None, ask: AskForUrls | None) -> None:
        self._folder = folder
        self._model = model
        self._ask = ask
        # The first is asked alone: a judge that cannot be reached is found out once, not by all at once.
        self._trying = asyncio.Lock()
        self._has_answered = False
        self.answers_not_judged = 0

    @property
    def is_asking(self) -> bool:
        """Return whether there is a judge that may be asked."""
        return self._ask is not None

    async def urls(self, answer: str, name: str = "an answer") -> list[str]:
        """Return the model's links, new or stored; none if it was not asked or failed.

        Args:
            name: of the answer, for warnings.
        """
        path = self._folder / f"{hashlib.sha256(as_unicode_text(answer).encode()).hexdigest()}.json"
        kept = await asyncio.to_thread(_kept_urls, path, self._model)
        if kept is not None:
            return kept
        if self._has_answered:
            urls = await self._asked(answer, name)
        else:
            async with self._trying:
                urls = await self._asked(answer, name)
        if urls is None:
            self.answers_not_judged += 1
            return []
        reply = json.dumps({"model": self._model, "urls": urls}, ensure_ascii=False, indent=2)
        await asyncio.to_thread(write_whole, path, as_unicode_text(reply))
        return urls

    async def _asked(self, answer: str, name: str) -> list[str] | None:
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


def _kept_urls(path: Path, model: str | None) -> list[str] | None:
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
