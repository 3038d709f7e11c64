"""A judge that is not to be had with the run's key, model and address: found out by few requests."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType

from mind2web2.errors import JudgeAccessError
from mind2web2.judge.protocol import CheckedLimit
from mind2web2.llm_client.chat import Limit

log = logging.getLogger(__name__)

# A firewall may deny an answer for what it says, and the answers of a task for what the task says, but hardly
# so many in a row while nobody is replied to.
_ENOUGH_ANSWERS = 10
# From so many on requests go one at a time until one is replied to: while none in the run was, and later.
_DOUBTED_AT_FIRST = 1
_DOUBTED_LATER = 3


class _NotNowError(Exception):
    """What is under way may tell whether the judge can be had; stays inside this module."""

    def __init__(self, change: asyncio.Event) -> None:
        super().__init__("the replies to other requests come first")
        self.change = change


class Access:
    """Whether the judge lets the run in, as far as its replies tell; shared by all of the run's requests.

    A denial for all ends the run's requests at once. Another may be about one request: it does so only where
    many answers met one, nobody was replied to since, and nothing is under way that may still be.

    Args:
        one_by_one: whether requests go one at a time once there is doubt, so that a wrong model costs each
            further answer no more than one; not where each would have to wait for a batch job of its own.
    """

    def __init__(self, *, one_by_one: bool = True) -> None:
        self._doubted_at = _DOUBTED_AT_FIRST if one_by_one else _ENOUGH_ANSWERS
        self._denial: JudgeAccessError | None = None
        self._last_doubt: JudgeAccessError | None = None
        self._denied_answers: set[tuple[str, str]] = set()
        self._under_way = 0
        self._change = asyncio.Event()

    @property
    def denial(self) -> JudgeAccessError | None:
        """Return why the judge rejects all requests, ``None`` as long as it may not."""
        return self._denial

    def prove(self) -> None:
        """Note that the judge has dealt with a request."""
        self._doubted_at = max(self._doubted_at, _DOUBTED_LATER)
        self._denied_answers.clear()
        self._wake()

    def note(self, error: BaseException, source: tuple[str, str]) -> None:
        """Note how a question has failed, given the task id and answer name that it was asked for."""
        if not isinstance(error, JudgeAccessError):
            return
        if error.is_for_all:
            self._deny(error)
        else:
            self._last_doubt = error
            self._denied_answers.add(source)

    def limit(self, limit: Limit) -> Limit:
        """Return a limit that lets in only who may send a request by what is known then.

        It raises ``JudgeAccessError`` once access was denied, also for those who were waiting.
        """
        return _Door(self, limit)

    def let_in(self) -> None:
        """Count one more request as under way; raises for who is not to send one now, or ever."""
        denied = len(self._denied_answers)
        if self._denial is None and self._under_way and denied >= self._doubted_at:
            raise _NotNowError(self._change)
        if self._last_doubt is not None and denied >= _ENOUGH_ANSWERS:
            self._deny(self._last_doubt)
        if self._denial is not None:
            raise JudgeAccessError(str(self._denial), is_for_all=self._denial.is_for_all)
        self._under_way += 1

    def left(self, *, is_replied_to: bool) -> None:
        """Count a request as under way no more."""
        self._under_way -= 1
        if is_replied_to:
            self.prove()
        else:
            self._wake()

    def _deny(self, error: JudgeAccessError) -> None:
        if self._denial is None:
            self._denial = error
            log.info("nothing more is sent reason=%s", error)
            self._wake()

    def _wake(self) -> None:
        """Let whoever waits look again."""
        self._change.set()
        self._change = asyncio.Event()


class _Door:
    """A limit that whoever is not let in yet leaves to others meanwhile."""

    def __init__(self, access: Access, limit: Limit) -> None:
        self._access = access
        self._limit = CheckedLimit(limit, access.let_in)

    async def __aenter__(self) -> None:
        while True:
            try:
                return await self._limit.__aenter__()
            except _NotNowError as refusal:
                change = refusal.change
            await change.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._access.left(is_replied_to=error is None)
        await self._limit.__aexit__(kind, error, trace)
