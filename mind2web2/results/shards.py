"""Parts into which several machines divide a run's answers, and which of them a folder has."""

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
    from mind2web2.results.answers import TaskWork


MAX_SHARDS = 10_000
_SHARD = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})", re.ASCII)
SHARDS_NAME = "shards.json"
ShardState = Literal["started", "ended"]


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
        numbers = _SHARD.fullmatch(text)
        if numbers is None or not int(numbers[1]) <= int(numbers[2]) <= MAX_SHARDS:
            raise ValueError(f"{text!r} is not a shard such as 3/20, from 1/20 to 20/20")
        return cls(int(numbers[1]), int(numbers[2]))

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
        shares = []
        for task in work:
            held = {place for place in task.places if self.holds(*place)}
            others = frozenset(name for _, name in task.places - held)
            if held:
                shares.append(replace(task.only(held), elsewhere=others))
        return shares


def shard_states(agent_results: Path) -> dict[str, str]:
    """Return which shards an agent's results are from, and whether each has ended.

    Empty for a whole run.
    """
    try:
        states = json.loads(read_regular_file(agent_results / SHARDS_NAME))["shards"]
        return {str(name): str(state) for name, state in states.items() if is_shard(name)}
    except (
        OSError,
        ValueError,
        RecursionError,
        LookupError,
        TypeError,
        AttributeError,
    ):
        return {}


def shard_test(agent_results: Path) -> Callable[[str, str], bool]:
    """Return the test whether an answer belongs to the shards of these results.

    All do in a whole run.
    """
    shards = [Shard(*map(int, name.split("/"))) for name in shard_states(agent_results)]
    return lambda task_id, answer_name: (
        not shards or any(shard.holds(task_id, answer_name) for shard in shards)
    )


def shards_text(states: Mapping[str, str]) -> str:
    """Return the content of ``shards.json``."""
    return (
        json.dumps({"shards": {name: states[name] for name in sorted(states, key=natural_key)}})
        + "\n"
    )


def shard_caution(agent_results: Path) -> str | None:
    """Return which shards an agent's results lack, in one line; ``None`` where they lack none."""
    states = shard_states(agent_results)
    ended = {name for name, state in states.items() if state == "ended"}
    wanted = {
        count: {f"{number}/{count}" for number in range(1, min(int(count), MAX_SHARDS) + 1)}
        for count in {name.partition("/")[2] for name in states}
    }
    if not states or any(names <= ended for names in wanted.values()):
        return None
    started = name_list(states.keys() - ended)
    unfinished = f", of which these have not ended: {started}" if states.keys() - ended else ""
    return (
        f"these are figures of a part only: results of shard {name_list(states)}{unfinished}; "
        f"{program()} import results brings the results of all shards together"
    )
