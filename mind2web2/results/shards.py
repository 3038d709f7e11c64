"""Parts into which several machines divide a run's answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # This module loads much, and settings name a shard before anything is loaded.
    from mind2web2.results.answers import TaskWork

MAX_SHARDS = 10_000
_SHARD = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})", re.ASCII)


def is_shard(name: str) -> bool:
    """Return whether a text has the form of a shard's name."""
    return _SHARD.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` parts into which a stable hash divides all answers.

    ``number`` counts from 1.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that a text such as ``3/20`` names. Raises ValueError: it names none."""
        found = _SHARD.fullmatch(text)
        if found is None or not int(found[1]) <= int(found[2]) <= MAX_SHARDS:
            raise ValueError(f"{text!r} is not a shard such as 3/20, from 1/20 to 20/20")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def of(cls, task_id: str, answer_name: str, count: int) -> Shard:
        """Return which of ``count`` shards judges an answer; all machines agree on it."""
        place = f"{task_id}/{answer_name}".encode("utf-8", "surrogateescape")
        digest = int.from_bytes(hashlib.sha256(place).digest()[:8])
        return cls(digest % count + 1, count)

    def holds(self, task_id: str, answer_name: str) -> bool:
        """Tell whether this shard judges an answer."""
        return Shard.of(task_id, answer_name, self.count) == self

    def share_of(self, work: Sequence[TaskWork]) -> list[TaskWork]:
        """Return the tasks of which this shard judges any answer, with these answers alone."""
        shares = [self._share_of(task) for task in work]
        return [share for share in shares if share.answers or share.failed_runs]

    def _share_of(self, task: TaskWork) -> TaskWork:
        names = {answer.name for answer in task.answers} | task.failed_runs.keys()
        held = {name for name in names if self.holds(task.task_id, name)}
        return replace(
            task,
            answers=tuple(answer for answer in task.answers if answer.name in held),
            failed_runs={name: why for name, why in task.failed_runs.items() if name in held},
            elsewhere=frozenset(names - held),
        )
