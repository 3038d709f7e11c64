"""Runs of the example with a judge that misbehaves by schedule, and the runs that complete them."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.example import (
    Manner,
    Name,
    evaluate_example,
    undisturbed_trees,
    without_evidence,
)
from faults.figures import Figures, together
from faults.hurried_loop import HurriedLoop
from faults.schedules import Schedule, schedule_of
from faults.traces import Traces, read_traces
from servers.faulty_judge import FaultyJudge, Visit, no_faults
from servers.recorded_replies import RecordedReplies

from mind2web2.errors import JudgeUnusableError
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.pages.library import PageLibrary

# Under a schedule time passes this much faster, or pauses and paces would take hours.
_HURRY = 50.0
# Less than two seconds of real time until a request that hangs is given up, and half a one for a
# connection.
RETRY = RetryPolicy(
    tries=4,
    total_s=120,
    outage_wait_s=20,
    first_wait_s=0.2,
    longest_wait_s=2,
    request_timeout_s=80,
)
# At most three trials, each asked twice where it was declined, each of these for three replies;
# those refused for coming too fast do not count.
MAX_REQUESTS = 3 * 2 * 3 * RETRY.tries


@dataclass(frozen=True)
class Bench:
    """The parts that all schedules of a process share.

    Args:
        trees: of each answer where nothing is disturbed.
    """

    judge: FaultyJudge
    trees: Mapping[Name, Any]
    library: PageLibrary

    async def evaluate(self, key: str, results: Path, manner: Manner) -> str | None:
        """Evaluate the example, and return why the run ended early, if it did."""
        base_url = self.judge.base_url
        async with LLMClient("openai", True, base_url=base_url, api_key=key, retry=RETRY) as client:
            try:
                await evaluate_example(client, results, manner, self.library)
            except JudgeUnusableError as failure:
                return str(failure)
        return None


def run(count: int, seed: int) -> Figures:
    """Run so many schedules, from this seed (at least 1) on."""
    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        return runner.run(_run(range(seed, seed + count)))


async def _run(seeds: range) -> Figures:
    library = PageLibrary()
    with (
        tempfile.TemporaryDirectory() as folder,
        FaultyJudge(RecordedReplies()) as judge,
    ):
        bench = Bench(judge, await undisturbed_trees(Path(folder), library), library)
        figures = [await disturbed(schedule_of(seed), bench) for seed in seeds]
    return together("judge faults", figures)


async def disturbed(schedule: Schedule, bench: Bench) -> Figures:
    """Run the example under a schedule, complete it with a healthy judge, and say the outcome."""
    disturbance = bench.judge.expect(f"disturbed-{schedule.seed}", schedule)
    recovery = bench.judge.expect(f"healthy-{schedule.seed}", no_faults)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HurriedLoop)
        with loop.hurried(_HURRY):
            ended = await bench.evaluate(f"disturbed-{schedule.seed}", results, schedule.manner)
        left = read_traces(results)
        if ended and not left.judgments:
            # A judge that rejects every request ends the run, with one reason for all answers.
            left.reasons.update(dict.fromkeys(bench.trees, ended))
        started_s = time.monotonic()
        await bench.evaluate(f"healthy-{schedule.seed}", results, Manner())
        recovered_s = time.monotonic() - started_s
        return _figures(
            schedule,
            bench,
            _Course(left, read_traces(results), disturbance, recovery),
            recovered_s,
        )


@dataclass(frozen=True)
class _Course:
    """The files after the schedule and after the recovery, and the questions that either asked."""

    left: Traces
    completed: Traces
    disturbance: Visit
    recovery: Visit


def _figures(schedule: Schedule, bench: Bench, course: _Course, recovered_s: float) -> Figures:
    left, completed = course.left, course.completed
    new_judgments = completed.judgments.keys() - left.judgments.keys()
    return Figures(
        "judge faults",
        disturbances=1,
        answers=len(left.trees) + len(left.reasons),
        without_result=len(left.reasons),
        wrong_scores=_wrong(left, bench.trees) + _wrong(completed, bench.trees),
        lost_judgments=sum(
            completed.judgments.get(key) != was for key, was in left.judgments.items()
        ),
        judged_twice=max(0, course.recovery.requests - len(new_judgments)),
        half_written_files=len(left.damaged) + len(completed.damaged),
        hindrances=tuple(
            f"schedule {schedule.seed}: {what}" for what in _hindrances(course, bench)
        ),
        recovery_s=(recovered_s,),
    )


def _wrong(traces: Traces, trees: Mapping[Name, Any]) -> int:
    """Count the answers with a wrong tree, or without the result that they name.

    A tree is wrong if it differs from the tree without any disturbance.
    """
    return sum(
        tree is None or without_evidence(tree) != without_evidence(trees[name])
        for name, tree in traces.trees.items()
    )


def _hindrances(course: _Course, bench: Bench) -> list[str]:
    left, completed = course.left, course.completed
    found = [
        f"{'/'.join(name)} has neither a result nor a reason"
        for name in bench.trees
        if not (name in left.trees or left.reasons.get(name))
    ]
    found += [f"damaged or left: {path}" for path in (*left.damaged, *completed.damaged)]
    found += [
        f"{'/'.join(name)} is not completed: {why}" for name, why in completed.reasons.items()
    ]
    found += [
        f"{path.name} was written anew"
        for path, content in left.result_files.items()
        if completed.result_files.get(path) != content
    ]
    if len(completed.result_files) != len(bench.trees):
        found.append(f"{len(completed.result_files)} result files for {len(bench.trees)} answers")
    most = max(course.disturbance.let_in.values(), default=0)
    if most > MAX_REQUESTS:
        found.append(f"one question was sent {most} times, {MAX_REQUESTS} is the most")
    return found


PARTS = (run,)
