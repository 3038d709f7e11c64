"""A million stored judgments: how long one look-up takes, and how many inserts a second there are.

In the agent's SQLite file, and in a PostgreSQL server that this starts (apt-get install
postgresql).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Protocol

import psycopg
from measuring import show, title

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from mind2web2.plugins.cluster.postgres import JudgmentDatabase
from servers.postgres_server import PostgresServer
from stored_judgments import judgment

from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import JudgmentStore

STORED = 1_000_000
LOOKUPS = 300
INSERTS = 5_000
AT_ONCE = 50
ENDPOINT = "openai http://localhost/v1"
REPLY = "The page says so. " * 40


class Store(Protocol):
    """The store of judgments that is measured."""

    async def find(self, key: str, endpoint: str) -> Judgment | None:
        """Return a judgment."""

    async def put(self, judgment: Judgment) -> None:
        """Store a judgment."""


class File(JudgmentStore):
    """The agent's own file."""

    async def find(self, key: str, endpoint: str) -> Judgment | None:
        """Return a judgment."""
        return await self.get(key, endpoint)


def stored(number: int) -> Judgment:
    """Return a judgment."""
    return judgment(
        key=f"{number * 0x9E3779B97F4A7C15 % (1 << 64):016x}",
        endpoint=ENDPOINT,
        text=REPLY,
    )


async def measure(name: str, store: Store) -> None:
    """Print the figures of one store."""
    lookups = []
    for number in range(0, STORED, STORED // LOOKUPS):
        started = time.perf_counter()
        assert await store.find(stored(number).key, ENDPOINT) is not None
        lookups.append(time.perf_counter() - started)
    show(f"{name}: look-up, median", statistics.median(lookups), 0.002)
    started = time.perf_counter()
    new = (stored(number) for number in range(STORED, STORED + INSERTS))

    async def insert() -> None:
        for each in new:
            await store.put(each)

    await asyncio.gather(*(insert() for _ in range(AT_ONCE)))
    rate = INSERTS / (time.perf_counter() - started)
    title(f"  {name}: {rate:.0f} inserts a second (target 500)")


def main() -> None:
    """Measure and print."""
    title(f"stores of {STORED} judgments, {AT_ONCE} inserts at once")
    with (
        tempfile.TemporaryDirectory() as folder,
        File(Path(folder) / "judgments.sqlite3") as file,
    ):
        for first in range(0, STORED, 50_000):
            file.add(stored(number) for number in range(first, first + 50_000))
        asyncio.run(measure("SQLite", file))
    with (
        PostgresServer(is_durable=True) as server,
        closing(JudgmentDatabase(server.url)) as database,
    ):
        with (
            psycopg.connect(server.url) as connection,
            connection.cursor() as cursor,
            cursor.copy("COPY mind2web2_judgments FROM STDIN") as copy,
        ):
            for each in map(stored, range(STORED)):
                copy.write_row((each.key, each.endpoint, each.model_dump_json(exclude_none=True)))
        asyncio.run(measure("PostgreSQL", database))


if __name__ == "__main__":
    main()
