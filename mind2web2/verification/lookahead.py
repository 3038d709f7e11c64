"""Lookahead: the questions of a claim are asked while its gates are undecided, and the replies are stored.

Nothing but the store of judgments changes. Once the gates are decided, the claim is judged in the usual way,
from the replies that are there by then, or its leaf is skipped, and the replies were paid for nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mind2web2.judge.protocol import QuestionContext
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit
from mind2web2.pages.library import shared_cache
from mind2web2.scheduling.options import current_options
from mind2web2.scheduling.prerequisites import NotedPrerequisites
from mind2web2.verification.claims import ClaimJudging
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.run_questions import AskedClaim, Verification

log = logging.getLogger(__name__)


class StoringJudge(Protocol):
    """A judge that stores what it is asked, so that asking early costs nothing later."""

    @property
    def image_limit(self) -> ImageLimit:
        """Return the known or configured limit of images in one question."""

    @property
    def first(self) -> StoringJudge | None:
        """Return the judge that is asked before this one."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    async def ask_ahead(
        self, request: ChatRequest, subject: QuestionContext
    ) -> ChatReply:
        """Answer a question without any note of it; once cancelled, send nothing more."""


@dataclass(frozen=True)
class _UnnotedJudge:
    """Passes questions on; neither their failures nor their doubts count."""

    judge: StoringJudge
    recorded_limits: Sequence[ImageLimit] = ()

    @property
    def image_limit(self) -> ImageLimit:
        return self.judge.image_limit

    @property
    def first(self) -> _UnnotedJudge | None:
        first = self.judge.first
        return None if first is None else _UnnotedJudge(first)

    def model_for(self, requested: str) -> str:
        return self.judge.model_for(requested)

    async def ask(
        self, request: ChatRequest, subject: QuestionContext, _limit: Limit | None
    ) -> ChatReply:
        return await self.judge.ask_ahead(request, subject)

    def fail(self, failure: Exception) -> Exception:
        return failure

    def note(self, kind: str, text: str) -> None:
        pass


def may_look_ahead(context: EvaluationContext) -> bool:
    """Tell whether the run looks ahead, and its judge stores replies: other clients would be paid twice."""
    return current_options().lookahead and hasattr(type(context.judge), "ask_ahead")


@asynccontextmanager
async def asked_ahead(
    context: EvaluationContext,
    verification: Verification,
    urls: Sequence[str],
    had_sources: bool,
    prerequisites: NotedPrerequisites,
) -> AsyncIterator[None]:
    """Ask the questions of a claim in the background until the ``async with`` block ends.

    Not before one level of undecided gates is left: the deeper a claim, the more probable is its skip.
    """

    async def ask() -> None:
        await prerequisites.are_reached()
        if prerequisites.is_blocked:
            return
        if context.run is None:
            await judge_ahead(context, verification, urls, had_sources)
        else:
            claim = AskedClaim(verification, list(urls), had_sources)
            await context.run.judged_ahead(claim, context.given(urls))

    task = asyncio.create_task(ask())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def judge_ahead(
    context: EvaluationContext,
    verification: Verification,
    urls: Sequence[str],
    had_sources: bool,
) -> None:
    """Ask the questions of a claim without any note of them."""
    judge: Any = _UnnotedJudge(context.judge)  # type: ignore[arg-type]  # ``may_look_ahead`` has checked it
    # Pages that only lookahead shows are not noted as used.
    cache = None if context.cache is None else shared_cache(context.cache)
    silent = logging.Logger("lookahead", logging.CRITICAL)
    unnoted = replace(context, judge=judge, cache=cache, logger=silent)
    try:
        await ClaimJudging(unnoted).judged(verification, urls, had_sources)
    except Exception as error:
        # If the claim counts, it is judged again, and fails for the same reason.
        log.debug("lookahead stopped node=%s reason=%s", verification.node_id, error)
