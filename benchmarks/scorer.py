"""Answers that a ``Scorer`` scores in a second with an instant judge, and the memory that it takes.

All calls are made at once, as a trainer makes them; each answer has a text of its own, so that no
judgment is reused. On a busy machine compare the processor time, which leaves out that of the
scripts' processes.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from instant_judge import InstantClient
from measuring import show, title
from processes import memory_bytes
from throughput import SCRIPT

from mind2web2 import Judge, Score, Scorer

TARGET_A_SECOND = 60
MEGABYTE = 1024**2
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum; answer {number}. " * 40


async def measure(scripts: Path, answers: int) -> None:
    """Score the answers and print rate and memory."""
    judge = Judge(client=InstantClient(), model="o4-mini")
    memory_mb: list[float] = []
    async with Scorer(judge=judge, scripts=scripts) as scorer:

        async def one(number: int) -> None:
            outcome = await scorer.score("town", ANSWER.format(number=number))
            if not isinstance(outcome, Score) or outcome.score != 1.0:
                raise SystemExit(f"not every answer has its points: {outcome}")
            if number % (answers // 10) == 0:
                memory_mb.append(memory_bytes() / MEGABYTE)

        await one(-1)  # loads libraries
        started_s, processor_s = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one(number) for number in range(answers)))
        took_s, processor_s = (
            time.perf_counter() - started_s,
            time.process_time() - processor_s,
        )
    show(
        "an answer",
        took_s / answers,
        1 / TARGET_A_SECOND,
        f"{answers / took_s:.0f}/s",
    )
    show(
        "processor time of this process, each answer",
        processor_s / answers,
        1 / TARGET_A_SECOND,
    )
    title(
        f"  memory, each tenth of the way: {', '.join(f'{size:.0f}' for size in memory_mb)} MB "
        "(target: flat)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--checks", type=int, default=8)
    options = parser.parse_args()
    title(
        f"{options.answers} answers at once, {options.checks} checks each, a judge that answers at "
        "once"
    )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "town.py"
        script.write_text(SCRIPT.format(task="town", checks=options.checks))
        asyncio.run(measure(Path(folder), options.answers))


if __name__ == "__main__":
    main()
