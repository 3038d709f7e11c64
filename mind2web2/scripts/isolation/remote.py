"""The run's judge as a script's process has it: questions go to the run, which has keys, store and pace."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import MachineError
from mind2web2.judge.caching import JudgeSettings
from mind2web2.judge.protocol import Failure, Subject
from mind2web2.judge.records import Judgment
from mind2web2.judge.session import AnswerJudge
from mind2web2.llm_client.chat import ChatRequest, Completion, Limit
from mind2web2.llm_client.structured_output import InvalidOutputError, read_template
from mind2web2.pages.captures import PageCapture, SharedCaptures
from mind2web2.pages.library import PageCache, PageLibrary, PageRequest
from mind2web2.pages.prepared import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.scheduling.guard import watching
from mind2web2.scripts.isolation.rpc import Channel, Message, error_as_json, page_from
from mind2web2.verification.claims import BinaryEvalResult


class Held:
    """Says that the run has to keep a page's texts and images, as long as one of them is in use here."""

    def __init__(self, channel: Channel, number: int) -> None:
        self.number = number
        weakref.finalize(self, channel.note_later, "release", held=number)


class PageText(HashedText):
    """A page's text, or an image of it in name only, that the run has and that is not sent back to it."""

    held: Held

    @classmethod
    def of(cls, text: str, sha256: str, held: Held) -> PageText:
        """Return a text with its digest."""
        made = cls(text)
        made._sha256 = sha256
        made.held = held
        return made

    @property
    def reference(self) -> dict[str, Any]:
        """Return what tells the run which of its texts this is."""
        return {"held": self.held.number, "sha256": self.sha256}


class RunPages(PageLibrary):
    """Stands for the run's page library.

    Args:
        captured_by_run: what a request for a page has for its capture where the run is to capture it.
        stored_at_first: what the run's has noted.
    """

    def __init__(
        self, channel: Channel, captured_by_run: SharedCaptures | None, stored_at_first: frozenset[str] | None
    ) -> None:
        super().__init__()
        self._channel = channel
        self._captured_by_run = captured_by_run
        self._stored_at_first = stored_at_first

    async def page(self, request: PageRequest) -> PreparedPage:
        """Return what ``PageLibrary.page`` returns."""
        is_captured_by_run = request.capture is not None and request.capture is self._captured_by_run
        if request.capture is not None and not is_captured_by_run:
            await _bring(request, request.capture)
        told = await self._channel.ask(
            "page",
            url=request.url,
            settings=asdict(request.settings),
            with_images=request.with_images,
            with_capture=is_captured_by_run,
            is_noted=request.cache is not request.shared_cache,
        )
        held = Held(self._channel, told["held"])
        return page_from(
            told["fields"],
            PageText.of(told["text"], told["text_sha256"], held),
            tuple(PageText.of(f"image {sha256}", sha256, held) for sha256 in told["images"]),
        )

    async def images_of(self, page: PreparedPage) -> list[str]:
        """Return a page's images, which this process has in name only."""
        references = [image.reference for image in page.images if isinstance(image, PageText)]
        return [str(await self._channel.ask("image", image=reference)) for reference in references]

    async def note_stored(self, cache: PageCache) -> None:
        """Leave it to the run, which has noted it by now."""

    def stored_at_first(self, cache: PageCache) -> frozenset[str] | None:  # noqa: ARG002 (the task's)
        """Return what ``PageLibrary.stored_at_first`` returns."""
        return self._stored_at_first

    async def at_hand(self, cache: PageCache, urls: Sequence[str]) -> list[bool]:  # noqa: ARG002 (the task's)
        """Return what ``PageLibrary.at_hand`` returns."""
        told: list[bool] = await self._channel.ask("at_hand", urls=list(urls))
        return told

    def forget(self, cache: PageCache) -> None:  # noqa: ARG002 (the task's)
        """Let the run drop what was prepared from the cache."""
        self._channel.note("forget")


def captured_by_run() -> SharedCaptures:
    """Return what stands for the run's captures."""

    def open_browser() -> AbstractAsyncContextManager[PageCapture]:
        raise MachineError("pages of a run are captured in its own process")

    return SharedCaptures(open_browser)


async def _bring(request: PageRequest, browser: SharedCaptures) -> None:
    """Capture a page that is not stored by a browser of the script's own, which only this process has."""
    if await asyncio.to_thread(request.cache.has, request.url) is None:
        await browser.bring(request.url, request.shared_cache, request.limit, request.logger)


class RunJudge:
    """Stands for the run's ``RecordedJudge``.

    Args:
        settings: the run's.
        endpoint: likewise.
    """

    def __init__(self, channel: Channel, settings: JudgeSettings, endpoint: str) -> None:
        self.settings = settings
        self.endpoint = endpoint
        self._channel = channel
        self._templates: list[type[BaseModel]] = []
        self._told_templates: list[Message] = []

    async def judgment(
        self,
        request: ChatRequest,
        subject: Subject,
        source: tuple[str, str],  # noqa: ARG002 (the run knows whose process this is)
        limit: Limit,  # noqa: ARG002 (the run enters its own)
    ) -> Judgment:
        """Return what ``RecordedJudge.judgment`` returns."""
        told = await self._channel.ask(
            "judgment",
            messages=[_told_message(message) for message in request.messages],
            template=self._told_template(request.template),
            extra=dict(request.extra),
            subject=asdict(subject),
        )
        return Judgment.model_validate(told)

    async def gate(
        self,
        subject: Subject,
        source: tuple[str, str],  # noqa: ARG002 (likewise)
        ordinal: int,
        skip_reason: str | None,
    ) -> str | None:
        """Return what ``RecordedJudge.gate`` returns."""
        told = await self._channel.ask(
            "gate", subject=asdict(subject), ordinal=ordinal, skip_reason=skip_reason
        )
        return None if told is None else str(told)

    def check(self, message: Message) -> Message:
        """Tell the run what is wrong with a reply, which only the script's own template knows."""
        try:
            read_template(Completion(text=message["text"]), self._templates[message["template"]])
        except InvalidOutputError as problem:
            return {"value": str(problem)}
        except Exception as error:
            # A template's own code may raise anything; the run takes it for the failure that it is.
            return {"error": error_as_json(error)}
        return {"value": None}

    def _told_template(self, template: type[BaseModel] | None) -> Message | None:
        if template is None:
            return None
        if template is BinaryEvalResult:
            return {"number": None}
        if template not in self._templates:
            told = {"name": template.__name__, "form": template.model_json_schema()}
            self._told_templates.append({"number": len(self._templates), **told})
            self._templates.append(template)
        return self._told_templates[self._templates.index(template)]


@watching
class ScriptJudge(AnswerJudge):
    """The client of a script in a process of its own: the run hears of every failure at once."""

    def __init__(self, channel: Channel, run: RunJudge, task_id: str, answer_name: str) -> None:
        super().__init__(run, task_id, answer_name)
        self._channel = channel

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good, here and there."""
        if self._latch.failure is None:
            self._channel.note("failed", error=error_as_json(failure))
        return self._latch.fail(failure)


def _told_message(message: Mapping[str, Any]) -> Message:
    content = message.get("content")
    if not isinstance(content, Sequence) or isinstance(content, str):
        return dict(message)
    return {**message, "content": [_told_part(part) for part in content]}


def _told_part(part: Any) -> Any:
    """Return a part of a message, with what the run has of a page as a reference to that."""
    if not isinstance(part, Mapping):
        return part
    text, image = part.get("text"), part.get("image_url")
    if isinstance(text, PageText):
        return {**part, "text": text.reference}
    if isinstance(image, Mapping) and isinstance(image.get("url"), PageText):
        return {**part, "image_url": {**image, "url": image["url"].reference}}
    return dict(part)
