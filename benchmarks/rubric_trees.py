"""Seconds to build, verify and score rubric trees of 2,000 and 8,000 leaves with an instant judge.

Each leaf takes two judge requests, as the default majority vote does.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from instant_judge import InstantClient, InstantProvider
from measuring import median_s, seconds, show, title

from mind2web2 import Evaluator, VerificationNode
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.utils.logging_setup import cleanup_logger, create_logger

LEAVES_PER_PARENT = 10
SIZES = (2000, 8000)
RUNS = 3
TARGET_S = 1.0
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum. " * 60

ClientAndLogger = tuple[Any, logging.Logger | None]
# Takes a folder, the same for all runs of a measurement.
Judge = Callable[[Path], AbstractContextManager[ClientAndLogger]]


def build(evaluator: Evaluator, leaf_count: int) -> list[VerificationNode]:
    """Add the parents and their leaves and return the leaves; the first of each ten is critical."""
    leaves = []
    for number in range(leaf_count // LEAVES_PER_PARENT):
        parent = evaluator.add_parallel(f"item_{number}", f"item {number} meets the task")
        for position in range(LEAVES_PER_PARENT):
            name = f"item_{number}_point_{position}"
            leaves.append(
                evaluator.add_leaf(name, f"point {position}", parent, critical=position == 0)
            )
    return leaves


def build_only(leaf_count: int) -> None:
    """Build, score and summarise a tree that nobody verifies."""
    evaluator = Evaluator()
    evaluator.initialize("trees", client=InstantClient())
    build(evaluator, leaf_count)
    evaluator.get_summary()


def claim(leaf: VerificationNode) -> str:
    """Return a claim that no other leaf has."""
    return f"The answer names {leaf.id} and gives its year, its address and its opening hours."


async def evaluate(
    client: Any, leaf_count: int, in_batch: bool, logger: logging.Logger | None
) -> None:
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


@contextmanager
def scripted(_: Path) -> Iterator[ClientAndLogger]:
    """Give a client that has only ``async_response``."""
    yield InstantClient(), None


@contextmanager
def judge_of_a_run(store_path: Path | None) -> Iterator[Any]:
    """Give the client that a run hands to scripts."""
    with JudgmentStore(store_path) as store:
        run = CachingJudge(JudgeSpec("o4-mini"), InstantProvider(), store)
        yield AnswerJudge(run, "trees", "answer_1.md")


@contextmanager
def in_memory(_: Path) -> Iterator[ClientAndLogger]:
    """Give a run's judge that keeps judgments in memory."""
    with judge_of_a_run(None) as client:
        yield client, None


@contextmanager
def in_file(folder: Path) -> Iterator[ClientAndLogger]:
    """Give all that a run has: judgments in a file, and the answer's two logs."""
    logger, _ = create_logger("answer_1", folder / "logs", enable_console=False)
    try:
        with judge_of_a_run(folder / FILE_NAME) as client:
            yield client, logger
    finally:
        cleanup_logger(logger)


@contextmanager
def in_new_file(folder: Path) -> Iterator[ClientAndLogger]:
    """Give all that a run has when it begins."""
    with in_file(Path(tempfile.mkdtemp(dir=folder))) as given:
        yield given


def run_once(judge: Judge, folder: Path, leaf_count: int, in_batch: bool) -> float:
    """Evaluate an answer and return the seconds, without those for opening and closing files."""
    with judge(folder) as (client, logger):
        return seconds(lambda: asyncio.run(evaluate(client, leaf_count, in_batch, logger)))


def print_judge(name: str, judge: Judge) -> None:
    """Measure and print what verifying takes with one judge, after a run that does not count."""
    for in_batch in (False, True):
        smaller_s = None
        for leaf_count in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                run = partial(run_once, judge, Path(folder), leaf_count, in_batch)
                run()
                took_s = statistics.median(run() for _ in range(RUNS))
            how = "one batch" if in_batch else "one by one"
            remark = f"{took_s / smaller_s:.2f} times the smaller tree" if smaller_s else ""
            smaller_s = smaller_s or took_s
            show(
                f"{leaf_count}, {how}, {name}",
                took_s,
                TARGET_S * leaf_count / SIZES[0],
                remark,
            )


def main() -> None:
    """Measure and print."""
    title(
        f"Trees of {SIZES[0]} and {SIZES[1]} leaves, {LEAVES_PER_PARENT} a parent, median of {RUNS}"
    )
    for leaf_count in SIZES:
        show(
            f"{leaf_count}, built and scored only",
            median_s(partial(build_only, leaf_count), RUNS),
        )
    print_judge("scripted client", scripted)
    print_judge("run's judge, in memory", in_memory)
    print_judge("run's judge, file and logs", in_new_file)
    # The run that does not count leaves its judgments in the file.
    print_judge("run's judge, all stored before", in_file)


if __name__ == "__main__":
    main()
