"""Seconds for a rubric of 5 items with 6 independent checks each, beside ``--sequential`` and its chain.

The script is written as published ones are: one awaited call after another. The judge is a server in a
process of its own that takes 200 ms, asked through the real SDK. In one form of the script the critical
node is decided by the script itself (an existence node), so that the longest chain is one judgment; in the
other it is judged as well, and the chain is two.
"""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import show, title
from mind2web2.scheduling.options import ExecutionOptions, execution_options
from slow_judge import SlowJudge

from mind2web2 import LLMClient
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.scripts.load import load_eval_script
from mind2web2.utils.garbage_collection import gc_frozen

LATENCY_S = 0.2
ITEMS = 5
CHECKS = 6
RUNS = 5
MOST_OF_CHAIN = 1.15
LEAST_RATIO = 15.0

SCRIPT = """\
from mind2web2 import Evaluator


async def check_item(evaluator, root, number):
    item = evaluator.add_parallel(f"item_{number}", f"item {number}", root)
    if GATE_IS_JUDGED:
        gate = evaluator.add_leaf(f"item_{number}_given", "it is given", item, critical=True)
        await evaluator.verify(f"The answer names item {number}.", gate)
    else:
        evaluator.add_existence_node(True, f"item_{number}_given", "it is given", parent=item)
    for check in range(CHECKS):
        leaf = evaluator.add_leaf(f"item_{number}_{check}", f"point {check}", item)
        await evaluator.verify(
            claim=f"Item {number} has property {check}, as the answer says in so many words.",
            node=leaf,
        )


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    root = evaluator.initialize("items", client=client, answer=answer, logger=logger, default_model=model)
    for number in range(ITEMS):
        await check_item(evaluator, root, number)
    return evaluator.get_summary()
"""
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum. " * 60


async def evaluate(
    script: Path, folder: Path, base_url: str, options: ExecutionOptions, runs: int
) -> tuple[float, int]:
    """Evaluate an answer several times and return the median seconds and the requests of one evaluation."""
    client = LLMClient("openai", is_async=True, base_url=base_url)
    took, requests = [], 0
    try:
        with gc_frozen():
            for number in range(runs + 1):
                with JudgmentStore(
                    folder / f"{options.sequential}_{number}_{FILE_NAME}"
                ) as store:
                    judge = CachingJudge(
                        JudgeSettings("openai", "o4-mini"), client, store
                    )
                    started = time.perf_counter()
                    await evaluate_once(script, judge, options)
                    took.append(time.perf_counter() - started)
                    requests = judge.usage.total().asked.requests
    finally:
        await client.close()
    # The first one opens the connections.
    return statistics.median(took[1:]), requests


async def evaluate_once(
    script: Path, judge: CachingJudge, options: ExecutionOptions
) -> None:
    """Evaluate an answer from loading its script to its score."""
    answer_judge = AnswerJudge(judge, "items", "answer_1.md", asyncio.Semaphore(200))
    given: dict[str, Any] = dict.fromkeys(
        ("agent_name", "answer_name", "cache", "semaphore")
    )
    with execution_options(options):
        summary = await load_eval_script(script)(
            client=answer_judge,
            answer=ANSWER,
            logger=logging.getLogger("benchmark"),
            **given,
        )
    if summary["final_score"] != 1.0:
        raise SystemExit("the judge supports every claim, and yet the score is not 1")


def measure(gate_is_judged: bool, base_url: str) -> None:
    """Measure one form of the script and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "items.py"
        settings = (
            f"ITEMS, CHECKS, GATE_IS_JUDGED = {ITEMS}, {CHECKS}, {gate_is_judged}\n"
        )
        script.write_text(settings + SCRIPT, encoding="utf-8")
        deferred_s, requests = asyncio.run(
            evaluate(script, folder, base_url, ExecutionOptions(), RUNS)
        )
        sequential_s, in_order = asyncio.run(
            evaluate(script, folder, base_url, ExecutionOptions(sequential=True), 1)
        )
    if requests > in_order:
        raise SystemExit(
            f"deferred, the script asked {requests} times instead of {in_order}"
        )
    chain_s = LATENCY_S * (2 if gate_is_judged else 1)
    title(
        f"The critical node is {'judged' if gate_is_judged else 'decided by the script'}; {requests} requests"
    )
    show("one after another (--sequential)", sequential_s)
    remark = f"{sequential_s / deferred_s:.1f} times as fast (target {LEAST_RATIO:g})"
    show("deferred", deferred_s, chain_s * MOST_OF_CHAIN, remark)
    show(
        "latency of the longest chain",
        chain_s,
        None,
        f"deferred took {deferred_s / chain_s:.2f} of it",
    )


def main() -> None:
    """Measure and print."""
    os.environ.setdefault("OPENAI_API_KEY", "none")
    title(
        f"{ITEMS} items of {CHECKS} checks, judge at {LATENCY_S:g} s, median of {RUNS}"
    )
    with SlowJudge(LATENCY_S) as server:
        measure(False, server.base_url)
        measure(True, server.base_url)


if __name__ == "__main__":
    main()
