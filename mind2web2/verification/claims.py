"""A claim held against its pages, or against the answer alone: votes, and what they come to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self

from pydantic import BaseModel

from mind2web2.errors import CaptureError, JudgmentMissingError, Mind2Web2Error
from mind2web2.judge.protocol import Subject
from mind2web2.pages.prepared import PreparedPage
from mind2web2.prompts.injection_flags import flags_of
from mind2web2.rubric.consistency import outcome, trials_needed
from mind2web2.rubric.evidence import NO_PAGE_NAMED, Evidence, PageCheck, Vote
from mind2web2.scheduling.options import current_pace
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.context import Asking
from mind2web2.verification.messages import NO_INSTRUCTION, quotable, verification_messages
from mind2web2.verification.quotations import looked_up


class PagesAhead:
    """Prepares the next few of a claim's pages; an async context manager that gives up what is not needed.

    What cannot be had is left to whoever asks for the page: it may never be asked for.

    Args:
        prepare: makes a page ready, for all who want it.
        urls: in the order in which they are checked.
        at_once: pages in work, the one that is checked included.
    """

    def __init__(
        self, prepare: Callable[[str], Awaitable[object]], urls: Sequence[str], at_once: int
    ) -> None:
        self._prepare = prepare
        self._urls = urls
        self._at_once = at_once
        self._tasks: list[asyncio.Task[object]] = []

    def reach(self, number: int) -> None:
        """Begin on the pages that follow the one with this number, which is being checked now."""
        begun = len(self._tasks) + 1
        for url in self._urls[begun : number + self._at_once]:
            self._tasks.append(asyncio.create_task(self._prepared(url)))

    async def _prepared(self, url: str) -> object:
        return await self._prepare(url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


# How many of a claim's pages are prepared, or captured, at the same time.
PAGES_AT_ONCE = 3


@script_api
class BinaryEvalResult(BaseModel):
    """A judge's verdict on one claim, and the passage that decides it."""

    reasoning: str
    result: bool
    # A client of a script's own gives the two published fields; a verdict without a quote counts as well.
    quote: str = ""
    dispensable_properties: ClassVar[frozenset[str]] = frozenset({"quote"})


@dataclass(frozen=True)
class Verification:
    """A claim with all that is given about it; defaults filled in."""

    claim: str
    node_id: str | None
    additional_instruction: str
    num_trials: int
    use_screenshot: bool


class ClaimJudging:
    """Judges claims about one answer.

    Args:
        asking: the answer under evaluation.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def judged(
        self, verification: Verification, urls: Sequence[str], had_sources: bool
    ) -> tuple[bool, Evidence]:
        """Return whether the claim is supported, and by what.

        Args:
            urls: one a page.
            had_sources: sources were given; without any, the answer alone is judged.
        """
        if not urls and had_sources:
            return False, evidence_of(verification, "page", reason=NO_PAGE_NAMED)
        if not urls:
            votes, _ = await self._vote(verification, None)
            return _decision(votes, verification), evidence_of(verification, "judge", votes=votes)
        checks = await self._checks(verification, urls)
        if checks[-1].outcome == "supported":
            return True, evidence_of(verification, "judge", pages=checks)
        if all(check.outcome == "unavailable" for check in checks):
            return False, evidence_of(
                verification, "page", pages=checks, reason="no source page was available"
            )
        return False, evidence_of(verification, "judge", pages=checks)

    async def _checks(self, verification: Verification, urls: Sequence[str]) -> list[PageCheck]:
        """Return the pages' checks in the order made, up to the first that supports the claim."""
        checks: list[PageCheck] = []
        failure: Mind2Web2Error | None = None
        at_hand, to_capture = await self._in_cheap_order(urls)
        for pages in (at_hand, to_capture):
            for check in await self._checks_of(verification, pages, is_only_page=len(urls) == 1):
                if isinstance(check, PageCheck):
                    checks.append(check)
                else:
                    failure = failure or check
            if _is_supported(checks):
                return checks
        if failure is not None:
            raise self._asking.judge.fail(failure)
        return checks

    async def _in_cheap_order(self, urls: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the pages that are at hand, then those that would have to be captured."""
        if len(urls) == 1:
            return list(urls), []
        at_hand = dict(zip(urls, await self._asking.at_hand(urls), strict=True))
        return [url for url in urls if at_hand[url]], [url for url in urls if not at_hand[url]]

    async def _checks_of(
        self, verification: Verification, urls: Sequence[str], *, is_only_page: bool
    ) -> list[PageCheck | JudgmentMissingError]:
        """Check pages that are equally cheap to have, in order, while the next pages are prepared."""
        checks: list[PageCheck | JudgmentMissingError] = []
        prepare = partial(self._asking.prepare, with_images=verification.use_screenshot)
        async with PagesAhead(prepare, urls, 1 if current_pace().sequential else PAGES_AT_ONCE) as ahead:
            for number, url in enumerate(urls):
                ahead.reach(number)
                try:
                    checks.append(await self._check_page(verification, url, is_only_page=is_only_page))
                except JudgmentMissingError as error:
                    if is_only_page:
                        raise
                    checks.append(error)
                if _is_supported(checks):
                    break
        return checks

    async def _check_page(self, verification: Verification, url: str, *, is_only_page: bool) -> PageCheck:
        try:
            page = await self._asking.page(url, verification.use_screenshot)
        except CaptureError as error:
            self._asking.logger.warning(
                "page cannot be had node=%s url=%s reason=%s", verification.node_id, url, error
            )
            return PageCheck(url=url, outcome="unavailable", reason=str(error))
        votes, shown = await self._vote(verification, page, others_may_decide=not is_only_page)
        supported = _decision(votes, verification)
        return PageCheck(
            url=url,
            outcome="supported" if supported else "not_supported",
            page=(shown or page).shown(),
            votes=votes,
        )

    async def _vote(
        self, verification: Verification, page: PreparedPage | None, *, others_may_decide: bool = False
    ) -> tuple[tuple[Vote, ...], PreparedPage | None]:
        """Return the votes, and the page as the last of them was shown it."""
        votes: list[Vote] = []
        while needed := trials_needed([vote.supported for vote in votes], verification.num_trials):
            trials = range(len(votes) + 1, len(votes) + needed + 1)
            cast = await all_or_first_error(
                self._cast(verification, page, trial, others_may_decide) for trial in trials
            )
            votes.extend(vote for vote, _ in cast)
            page = cast[-1][1]
        return tuple(votes), page

    async def _cast(
        self, verification: Verification, page: PreparedPage | None, trial: int, others_may_decide: bool
    ) -> tuple[Vote, PreparedPage | None]:
        asking = self._asking
        subject = Subject(
            "verify",
            node=verification.node_id,
            claim=verification.claim,
            page=None if page is None else page.url,
            trial=trial,
        )
        answered = await asking.ask(
            BinaryEvalResult,
            page,
            lambda shown: verification_messages(
                asking.task,
                asking.answer or "",
                shown,
                verification.claim,
                verification.additional_instruction,
            ),
            subject,
            others_may_decide=others_may_decide,
        )
        verdict = answered.value or BinaryEvalResult(reasoning="", result=False)
        vote = Vote(
            trial=trial,
            supported=verdict.result,
            reasoning=verdict.reasoning,
            quote=await looked_up(verdict.quote, quotable(asking.answer, answered.page)),
            declined=answered.reply.declined,
            judgment=answered.reply.judgment,
        )
        return vote, answered.page


def _decision(votes: Sequence[Vote], verification: Verification) -> bool:
    return outcome([vote.supported for vote in votes], verification.num_trials) is True


def _is_supported(checks: Sequence[PageCheck | JudgmentMissingError]) -> bool:
    """Tell whether the last check ends the others."""
    return bool(checks) and isinstance(checks[-1], PageCheck) and checks[-1].outcome == "supported"


def evidence_of(verification: Verification, decided_by: Any, **details: Any) -> Evidence:
    """Return what decided a verification, ``details`` being fields of ``Evidence``."""
    # Any: pydantic checks both against the model's fields.
    instruction = verification.additional_instruction
    return Evidence(
        decided_by=decided_by,
        claim=verification.claim,
        additional_instruction=None if instruction == NO_INSTRUCTION else instruction,
        num_trials=verification.num_trials if decided_by == "judge" else None,
        flags=flags_of(verification.claim),
        **details,
    )
