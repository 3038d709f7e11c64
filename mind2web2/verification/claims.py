"""A claim checked against its pages, or against the answer alone: votes, verdict and quotations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from mind2web2.errors import CaptureError, JudgmentMissingError, Mind2Web2Error
from mind2web2.judge.protocol import QuestionContext
from mind2web2.llm_client.chat import Message
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.rubric.verdicts import (
    Evidence,
    PageCheck,
    Vote,
)
from mind2web2.rubric.vote_rule import most_votes, outcome, trials_needed
from mind2web2.utils.aio import all_or_first_error, end_all
from mind2web2.verification.context import Answered, EvaluationContext
from mind2web2.verification.messages import quotable, verification_messages
from mind2web2.verification.quotes import locate_quote
from mind2web2.verification.run_questions import (
    BinaryEvalResult,
    Verification,
    evidence_of,
)


@asynccontextmanager
async def pages_ahead(
    prepare: Callable[[str], Coroutine[Any, Any, object]],
    urls: Sequence[str],
    at_once: int,
) -> AsyncIterator[Callable[[int], None]]:
    """Yield a function that begins to prepare the pages which follow the one with a number.

    At most ``at_once`` pages are in work, that one included. Pages that are not needed are given up
    in the end; errors are ignored here, as the check of the page raises them again.
    """
    tasks: list[asyncio.Task[object]] = []

    def reach(number: int) -> None:
        tasks.extend(
            asyncio.create_task(prepare(url)) for url in urls[len(tasks) + 1 : number + at_once]
        )

    try:
        yield reach
    finally:
        await end_all(tasks)


# How many of a claim's pages are prepared, or captured, at the same time.
PAGES_AT_ONCE = 3


@dataclass(frozen=True)
class ClaimJudging:
    """Judges claims about one answer."""

    context: EvaluationContext

    async def judged(
        self, verification: Verification, urls: Sequence[str]
    ) -> tuple[bool, Evidence]:
        """Return whether the claim is supported, and the evidence.

        Args:
            urls: one a page; without any, the answer alone is judged.
        """
        num_trials = most_votes(verification.num_trials, self.context.votes)
        verification = replace(verification, num_trials=num_trials)
        if not urls:
            is_supported, votes, _ = await self._ask_votes(verification, None)
            return is_supported, evidence_of(verification, "judge", votes=votes)
        checks = await self._checks(verification, urls)
        if checks[-1].outcome == "supported":
            return True, evidence_of(verification, "judge", pages=checks)
        if all(check.outcome == "unavailable" for check in checks):
            return False, evidence_of(
                verification,
                "page",
                pages=checks,
                reason="no source page was available",
            )
        return False, evidence_of(verification, "judge", pages=checks)

    async def _checks(self, verification: Verification, urls: Sequence[str]) -> list[PageCheck]:
        """Return the pages' checks in the order made, up to the first that supports the claim."""
        if len(urls) == 1:
            return [await self._check_page(verification, urls[0], others_may_decide=False)]
        checks: list[PageCheck] = []
        failure: Mind2Web2Error | None = None
        cached = dict(zip(urls, await self.context.cached(urls), strict=True))
        # The pages that are at hand, then those that would have to be captured.
        for is_cached in (True, False):
            pages = [url for url in urls if cached[url] is is_cached]
            for check in await self._checks_of(verification, pages):
                if isinstance(check, PageCheck):
                    checks.append(check)
                else:
                    failure = failure or check
            if _is_supported(checks):
                return checks
        if failure is not None:
            raise self.context.judge.fail(failure)
        return checks

    async def _checks_of(
        self, verification: Verification, urls: Sequence[str]
    ) -> list[PageCheck | JudgmentMissingError]:
        """Check pages equally cheap to have, in order, while the next pages are prepared."""
        checks: list[PageCheck | JudgmentMissingError] = []
        prepare = partial(self.context.prepare, with_images=verification.use_screenshot)
        async with pages_ahead(prepare, urls, PAGES_AT_ONCE) as reach:
            for number, url in enumerate(urls):
                reach(number)
                try:
                    checks.append(await self._check_page(verification, url, others_may_decide=True))
                except JudgmentMissingError as error:
                    checks.append(error)
                if _is_supported(checks):
                    break
        return checks

    async def _check_page(
        self, verification: Verification, url: str, *, others_may_decide: bool
    ) -> PageCheck:
        try:
            is_supported, votes, shown = await self._ask_votes(
                verification, url, others_may_decide=others_may_decide
            )
        except CaptureError as error:
            return PageCheck(url=url, outcome="unavailable", reason=str(error))
        return PageCheck(
            url=url,
            outcome="supported" if is_supported else "not_supported",
            page=None if shown is None else shown.evidence_record(),
            votes=votes,
        )

    async def _ask_votes(
        self,
        verification: Verification,
        url: str | None,
        *,
        others_may_decide: bool = False,
    ) -> tuple[bool, tuple[Vote, ...], PreparedPage | None]:
        """Return whether a page, or without one the answer, supports the claim.

        Also return the votes, and the page as the judge was shown it with the last of them.

        Raises:
            CaptureError: the page is unavailable.
        """
        page = None
        if url is not None:
            page = await self.context.page(url, verification.use_screenshot)
        votes: list[Vote] = []
        opinions: list[bool] = []
        shown = page
        # All votes are on the same question.
        messages = cache(partial(self._messages, verification))
        most = verification.num_trials
        while (is_supported := outcome(opinions, most)) is None:
            last_trial = len(votes) + trials_needed(opinions, most)
            trials = range(len(votes) + 1, last_trial + 1)
            for vote, answered in await all_or_first_error(
                self._cast(verification, page, messages, trial, others_may_decide)
                for trial in trials
            ):
                votes.append(vote)
                opinions.append(vote.supported)
                # A page that was cut for the judge's context stays so.
                page, shown = answered.page, answered.shown
        return is_supported, tuple(votes), shown

    def _messages(
        self, verification: Verification, shown: PreparedPage | None
    ) -> Sequence[Message]:
        return verification_messages(
            self.context.task,
            self.context.answer or "",
            shown,
            verification.claim,
            verification.additional_instruction,
        )

    async def _cast(
        self,
        verification: Verification,
        page: PreparedPage | None,
        messages: Callable[[PreparedPage | None], Sequence[Message]],
        trial: int,
        others_may_decide: bool,
    ) -> tuple[Vote, Answered[BinaryEvalResult]]:
        context = self.context
        subject = QuestionContext(
            "verify",
            node=verification.node_id,
            claim=verification.claim,
            page=None if page is None else page.url,
            trial=trial,
        )
        answered = await context.ask(
            BinaryEvalResult,
            page,
            messages,
            subject,
            others_may_decide=others_may_decide,
        )
        verdict = answered.value or BinaryEvalResult(reasoning="", result=False)
        vote = Vote(
            trial=trial,
            supported=verdict.result,
            reasoning=verdict.reasoning,
            quote=await locate_quote(verdict.quote, quotable(context.answer, answered.page)),
            declined=answered.reply.declined,
            judgment=answered.reply.judgment,
        )
        return vote, answered


def _is_supported(checks: Sequence[PageCheck | JudgmentMissingError]) -> bool:
    """Tell whether the last check ends the others."""
    return bool(checks) and isinstance(checks[-1], PageCheck) and checks[-1].outcome == "supported"
