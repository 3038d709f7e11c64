"""A claim checked against its pages, or against the answer alone: votes, verdict and quotations."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel

from mind2web2.errors import CaptureError, JudgmentMissingError, Mind2Web2Error
from mind2web2.judge.protocol import Subject
from mind2web2.pages.captures import PreparedPage
from mind2web2.prompts import flags_of
from mind2web2.rubric.verdicts import (
    NO_PAGE_NAMED,
    Evidence,
    PageCheck,
    Quote,
    QuoteSource,
    Vote,
    outcome,
    trials_needed,
)
from mind2web2.scheduling import current_options
from mind2web2.utils.aio import all_or_first_error
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.context import NO_INSTRUCTION, EvaluationContext, quotable, verification_messages

# How alike a passage must be to count as the quotation, in percent.
_LIKENESS = 85
# Compared with a quotation are passages that share a piece of this length with it; the limits bound the time.
_PIECE_CHARS = 12
_PLACES_OF_A_PIECE = 4
_LONGEST_CHARS = 240
# A text of this length is looked through in about a millisecond.
_CHARS_ON_THE_LOOP = 20_000

# Soft hyphens, and markdown's signs for emphasis and between the cells of a table.
_LEFT_OUT = "\u00ad*|"
_PLAIN = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\u0060", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043", "-"),
    **{"\u2026": "...", "\u00d7": "x"},
    **{"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb06": "st"},
    **dict.fromkeys(_LEFT_OUT, ""),
}
_WORD = re.compile(rf"\S*[^\s{_LEFT_OUT}]\S*")
_WORD_EDGE = re.compile("[0-9A-Za-z]")
_GAP = re.compile(r"[\[(]?\.\.\.[\])]?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_AROUND = "\"'"


class _Span(NamedTuple):
    start: int
    end: int


async def looked_up(quote: str, shown: Sequence[tuple[QuoteSource, str]]) -> Quote | None:
    """Return the place of a quotation in the texts shown, ``None`` where nothing is quoted.

    Args:
        shown: the texts by name; the first that has the quotation counts.
    """
    if not quote.strip():
        return None
    if sum(len(text) for _, text in shown) <= _CHARS_ON_THE_LOOP:
        return find_quote(quote, shown)
    return await asyncio.to_thread(find_quote, quote, shown)


def find_quote(quote: str, shown: Sequence[tuple[QuoteSource, str]]) -> Quote:
    """Do as ``looked_up``, on this thread; a blank quotation is not found."""
    for source, text in shown:
        if span := _verbatim(text, quote.strip()) or _folded(text, quote):
            return Quote(text=quote, match="found", source=source, start=span.start, end=span.end)
    for source, text in shown:
        if span := _alike(text, quote):
            return Quote(text=quote, match="approximate", source=source, start=span.start, end=span.end)
    return Quote(text=quote, match="not_found")


def _verbatim(text: str, quote: str, start: int = 0) -> _Span | None:
    """Return the first place after ``start`` where a quotation stands and cuts no word or number."""
    start = text.find(quote, start)
    if start < 0 or not quote:
        return None
    # Scripts without spaces between words have no such edges.
    before = r"(?<![0-9A-Za-z])" if _WORD_EDGE.match(quote[0]) else ""
    after = r"(?![0-9A-Za-z])" if _WORD_EDGE.match(quote[-1]) else ""
    found = re.compile(before + re.escape(quote) + after).search(text, start)
    return None if found is None else _Span(*found.span())


def _folded(text: str, quote: str) -> _Span | None:
    folded = _fold(quote)
    for each in dict.fromkeys((folded, folded.strip(_AROUND).strip())):
        if each and (span := _verbatim(_fold_text(text), each)):
            return _unfolded(text, span)
    return None


def _alike(text: str, quote: str) -> _Span | None:
    """Return a passage that differs a little, or holds the parts around a mark of omission in their order."""
    folded, wanted = _fold_text(text), _fold(quote).strip(_AROUND)[:_LONGEST_CHARS]
    parts = [part.strip() for part in _GAP.split(wanted) if part.strip()]
    if span := _in_order(folded, parts) or _most_alike(folded, wanted):
        return _unfolded(text, span)
    return None


def _in_order(folded: str, parts: Sequence[str]) -> _Span | None:
    spans: list[_Span] = []
    for part in parts:
        span = _verbatim(folded, part, spans[-1].end if spans else 0)
        if span is None:
            return None
        spans.append(span)
    return _Span(spans[0].start, spans[-1].end) if spans else None


def _most_alike(folded: str, wanted: str) -> _Span | None:
    from rapidfuzz import fuzz

    best: tuple[float, _Span] | None = None
    for window in _windows(folded, wanted):
        found = fuzz.partial_ratio_alignment(
            wanted, folded[window.start : window.end], score_cutoff=_LIKENESS
        )
        if found is None or found.src_end - found.src_start < len(wanted) * _LIKENESS // 100:
            continue
        span = _Span(window.start + found.dest_start, window.start + found.dest_end)
        # Another number is another fact, however alike the words are.
        has_numbers = set(_NUMBER.findall(wanted)) <= set(_NUMBER.findall(folded[span.start : span.end + 1]))
        if has_numbers and (best is None or found.score > best[0]):
            best = found.score, span
    return None if best is None else best[1]


def _windows(folded: str, wanted: str) -> Iterator[_Span]:
    """Yield the passages that share a piece with a text that is looked for, each once and not too many."""
    seen: set[int] = set()
    for offset in range(0, len(wanted) - _PIECE_CHARS + 1, _PIECE_CHARS):
        piece, at = wanted[offset : offset + _PIECE_CHARS], -1
        for _ in range(_PLACES_OF_A_PIECE):
            at = folded.find(piece, at + 1)
            if at < 0:
                break
            if (start := max(at - offset, 0) // _PIECE_CHARS) not in seen:
                seen.add(start)
                yield _Span(max(at - offset - _PIECE_CHARS, 0), at - offset + len(wanted) + 2 * _PIECE_CHARS)


def _fold(text: str) -> str:
    """Return a text's words in lower case with plain signs, a space apart."""
    text = unicodedata.normalize("NFC", text)
    # Faster than one translation: most signs are in hardly any text.
    for sign, plain in _PLAIN.items():
        if sign in text:
            text = text.replace(sign, plain)
    return " ".join(text.lower().split())


# Many claims are about the same page, and all of an answer's about that.
@lru_cache(maxsize=16)
def _fold_text(text: str) -> str:
    return _fold(text)


def _unfolded(text: str, span: _Span) -> _Span:
    """Return where a span of the folded text lies in the text itself."""
    folded = _fold_text(text)
    start = _place(text, folded, span.start)
    last = _place(text, folded, max(span.end - 1, span.start))
    return _Span(start, last + 1)


def _place(text: str, folded: str, position: int) -> int:
    """Return the place of a folded text's character in the text; of a space, that after the word."""
    word_number = folded.count(" ", 0, position)
    within = position - (folded.rfind(" ", 0, position) + 1)
    word = next(islice(_WORD.finditer(text), word_number, None))
    ends = range(1, len(word[0]) + 1)
    return word.start() + bisect_right(ends, within, key=lambda end: len(_fold(word[0][:end])))


@asynccontextmanager
async def pages_ahead(
    prepare: Callable[[str], Coroutine[Any, Any, object]], urls: Sequence[str], at_once: int
) -> AsyncIterator[Callable[[int], None]]:
    """Yield a function that begins to prepare the pages which follow the one with a number.

    At most ``at_once`` pages are in work, that one included. Pages that are not needed are given up in the
    end; errors are ignored here, as the check of the page raises them again.
    """
    tasks: list[asyncio.Task[object]] = []

    def reach(number: int) -> None:
        tasks.extend(asyncio.create_task(prepare(url)) for url in urls[len(tasks) + 1 : number + at_once])

    try:
        yield reach
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
    prerequisites: tuple[str, ...] = ()


class ClaimJudging:
    """Judges claims about one answer."""

    def __init__(self, context: EvaluationContext) -> None:
        self._context = context

    async def judged(
        self, verification: Verification, urls: Sequence[str], had_sources: bool
    ) -> tuple[bool, Evidence]:
        """Return whether the claim is supported, and the evidence.

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
        cached, to_capture = await self._in_cheap_order(urls)
        for pages in (cached, to_capture):
            for check in await self._checks_of(verification, pages, is_only_page=len(urls) == 1):
                if isinstance(check, PageCheck):
                    checks.append(check)
                else:
                    failure = failure or check
            if _is_supported(checks):
                return checks
        if failure is not None:
            raise self._context.judge.fail(failure)
        return checks

    async def _in_cheap_order(self, urls: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the pages that are at hand, then those that would have to be captured."""
        if len(urls) == 1:
            return list(urls), []
        cached = dict(zip(urls, await self._context.cached(urls), strict=True))
        return [url for url in urls if cached[url]], [url for url in urls if not cached[url]]

    async def _checks_of(
        self, verification: Verification, urls: Sequence[str], *, is_only_page: bool
    ) -> list[PageCheck | JudgmentMissingError]:
        """Check pages that are equally cheap to have, in order, while the next pages are prepared."""
        checks: list[PageCheck | JudgmentMissingError] = []
        prepare = partial(self._context.prepare, with_images=verification.use_screenshot)
        async with pages_ahead(prepare, urls, 1 if current_options().sequential else PAGES_AT_ONCE) as reach:
            for number, url in enumerate(urls):
                reach(number)
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
            page = await self._context.page(url, verification.use_screenshot)
        except CaptureError as error:
            self._context.logger.warning(
                "page is unavailable node=%s url=%s reason=%s", verification.node_id, url, error
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
        context = self._context
        subject = Subject(
            "verify",
            node=verification.node_id,
            claim=verification.claim,
            page=None if page is None else page.url,
            trial=trial,
        )
        answered = await context.ask(
            BinaryEvalResult,
            page,
            lambda shown: verification_messages(
                context.task,
                context.answer or "",
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
            quote=await looked_up(verdict.quote, quotable(context.answer, answered.page)),
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
    """Return the evidence for a verdict, ``details`` being fields of ``Evidence``."""
    # Any: pydantic checks both against the model's fields.
    instruction = verification.additional_instruction
    return Evidence(
        decided_by=decided_by,
        claim=verification.claim,
        additional_instruction=None if instruction == NO_INSTRUCTION else instruction,
        num_trials=verification.num_trials if decided_by == "judge" else None,
        flags=flags_of(verification.claim),
        prerequisites=verification.prerequisites,
        **details,
    )
