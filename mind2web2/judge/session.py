"""The state that judges of one answer share.

It has failures, notes, and a script's own requests.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from mind2web2.errors import (
    ContextTooLongError,
    JudgmentMissingError,
)
from mind2web2.judge.failures import FailureLatch
from mind2web2.judge.protocol import Judge, JudgeLedger, Noted, QuestionContext
from mind2web2.judge.record import Rejection
from mind2web2.llm_client.chat import (
    NO_LIMIT,
    ChatReply,
    ChatRequest,
    ImageLimit,
    Limit,
    Message,
    Usage,
)
from mind2web2.llm_client.messages import with_fewer_images

log = logging.getLogger(__name__)


class JudgeSession(FailureLatch):
    """The part of a ``Judge`` that every implementation shares: failure, ledger and image limit.

    Attributes:
        ledger: usage and notes.
        image_limit: the known or configured limit of images in one question.
        recorded_limits: for a replay, the limits that the recorded run met, most images first.
    """

    recorded_limits: Sequence[ImageLimit] = ()

    def __init__(self, usage: Usage, image_limit: ImageLimit = NO_LIMIT) -> None:
        self.ledger = JudgeLedger(usage)
        self.image_limit = image_limit

    def model_for(self, requested: str) -> str:
        """Return the requested model: most clients take any."""
        return requested

    def recorded_skip(self, _subject: QuestionContext, skip_reason: str | None) -> str | None:
        """Return the reason as it is: only scripts' processes have records."""
        return skip_reason

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

    Runs of earlier versions may have shown fewer images; a replay looks for their questions, too.

    Raises:
        JudgeError: as ``Judge.ask``; every error is a permanent failure.
    """
    missing = JudgmentMissingError("no stored judgment")
    for images in (judge.image_limit, *judge.recorded_limits):
        asked = replace(request, messages=_within(request, images))
        try:
            return await judge.ask(asked, subject, limit)
        except JudgmentMissingError as error:
            missing = error
        except ContextTooLongError as error:
            raise judge.fail(error) from error.__cause__
    raise judge.fail(missing) from missing.__cause__


def _within(request: ChatRequest, limit: ImageLimit) -> Sequence[Message]:
    # Earlier versions did not scale a script's own images.
    count = 0 if limit.max_side_px is not None else limit.max_images
    return request.messages if count is None else with_fewer_images(request.messages, count)
