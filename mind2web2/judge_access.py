"""A judge that is not to be had with the run's key, model and address: found out once, by few requests."""

from __future__ import annotations

import logging
from types import TracebackType

from mind2web2.errors import JudgeAccessError
from mind2web2.llm_client.chat import Limit

log = logging.getLogger(__name__)


class Access:
    """Whether the judge lets the run in, as far as its replies tell; shared by all of the run's requests."""

    def __init__(self) -> None:
        self._is_proved = False
        self._denial: JudgeAccessError | None = None

    def prove(self) -> None:
        """Note that the judge has answered a question."""
        self._is_proved = True

    def note(self, error: BaseException) -> None:
        """Note how a question has failed; a denial that may be about one request counts before any reply."""
        if not isinstance(error, JudgeAccessError) or self._denial is not None:
            return
        if error.is_for_all or not self._is_proved:
            self._denial = error
            log.info("nothing more is sent reason=%s", error)

    def check(self) -> None:
        """Raise ``JudgeAccessError`` if the judge has denied access."""
        if self._denial is not None:
            raise JudgeAccessError(str(self._denial), is_for_all=self._denial.is_for_all)

    def checked(self, limit: Limit) -> Limit:
        """Return a limit that lets nobody in once access was denied, not even those who were waiting."""
        return _CheckedLimit(limit, self)


class _CheckedLimit:
    def __init__(self, limit: Limit, access: Access) -> None:
        self._limit = limit
        self._access = access

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        try:
            self._access.check()
        except JudgeAccessError:
            await self._limit.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, trace)
