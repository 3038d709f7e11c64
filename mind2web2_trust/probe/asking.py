"""A judge asked about changed pages.

Each question is as in an evaluation, but with one vote and no images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mind2web2.plugin import AskedJudge, GivenPages, Mind2Web2Error
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
    judge: AskedJudge, probes: Sequence[Probe], on_reply: Callable[[], object]
) -> list[Reply]:
    """Ask the judge all probes at once; a stored reply costs nothing.

    Raises:
        JudgmentStoreError: replies could not be stored.
    """
    return await judge.ask_all(_ask(judge, probe, on_reply) for probe in probes)


async def _ask(judge: AskedJudge, probe: Probe, on_reply: Callable[[], object]) -> Reply:
    claim, pages = probe.case.claim, GivenPages()
    pages.add(claim.url, probe.change.text)
    question = judge.question(probe.name, claim.question, probe.case.answer, pages, votes=1)
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
