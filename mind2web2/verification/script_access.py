"""What a script's extractor and verifier share: whom they ask, and what the script has given.

A script may give settings of its evaluation.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from mind2web2.errors import CaptureError
from mind2web2.judge.protocol import Judge
from mind2web2.llm_client.chat import Limit, Message
from mind2web2.pages.answer_cache import has_other_readers, run_cache
from mind2web2.pages.prepared_page import PageSettings
from mind2web2.prompts import NO_INSTRUCTION
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.utils.api_misuse import report_misuse, script_api
from mind2web2.verification.run_questions import Given, RunQuestions

if TYPE_CHECKING:
    from mind2web2.pages.page_cache import PageCache


class _NotPassed(str):
    """An empty string other than any that a script passes."""

    __slots__ = ()


NOT_PASSED = _NotPassed()


@script_api
@dataclass
class EvaluatorConfig:
    """Settings of an evaluation; the published ones, and how screenshots and PDFs are shown.

    Args:
        max_text_chars: characters of a page's text shown to the judge; the rest is cut, visibly.
        image_max_width: pixels; wider screenshots are scaled down.
        image_max_height: pixels of a screenshot that are shown.
        jpeg_quality: of the screenshot's parts and of PDF pages.
        default_num_trials: of a majority vote, odd.
        default_majority_vote: ``False`` lets a single request decide.
        default_use_screenshot: ``False`` shows the judge text alone.
        default_additional_instruction: where a script gives none.
        part_height: pixels of one part of a screenshot.
        part_overlap: pixels that neighbouring parts share.
        max_pdf_images: PDF pages shown as images.
        max_pdf_text_pages: PDF pages whose text is shown.
    """

    max_text_chars: int = 400_000
    image_max_width: int = 1100
    image_max_height: int = 10_000
    jpeg_quality: int = 85
    default_num_trials: int = DEFAULT_TRIALS
    default_majority_vote: bool = True
    default_use_screenshot: bool = True
    default_additional_instruction: str = NO_INSTRUCTION
    part_height: int = 2000
    part_overlap: int = 200
    max_pdf_images: int = 50
    max_pdf_text_pages: int = 100

    def page_settings(self) -> PageSettings:
        """Return the part on how pages are prepared."""
        names = [field.name for field in fields(PageSettings)]
        return PageSettings(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class ScriptContext:
    """One answer as its script asks about it.

    Args:
        judge: takes notes and failures, and requests of the script's own.
        run: answers the questions.
        cache: the task's stored pages; ``None`` where there are none.
        config: the defaults of verifications.
    """

    judge: Judge
    run: RunQuestions
    task: str
    answer: str
    cache: PageCache | None
    logger: logging.Logger
    config: EvaluatorConfig = field(default_factory=EvaluatorConfig)

    def given(self, urls: Sequence[str | None]) -> Given:
        """Return what the run needs for a question about these pages.

        Without any page, the question is about the answer.
        """
        url = next(iter(urls), None)
        if url is None and self.answer is NOT_PASSED:
            report_misuse("needs the answer's text: call initialize(..., answer=answer)")
        if url is not None and url.strip() and self.cache is None:
            report_misuse("needs cited pages: call initialize(..., global_cache=cache)")
        of_run = run_cache(self.cache)
        if of_run is not None and has_other_readers(of_run):
            report_misuse("replaces methods of its cache: pass a cache of its own to initialize")
        return Given(self.task, self.answer, self.config.page_settings())

    def note_captured(self, url: str) -> None:
        """Show a page in the script's view of the cache, after a verdict or value from it."""
        of_run = run_cache(self.cache)
        if of_run is not None:
            of_run.note_captured(url)


@script_api
class ScriptAccess:
    """Pages and model as a script may use them itself, by way of its extractor or verifier."""

    def __init__(self, context: ScriptContext) -> None:
        self._context = context
        self.logger = context.logger

    async def get_page_info(self, url: str) -> tuple[list[str], str] | tuple[None, None]:
        """Return a page's images as base64 JPEGs and its text, cached or captured.

        ``(None, None)`` for a page that is unavailable.
        """
        try:
            given = self._context.given([str(url)])
            images, text = await self._context.run.page_info(str(url), given)
        except CaptureError as error:
            self.logger.warning("page is unavailable url=%s reason=%s", url, error)
            return None, None
        finally:
            self._context.note_captured(str(url))
        return [image.partition("base64,")[2] for image in images], text

    async def call_llm_with_semaphore(
        self,
        *,
        model: str,
        messages: Sequence[Message],
        response_format: type[BaseModel] | None = None,
        **keywords: Any,
    ) -> Any:
        """Send a request of the script's own to the judge, within the run's limits.

        The result and further keywords are those of ``LLMClient.async_response``.
        """
        # Any: the clients of scripts take further requests (``AsyncCalls``).
        judge: Any = self._context.judge
        return await judge.async_response(
            model=model,
            messages=messages,
            response_format=response_format,
            **keywords,
        )


def limits_of(semaphore: Any) -> tuple[Limit, Limit]:
    """Return the limits for judge requests and captures.

    They are those of a ``DualSemaphore``, or of any one semaphore.
    """
    if semaphore is None:
        return nullcontext(), nullcontext()
    try:
        return semaphore.llm, semaphore.webpage
    except AttributeError:
        return semaphore, semaphore


def as_judge(client: Any, limit: Limit | None = None) -> Judge:
    """Return the judge behind a client: itself if it is one, else wrapped.

    Args:
        limit: entered around each request to a client that is no judge itself.
    """
    # Look at the class, because reading the ledger itself would count as a read by the script.
    if hasattr(type(client), "ask") and hasattr(type(client), "model_for"):
        judge: Judge = client
        return judge
    # Scripts of a run have its judge.
    client_judge = import_module("mind2web2.judge.client_judge")
    foreign: Judge = client_judge.judge_of(client, limit or nullcontext())
    return foreign
