"""Scores of answers with some parts of one side, and the rest of the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from mind2web2 import CacheFileSys
from mind2web2.plugin import (
    Material,
    Mind2Web2Error,
    ResultFile,
    StoredRuns,
    UsageError,
)
from mind2web2_trust.why.shares import NOTHING, Bounds, Cause, Corner, corners
from mind2web2_trust.why.sides import Pair, Side

UNKNOWN = Bounds(Fraction(0), Fraction(1))
# Answers at once.
_AT_ONCE = 9


@dataclass(frozen=True)
class Evaluated:
    """A score with the tree that it comes from.

    Args:
        result: with each missing verdict as not passed; ``None`` where nothing is known.
        missing: the keys of the replies that it lacks, each with the dollars that it would cost, or
            ``None`` for an unknown price.
        reason: why nothing is known, ``None`` where something is.
        is_ended: the script ended at a reply that nothing stands in for, so that more are missing.
    """

    score: Bounds
    result: ResultFile | None
    missing: Mapping[str, float | None] = field(default_factory=dict)
    reason: str | None = None
    is_ended: bool = False


@dataclass(frozen=True)
class Corners:
    """An answer's scores with each choice of parts, and those that its two results have."""

    scores: Mapping[Corner, Evaluated]
    first: Evaluated
    second: Evaluated


def _stored(side: Material | None) -> Evaluated | None:
    """Return the score of a result, or that of a run in which the agent failed."""
    if side is None:
        return Evaluated(NOTHING, None)
    return None if side.score is None else Evaluated(Bounds.exact(side.score), side.result)


class Evaluation:
    """Runs scripts on answers again.

    Args:
        is_asked: missing replies are asked for.
    """

    def __init__(self, sides: tuple[Side, Side], runs: StoredRuns, *, is_asked: bool) -> None:
        self._sides = sides
        self._runs = runs
        self._is_asked = is_asked
        self._places = asyncio.Semaphore(_AT_ONCE)
        # Answers to a task share the copy of its pages.
        self._copying = threading.Lock()

    async def evaluate(self, pair: Pair) -> Corners:
        """Evaluate an answer with each choice of parts.

        Whole sides are run again as well. If a result differs from that, such as by another file
        that its script read, no part is the cause.
        """
        async with self._places:
            scores = {corner: await self._corner(pair, corner) for corner in corners(pair.causes)}
        first, second = scores[frozenset()], scores[frozenset(pair.causes)]
        return Corners(scores, _stored(pair.first) or first, _stored(pair.second) or second)

    async def _corner(self, pair: Pair, corner: Corner) -> Evaluated:
        """Return the score of a script run again, or that of a whole side that cannot be.

        Nothing is asked for a side that has a result.
        """
        whole = {frozenset(pair.causes): pair.second, frozenset(): pair.first}
        stored = _stored(whole[corner]) if corner in whole else None
        if stored is not None and not set(pair.causes) - {"other"}:
            return stored
        if pair.first is None or pair.second is None:
            return stored or Evaluated(UNKNOWN, None)
        parts = _Parts.of(pair, pair.first, pair.second, corner)
        try:
            await asyncio.to_thread(parts.check)
            if stored is None:
                return await self._run(pair, parts)
            evaluated = await self._evaluated(pair, parts, "fails")
        except (Mind2Web2Error, OSError) as error:
            reason = " ".join(str(error).split()).rstrip(".?")
            return stored or Evaluated(UNKNOWN, None, reason=reason)
        return stored if stored is not None and evaluated.missing else evaluated

    async def _run(self, pair: Pair, parts: _Parts) -> Evaluated:
        low = await self._evaluated(pair, parts, "fails")
        reason = None
        if low.missing and self._is_asked:
            try:
                return await self._evaluated(pair, parts, "asked")
            except Mind2Web2Error as error:
                reason = str(error)
        if not low.missing or low.is_ended:
            return replace(low, reason=reason)
        high = await self._evaluated(pair, parts, "passes")
        ends = (low.score.low, low.score.high, high.score.low, high.score.high)
        missing = {**low.missing, **high.missing}
        return Evaluated(Bounds(min(ends), max(ends)), low.result, missing, reason)

    async def _evaluated(
        self, pair: Pair, parts: _Parts, missing: Literal["asked", "passes", "fails"]
    ) -> Evaluated:
        """Return the score; with a missing extraction, nothing is known.

        The extraction of the other side's judge stands in, to count the replies that are missing.
        """
        other = pair.sides[parts.judge is pair.first]
        run = await self._runs.run_again(
            self._sides[parts.answers is pair.second].agent,
            pair.place[0],
            parts.answers.answer,
            parts.script,
            await asyncio.to_thread(self._pages, pair, parts),
            parts.judge.made_from.judge,
            other.made_from.judge,
            parts.answers.made_from,
            missing,
        )
        if run.result is None or run.is_guess:
            return Evaluated(UNKNOWN, None, run.missing, is_ended=run.result is None)
        return Evaluated(Bounds.exact(run.result.final_score or 0.0), run.result, run.missing)

    def _pages(self, pair: Pair, parts: _Parts) -> CacheFileSys:
        """Return the pages of one side for an answer of either; reads and writes files.

        Another answer cites other pages: it keeps its own, but for those that both sides judged.
        """
        task_id, name = pair.place
        is_own = "answers" not in pair.causes or parts.pages is parts.answers
        owner = parts.pages if is_own else parts.answers
        number = int(owner is pair.second)
        with self._copying:
            if is_own or not pair.changed_pages:
                return self._runs.pages(owner.pages, f"{number}/{task_id}")
            mixed = self._runs.pages(owner.pages, f"mixed_{number}/{task_id}/{name}")
            source = CacheFileSys(parts.pages.pages)
            for url in pair.changed_pages:
                mixed.copy_page(url, source)
            return mixed


@dataclass(frozen=True)
class _Parts:
    """The material that each part is taken from."""

    answers: Material
    pages: Material
    rubric: Material
    judge: Material

    @classmethod
    def of(cls, pair: Pair, first: Material, second: Material, corner: Corner) -> _Parts:
        """Return the parts of a corner."""
        # Pages that are alike go with the answer that cites them, or the script that asks for them.
        pages: Cause = "answers" if "answers" in pair.causes else "rubric"
        if "pages" in pair.causes:
            pages = "pages"
        parts: list[Cause] = ["answers", pages, "rubric", "judge"]
        return cls(*(second if part in corner else first for part in parts))

    @property
    def script(self) -> Path:
        """Return the script. Raises UsageError: it is gone."""
        if self.rubric.script is None:
            raise UsageError("its script was changed since, and no version folder has the old one")
        return self.rubric.script

    def check(self) -> None:
        """Make sure that all parts are still those that were judged; reads files.

        Raises:
            UsageError: one is not.
        """
        if not (self.script and self.answers.is_at_hand and self.pages.is_at_hand):
            raise UsageError("an answer or page has changed since it was judged")
