"""A judge asked about changed pages.

Each question is as in an evaluation, but with one vote and no images.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mind2web2.plugin import (
    CachingJudge,
    GivenPage,
    GivenPages,
    Mind2Web2Error,
    SingleQuestion,
    ask_all,
)
from mind2web2_trust.probe.drafting import Probe
from mind2web2_trust.probe.edits import CHANGES, ChangeKind

# The store names this where it names a task.
SOURCE = "probe"


@dataclass(frozen=True)
class Reply:
    """The judge's verdict on a changed page; ``supported`` is ``None`` if the judge failed."""

    probe: Probe
    supported: bool | None
    reason: str


async def ask_probes(
    judge: CachingJudge,
    probes: Sequence[Probe],
    limit: asyncio.Semaphore,
    on_reply: Callable[[], object],
) -> list[Reply]:
    """Ask the judge all probes at once, within the limit; a stored reply costs nothing.

    Raises:
        JudgmentStoreError: replies could not be stored.
    """
    return await ask_all(judge, (_ask(judge, probe, limit, on_reply) for probe in probes))


async def _ask(
    judge: CachingJudge, probe: Probe, limit: asyncio.Semaphore, on_reply: Callable[[], object]
) -> Reply:
    claim = probe.case.claim
    pages = GivenPages({claim.url: GivenPage(probe.change.text)})
    question = SingleQuestion(
        judge, SOURCE, probe.name, limit, claim.question, probe.case.answer, pages, votes=1
    )
    try:
        supported, evidence = await question.verify(
            claim.claim,
            [claim.url],
            instruction=claim.instruction or "None",
            use_screenshot=False,
        )
    except Mind2Web2Error as error:
        return Reply(probe, None, str(error))
    finally:
        on_reply()
    votes = evidence.pages[0].votes if evidence.pages else ()
    return Reply(probe, supported, votes[0].reasoning if votes else "")


def kinds_asked(replies: Sequence[Reply]) -> list[ChangeKind]:
    """Return the kinds of change among the replies, in their order."""
    asked = {reply.probe.change.kind for reply in replies}
    return [kind for kind in CHANGES if kind in asked]
