"""Replies of map and paper services, stored beside the judgments.

A question thus has one reply.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from mind2web2.errors import JudgmentMissingError
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.service_request import AskService, ServiceRequest
from mind2web2.rubric.verdicts import ServiceAnswer
from mind2web2.utils.files import text_sha256


async def answer_service(
    judge: CachingJudge, request: ServiceRequest, ask: AskService, source: tuple[str, str]
) -> tuple[Any, ServiceAnswer]:
    """Return the stored answer to a script's request, or the service's, and its record.

    Raises:
        JudgmentMissingError: a replay lacks it.
    """
    key = _key(request)
    async with judge.turn_of(key):
        stored = await judge.stored(key, request.service)
        if stored is None:
            if judge.is_replay:
                raise JudgmentMissingError(
                    f"no stored answer to {request.in_words()} ({source[0]}/{source[1]}); evaluate "
                    "with a judge instead of --llm_provider replay"
                )
            answer = json.dumps(await ask(), sort_keys=True)
            stored = await judge.keep(_as_judgment(request, key, answer, source), None)
    record = ServiceAnswer(request=request.in_words(), key=key, sha256=text_sha256(stored.text))
    return json.loads(stored.text), record


def _as_judgment(
    request: ServiceRequest, key: str, answer: str, source: tuple[str, str]
) -> Judgment:
    return Judgment(
        key=key,
        endpoint=request.service,
        model="",
        outcome="reply",
        text=answer,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        task_id=source[0],
        answer_name=source[1],
        purpose="service",
        claim=request.in_words(),
    )


def _key(request: ServiceRequest) -> str:
    asked = [
        request.service,
        request.name,
        list(request.arguments),
        dict(request.keywords),
    ]
    return text_sha256(json.dumps(asked, sort_keys=True))
