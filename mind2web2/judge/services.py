"""Replies of map and paper services, stored beside the judgments.

A question thus has one reply.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

from mind2web2.errors import JudgmentMissingError
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.record import ServiceAnswer
from mind2web2.judge.service_request import AskService, ServiceRequest
from mind2web2.judge.store import JudgmentStore


class ServiceAnswers:
    """Answers requests of scripts from the store, or by the service, whose reply is stored.

    Args:
        overwrite: reuse only replies of this run.
        is_replay: send no requests.
    """

    def __init__(self, store: JudgmentStore, *, overwrite: bool, is_replay: bool) -> None:
        self._store = store
        self._overwrite = overwrite
        self._is_replay = is_replay
        self._asked_now: set[str] = set()
        # Concurrent equal requests wait for the first one's answer.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(
        self, request: ServiceRequest, ask: AskService, source: tuple[str, str]
    ) -> tuple[Any, ServiceAnswer]:
        """Return an answer and its record.

        Raises:
            JudgmentMissingError: a replay lacks it.
        """
        key = _key(request)
        async with self._locks.setdefault(key, asyncio.Lock()):
            stored = None
            if not self._overwrite or key in self._asked_now:
                stored = await self._store.get(key)
            text = (
                stored.text
                if stored is not None
                else await self._ask_once(request, key, ask, source)
            )
        record = ServiceAnswer(request=request.in_words(), key=key, sha256=_sha256(text))
        return json.loads(text), record

    async def describe_changes(self, recorded: Iterable[ServiceAnswer]) -> list[str]:
        """Return a phrase for each recorded answer that differs from the store's."""
        found = []
        for answer in recorded:
            stored = await self._store.get(answer.key)
            if stored is not None and _sha256(stored.text) != answer.sha256:
                found.append(f"the answer to {answer.request} changed")
        return found

    async def _ask_once(
        self,
        request: ServiceRequest,
        key: str,
        ask: AskService,
        source: tuple[str, str],
    ) -> str:
        if self._is_replay:
            raise JudgmentMissingError(
                f"no stored answer to {request.in_words()} ({source[0]}/{source[1]}); evaluate "
                "with a judge instead of --llm_provider replay"
            )
        text = json.dumps(await ask(), sort_keys=True)
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        answer = Judgment(
            key=key,
            endpoint=request.service,
            model="",
            outcome="reply",
            text=text,
            created=created,
            task_id=source[0],
            answer_name=source[1],
            purpose="service",
            claim=request.in_words(),
        )
        if not self._overwrite:
            return (await self._store.keep(answer)).text
        await self._store.put(answer)
        self._asked_now.add(key)
        return text


def _key(request: ServiceRequest) -> str:
    asked = [
        request.service,
        request.name,
        list(request.arguments),
        dict(request.keywords),
    ]
    return _sha256(json.dumps(asked, sort_keys=True))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
