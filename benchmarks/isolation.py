"""Measure scripts in processes: time an answer, memory a process, questions a second.

The judge answers at once, so that nothing hides behind its latency: in a run that waits for a real
judge, all of this is done in the meantime. Each figure stands beside that of scripts in the run's
own process.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from measuring import show, title
from PIL import Image
from processes import memory_bytes
from program_order import program_order

from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.scripts.isolation.processes import fork_server
from mind2web2.utils.path_config import PathConfig
from mind2web2.verification.extractor import BinaryEvalResult

# In which process scripts run in its block: this one, or processes of their own.
Place = Callable[[], AbstractContextManager[None]]
AGENT, TASK, PAGE = "isolated", "lake", "https://lake.example/depth"
MEGABYTE = 1024**2
HEADER = """
import asyncio
from mind2web2 import Evaluator

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize("lake", client=client, answer=answer, global_cache=cache, logger=logger)
"""
CHECKS = """
    claims = []
    for number in range({checks}):
        leaf = evaluator.add_leaf(f"check_{{number}}", "d")
        claims.append((f"Point {{number}} is met.", {source!r}, leaf, "None"))
    await evaluator.batch_verify(claims, num_trials=1)
    return evaluator.get_summary()
"""
OWN_IMAGES = """
    image = "data:image/jpeg;base64," + "A" * {image_bytes}
    parts = [{{"type": "image_url", "image_url": {{"url": image}}}}]
    asked = [
        client.async_response(model=model, messages=[{{"role": "user", "content": [*parts, text]}}])
        for text in ({{"type": "text", "text": str(number)}} for number in range({checks}))
    ]
    await asyncio.gather(*asked)
    return evaluator.get_summary()
"""


class InstantJudge:
    """Says yes at once; may keep everybody waiting until a number of questions are there."""

    endpoint = "instant"

    def __init__(self, wait_for: int = 0) -> None:
        self._wait_for = wait_for
        self._all_there = asyncio.Event()
        self.waiting_bytes = 0

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer."""
        if self._wait_for:
            self._wait_for -= 1
            if not self._wait_for:
                self.waiting_bytes = await asyncio.to_thread(memory_bytes)
                self._all_there.set()
            await self._all_there.wait()
        if request.template is None:
            return ChatReply(text="yes")
        value = BinaryEvalResult(reasoning="yes", result=True)
        return ChatReply(text=value.model_dump_json(), value=value)

    async def close(self) -> None:
        """Close nothing."""


@dataclass(frozen=True)
class Load:
    """Answers to evaluate, and the script that does."""

    body: str
    answers: int
    at_once: int = 3

    def lay_out(self, root: Path) -> PathConfig:
        """Write everything."""
        answers = root / "answers" / AGENT / TASK
        answers.mkdir(parents=True)
        for number in range(1, self.answers + 1):
            (answers / f"answer_{number}.md").write_text(f"Answer {number} on the lake. " * 300)
        scripts = root / "eval_scripts" / "2025_07_14"
        scripts.mkdir(parents=True)
        (scripts / f"{TASK}.py").write_text(HEADER + self.body)
        CacheFileSys(root / "cache" / AGENT / TASK).put_web(
            PAGE, "The lake is deep. " * 2000, screenshot()
        )
        return PathConfig(root)


def screenshot() -> bytes:
    """Return a JPEG of about a megabyte."""
    buffer = BytesIO()
    Image.frombytes("L", (1100, 1400), random.Random(1).randbytes(1100 * 1400)).save(
        buffer, "JPEG", quality=60
    )
    return buffer.getvalue()


async def evaluate(
    paths: PathConfig, load: Load, judge: InstantJudge, where: Place = nullcontext
) -> float:
    """Evaluate everything as a run does, and return the seconds that it takes."""
    with JudgmentStore(None) as store:
        run = RunParts(
            judge=CachingJudge(JudgeSpec("o4-mini"), judge, store),
            library=PageLibrary(),
            limits=DualSemaphore(asyncio.Semaphore(10), asyncio.Semaphore(10_000)),
            reuse=False,
            answer_timeout_s=3600,
        )
        folders = RunFolders(AGENT, paths.cache_root, paths.eval_results_root)
        work = select_work(paths, AGENT)
        started_s = time.perf_counter()
        with where():
            outcomes = await evaluate_work(
                work, folders, run, Concurrency(3, load.at_once), RunProgress()
            )
        took_s = time.perf_counter() - started_s
    if any(outcome.result is None for outcome in outcomes):
        raise SystemExit(f"not every answer has a result: {outcomes[0]}")
    return took_s


def measured(load: Load, where: Place = nullcontext, wait_for: int = 0) -> tuple[float, int]:
    """Return the seconds, the shorter of two runs, and the memory while all waited."""
    took_s, waiting_bytes = [], 0
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            judge = InstantJudge(wait_for)
            took_s.append(asyncio.run(evaluate(load.lay_out(Path(folder)), load, judge, where)))
            waiting_bytes = judge.waiting_bytes
    return min(took_s), waiting_bytes


def compare(what: str, load: Load, count: int) -> None:
    """Print how long one of ``count`` things takes, in program order and in passes."""
    here_s, _ = measured(load, program_order)
    isolated_s, _ = measured(load)
    show(
        f"{what}, in program order",
        here_s / count,
        remark=f"{count / here_s:.0f}/s",
    )
    show(
        f"{what}, in passes",
        isolated_s / count,
        remark=f"{count / isolated_s:.0f}/s, {isolated_s / here_s:.2f} times as long",
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--checks", type=int, default=1000)
    options = parser.parse_args()

    title("starting")
    started_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        load = Load("    return evaluator.get_summary()\n", 1)
        asyncio.run(evaluate(load.lay_out(Path(folder)), load, InstantJudge()))
    show("the first answer, fork server included", time.perf_counter() - started_s)

    title(f"{options.answers} answers, three at once")
    compare(
        "an answer without checks",
        Load("    return evaluator.get_summary()\n", options.answers),
        options.answers,
    )
    compare(
        "an answer with 40 checks",
        Load(CHECKS.format(checks=40, source=None), options.answers),
        options.answers,
    )

    title(f"one answer of {options.checks} checks, asked together")
    for what, source in (
        ("a check of the answer", None),
        ("a check of a page with 1 MB of screenshot", PAGE),
    ):
        compare(
            what,
            Load(CHECKS.format(checks=options.checks, source=source), 1),
            options.checks,
        )
    images = OWN_IMAGES.format(checks=100, image_bytes=MEGABYTE)
    compare("a question of the script's own with 1 MB of image", Load(images, 1), 100)

    title("memory, nine answers at once, pages of memory that processes share counted once")
    load = Load(CHECKS.format(checks=1, source=PAGE), 9, at_once=9)
    fork_server.close()
    _, here_bytes = measured(load, program_order, wait_for=9)
    _, isolated_bytes = measured(load, wait_for=9)
    each_mb = (isolated_bytes - here_bytes) / 9 / MEGABYTE
    totals = f"the run {here_bytes / MEGABYTE:.0f} MB, isolated {isolated_bytes / MEGABYTE:.0f} MB"
    title(f"  {totals}: {each_mb:.1f} MB an answer")


if __name__ == "__main__":
    main()
