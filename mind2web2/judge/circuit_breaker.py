"""Circuit breaker: stop sending requests once the judge rejects the API key, model or base URL."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from types import TracebackType

from mind2web2.errors import JudgeAccessError
from mind2web2.llm_client.chat import Limit

log = logging.getLogger(__name__)

# A firewall may reject the text of one answer or of one task, but hardly that of so many answers in a row.
_ENOUGH_ANSWERS = 10
# After so many rejected answers requests go one at a time: before the first reply of the run, and later.
_SUSPECTED_AT_FIRST, _SUSPECTED_LATER = 1, 3


class CircuitBreaker:
    """Shared by all requests of a run.

    A rejection that concerns all requests (``is_for_all``) opens the circuit at once. Any other may be due to
    one prompt: it opens the circuit only if many answers in a row were rejected and no request is in flight.

    Args:
        one_by_one: whether suspicion makes requests go one at a time, so that a wrong model costs few
            requests. Not for batch jobs, as each request would wait for its own job.
    """

    def __init__(self, *, one_by_one: bool = True) -> None:
        self._suspected_at = _SUSPECTED_AT_FIRST if one_by_one else _ENOUGH_ANSWERS
        self._reason: JudgeAccessError | None = None
        self._latest_rejection: JudgeAccessError | None = None
        self._rejected_answers: set[tuple[str, str]] = set()
        self._in_flight = 0
        self._change = asyncio.Event()

    @property
    def reason(self) -> JudgeAccessError | None:
        """Return why the circuit is open, ``None`` while requests are sent."""
        return self._reason

    def note_reply(self) -> None:
        """Note that the judge has answered a request."""
        self._suspected_at = max(self._suspected_at, _SUSPECTED_LATER)
        self._rejected_answers.clear()
        self._notify()

    def note_failure(self, error: BaseException, source: tuple[str, str]) -> None:
        """Note a failed question of an answer, given as task id and answer name."""
        if not isinstance(error, JudgeAccessError):
            return
        if error.is_for_all:
            self._open(error)
        else:
            self._latest_rejection = error
            self._rejected_answers.add(source)

    def guarded(self, limit: Limit) -> Limit:
        """Return the limit with this check; entering raises ``JudgeAccessError`` if the circuit is open."""
        return _GuardedLimit(self, limit)

    def enter(self) -> asyncio.Event | None:
        """Count a request as in flight; return an event instead if it must wait for the replies to others."""
        rejected = len(self._rejected_answers)
        if self._reason is None and self._in_flight and rejected >= self._suspected_at:
            return self._change
        if self._latest_rejection is not None and rejected >= _ENOUGH_ANSWERS:
            self._open(self._latest_rejection)
        if self._reason is not None:
            raise JudgeAccessError(str(self._reason), is_for_all=self._reason.is_for_all)
        self._in_flight += 1
        return None

    def leave(self, *, has_reply: bool) -> None:
        """Count a request as no longer in flight."""
        self._in_flight -= 1
        if has_reply:
            self.note_reply()
        else:
            self._notify()

    def _open(self, error: JudgeAccessError) -> None:
        if self._reason is None:
            self._reason = error
            log.info("no further request is sent reason=%s", error)
            self._notify()

    def _notify(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


class _GuardedLimit:
    """A limit that a request leaves again while it must wait for others."""

    def __init__(self, breaker: CircuitBreaker, limit: Limit) -> None:
        self._breaker, self._limit = breaker, limit

    async def __aenter__(self) -> None:
        while True:
            async with AsyncExitStack() as entered:
                await entered.enter_async_context(self._limit)
                change = self._breaker.enter()
                if change is None:
                    entered.pop_all()
                    return
            await change.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._breaker.leave(has_reply=error is None)
        await self._limit.__aexit__(kind, error, trace)
