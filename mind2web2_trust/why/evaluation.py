"""Scores of answers with some parts of one side, and the rest of the other."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from mind2web2 import CacheFileSys
from mind2web2.plugin import (
    Budget,
    CachingJudge,
    JudgeError,
    JudgeRecord,
    JudgmentStore,
    Mind2Web2Error,
    ResultFile,
    RunSettings,
    ScriptRuns,
    UsageError,
    budget_of,
    judge_client,
    judge_settings,
    judge_spec,
)
from mind2web2_trust.why.replies import StandInJudge
from mind2web2_trust.why.shares import NOTHING, Bounds, Corner
from mind2web2_trust.why.sides import Material, Pair, Side

_log = logging.getLogger(f"{__name__}.scripts")
_log.setLevel(logging.CRITICAL)
_UNKNOWN = Bounds(Fraction(0), Fraction(1))
# Answers at once.
_AT_ONCE = 9


@dataclass(frozen=True)
class Evaluated:
    """A score with the tree that it comes from.

    Args:
        result: with each missing verdict as not passed; ``None`` where there is no tree.
        missing: the keys of the replies that it lacks.
        reason: why nothing is known, ``None`` where something is.
    """

    score: Bounds
    result: ResultFile | None
    missing: frozenset[str] = frozenset()
    reason: str | None = None


@dataclass
class Asking:
    """Asks the judges of both sides for missing replies.

    Attributes:
        judges: by their records.
        budget: of ``--max_cost``, which all of them share.
    """

    settings: RunSettings
    store: JudgmentStore
    judges: dict[JudgeRecord, CachingJudge] = field(default_factory=dict)
    budget: Budget | None = None

    def judge(self, record: JudgeRecord) -> CachingJudge:
        """Return the judge with a record."""
        if record not in self.judges:
            named = RunSettings(**judge_settings(record))  # type: ignore[arg-type]  # by name
            spec = judge_spec(named).with_prices(self.settings.prices)
            self.budget = self.budget or budget_of(self.settings, spec)
            self.judges[record] = CachingJudge(
                spec, judge_client(spec), self.store, budget=self.budget
            )
        return self.judges[record]


class Evaluation:
    """Runs scripts on answers again, from stored replies.

    Args:
        folder: for copies of pages.
        asking: asks for missing replies; ``None`` where none are asked for.
    """

    def __init__(
        self, sides: tuple[Side, Side], store: JudgmentStore, folder: Path, asking: Asking | None
    ) -> None:
        self._sides = sides
        self._store = store
        self._asking = asking
        self._runs = ScriptRuns(folder, 1 if asking is None else asking.settings.max_llm_requests)
        self._places = asyncio.Semaphore(_AT_ONCE)
        # Answers to a task share the copy of its pages.
        self._copying = threading.Lock()

    async def corners(self, pair: Pair, corners: list[Corner]) -> Mapping[Corner, Evaluated]:
        """Evaluate an answer with each choice of parts."""
        async with self._places:
            return {corner: await self._corner(pair, corner) for corner in corners}

    async def _corner(self, pair: Pair, corner: Corner) -> Evaluated:
        """Return the stored score where one side is whole, else that of its script run again."""
        whole = {frozenset(): pair.first, frozenset(pair.causes): pair.second}
        if corner in whole and (own := whole[corner]) is None:
            return Evaluated(NOTHING, None)
        if corner in whole and own is not None and own.score is not None:
            return Evaluated(Bounds.exact(own.score), own.result)
        if pair.first is None or pair.second is None:
            raise AssertionError("an answer without a judge has no other corners")
        parts = _Parts.of(pair.first, pair.second, corner)
        if (gone := parts.gone()) is not None:
            return Evaluated(_UNKNOWN, None, reason=gone)
        try:
            return await self._run(pair, parts)
        except (Mind2Web2Error, OSError) as error:
            return Evaluated(_UNKNOWN, None, reason=" ".join(str(error).split()))

    async def _run(self, pair: Pair, parts: _Parts) -> Evaluated:
        low = await self._stand_in(pair, parts, passes=False)
        if low.missing and self._asking is not None:
            judge = self._asking.judge(parts.judge.made_from.judge)
            try:
                result = await self._result(pair, parts, judge)
                return Evaluated(Bounds.exact(result.final_score or 0.0), result)
            except JudgeError as error:
                return replace(low, score=_UNKNOWN, reason=str(error))
        if not low.missing or low.result is None:
            return low
        high = await self._stand_in(pair, parts, passes=True)
        ends = (low.score.low, low.score.high, high.score.low, high.score.high)
        missing = low.missing | high.missing
        return Evaluated(Bounds(min(ends), max(ends)), low.result, missing)

    async def _stand_in(self, pair: Pair, parts: _Parts, *, passes: bool) -> Evaluated:
        judge = StandInJudge(parts.judge.made_from.judge, self._store, passes=passes)
        try:
            result = await self._result(pair, parts, judge)
        except Mind2Web2Error:
            if not judge.missing:
                raise
            return Evaluated(_UNKNOWN, None, frozenset(judge.missing))
        score = Bounds.exact(result.final_score or 0.0)
        return Evaluated(score, result, frozenset(judge.missing))

    async def _result(self, pair: Pair, parts: _Parts, judge: CachingJudge) -> ResultFile:
        if parts.rubric.script is None:
            raise UsageError(f"no script for task {pair.place[0]}")
        return await self._runs.result(
            self._sides[parts.answers is pair.second].agent,
            pair.place[0],
            parts.answers.answer,
            parts.rubric.script,
            await asyncio.to_thread(self._pages, pair, parts),
            judge,
            parts.answers.made_from,
        )

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
    def of(cls, first: Material, second: Material, corner: Corner) -> _Parts:
        """Return the parts of a corner."""
        return cls(
            second if "answers" in corner else first,
            second if "pages" in corner else first,
            second if "rubric" in corner else first,
            second if "judge" in corner else first,
        )

    def gone(self) -> str | None:
        """Return which part no longer exists as it was judged, ``None`` where all do."""
        if self.rubric.script is None:
            return "no script has the bytes of the one that judged"
        if not (self.answers.is_at_hand and self.pages.is_at_hand):
            return "an answer or page has changed since it was judged"
        return None
