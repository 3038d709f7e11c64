"""What a script's process is given of the run: judge, pages, map service and log, each within its limits.

What comes from there is checked as what it is, the word of a program by a stranger: it may ask what any
script may ask, for its own answer, and nothing else.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.errors import EvalScriptError, JudgeError, JudgmentMissingError, MachineError, Mind2Web2Error
from mind2web2.judge.caching import RecordedJudge
from mind2web2.judge.direct import unexpected
from mind2web2.judge.protocol import CheckedLimit, DualSemaphore, FailureLatch, Subject
from mind2web2.judge.services import ServiceRequest
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.pages.answer_view import AnswerCache
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared import PageSettings
from mind2web2.prompts import HashedText
from mind2web2.scripts.isolation.logs import LogRelay
from mind2web2.scripts.isolation.rpc import (
    LENGTH,
    MAX_FRAME_BYTES,
    MAX_REASON_CHARS,
    MAX_WAITING_BYTES,
    Message,
    UnusableMessageError,
    checked_length,
    error_as_json,
    error_from,
    fields_of,
    frame_of,
    message_in,
    told_template,
)
from mind2web2.verification.claims import BinaryEvalResult

# Several hundred pages with their screenshots.
_MAX_CHARS = 2 * 1024**3


class HeldTexts:
    """Keeps each text as long as something that came with it is in use in the script's process."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._holds: dict[int, tuple[str, ...]] = {}
        self._texts: dict[str, HashedText] = {}
        self._uses: dict[str, int] = {}
        self._chars = 0

    def hold(self, texts: Sequence[HashedText]) -> int:
        """Keep texts, and return the number by which they are let go.

        Raises:
            EvalScriptError: there are more than any script uses.
        """
        kept = {text.sha256: text for text in texts}
        new = [text for sha256, text in kept.items() if sha256 not in self._texts]
        added = sum(map(len, new))
        if self._chars + added > _MAX_CHARS:
            raise EvalScriptError(
                f"its script keeps pages of more than {_MAX_CHARS // 1024**2} MB: does it store every page "
                "that it is given?"
            )
        self._chars += added
        for sha256, text in kept.items():
            self._texts.setdefault(sha256, text)
            self._uses[sha256] = self._uses.get(sha256, 0) + 1
        number = next(self._numbers)
        self._holds[number] = tuple(kept)
        return number

    def release(self, number: int) -> None:
        """Let go what was kept under a number, as far as nothing else needs it."""
        for sha256 in self._holds.pop(number, ()):
            self._uses[sha256] -= 1
            if not self._uses[sha256]:
                del self._uses[sha256]
                self._chars -= len(self._texts.pop(sha256))

    def text(self, reference: Mapping[str, Any]) -> HashedText:
        """Return the text that a script's process refers to.

        Raises:
            KeyError: it has no such text.
        """
        sha256 = reference["sha256"]
        if sha256 not in self._holds[reference["held"]]:
            raise KeyError(sha256)
        return self._texts[sha256]


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


# Longer ones are read by a thread: the loop has others to serve.
_LONG_BYTES = 1024**2
# A process keeps to MAX_WAITING_BYTES, its last question aside, unless the script has tampered with it.
_MAX_QUESTION_BYTES = MAX_WAITING_BYTES + MAX_FRAME_BYTES
# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0

log = logging.getLogger(__name__)


class ScriptLink:
    """Serves one script's process.

    Args:
        reader: from the process.
        writer: to it.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: ScriptHost, relay: LogRelay
    ) -> None:
        self.messages = 0
        self._reader = reader
        self._writer = writer
        self._host = host
        self._relay = relay
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._questions: dict[int, asyncio.Task[None]] = {}
        self._question_bytes = 0
        self._is_heard = True

    def send(self, message: Message) -> None:
        """Send a message; it is on its way once the loop has its turn."""
        self._writer.write(frame_of(message))

    async def until_done(self) -> Message | None:
        """Serve until the process says what came of its script; ``None`` where it ends without a word.

        Raises:
            UnusableMessageError: it said something that nobody understands.
        """
        while True:
            try:
                length = checked_length(await self._reader.readexactly(LENGTH.size))
                content = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            message = (
                await asyncio.to_thread(message_in, content) if length > _LONG_BYTES else message_in(content)
            )
            self.messages += 1
            if message["kind"] == "done":
                return message
            try:
                self._take(message, length)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise UnusableMessageError(
                    f"sent a {message['kind'][:100]!r} that makes no sense: {type(error).__name__}"
                ) from error

    async def answer_rest(self) -> None:
        """Let the judge answer what a process that is gone has asked: it is paid for, and kept."""
        self._is_heard = False
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(None)
        await asyncio.gather(*self._questions.values(), return_exceptions=True)

    async def close(self) -> None:
        """Give up all that is asked."""
        tasks = list(self._questions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()

    def _take(self, message: Message, length: int) -> None:
        match message["kind"]:
            case "reply":
                self._take_reply(message)
            case "cancel":
                task = self._questions.get(message["question"])
                if task is not None:
                    task.cancel()
            case "log":
                self._relay.take(message)
            case "beat":
                pass
            case _ if "number" in message:
                self._begin(message, int(message["number"]), length)
            case _:
                self._host.note(message)

    def _begin(self, message: Message, number: int, length: int) -> None:
        if number in self._questions:
            raise ValueError(f"question {number} is under way already")
        self._question_bytes += length
        if self._question_bytes > _MAX_QUESTION_BYTES:
            raise UnusableMessageError(f"asked questions of {self._question_bytes} bytes at once")
        task = asyncio.create_task(self._answer(message, number))
        self._questions[number] = task
        task.add_done_callback(lambda _: self._end(number, length))

    def _end(self, number: int, length: int) -> None:
        self._question_bytes -= length
        del self._questions[number]

    async def _answer(self, message: Message, number: int) -> None:
        reply: Message = {"kind": "reply", "to": number}
        try:
            reply["value"] = await self._host.answered(message, self._ask)
            frame = frame_of(reply)
        except Mind2Web2Error as error:
            frame = frame_of({"kind": "reply", "to": number, "error": error_as_json(error)})
        except Exception as error:
            # It is the script's answer that suffers: its process is told, as a script in this one would be.
            log.debug("a question failed kind=%s", message["kind"], exc_info=error)
            frame = frame_of({"kind": "reply", "to": number, "error": error_as_json(error)})
        self._writer.write(frame)
        # A process that has ended needs no answer; that it has is noticed elsewhere.
        with suppress(ConnectionError):
            await self._writer.drain()

    async def _ask(self, kind: str, **content: Any) -> Any:
        if not self._is_heard:
            return None  # whoever finds that reply in the store looks at it anew
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.send({"kind": kind, "number": number, **content})
            async with asyncio.timeout(_CHECK_TIMEOUT_S):
                return await answer
        except TimeoutError as error:
            raise EvalScriptError(
                f"the script's process did not answer within {_CHECK_TIMEOUT_S:g} s"
            ) from error
        finally:
            del self._asked[number]

    def _take_reply(self, message: Message) -> None:
        answer = self._asked.get(message["to"])
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(error_from(message["error"]))
        else:
            answer.set_result(message["value"])
