"""Questions that are sent more than once: declined ones, and those with images too many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from mind2web2.errors import (
    ContextTooLongError,
    ImagesRefusedError,
    JudgmentMissingError,
)
from mind2web2.judge.protocol import Judge, QuestionContext
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.llm_client.image_limits import with_fewer_images

ChatCall = Callable[[ChatRequest, Limit], Awaitable[ChatReply]]


async def ask_twice_if_declined(
    chat: ChatCall, request: ChatRequest, limit: Limit
) -> ChatReply:
    """Send a request, and once more if the judge declined: content filters are not deterministic."""
    first = await chat(request, limit)
    if first.declined is None:
        return first
    second = await chat(request, limit)
    return replace(
        second,
        usage=first.usage + second.usage,
        attempts=first.attempts + second.attempts,
    )


async def ask_within_limits(
    judge: Judge, request: ChatRequest, subject: QuestionContext, limit: Limit | None
) -> ChatReply:
    """Send a script's own request, without the images that exceed the judge's limit.

    Raises:
        JudgeError: as ``Judge.ask``; every error is a permanent failure.
    """
    recorded = list(judge.recorded_limits)
    shown = judge.image_limit
    while True:
        # A script's own images are not scaled.
        count = 0 if shown.max_side_px is not None else shown.max_images
        fewer = request
        if count is not None:
            fewer = replace(
                request, messages=with_fewer_images(request.messages, count)
            )
        try:
            return await judge.ask(fewer, subject, limit)
        except ImagesRefusedError as error:
            if count == 0:
                raise judge.fail(error) from error.__cause__
            shown = judge.image_limit
        except JudgmentMissingError as error:
            if not recorded:
                raise judge.fail(error) from error.__cause__
            shown = shown.merged(recorded.pop(0))
        except ContextTooLongError as error:
            raise judge.fail(error) from error.__cause__
