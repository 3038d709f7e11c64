"""A judge asked about changed pages.

Each question is as in an evaluation, but with one vote and no images.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from mind2web2.capture.models import CaptureRecord, PageKind
from mind2web2.errors import CacheMiss, MachineError, Mind2Web2Error
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.llm_client.chat import Limit
from mind2web2.pages.library import PageLibrary
from mind2web2.rubric.node import VerificationNode
from mind2web2.utils.aio import all_or_first_error
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.own_questions import script_context
from mind2web2.verification.verifier import Verifier
from mind2web2_trust.probe.drafting import Probe
from mind2web2_trust.probe.edits import CHANGES, ChangeKind

log = logging.getLogger(__name__)

# The store names this where it names a task.
SOURCE = "probe"


@dataclass(frozen=True)
class Reply:
    """The judge's verdict on a changed page; ``supported`` is ``None`` if the judge failed."""

    probe: Probe
    supported: bool | None
    reason: str


class _ChangedPage:
    """A page cache with one page, whose text was changed; it takes no other page."""

    def __init__(self, url: str, text: str) -> None:
        self._url = url
        self._text = text

    def has(self, url: str) -> PageKind | None:
        return "web" if url == self._url else None

    def get_web(
        self,
        url: str,  # noqa: ARG002
        get_screenshot: bool = True,  # noqa: ARG002
    ) -> tuple[str, bytes | None]:
        return self._text, None

    def capture_record(self, url: str) -> CaptureRecord:
        return CaptureRecord(
            requested_url=url,
            final_url=url,
            kind="web",
            captured_at="2026-06-01T12:00:00+00:00",
        )

    def get_pdf(self, url: str) -> bytes:
        raise CacheMiss(url)

    def put_web(self, url: str, text: str, screenshot: str | bytes | None) -> None:  # noqa: ARG002
        raise MachineError("a changed page is not stored")

    def put_pdf(self, url: str, pdf_bytes: bytes) -> None:  # noqa: ARG002
        raise MachineError("a changed page is not stored")


async def ask_probes(
    judge: CachingJudge,
    probes: Sequence[Probe],
    limit: Limit,
    on_reply: Callable[[], object],
) -> list[Reply]:
    """Ask the judge all probes at once, within the limit; a stored reply costs nothing.

    Raises:
        JudgmentStoreError: replies could not be stored.
    """
    replies = await all_or_first_error(_ask(judge, probe, limit, on_reply) for probe in probes)
    await judge.write_rest()
    return replies


async def _ask(
    judge: CachingJudge, probe: Probe, limit: Limit, on_reply: Callable[[], object]
) -> Reply:
    claim = probe.case.claim
    # Each probe has a session, since a session asks nothing more after a failure.
    session = AnswerJudge(judge, SOURCE, probe.name, limit)
    context = EvaluationContext(
        judge=session,
        model=judge.settings.model,
        task=claim.question,
        answer=probe.case.answer,
        cache=_ChangedPage(claim.url, probe.change.text),
        library=PageLibrary(),
        capture=None,
        llm_limit=limit,
        page_limit=nullcontext(),
        logger=log,
    )
    leaf = VerificationNode(id=claim.leaf, desc=claim.claim)
    try:
        supported = await Verifier(script_context(context)).verify(
            claim.claim,
            leaf,
            [claim.url],
            additional_instruction=claim.instruction or "None",
            majority_vote=False,
            use_screenshot=False,
        )
    except Mind2Web2Error as error:
        return Reply(probe, None, str(session.failure or error))
    finally:
        on_reply()
    evidence = leaf.evidence
    votes = evidence.pages[0].votes if evidence is not None and evidence.pages else ()
    return Reply(probe, supported, votes[0].reasoning if votes else "")


def kinds_asked(replies: Sequence[Reply]) -> list[ChangeKind]:
    """Return the kinds of change among the replies, in their order."""
    asked = {reply.probe.change.kind for reply in replies}
    return [kind for kind in CHANGES if kind in asked]
