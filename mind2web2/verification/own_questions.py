"""The answers to a script's questions where judge and pages are in its own process."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import NoReturn, cast

from pydantic import BaseModel

from mind2web2.judge.protocol import Judge
from mind2web2.llm_client.chat import Limit
from mind2web2.pages.answer_cache import run_cache
from mind2web2.pages.captures import PageCapture, SharedCaptures
from mind2web2.pages.library import PageLibrary
from mind2web2.pages.page_cache import PageCache
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord
from mind2web2.verification.claims import ClaimJudging
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.extraction import filled
from mind2web2.verification.run_questions import AskedClaim, AskedForm, Given
from mind2web2.verification.script_access import EvaluatorConfig, ScriptContext

# Captures at once by a browser of a script's own, which the run's limit does not count.
_OWN_CAPTURES = 5


class OwnQuestions:
    """Answers each question at once (``RunQuestions``)."""

    most_open_gates = 0

    def __init__(self, context: EvaluationContext) -> None:
        self._context = context

    def left_open(self) -> NoReturn:
        """Fail: each verdict is known when the next one is asked for."""
        raise AssertionError("a verdict was not decided")

    def asking(self, model: str) -> OwnQuestions:
        """Return who asks this model, with the same pages."""
        return OwnQuestions(replace(self._context, model=model))

    async def judged(self, claim: AskedClaim, _given: Given) -> tuple[bool, Evidence]:
        """Judge a claim."""
        judging = ClaimJudging(self._context)
        return await judging.judged(claim.verification, claim.urls)

    async def filled(
        self, form: AskedForm, template: type[BaseModel], _given: Given
    ) -> tuple[BaseModel | None, ExtractionRecord]:
        """Fill a template."""
        reply, record = await filled(self._context, form, template)
        # A judge fills the template it was given or declines.
        return cast("BaseModel | None", reply and reply.value), record

    async def page_info(self, url: str, _given: Given) -> tuple[list[str], str]:
        """Return a page."""
        return await self._context.page_info(url)


def own_questions(
    judge: Judge,
    task: str,
    answer: str,
    cache: PageCache | None,
    page_limit: Limit,
    logger: logging.Logger,
    config: EvaluatorConfig,
    browser: PageCapture | None,
) -> OwnQuestions:
    """Return who answers the questions about one answer.

    Args:
        page_limit: entered around each capture.
        browser: captures pages that are not stored.
    """
    of_run = run_cache(cache)
    library, captures = PageLibrary(), None
    looked_up: dict[str, str | None] = {}
    if of_run is not None:
        cache, captures, looked_up = of_run.task_cache, of_run.captures, of_run.looked_up
        library.set_stored_at_first(cache, of_run.at_first)
        # The script may hold the semaphore that it was given.
        page_limit = asyncio.Semaphore(_OWN_CAPTURES)
    return OwnQuestions(
        EvaluationContext(
            judge=judge,
            model="",
            task=task,
            answer=answer,
            cache=cache,
            looked_up=looked_up,
            library=library,
            capture=captures if browser is None else SharedCaptures.by(browser),
            page_limit=page_limit,
            logger=logger,
            settings=config.page_settings(),
        )
    )


def script_context(
    context: EvaluationContext, config: EvaluatorConfig | None = None
) -> ScriptContext:
    """Return an answer under evaluation as a script asks about it."""
    return ScriptContext(
        judge=context.judge,
        run=OwnQuestions(context),
        task=context.task,
        answer=context.answer,
        cache=context.cache,
        logger=context.logger,
        config=config or EvaluatorConfig(),
    )
