"""Cited pages as the judge is shown them, and the exact messages of a question."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from mind2web2.capture.models import CaptureRecord
from mind2web2.errors import CaptureError
from mind2web2.judge.judgment import judgment_key
from mind2web2.llm_client.chat import ChatRequest, Message
from mind2web2.llm_client.messages import parts_of
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cited_pages import AgentCache
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import NO_SCREENSHOT, PreparedPage
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.verdicts import Evidence, PageCheck, Vote
from mind2web2.utils.names import is_file_name
from mind2web2.utils.path_config import PathConfig
from mind2web2.verification.messages import verification_messages
from mind2web2.verification.run_questions import BinaryEvalResult
from mind2web2.verification.script_access import EvaluatorConfig
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey, Json, NoSuchResultError

log = logging.getLogger(__name__)

SCREENSHOT = "screenshot"


@dataclass(frozen=True, slots=True)
class PageKey:
    """A page that an agent's answers to a task cite."""

    agent: str
    task: str
    url: str


class StoredPages:
    """The pages of some agents, read from their caches."""

    def __init__(self, paths: PathConfig) -> None:
        self._paths = paths
        self._library = PageLibrary()
        self._config = EvaluatorConfig()

    def cache(self, key: PageKey) -> CacheFileSys:
        """Return the cache of the page's task.

        Raises NoSuchResultError: a name leads out of the folder.
        """
        if not (is_file_name(key.agent) and is_file_name(key.task)):
            raise NoSuchResultError("not the name of an agent or a task")
        return AgentCache(self._paths.cache_root / key.agent).of(key.task)

    async def page(self, key: PageKey) -> Json:
        """Return a page: its record, its text for the judge, and the names of its images.

        A page that is not stored, or cannot be read, has the reason under ``unavailable``.
        """
        cache = self.cache(key)
        record = cache.capture_record(key.url)
        facts: Json = {
            "agent": key.agent,
            "task": key.task,
            "url": key.url,
            "kind": cache.has(key.url),
            "record": None if record is None else record.model_dump(mode="json"),
        }
        try:
            page = await self._prepare(key, with_images=True)
        except CaptureError as error:
            return facts | {"unavailable": _reason(record, error), "text": "", "images": []}
        return facts | {
            "sha256": page.sha256,
            "text": str(page.text),
            "notes": list(page.notes),
            "troubles": list(page.troubles),
            "flags": [flag.model_dump(mode="json") for flag in page.flags],
            "images": self._image_names(cache, page),
        }

    async def image(self, key: PageKey, name: str) -> bytes:
        """Return one of a page's images as JPEG: its screenshot, or a page of a PDF.

        Raises:
            NoSuchResultError: the page has no such image.
        """
        cache = self.cache(key)
        if name == SCREENSHOT and cache.has_web(key.url):
            screenshot = cache.get_web(key.url)[1]
            if screenshot is not None:
                return screenshot
        elif cache.has_pdf(key.url):
            page = await self._prepare(key, with_images=True)
            names = self._image_names(cache, page)
            if name in names:
                return base64.b64decode(str(page.images[names.index(name)]).partition(",")[2])
        raise NoSuchResultError(f"page {key.url} has no image {name}")

    async def messages(self, catalog: Catalog, key: AnswerKey, judgment: str) -> Json:
        """Return the messages of a question, rebuilt from the files of now.

        ``is_exact`` says that they are those that the judgment answers: its key is a hash of them.

        Raises:
            NoSuchResultError: no vote of the answer has this judgment.
            CaptureError: the page is gone.
        """
        content = catalog.content(key)
        for task, evidence, check, vote in _votes(content):
            if vote.judgment != judgment:
                continue
            page = None
            if check is not None:
                seen = check.page
                # A page without a screenshot was asked for with images as well, and a note says so.
                with_images = seen is None or bool(seen.images) or NO_SCREENSHOT in seen.notes
                page = await self._prepare(
                    PageKey(key.agent, key.task, check.url), with_images=with_images
                )
                if check.page is not None:
                    page = page.as_shown(check.page.images)
            messages = verification_messages(
                task,
                catalog.answer_text(key) or "",
                page,
                evidence.claim or "",
                evidence.additional_instruction,
            )
            return {
                "messages": [_describe_message(message) for message in messages],
                "is_exact": _key_now(content, messages, vote.trial) == judgment,
            }
        raise NoSuchResultError("no vote of this answer has this judgment")

    async def _prepare(self, key: PageKey, *, with_images: bool) -> PreparedPage:
        request = PageRequest(
            cache=self.cache(key),
            url=key.url,
            settings=self._config.page_settings(),
            with_images=with_images,
            capture=None,
            limit=nullcontext(),
            logger=log,
        )
        return await self._library.page(request)

    def _image_names(self, cache: CacheFileSys, page: PreparedPage) -> list[str]:
        if page.kind == "pdf":
            return [f"page-{number}" for number in range(1, len(page.images) + 1)]
        if cache.get_web(page.url)[1] is not None:
            return [SCREENSHOT]
        return []


def _reason(record: CaptureRecord | None, error: CaptureError) -> str:
    if record is not None and record.failure:
        return record.failure
    return str(error)


def _votes(
    result: ResultFile,
) -> Iterator[tuple[str, Evidence, PageCheck | None, Vote]]:
    """Yield the task's text, and each vote of a result with its evidence and page."""
    for tree in result.trees:
        for node in tree.walk():
            for vote in node.grounds.votes:
                yield tree.desc, node.grounds, None, vote
            for check in node.grounds.pages:
                for vote in check.votes:
                    yield tree.desc, node.grounds, check, vote


def _key_now(result: ResultFile, messages: list[Message], trial: int) -> str | None:
    """Return the key that a judgment on these messages has, if the result names its judge."""
    if result.provenance is None:
        return None
    judge = result.provenance.judge
    request = ChatRequest(
        model=judge.model,
        messages=messages,
        template=BinaryEvalResult,
        temperature=judge.temperature,
        reasoning_effort=judge.reasoning_effort,
        extra=json.loads(judge.extra_body or "{}"),
    )
    return judgment_key(request, trial)


def _describe_message(message: Message) -> Json:
    """Return a message with its texts, and the size of each image."""
    parts: list[Any] = parts_of(message["content"])
    return {
        "role": message["role"],
        "parts": [
            {"text": str(part["text"])}
            if part["type"] == "text"
            else {"image_bytes": len(part["image_url"]["url"]) * 3 // 4}
            for part in parts
        ],
    }
