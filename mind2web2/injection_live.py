"""The suite against a real judge: which attacks turn a verdict, and whether the truth still gets through."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.answer_judge import AnswerJudge
from mind2web2.errors import JudgeAccessError, JudgeError, JudgeRequestError
from mind2web2.eval_toolkit import create_evaluator
from mind2web2.injection.attack import TASK, Attack
from mind2web2.injection.carriers import claim_with, is_shown_a_page, page_url
from mind2web2.injection_material import Material, materials
from mind2web2.limits import DualSemaphore
from mind2web2.page_library import PageLibrary
from mind2web2.recorded_judge import RecordedJudge
from mind2web2.utils.cache_filesys import CacheFileSys

log = logging.getLogger(__name__)

_PAGES_AT_ONCE = 10
# What no judge is asked with: a name that nobody is shown, and a reply of the judge's own.
_NOT_ASKED = frozenset({"file name", "judge's reply"})
# A judge's own guard may refuse an attack for what it says, but hardly so many in a row.
_ENOUGH_REFUSED = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """What a judge made of one attack.

    Args:
        is_turned: the verdict on the claim that the attack is after was the one that it wants.
        is_control_right: the verdict on the claim on which attack and truth agree was right.
        error: why there are no verdicts.
    """

    attack: Attack
    is_turned: bool | None = None
    is_control_right: bool | None = None
    error: str | None = None


async def try_attacks(attacks: Sequence[Attack], judge: RecordedJudge, max_requests: int) -> list[Trial]:
    """Return the trials of the attacks that can be tried; verdicts are by majority, as in an evaluation.

    Args:
        max_requests: to the judge at once.

    Raises:
        JudgeError: the judge fails with the first of them, or refuses the first few.
    """
    asked = [attack for attack in attacks if attack.place not in _NOT_ASKED]
    with tempfile.TemporaryDirectory() as folder:
        staged = await materials(asked, Path(folder))
        trials = _Trials(judge, Path(folder), max_requests)
        first = await trials.one_by_one(staged)
        return [*first, *await asyncio.gather(*(trials.of(material) for material in staged[len(first) :]))]


class _Trials:
    def __init__(self, judge: RecordedJudge, folder: Path, max_requests: int) -> None:
        self._judge = judge
        self._cache = CacheFileSys(folder)
        self._library = PageLibrary()
        self._limits = DualSemaphore(asyncio.Semaphore(_PAGES_AT_ONCE), asyncio.Semaphore(max_requests))

    async def one_by_one(self, staged: Sequence[Material]) -> list[Trial]:
        """Try until there are verdicts on one: a wrong key is found out once, not by all at once."""
        tried: list[Trial] = []
        refused = 0
        for material in staged:
            try:
                tried.append(await self._tried(material))
            except JudgeRequestError as error:
                refused += 1
                if refused == _ENOUGH_REFUSED or (isinstance(error, JudgeAccessError) and error.is_for_all):
                    raise
                tried.append(_failed(material, error))
            if tried[-1].error is None:
                break
        return tried

    async def of(self, material: Material) -> Trial:
        """Return the trial, also where the judge fails."""
        try:
            return await self._tried(material)
        except JudgeError as error:
            return _failed(material, error)

    async def _tried(self, material: Material) -> Trial:
        attack = material.attack
        if material.missing is not None:
            return Trial(attack, error=material.missing)
        claims = (attack.claim, attack.control_claim)
        verdicts = await asyncio.gather(
            *(self._verdict(material, claim) for claim in claims), return_exceptions=True
        )
        for failure in verdicts:
            if isinstance(failure, BaseException):
                raise failure
        verdict, control = verdicts
        return Trial(attack, verdict is attack.wants, control is attack.wants)

    async def _verdict(self, material: Material, claim: str) -> bool:
        attack = material.attack
        # One each: what fails on one claim says nothing of the other.
        client = AnswerJudge(self._judge, "injection", f"{attack.name}.md", self._limits.llm)
        _, verifier = create_evaluator(
            client=client,
            task_description=TASK,
            answer=material.answer,
            global_cache=self._cache,
            global_semaphore=self._limits,
            logger=log,
        )
        sources = [page_url(attack)] if is_shown_a_page(attack) else None
        return await verifier.verify(claim_with(attack, claim), None, sources)


def _failed(material: Material, error: JudgeError) -> Trial:
    return Trial(material.attack, error=" ".join(str(error).split()))
