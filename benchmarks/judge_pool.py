"""How evenly a pool of four judge servers is used, also while one of them is down or slow.

Requests go through the real SDK to local servers. A server works off 20 requests a second one after
another, as a server of one's own does, or refuses (429) above 20 requests a second.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from measuring import title

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from servers.judge_server import Body, Fault, JudgeServer, rate_limited

from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.plugins.pool.pool import PoolSource

SERVERS, RATE, AT_ONCE, LATENCY_S = 4, 20.0, 60, 0.3
REQUEST = ChatRequest("judge-1", [{"role": "user", "content": "Is it?"}])


def bucket() -> Callable[[Body], Fault | None]:
    """Refuse requests above the rate; the tokens of one second may be used at once."""
    lock, left, at_s = threading.Lock(), RATE, time.monotonic()

    def fault(_: Body) -> Fault | None:
        nonlocal left, at_s
        with lock:
            now_s = time.monotonic()
            left, at_s = min(RATE, left + (now_s - at_s) * RATE), now_s
            is_accepted = left >= 1
            left -= is_accepted
        return None if is_accepted else rate_limited(retry_after="1")

    return fault


def after(latency_s: float) -> Callable[[Body], str]:
    """Answer after so long."""

    def reply(_: Body) -> str:
        time.sleep(latency_s)
        return "yes"

    return reply


def queue() -> Callable[[Body], str]:
    """Answer one request after another, at the rate even where this machine wakes threads late."""
    lock, free_at_s = threading.Lock(), 0.0

    def reply(_: Body) -> str:
        nonlocal free_at_s
        with lock:
            free_at_s = max(free_at_s, time.monotonic()) + 1 / RATE
            wait_s = free_at_s - time.monotonic()
        time.sleep(wait_s)
        return "yes"

    return reply


async def answered(
    servers: list[JudgeServer], seconds: float, events: dict[float, Callable[[], None]]
) -> int:
    """Keep requests in flight for so long, with events at their times.

    Return how many were answered.
    """
    loop, replies = asyncio.get_running_loop(), 0
    source = PoolSource(base_urls=tuple(server.base_url for server in servers), model="judge-1")
    limit = asyncio.Semaphore(AT_ONCE)

    async def ask(client: LLMClient, end_s: float) -> None:
        nonlocal replies
        while loop.time() < end_s:
            await client.chat(REQUEST, limit)
            replies += loop.time() < end_s

    async with LLMClient("openai", is_async=True, base_url=source) as client:
        await client.chat(REQUEST)  # loads the SDK
        for at_s, event in events.items():
            loop.call_later(at_s, event)
        await asyncio.gather(*(ask(client, loop.time() + seconds) for _ in range(2 * AT_ONCE)))
    return replies


def show_rates() -> None:
    """Print the share of the four servers' rate that is used.

    Rate limiters learn in the first 20 seconds.
    """
    for name, seconds, server in (
        ("work off 20 a second", 20.0, lambda: JudgeServer(queue())),
        (
            "refuse above 20 a second",
            120.0,
            lambda: JudgeServer(after(LATENCY_S), faults=bucket()),
        ),
    ):
        with ExitStack() as stack:
            servers = [stack.enter_context(server()) for _ in range(SERVERS)]
            replies = asyncio.run(answered(servers, seconds, {}))
        share = replies / (SERVERS * RATE * seconds)
        title(
            f"{f'4 servers {name}, over {seconds:.0f} s':<52} {share:>4.0%} of 80 a second   "
            "target 90%"
        )


def show_death() -> None:
    """Print what happens when one server is down from 5 to 10 s."""
    with ExitStack() as stack:
        servers = [stack.enter_context(JudgeServer(queue())) for _ in range(SERVERS - 1)]
        mortal = JudgeServer(queue())
        mortal.__enter__()
        port = int(mortal.url.rpartition(":")[2])
        again: list[JudgeServer] = []
        events = {
            5.0: lambda: threading.Thread(target=mortal.__exit__).start(),
            10.0: lambda: again.append(stack.enter_context(JudgeServer(queue(), port=port))),
        }
        replies = asyncio.run(answered([mortal, *servers], 20.0, events))
    allowed = RATE * (3 * 20 + 5 + 10)
    title(
        f"{'one of them is down from 5 to 10 s, of 20 s':<52} {replies / allowed:>4.0%} of what is "
        "up, 0 lost"
    )
    title(
        f"{'requests of that server before and after':<52} {len(mortal.calls)} / "
        f"{len(again[0].calls)}"
    )


def show_slow() -> None:
    """Print how much one slow server slows the others."""
    for slow in (False, True):
        with ExitStack() as stack:
            times_s = [LATENCY_S] * (SERVERS - 1) + [LATENCY_S * 10 if slow else LATENCY_S]
            servers = [stack.enter_context(JudgeServer(after(latency_s))) for latency_s in times_s]
            asyncio.run(answered(servers, 15.0, {}))
            counts = [len(server.calls) for server in servers]
        name = "the fourth answers 10 times slower" if slow else "4 servers that answer after 0.3 s"
        others = sum(counts[:-1]) / 15
        title(
            f"{name:<52} the first three {others:.0f} a second, the fourth "
            f"{counts[-1] / sum(counts):.1%}"
        )


def main() -> None:
    """Print all figures."""
    logging.getLogger("mind2web2").setLevel(logging.CRITICAL)
    title(f"judge pool, {AT_ONCE} requests at once")
    show_rates()
    show_death()
    show_slow()


if __name__ == "__main__":
    main()
