"""Single questions outside of a run, put to a judge as an evaluation puts them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from mind2web2.capture.models import CaptureRecord, PageKind, Trouble
from mind2web2.errors import CacheMiss, MachineError, Mind2Web2Error
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.pages.cache_files import screenshot_bytes
from mind2web2.pages.library import PageLibrary
from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.utils.aio import all_or_first_error
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.extractor import Extractor
from mind2web2.verification.own_questions import script_context
from mind2web2.verification.script_access import EvaluatorConfig, ScriptContext
from mind2web2.verification.verifier import Verifier

log = logging.getLogger(__name__)

_Reply = TypeVar("_Reply")
_Template = TypeVar("_Template", bound=BaseModel)


@dataclass(frozen=True)
class _Page:
    text: str
    screenshot: Callable[[], bytes | None]
    troubles: tuple[Trouble, ...]
    unfolded: tuple[str, ...]


class GivenPages:
    """A page cache of given pages, which takes no others.

    Attributes:
        library: keeps the prepared pages for all who ask about them.
    """

    def __init__(self) -> None:
        self._pages: dict[str, _Page] = {}
        self.library = PageLibrary()

    def add(
        self,
        url: str,
        text: str,
        screenshot: Callable[[], bytes | None] = lambda: None,
        trouble: str | None = None,
        unfolded: tuple[str, ...] = (),
    ) -> None:
        """Add a page as a capture would have stored it.

        Args:
            screenshot: returns an image when the judge is to see it, or ``None``.
            trouble: the kind of trouble that the capture would have noted.
        """
        troubles = [] if trouble is None else [{"kind": trouble, "detail": ""}]
        noted = tuple(map(Trouble.model_validate, troubles))
        self._pages[url] = _Page(text, screenshot, noted, unfolded)

    def has(self, url: str) -> PageKind | None:
        """Tell whether a page is among them."""
        return "web" if url in self._pages else None

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return text and screenshot."""
        page = self._pages[url]
        return page.text, screenshot_bytes(page.screenshot()) if get_screenshot else None

    def capture_record(self, url: str) -> CaptureRecord:
        """Return the record that a capture of the page would have left."""
        page = self._pages[url]
        return CaptureRecord(
            requested_url=url,
            final_url=url,
            kind="web",
            captured_at="2026-06-01T12:00:00+00:00",
            troubles=page.troubles,
            unfolded=page.unfolded,
        )

    def get_pdf(self, url: str) -> bytes:
        """Raise ``CacheMiss``: there are none."""
        raise CacheMiss(url)

    def put_web(self, url: str, text: str, screenshot: str | bytes | None) -> None:  # noqa: ARG002
        """Refuse."""
        raise MachineError(f"given pages do not change: {url}")

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:  # noqa: ARG002
        """Refuse, likewise."""
        raise MachineError(f"given pages do not change: {url}")


@dataclass(frozen=True)
class SingleQuestion:
    """A question about an answer and given pages.

    It has a session of its own, since a session asks nothing more after a failure.

    Args:
        source: the store names this where it names a task.
        name: of the question, for logs and stored judgments.
    """

    judge: CachingJudge
    source: str
    name: str
    limit: asyncio.Semaphore
    task: str
    answer: str
    pages: GivenPages
    votes: int = DEFAULT_TRIALS
    _session: AnswerJudge = field(init=False)

    def __post_init__(self) -> None:
        """Open the session."""
        session = AnswerJudge(self.judge, (self.source, self.name), self.limit)
        object.__setattr__(self, "_session", session)

    async def verify(
        self,
        claim: str,
        urls: Sequence[str],
        *,
        instruction: str | None = None,
        use_screenshot: bool = True,
    ) -> tuple[bool, Evidence]:
        """Ask whether the pages, or without any the answer alone, support a claim.

        Raises:
            Mind2Web2Error: the judge failed.
        """
        leaf = VerificationNode(id=self.name, desc=claim)
        verifier = Verifier(self._context())
        supported = await self._reply(
            verifier.verify(
                claim,
                leaf,
                list(urls) or None,
                additional_instruction=instruction,
                use_screenshot=use_screenshot,
            )
        )
        evidence = leaf.evidence
        if evidence is None or evidence.decided_by != "judge":
            raise MachineError(f"{self.name} was not judged: {evidence and evidence.reason}")
        return supported, evidence

    async def extract(
        self, prompt: str, template: type[_Template], url: str | None
    ) -> tuple[_Template, ExtractionRecord]:
        """Ask for values of a page, or of the answer.

        Raises:
            Mind2Web2Error: the judge failed.
        """
        extractor = Extractor(self._context())
        if url is None:
            asking = extractor.simple_extract(prompt, template, extraction_name=self.name)
        else:
            asking = extractor.extract_from_url(prompt, url, template, extraction_name=self.name)
        values = await self._reply(asking)
        (record,) = extractor.records
        if record.unavailable is not None:
            raise MachineError(f"{self.name} was not judged: {record.unavailable}")
        return values, record

    async def _reply(self, asking: Awaitable[_Reply]) -> _Reply:
        """Return the reply, or raise the first failure of the session."""
        try:
            return await asking
        except Mind2Web2Error as error:
            raise self._session.failure or error from error

    def _context(self) -> ScriptContext:
        context = EvaluationContext(
            judge=self._session,
            model=self.judge.settings.model,
            task=self.task,
            answer=self.answer,
            cache=self.pages,
            library=self.pages.library,
            capture=None,
            page_limit=nullcontext(),
            logger=log,
        )
        return script_context(context, EvaluatorConfig(default_num_trials=self.votes))


async def ask_all(
    judge: CachingJudge, questions: Iterable[Coroutine[Any, Any, _Reply]]
) -> list[_Reply]:
    """Await all questions to a judge at once, and store its replies.

    Raises:
        JudgmentStoreError: replies could not be stored.
    """
    replies = await all_or_first_error(questions)
    await judge.write_rest()
    return replies
