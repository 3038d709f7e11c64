"""How a run keeps what the judge said: nothing that was paid for is given up while the run lasts."""

from __future__ import annotations

import asyncio

from mind2web2.errors import JudgmentStoreError
from mind2web2.judgment import Judgment
from mind2web2.judgments import JudgmentStore
from mind2web2.utils.tasks import to_the_end


class ReplyKeeper:
    """Writes judgments to the store, and holds on to those that a full disk does not take.

    Until those are written nothing more should be asked: what comes back could not be kept either.
    """

    def __init__(self, store: JudgmentStore) -> None:
        self._store = store
        self._unwritten: dict[str, Judgment] = {}
        self._writing = asyncio.Lock()

    @property
    def unwritten(self) -> int:
        """Return how many judgments the store did not take yet."""
        return len(self._unwritten)

    async def keep(self, judgment: Judgment) -> None:
        """Write a judgment, even if the caller is cancelled meanwhile.

        Raises:
            JudgmentStoreError: it cannot be written now.
        """
        await to_the_end(self._write(judgment))

    async def write_rest(self) -> None:
        """Write what could not be written so far.

        Raises:
            JudgmentStoreError: it still cannot.
        """
        if self._unwritten:
            async with self._writing:
                for judgment in list(self._unwritten.values()):
                    await to_the_end(self._write(judgment))

    async def _write(self, judgment: Judgment) -> None:
        try:
            await self._store.put(judgment)
        except JudgmentStoreError:
            self._unwritten[judgment.key] = judgment
            raise
        self._unwritten.pop(judgment.key, None)
