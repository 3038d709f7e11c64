"""A claim judged before it is known whether it will be skipped (``--speculate``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mind2web2.claim_judging import ClaimJudging, Verification
from mind2web2.errors import Mind2Web2Error
from mind2web2.evidence import Evidence
from mind2web2.failure_latch import failures_set_aside
from mind2web2.judge import Judge
from mind2web2.judge_ledger import JudgeLedger, ledger_set_aside
from mind2web2.speculation import Requests, counted_ahead, note_dropped

# Returns the URLs, and whether there were sources at all; raises what reading them has raised.
NotedSources = Callable[[], tuple[list[str], bool]]


class JudgedAhead:
    """Judges from the start; ``end`` drops what nobody wanted, as if it had not been asked.

    Args:
        judge: whose ledger has it in the end, and whose failure is what failed, if it is wanted.
    """

    def __init__(
        self, judge: Judge, judging: ClaimJudging, verification: Verification, sources: NotedSources
    ) -> None:
        self._judge = judge
        self._ledger = JudgeLedger()
        self._requests = Requests()
        self._is_wanted = False
        with ledger_set_aside(self._ledger), failures_set_aside(), counted_ahead(self._requests):
            self._task = asyncio.create_task(_judged(judging, verification, sources))

    async def verdict(self) -> tuple[bool, Evidence]:
        """Return the verdict, which counts from now on.

        Raises:
            Mind2Web2Error: there is none, and now that counts as well.
        """
        self._is_wanted = True
        try:
            return await self._task
        except Mind2Web2Error as error:
            raise self._judge.fail(error) from error.__cause__

    async def end(self) -> None:
        """Break off what is still under way, and count it where it belongs."""
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # of a verdict that is not wanted, it says nothing
        if self._is_wanted:
            self._judge.count(self._ledger)
        else:
            note_dropped(self._requests)


async def _judged(
    judging: ClaimJudging, verification: Verification, sources: NotedSources
) -> tuple[bool, Evidence]:
    return await judging.judged(verification, *sources())
