"""The replies that batch jobs have brought and nobody has used yet, on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from mind2web2.batch_state import BatchFolder, JobRecord, LinePlace, Question

# Tells whether the judgment with a key is stored.
IsStored = Callable[[str], Awaitable[bool]]


class WaitingReplies:
    """Where the reply to each question is, until it is taken.

    Args:
        folder: of the jobs.
        is_stored: a reply to what it knows is not needed any more.
    """

    def __init__(self, folder: BatchFolder, is_stored: IsStored | None) -> None:
        self._folder = folder
        self._is_stored = is_stored
        self._places: dict[Question, list[LinePlace]] = {}
        self._over: list[JobRecord] = []

    def take(self, question: Question) -> LinePlace | None:
        """Return where a reply to a question is, for one who asks."""
        places = self._places.get(question)
        return places.pop(0) if places else None

    def put_back(self, question: Question, place: LinePlace) -> None:
        """Keep a reply that was taken and of which nothing was made."""
        self._places.setdefault(question, []).insert(0, place)

    def add(self, record: JobRecord, places: Mapping[str, LinePlace]) -> None:
        """Keep what a job has brought."""
        for question in record.questions.items():
            if question[0] in places:
                self._places.setdefault(question, []).append(places[question[0]])
        self._over.append(record)

    async def recall(self, record: JobRecord) -> None:
        """Keep what a job of an earlier run has brought that may be of use."""
        found = await asyncio.to_thread(self._folder.places, record)
        # What has met an error cost nothing, and may pass today.
        places = {key: place for key, place in found.items() if place.is_reply}
        if self._is_stored is not None:
            # A run that was stopped has forgotten nothing, although it had stored some.
            places = {key: place for key, place in places.items() if not await self._is_stored(key)}
        self.add(record, places)
        await asyncio.to_thread(self._keep_only_untaken, record)

    def forget_used(self) -> None:
        """Remove from disk what was taken."""
        for record in self._over:
            self._keep_only_untaken(record)

    def _keep_only_untaken(self, record: JobRecord) -> None:
        left = {question for question in record.questions.items() if self._places.get(question)}
        if left != set(record.questions.items()):
            self._folder.keep_only(record, left)
