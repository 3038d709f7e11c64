"""Several verifications that a script asks for at the same time; none of them waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mind2web2.verification import Sources, Verifier
from mind2web2.verification_tree import VerificationNode

BatchItem = tuple[str, Sources, VerificationNode | None, str | None]


class VerificationBatch:
    """Verifies ``(claim, sources, node, additional_instruction)`` tuples.

    Args:
        verifier: returns who verifies; what it raises stands in the place of a verdict.
        options: of all of them, as ``Verifier.verify`` takes them.
    """

    def __init__(
        self, verifier: Callable[[], Verifier], items: Sequence[BatchItem], options: dict[str, Any]
    ) -> None:
        self._verifier = verifier
        self._items = items
        self._options = options

    async def verdicts(self) -> list[bool | BaseException]:
        """Return the verdicts in input order, an exception in place of each that raised."""
        noted = self._noted()
        coroutines = [each for each in noted if not isinstance(each, Exception)]
        verdicts = iter(await asyncio.gather(*coroutines, return_exceptions=True))
        return [each if isinstance(each, Exception) else next(verdicts) for each in noted]

    def started(self) -> list[Coroutine[Any, Any, bool] | None]:
        """Note all of them and return the rest of the work, ``None`` where the arguments make no sense."""
        return [None if isinstance(each, Exception) else each for each in self._noted()]

    def _noted(self) -> list[Coroutine[Any, Any, bool] | Exception]:
        """Note all verifications before the first is under way."""
        noted: list[Coroutine[Any, Any, bool] | Exception] = []
        try:
            for claim, sources, node, words in self._items:
                given = {**self._options, "additional_instruction": words}
                try:
                    noted.append(self._verifier().noted(claim, node, sources, **given))
                except Exception as error:
                    # It stands in the place of that verdict (contract.md).
                    noted.append(error)
        except BaseException:
            for each in noted:
                if not isinstance(each, Exception):
                    each.close()
            raise
        return noted
