"""The run's end of the connection to a script's process: judge, pages, map and paper services, and logs.

Messages are validated.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Literal
from weakref import WeakValueDictionary

from pydantic import BaseModel, TypeAdapter

from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.errors import (
    EvalScriptError,
    JudgeError,
    JudgmentMissingError,
    MachineError,
    Mind2Web2Error,
    StorageError,
)
from mind2web2.judge.caching import RecordedJudge
from mind2web2.judge.protocol import CheckedLimit, DualSemaphore, FailureLatch, Subject, unexpected
from mind2web2.judge.services import ServiceRequest
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.pages.answer_view import AnswerCache
from mind2web2.pages.cache_files import is_page_file, is_sidecar
from mind2web2.pages.captures import PageSettings
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.prompts import HashedText
from mind2web2.scripts.isolation.rpc import (
    LENGTH,
    MAX_REASON_CHARS,
    Message,
    encoded,
    error_as_json,
    error_from,
    fields_of,
    schema_proxy,
)
from mind2web2.scripts.isolation.worker import PACKAGE
from mind2web2.utils.files import mirror
from mind2web2.verification.claims import BinaryEvalResult

# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0
# Of captured output.
_PRINTED_BYTES = 1024**2
_LONGEST_LINE = 10_000

log = logging.getLogger(__name__)


class BlobStore:
    """Keeps texts and images of pages while the script's process uses them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._pages: dict[int, dict[str, HashedText]] = {}
        # A page that is prepared twice has its texts in memory once.
        self._texts: WeakValueDictionary[str, HashedText] = WeakValueDictionary()

    def hold(self, texts: Sequence[HashedText]) -> int:
        """Keep the texts of a page, and return the number by which they are released."""
        number = next(self._numbers)
        self._pages[number] = {text.sha256: self._texts.setdefault(text.sha256, text) for text in texts}
        return number

    def release(self, number: int) -> None:
        """Drop the texts of a page."""
        self._pages.pop(number, None)

    def text(self, reference: Mapping[str, Any]) -> HashedText:
        """Return the text that a message refers to. Raises KeyError: there is none."""
        return self._pages[reference["blob"]][reference["sha256"]]


# Asks the script's process.
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


class _ServiceQuestion(BaseModel):
    service: Literal["google_maps", "arxiv"]
    name: Literal["geocode", "distance_matrix", "by_id", "by_title"]
    arguments: list[str | list[str]]
    keywords: dict[str, str | int]


class RpcServer:
    """Answers the questions of one answer's process.

    ``latch`` keeps the first failure of the judge, after which there is no result.

    Args:
        judge: the run's.
        source: task id and answer name.
        cache: the answer's; it records which pages were looked up.
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
        self._blobs = BlobStore()

    async def answered(  # noqa: PLR0911 (one a kind of question)
        self, message: Message, ask_script: AskScript
    ) -> Any:
        """Return the reply to a question; the script's process raises the same errors."""
        match message["kind"]:
            case "judgment":
                return await self._judgment(_Question.model_validate(message), ask_script)
            case "gate":
                return await self._gate(_Gate.model_validate(message))
            case "page":
                return await self._page(_Page.model_validate(message))
            case "image":
                return str(self._blobs.text(message["image"]))
            case "cached":
                urls = TypeAdapter(list[str]).validate_python(message["urls"])
                return await self._library.cached(self.cache, urls)
            case "stored_names":
                folder = self.cache.task_cache.task_dir
                return sorted(mirror(folder).names_in(folder))
            case "fetch":
                return await self._fetched(TypeAdapter(list[str]).validate_python(message["names"]))
            case "service":
                return await self._service(_ServiceQuestion.model_validate(message))
        raise ValueError(f"unknown kind of question {message['kind'][:100]!r}")

    def note(self, message: Message) -> None:
        """Handle a message that needs no reply."""
        match message["kind"]:
            case "failed":
                error = error_from(message["error"])
                self.latch.fail(error if isinstance(error, Mind2Web2Error) else unexpected(error))
            case "forget":
                self._library.forget(self.cache.task_cache)
            case "release":
                self._blobs.release(message["blob"])

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
            # Even if the script catches it, there will be no result.
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

    async def _service(self, asked: _ServiceQuestion) -> Message:
        request = ServiceRequest(asked.service, asked.name, asked.arguments, asked.keywords)

        async def ask() -> Any:
            if asked.name in ("geocode", "distance_matrix"):
                return await self._maps.request(asked.name, *asked.arguments, **asked.keywords)
            papers, title_or_id = ArxivTool(int(asked.keywords.get("page_size", 100))), str(*asked.arguments)
            if asked.name == "by_id":
                return await papers.search_arxiv_by_id(title_or_id)
            return await papers.search_arxiv_by_title(title_or_id)

        try:
            answer, record = await self._judge.services.answer(request, ask, self._source)
        except JudgeError as error:
            raise self.latch.fail(error) from error.__cause__
        return {"answer": answer, "record": record.model_dump()}

    async def _fetched(self, names: Sequence[str]) -> bool:
        folder = self.cache.task_cache.task_dir
        paths = [folder / name for name in names if is_page_file(name) or is_sidecar(name)]
        try:
            return await asyncio.to_thread(mirror(folder).fetch, *paths)
        except StorageError as error:
            # Even if the script takes the page for missing, there will be no result.
            raise self.latch.fail(error) from error.__cause__

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
        return {
            "blob": self._blobs.hold((page.text, *page.images)),
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
            return {**part, "text": self._blobs.text(text)}
        if isinstance(image, dict) and isinstance(image.get("url"), dict):
            return {**part, "image_url": {**image, "url": self._blobs.text(image["url"])}}
        return part


def _template(template: _Template | None, ask_script: AskScript) -> dict[str, Any]:
    """Return the fields of a request for a template of the script's process."""
    if template is None:
        return {}
    if template.number is None:
        return {"template": BinaryEvalResult}

    async def check(text: str) -> str | None:
        problem = await ask_script("check", template=template.number, text=text)
        return None if problem is None else str(problem)[:MAX_REASON_CHARS]

    return {"template": schema_proxy(template.name, template.form), "check": check}


class RpcConnection:
    """Serves one script's process."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: RpcServer,
        logger: logging.Logger,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._server = server
        self._logger = logger
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._questions: dict[int, asyncio.Task[None]] = {}

    def send(self, message: Message) -> None:
        """Queue a message; the event loop sends it."""
        content = encoded(message)
        self._writer.write(LENGTH.pack(len(content)) + content)

    async def result_message(self) -> Message | None:
        """Serve until the process sends its result message; ``None`` where it ends without one.

        Raises:
            ValueError, KeyError, TypeError: it sent an invalid message.
        """
        while True:
            try:
                [length] = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                message: Message = json.loads(await self._reader.readexactly(length))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            if message["kind"] == "done":
                return message
            self._take(message)

    async def close(self) -> None:
        """Cancel all questions."""
        tasks = list(self._questions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()

    def _take(self, message: Message) -> None:
        match message["kind"]:
            case "reply":
                self._take_reply(message)
            case "cancel":
                task = self._questions.get(message["question"])
                if task is not None:
                    task.cancel()
            case "log":
                relay_record(message, self._logger)
            case _ if "number" in message:
                number = int(message["number"])
                task = self._questions[number] = asyncio.create_task(self._answer(message, number))
                task.add_done_callback(lambda _: self._questions.pop(number, None))
            case _:
                self._server.note(message)

    async def _answer(self, message: Message, number: int) -> None:
        reply: Message = {"kind": "reply", "to": number}
        try:
            self.send({**reply, "value": await self._server.answered(message, self._ask)})
        except Exception as error:
            # The script gets the error, as it does in the process of the run.
            if not isinstance(error, Mind2Web2Error):
                log.debug("a question failed kind=%s", message["kind"], exc_info=error)
            self.send({**reply, "error": error_as_json(error)})
        # A process that has ended needs no reply; ``result_message`` notices that.
        with suppress(ConnectionError):
            await self._writer.drain()

    async def _ask(self, kind: str, **content: Any) -> Any:
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


def relay_record(message: Message, logger: logging.Logger) -> None:
    """Log a record of a script's process in the run.

    Args:
        logger: the answer's; records of the package go to the package's loggers.
    """
    record = logging.makeLogRecord({**message["extra"], **message["record"]})
    if message["to"] == PACKAGE:
        logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)


async def log_printed(output: asyncio.StreamReader, logger: logging.Logger) -> None:
    """Log the captured output of a process, line by line, up to a megabyte."""
    printed_bytes, rest = 0, b""
    while piece := await output.read(_LONGEST_LINE):
        printed_bytes += len(piece)
        if printed_bytes > _PRINTED_BYTES:
            if printed_bytes - len(piece) <= _PRINTED_BYTES:
                logger.warning("script prints more than %d bytes; the rest is left out", _PRINTED_BYTES)
            continue
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            logger.info("script printed: %s", line.decode(errors="replace"))
    if rest and printed_bytes <= _PRINTED_BYTES:
        logger.info("script printed: %s", rest.decode(errors="replace"))
