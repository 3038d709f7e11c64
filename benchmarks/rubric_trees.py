"""Seconds to build, verify and score rubric trees of 2,000 and 8,000 leaves with an instant judge.

Each leaf takes two judge requests, as the default majority vote does.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from instant_judge import InstantClient, InstantProvider
from measuring import show, title

from mind2web2 import Evaluator, VerificationNode
from mind2web2.judgments import JudgmentStore
from mind2web2.recorded_judge import AnswerJudge, JudgeSettings, RecordedJudge
from mind2web2.utils.logging_setup import cleanup_logger, create_logger

LEAVES_PER_PARENT = 10
SIZES = (2000, 8000)
RUNS = 5
TARGET_S = 1.0
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum. " * 60

Build = Callable[[Evaluator, int], list[VerificationNode]]


def build(evaluator: Evaluator, leaf_count: int) -> list[VerificationNode]:
    """Add the parents and their leaves and return the leaves; the first of each ten is critical."""
    leaves = []
    for number in range(leaf_count // LEAVES_PER_PARENT):
        parent = evaluator.add_parallel(f"item_{number}", f"item {number} meets the task")
        for position in range(LEAVES_PER_PARENT):
            name = f"item_{number}_point_{position}"
            leaves.append(evaluator.add_leaf(name, f"point {position}", parent, critical=position == 0))
    return leaves


def claim(leaf: VerificationNode) -> str:
    """Return a claim that no other leaf has."""
    return f"The answer names {leaf.id} and gives its year, its address and its opening hours."


async def evaluate(client: Any, leaf_count: int, in_batch: bool, logger: logging.Logger | None) -> None:
    """Evaluate an answer from the first node to the summary."""
    evaluator = Evaluator()
    evaluator.initialize("trees", client=client, answer=ANSWER, logger=logger)
    leaves = build(evaluator, leaf_count)
    if in_batch:
        await evaluator.batch_verify([(claim(leaf), None, leaf, None) for leaf in leaves])
    else:
        for leaf in leaves:
            await evaluator.verify(claim(leaf), leaf)
    if evaluator.get_summary()["final_score"] != 1.0:
        raise SystemExit("an instant judge supports every claim, and yet the score is not 1")


def build_only(leaf_count: int) -> None:
    """Build and score a tree that nobody verifies."""
    evaluator = Evaluator()
    evaluator.initialize("trees", client=InstantClient())
    build(evaluator, leaf_count)
    evaluator.get_summary()


@contextmanager
def scripted() -> Iterator[tuple[Any, None]]:
    """Give a client that has only ``async_response``."""
    yield InstantClient(), None


@contextmanager
def recorded(folder: Path | None) -> Iterator[tuple[Any, logging.Logger | None]]:
    """Give a run's judge: its store in memory, or in a file, then with the answer's two log files."""
    logger = None if folder is None else create_logger("answer_1", folder / "logs", False)[0]
    with JudgmentStore(None if folder is None else folder / "judgments.sqlite3") as store:
        run = RecordedJudge(JudgeSettings("openai", "o4-mini"), InstantProvider(), store)
        yield AnswerJudge(run, "trees", "answer_1.md"), logger
    if logger is not None:
        cleanup_logger(logger)


@contextmanager
def recorded_in_file() -> Iterator[tuple[Any, logging.Logger | None]]:
    """Give a run's judge with a new store in a file."""
    with tempfile.TemporaryDirectory() as folder, recorded(Path(folder)) as given:
        yield given


@contextmanager
def recorded_before(leaf_count: int) -> Iterator[tuple[Any, logging.Logger | None]]:
    """Give a run's judge whose store has all judgments already."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(1):
            with recorded(Path(folder)) as (client, logger):
                asyncio.run(evaluate(client, leaf_count, True, logger))
        with recorded(Path(folder)) as given:
            yield given


def median_run_s(judge: Callable[[], Any], leaf_count: int, in_batch: bool) -> float:
    """Return the median over several evaluations, each with a judge of its own."""
    took_s = []
    for _ in range(RUNS):
        with judge() as (client, logger):
            started = time.perf_counter()
            asyncio.run(evaluate(client, leaf_count, in_batch, logger))
            took_s.append(time.perf_counter() - started)
    return statistics.median(took_s)


def main() -> None:
    """Measure and print."""
    judges: dict[str, Callable[[int], Callable[[], Any]]] = {
        "scripted client": lambda _: scripted,
        "run's judge, store in memory": lambda _: lambda: recorded(None),
        "run's judge, store in a file, logs": lambda _: recorded_in_file,
        "run's judge, all stored before, logs": lambda leaf_count: lambda: recorded_before(leaf_count),
    }
    title(f"Trees: {SIZES[0]} and {SIZES[1]} leaves, {LEAVES_PER_PARENT} a parent, median of {RUNS}")
    smaller_s = 0.0
    for leaf_count in SIZES:
        started = time.perf_counter()
        build_only(leaf_count)
        show(f"{leaf_count} leaves built and scored", time.perf_counter() - started)
    for name, judge in judges.items():
        for in_batch in (False, True):
            for leaf_count in SIZES:
                took_s = median_run_s(judge(leaf_count), leaf_count, in_batch)
                how = "in one batch" if in_batch else "one by one"
                ratio = took_s / smaller_s if leaf_count != SIZES[0] else None
                smaller_s = took_s if ratio is None else smaller_s
                remark = "" if ratio is None else f"{ratio:.2f} times the smaller tree's"
                show(
                    f"{leaf_count} leaves, {how}, {name}",
                    took_s,
                    TARGET_S * leaf_count / SIZES[0],
                    remark,
                )


if __name__ == "__main__":
    main()
