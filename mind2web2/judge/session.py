"""What all judges share: their failure, their ledger, and a script's own requests."""

from __future__ import annotations

import logging
from dataclasses import replace

from mind2web2.errors import (
    ContextTooLongError,
    JudgmentMissingError,
)
from mind2web2.judge.failures import FailureLatch
from mind2web2.judge.protocol import (
    Judge,
    JudgeLedger,
    Noted,
    QuestionContext,
)
from mind2web2.llm_client.chat import (
    ChatReply,
    ChatRequest,
    Limit,
    Usage,
)
from mind2web2.llm_client.messages import with_fewer_images
from mind2web2.rubric.verdicts import Rejection

log = logging.getLogger(__name__)


class JudgeSession(FailureLatch):
    """The part of a ``Judge`` that every implementation shares: failure and ledger.

    Attributes:
        ledger: usage and notes.
        shows_images: whether the judge is shown images.
    """

    def __init__(self, usage: Usage, *, shows_images: bool = True) -> None:
        self.ledger = JudgeLedger(usage)
        self.shows_images = shows_images

    def model_for(self, requested: str) -> str:
        """Return the requested model: most clients take any."""
        return requested

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""
        getattr(self.ledger, kind).append(text)

    def _note_rejection(self, reply: ChatReply, subject: QuestionContext) -> None:
        self.ledger.rejections.append(Rejection(subject.node, subject.page, str(reply.declined)))


def with_second(first: ChatReply, second: ChatReply) -> ChatReply:
    """Return the reply to a request that was sent again, with what both cost.

    A judge that declines is asked once more: content filters are not deterministic.
    """
    return replace(
        second,
        usage=first.usage + second.usage,
        attempts=first.attempts + second.attempts,
    )


async def ask_own(
    judge: Judge, request: ChatRequest, subject: QuestionContext, limit: Limit | None
) -> ChatReply:
    """Send a script's own request.

    Raises:
        JudgeError: as ``Judge.ask``; every error is a permanent failure.
    """
    if not judge.shows_images:
        request = replace(request, messages=with_fewer_images(request.messages, 0))
    try:
        return await judge.ask(request, subject, limit)
    except (JudgmentMissingError, ContextTooLongError) as error:
        raise judge.fail(error) from error.__cause__
