"""Requests a second of a whole run: 100 tasks x 3 answers x 40 checks, a judge that takes a second.

Everything is as in a run: scripts, answers and results on disk, the real client over loopback,
judgments kept in a file. The judge is a process of its own, on the same two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import threading
import time
from pathlib import Path

from measuring import show, title
from processes import KIB
from slow_judge import SlowJudge

from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.path_config import PathConfig

TARGET_SHARE, TARGET_BLOCK_S, TARGET_MB = 0.8, 0.05, 600
TICK_S = 0.002
SAMPLE_S = 0.5
AGENT = "fast_agent"
SCRIPT = """
from mind2web2 import Evaluator

TASK = {task!r}
CHECKS = {checks}


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(
        TASK, client=client, answer=answer, agent_name=agent_name, answer_name=answer_name,
        global_cache=cache, global_semaphore=semaphore, logger=logger, default_model=model,
    )
    claims = []
    for number in range(CHECKS):
        leaf = evaluator.add_leaf(f"check_{{number}}", f"check {{number}}")
        claims.append((f"The answer to {{TASK}} meets point {{number}} of the task.", None, leaf, "None"))
    await evaluator.batch_verify(claims)
    return evaluator.get_summary()
"""
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum; answer {number} of {task}. " * 40


def lay_out(root: Path, tasks: int, answers: int, checks: int) -> PathConfig:
    """Write scripts and answers."""
    for number in range(tasks):
        task = f"task_{number:03}"
        folder = root / "answers" / AGENT / task
        folder.mkdir(parents=True)
        for answer in range(1, answers + 1):
            (folder / f"answer_{answer}.md").write_text(ANSWER.format(number=answer, task=task))
        script = root / "eval_scripts" / "2025_07_14" / f"{task}.py"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SCRIPT.format(task=task, checks=checks))
        (root / "cache" / AGENT / task).mkdir(parents=True)
    return PathConfig(root)


class Watch:
    """Notes the loop's longest block and, from a thread, this process's memory."""

    def __init__(self) -> None:
        self.blocks_s: list[float] = []
        self.memory_mb: list[float] = []
        self._done = threading.Event()

    async def tick(self) -> None:
        """Note how late each tick comes, for ever."""
        while True:
            started = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self.blocks_s.append(time.perf_counter() - started - TICK_S)

    def sample(self) -> None:
        """Note the memory until the run is over."""
        while not self._done.wait(SAMPLE_S):
            lines = Path("/proc/self/status").read_text().splitlines()
            self.memory_mb += [
                int(line.split()[1]) / KIB for line in lines if line.startswith("VmRSS:")
            ]

    def end(self) -> None:
        """Sample no more."""
        self._done.set()


async def evaluate(
    paths: PathConfig, url: str, store: JudgmentStore, limit: int, watch: Watch
) -> CachingJudge:
    """Evaluate everything as a run does."""
    async with LLMClient("openai", is_async=True, base_url=url, api_key="none") as client:
        judge = CachingJudge(JudgeSpec("o4-mini"), client, store)
        run = RunParts(
            judge=judge,
            library=PageLibrary(),
            limits=DualSemaphore(asyncio.Semaphore(10), asyncio.Semaphore(limit)),
            reuse=True,
            answer_timeout_s=3600,
        )
        folders = RunFolders(AGENT, paths.cache_root, paths.eval_results_root)
        work = select_work(paths, AGENT)
        ticking = asyncio.create_task(watch.tick())
        outcomes = await evaluate_work(work, folders, run, Concurrency(3, 3), RunProgress())
        ticking.cancel()
    if any(outcome.score != 1.0 for outcome in outcomes):
        raise SystemExit(f"not every answer has its points: {outcomes[0]}")
    return judge


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("tasks", 100),
        ("answers", 3),
        ("checks", 40),
        ("limit", 200),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--latency", type=float, default=1.0)
    options = parser.parse_args()
    logging.getLogger("mind2web2").setLevel(logging.INFO)
    title(
        f"{options.tasks} tasks x {options.answers} answers x {options.checks} checks, judge at "
        f"{options.latency:g} s, {options.limit} requests at once"
    )
    watch = Watch()
    sampling = threading.Thread(target=watch.sample, daemon=True)
    with tempfile.TemporaryDirectory() as folder, SlowJudge(options.latency) as server:
        paths = lay_out(Path(folder), options.tasks, options.answers, options.checks)
        sampling.start()
        with JudgmentStore(paths.eval_results_root / AGENT / STORE_NAME) as store:
            began_s, processor_s = time.perf_counter(), time.process_time()
            judge = asyncio.run(evaluate(paths, server.base_url, store, options.limit, watch))
            took_s, processor_s = (
                time.perf_counter() - began_s,
                time.process_time() - processor_s,
            )
        watch.end()
        sampling.join()
    requests, theoretical = (
        judge.usage.total().asked.requests,
        options.limit / options.latency,
    )
    share = requests / took_s / theoretical
    title(
        f"  {requests} requests, {requests / took_s:.0f} a second: {share:.0%} of {theoretical:.0f}"
        f" (target {TARGET_SHARE:.0%}); {client_words(judge)}"
    )
    show("the whole run", took_s)
    show("processor time of this process, each request", processor_s / requests)
    show("event loop blocked at most", max(watch.blocks_s), TARGET_BLOCK_S)
    samples = watch.memory_mb
    title(
        f"  memory at start, middle and end: {samples[0]:.0f}, {samples[len(samples) // 2]:.0f}, "
        f"{samples[-1]:.0f} MB (target below {TARGET_MB} MB, flat)"
    )


def client_words(judge: CachingJudge) -> str:
    """Return what slowed the run."""
    return judge.usage.slowdown.in_words() or "nothing slowed it down"


if __name__ == "__main__":
    main()
