"""Judge requests in flight over a run of many short tasks, as a share of ``--max_llm_requests``.

The command itself runs, with its real client over loopback and a process for each script. The share
counts from the first request until fewer requests are left to send than may be in flight. The first
line holds the run to three tasks with three answers each, as every run was held before.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from measuring import title
from processes import KIB, PeakMemory
from slow_judge import completion
from throughput import AGENT, lay_out

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET_SHARE = 0.8
LIMIT = 30
LATENCY_S = 1.0
# Tasks of one answer, and checks of each.
SHAPES = ((60, 3), (90, 1))
WAYS = {
    "3 tasks x 3 answers at once": [
        "--max_concurrent_tasks",
        "3",
        "--max_concurrent_answers",
        "3",
    ],
    "by default": [],
}


class TimedJudge:
    """A judge of fixed latency that notes when each request came in and when it was answered."""

    def __init__(self, latency_s: float) -> None:
        self.spans: list[tuple[float, float]] = []
        self._latency_s = latency_s
        self._answer = completion()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def share(self) -> float:
        """Return the mean of requests in flight as a share of the limit, until too few are left."""
        spans = sorted(self.spans)
        first, last = spans[0][0], spans[-LIMIT][0]
        busy_s = sum(max(0.0, min(ended, last) - started) for started, ended in spans)
        return busy_s / (LIMIT * (last - first))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            lengths = [
                line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            ]
            if not lengths:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            await reader.readexactly(int(lengths[0].partition(b":")[2]))
            started = time.monotonic()
            await asyncio.sleep(self._latency_s)
            self.spans.append((started, time.monotonic()))
            writer.write(self._answer)
        writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def main() -> None:
    """Measure and print."""
    for tasks, checks in SHAPES:
        title(
            f"{tasks} tasks x 1 answer x {checks} checks, judge at {LATENCY_S:g} s, {LIMIT} "
            "requests at once "
            f"(target {TARGET_SHARE:.0%} in flight)"
        )
        for name, words in WAYS.items():
            measure(name, words, tasks, checks)


def measure(name: str, words: list[str], tasks: int, checks: int) -> None:
    """Run the command once and print its figures."""
    with tempfile.TemporaryDirectory() as folder, TimedJudge(LATENCY_S) as judge:
        lay_out(Path(folder), tasks, 1, checks)
        command = [
            sys.executable,
            REPOSITORY / "run_eval.py",
            "--agent_name",
            AGENT,
            *words,
        ]
        with PeakMemory(0.2) as memory:
            began_s = time.perf_counter()
            subprocess.run(
                [*command, "--judge_base_url", judge.base_url, "--no_capture"],
                cwd=folder,
                env={
                    "OPENAI_API_KEY": "none",
                    "PATH": "",
                    "PYTHONPATH": str(REPOSITORY),
                },
                stdout=subprocess.DEVNULL,
                check=True,
            )
            took_s = time.perf_counter() - began_s
        title(
            f"  {name:<28} {judge.share():4.0%} in flight, {len(judge.spans)} requests in "
            f"{took_s:.1f} s, memory at most {memory.peak_bytes / KIB / KIB:.0f} MB"
        )


if __name__ == "__main__":
    main()
