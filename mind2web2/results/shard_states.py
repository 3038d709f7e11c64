"""Which shards a folder of results holds, and whether each has ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from mind2web2.results.shards import MAX_SHARDS, Shard, is_shard
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.program import program

SHARDS_NAME = "shards.json"
ShardState = Literal["started", "ended"]


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
