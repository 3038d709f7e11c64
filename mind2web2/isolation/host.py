"""What a script's process is given of the run: judge, pages, map service and log, each within its limits.

What comes from there is checked as what it is, the word of a program by a stranger: it may ask what any
script may ask, for its own answer, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from mind2web2.answer_cache import AnswerCache
from mind2web2.api_tools.service_requests import ServiceRequest
from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.claim_judging import BinaryEvalResult
from mind2web2.client_provider import unexpected
from mind2web2.errors import EvalScriptError, JudgeError, JudgmentMissingError, MachineError, Mind2Web2Error
from mind2web2.failure_latch import FailureLatch
from mind2web2.isolation.held_texts import HeldTexts
from mind2web2.isolation.messages import MAX_REASON_CHARS, Message, error_from
from mind2web2.isolation.page_fields import fields_of
from mind2web2.isolation.told_template import told_template
from mind2web2.judge import Subject
from mind2web2.limits import CheckedLimit, DualSemaphore
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.page_library import PageLibrary, PageRequest
from mind2web2.prepared_page import PageSettings
from mind2web2.recorded_judge import RecordedJudge

# Asks the script's process what only it can tell.
AskScript = Callable[..., Awaitable[Any]]


class _Template(BaseModel):
    number: int | None
    name: str = "BinaryEvalResult"
    form: dict[str, Any] = {}


class _Question(BaseModel):
    messages: list[dict[str, Any]]
    template: _Template | None
    extra: dict[str, Any]
    subject: Subject


class _Gate(BaseModel):
    subject: Subject
    ordinal: int
    skip_reason: str | None


class _Page(BaseModel):
    url: str
    settings: PageSettings
    with_images: bool
    with_capture: bool
    is_noted: bool


class _MapsQuestion(BaseModel):
    service: Literal["google_maps"]
    name: Literal["geocode", "distance_matrix"]
    arguments: list[str | list[str]]
    keywords: dict[str, str]


class _PaperQuestion(BaseModel):
    service: Literal["arxiv"]
    name: Literal["by_id", "by_title"]
    arguments: list[str] = Field(min_length=1, max_length=1)
    keywords: dict[str, int]


_ServiceQuestion = TypeAdapter[_MapsQuestion | _PaperQuestion](_MapsQuestion | _PaperQuestion)


class ScriptHost:
    """Answers the questions of one answer's process.

    ``latch`` remembers the first failure of a judge, after which there is no result.

    Args:
        judge: the run's.
        source: task id and answer name.
        cache: the answer's; it remembers which pages were looked up.
        limits: the run's.
        logger: the answer's.
        maps: the map service, with the run's key.
    """

    def __init__(
        self,
        judge: RecordedJudge,
        source: tuple[str, str],
        cache: AnswerCache,
        limits: DualSemaphore,
        logger: logging.Logger,
        maps: GoogleMapsTool | None = None,
    ) -> None:
        self.cache = cache
        self.latch = FailureLatch()
        self._judge = judge
        self._source = source
        self._limits = limits
        self._logger = logger
        self._maps = maps or GoogleMapsTool()
        self._library: PageLibrary = cache.page_library
        self._held = HeldTexts()

    async def answered(self, message: Message, ask_script: AskScript) -> Any:
        """Return the reply to a question; raises what the script's process is to raise."""
        match message["kind"]:
            case "judgment":
                return await self._judgment(_Question.model_validate(message), ask_script)
            case "gate":
                return await self._gate(_Gate.model_validate(message))
            case "page":
                return await self._page(_Page.model_validate(message))
            case "image":
                return str(self._held.text(message["image"]))
            case "at_hand":
                urls = TypeAdapter(list[str]).validate_python(message["urls"])
                return await self._library.at_hand(self.cache, urls)
            case "service":
                return await self._service(_ServiceQuestion.validate_python(message))
        raise ValueError(f"nobody here answers a question about {message['kind'][:100]!r}")

    def note(self, message: Message) -> None:
        """Take in what is no question."""
        match message["kind"]:
            case "failed":
                error = error_from(message["error"])
                self.latch.fail(error if isinstance(error, Mind2Web2Error) else unexpected(error))
            case "forget":
                self._library.forget(self.cache.task_cache)
            case "release":
                self._held.release(message["held"])

    async def _judgment(self, question: _Question, ask_script: AskScript) -> Any:
        self.latch.check()
        settings = self._judge.settings
        request = ChatRequest(
            model=settings.model,
            messages=[self._message(message) for message in question.messages],
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            extra=question.extra,
            **_template(question.template, ask_script),
        )
        limit = CheckedLimit(self._limits.llm, self.latch.check)
        try:
            judgment = await self._judge.judgment(request, question.subject, self._source, limit)
        except JudgmentMissingError:
            raise
        except JudgeError as error:
            # Whatever the script makes of it, there will be no result.
            raise self.latch.fail(error) from error.__cause__
        except Exception as error:
            self.latch.fail(unexpected(error))
            raise
        return judgment.model_dump(mode="json")

    async def _gate(self, gate: _Gate) -> str | None:
        try:
            return await self._judge.gate(gate.subject, self._source, gate.ordinal, gate.skip_reason)
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__

    async def _service(self, asked: _MapsQuestion | _PaperQuestion) -> Message:
        request = ServiceRequest(asked.service, asked.name, asked.arguments, asked.keywords)

        async def ask() -> Any:
            if isinstance(asked, _MapsQuestion):
                return await self._maps.request(asked.name, *asked.arguments, **asked.keywords)
            papers = ArxivTool(asked.keywords.get("page_size", 100))
            if asked.name == "by_id":
                return await papers.search_arxiv_by_id(*asked.arguments)
            return await papers.search_arxiv_by_title(*asked.arguments)

        try:
            answer, record = await self._judge.services.answer(request, ask, self._source)
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__
        return {"answer": answer, "record": record.model_dump()}

    async def _page(self, asked: _Page) -> Message:
        request = PageRequest(
            cache=self.cache if asked.is_noted else self.cache.task_cache,
            url=asked.url,
            settings=asked.settings,
            with_images=asked.with_images,
            capture=self.cache.captures if asked.with_capture else None,
            limit=self.cache.page_limit or nullcontext(),
            logger=self._logger,
        )
        try:
            page = await self._library.page(request)
        except (OSError, MemoryError) as error:
            raise MachineError(
                f"page {asked.url} cannot be prepared: {type(error).__name__}: {error}"
            ) from error
        if asked.is_noted:
            self.cache.note_shown(asked.url, page.sha256)
        try:
            held = self._held.hold((page.text, *page.images))
        except EvalScriptError as error:
            # Whatever the script makes of it, there will be no result.
            raise self.latch.fail(error) from None
        return {
            "held": held,
            "fields": fields_of(page),
            "text": str(page.text),
            "text_sha256": page.text.sha256,
            "images": [image.sha256 for image in page.images],
        }

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if not isinstance(content, list):
            return message
        return {**message, "content": [self._part(part) for part in content]}

    def _part(self, part: Any) -> Any:
        """Return a part of a message with the run's own texts in the place of references to them."""
        if not isinstance(part, dict):
            return part
        text, image = part.get("text"), part.get("image_url")
        if isinstance(text, dict):
            return {**part, "text": self._held.text(text)}
        if isinstance(image, dict) and isinstance(image.get("url"), dict):
            return {**part, "image_url": {**image, "url": self._held.text(image["url"])}}
        return part


def _template(told: _Template | None, ask_script: AskScript) -> dict[str, Any]:
    """Return what a request has for the template that was told."""
    if told is None:
        return {}
    if told.number is None:
        return {"template": BinaryEvalResult}

    async def check(text: str) -> str | None:
        problem = await ask_script("check", template=told.number, text=text)
        return None if problem is None else str(problem)[:MAX_REASON_CHARS]

    return {"template": told_template(told.name, told.form), "check": check}
