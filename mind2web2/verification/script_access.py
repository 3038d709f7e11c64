"""What a script's extractor and verifier share: whom they ask, and what the script has given."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from mind2web2.errors import CaptureError
from mind2web2.judge.protocol import Judge
from mind2web2.llm_client.chat import Limit, Message
from mind2web2.pages.answer_cache import has_other_readers, run_cache
from mind2web2.pages.page_cache import PageCache
from mind2web2.utils.api_misuse import report_misuse, script_api
from mind2web2.verification.config import EvaluatorConfig
from mind2web2.verification.run_questions import Given, RunQuestions


class _NotPassed(str):
    """An empty string other than any that a script passes."""

    __slots__ = ()


NOT_PASSED = _NotPassed()


@dataclass(frozen=True)
class ScriptContext:
    """One answer as its script asks about it.

    Args:
        judge: takes notes and failures, and requests of the script's own.
        run: answers the questions.
        cache: the task's stored pages; ``None`` where there are none.
        llm_limit: entered around requests of the script's own.
        config: the defaults of verifications.
    """

    judge: Judge
    run: RunQuestions
    task: str
    answer: str
    cache: PageCache | None
    llm_limit: Limit
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
            limit=self._context.llm_limit,
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


def as_judge(client: Any) -> Judge:
    """Return the judge behind a client: itself if it is one, else wrapped."""
    # Look at the class, because reading the ledger itself would count as a read by the script.
    if hasattr(type(client), "ask") and hasattr(type(client), "model_for"):
        judge: Judge = client
        return judge
    # Scripts of a run have its judge.
    foreign: Judge = import_module("mind2web2.judge.client_judge").judge_of(client)
    return foreign
