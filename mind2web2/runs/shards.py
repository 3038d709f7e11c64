"""Parts into which several machines divide a run's answers, and which of them a folder of results holds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.program import program

if TYPE_CHECKING:
    # Which loads much: settings name a shard before anything is loaded.
    from mind2web2.runs.answers import TaskWork

SHARDS_NAME = "shards.json"
MOST_SHARDS = 10_000
ShardState = Literal["started", "ended"]
_SHARD = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` parts into which a stable hash divides all answers; ``number`` counts from 1."""

    number: int
    count: int

    @classmethod
    def parsed(cls, text: str) -> Shard:
        """Return the shard that a text such as ``3/20`` names. Raises ValueError: it names none."""
        found = _SHARD.fullmatch(text)
        if found is None or not int(found[1]) <= int(found[2]) <= MOST_SHARDS:
            raise ValueError(f"{text!r} is not a shard such as 3/20, from 1/20 to 20/20")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, task_id: str, answer_name: str) -> bool:
        """Tell whether this shard judges an answer; all machines agree on that."""
        named = f"{task_id}/{answer_name}".encode("utf-8", "surrogateescape")
        return int.from_bytes(hashlib.sha256(named).digest()[:8]) % self.count == self.number - 1

    def share_of(self, work: Sequence[TaskWork]) -> list[TaskWork]:
        """Return the tasks of which this shard judges any answer, with these answers alone."""
        shares = [self._share_of(task) for task in work]
        return [share for share in shares if share.answers or share.failed_runs or share.stopped_runs]

    def _share_of(self, task: TaskWork) -> TaskWork:
        def own(reasons: Mapping[str, str]) -> dict[str, str]:
            return {name: why for name, why in reasons.items() if self.holds(task.task_id, name)}

        names = {*(answer.name for answer in task.answers), *task.failed_runs, *task.stopped_runs}
        return replace(
            task,
            answers=tuple(answer for answer in task.answers if self.holds(task.task_id, answer.name)),
            failed_runs=own(task.failed_runs),
            stopped_runs=own(task.stopped_runs),
            elsewhere=frozenset(name for name in names if not self.holds(task.task_id, name)),
        )


def shard_states(agent_results: Path) -> dict[str, str]:
    """Return which shards an agent's results are from, and whether each has ended; empty for a whole run."""
    try:
        states = json.loads(read_regular_file(agent_results / SHARDS_NAME))["shards"]
        return {str(name): str(state) for name, state in states.items() if _SHARD.fullmatch(name)}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def shard_test(agent_results: Path) -> Callable[[str, str], bool]:
    """Return the test whether an answer belongs to the shards of these results; all do in a whole run."""
    shards = [Shard(*map(int, name.split("/"))) for name in shard_states(agent_results)]
    return lambda task_id, answer_name: (
        not shards or any(shard.holds(task_id, answer_name) for shard in shards)
    )


def shards_text(states: Mapping[str, str]) -> str:
    """Return the content of ``shards.json``."""
    return json.dumps({"shards": {name: states[name] for name in sorted(states, key=natural_key)}}) + "\n"


def shard_caution(agent_results: Path) -> str | None:
    """Return which shards an agent's results lack, in one line; ``None`` where they lack none."""
    states = shard_states(agent_results)
    ended = {name for name, state in states.items() if state == "ended"}
    wanted = {
        count: {f"{number}/{count}" for number in range(1, min(int(count), MOST_SHARDS) + 1)}
        for count in {name.partition("/")[2] for name in states}
    }
    if not states or any(names <= ended for names in wanted.values()):
        return None
    started = name_list(states.keys() - ended)
    unfinished = f", of which these have not ended: {started}" if states.keys() - ended else ""
    return (
        f"these are figures of a part only: results of shard {name_list(states)}{unfinished}; "
        f"{program()} merge brings the results of all shards together"
    )
