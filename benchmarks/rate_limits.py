"""Measure the used share of a judge's rate limits, and the refused requests.

One scenario goes through the real SDK to a local server: 376 requests, 4% of which meet a random
429 and 6% another fault (500, reset, slow). The others last minutes, so they run the same retries
and the same window in virtual time. Each figure is the median of three seeds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measuring import title

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from servers.judge_server import (
    Body,
    Fault,
    JudgeServer,
    drop_before_reply,
    rate_limited,
    status,
)
from virtual_time import run_virtually

from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import (
    ChatRequest,
    Completion,
    Retries,
    SentRequests,
    Slowdown,
    Usage,
)
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retries import Attempts, RetryPolicy, Window

AT_ONCE = 30
LATENCY_S = 0.3
TRANSIT_S = 0.003
SEEDS = range(3)

Admission = Callable[["SimulatedServer", float], bool]
Latency = Callable[[random.Random], float]


def constant(latency_s: float) -> Latency:
    """Take the same time for each reply."""
    return lambda _: latency_s


CONSTANT = constant(LATENCY_S)


def varying(mean_s: float) -> Latency:
    """Take times of an exponential distribution, as of short and long replies."""
    return lambda chance: min(chance.expovariate(1 / mean_s), 20 * mean_s)


class SimulatedServer:
    """A server with a limit, in virtual time.

    Args:
        admits: whether one more request is accepted, by the server and the time.
    """

    def __init__(self, admits: Admission, latency: Latency = CONSTANT, seed: int = 0) -> None:
        self.accepted_s: list[float] = []
        self.refusals = self.in_flight = 0
        self.chance = random.Random(seed)
        self._admits, self._latency = admits, latency

    async def send(self) -> Completion:
        """Reply after the latency, or refuse."""
        await asyncio.sleep(self.chance.uniform(0.5, 1.5) * TRANSIT_S)
        now_s = asyncio.get_running_loop().time()
        if not self._admits(self, now_s):
            self.refusals += 1
            raise RequestFailedError("slow down", status=429, retry_after_s=1.0)
        self.accepted_s.append(now_s)
        self.in_flight += 1
        try:
            await asyncio.sleep(self._latency(self.chance))
        finally:
            self.in_flight -= 1
        return Completion("yes", usage=Usage(input_tokens=1000))


def randomly_refused(share: float) -> Admission:
    """Refuse this share of all requests."""
    return lambda server, _: server.chance.random() >= share


def token_bucket(rate: Callable[[float], float], capacity: float) -> Admission:
    """Accept so many requests a second, and so many at once after a pause."""
    left, at_s = capacity, 0.0

    def admits(_: SimulatedServer, now_s: float) -> bool:
        nonlocal left, at_s
        left, at_s = min(capacity, left + (now_s - at_s) * rate(now_s)), now_s
        is_accepted = left >= 1
        left -= is_accepted
        return is_accepted

    return admits


def alternating(high: float) -> Callable[[float], float]:
    """Return a limit that halves and doubles every 60 s."""
    return lambda now_s: high if now_s // 60 % 2 == 0 else high / 2


def served(server: SimulatedServer, seconds: float, at_once: int = AT_ONCE) -> None:
    """Keep more requests waiting than may be sent, for so long."""

    async def ask(window: Window, limit: asyncio.Semaphore) -> None:
        while True:
            await Attempts(window, limit, Retries(), SentRequests()).send(server.send)

    async def main() -> None:
        window, limit = Window(RetryPolicy(), Slowdown()), asyncio.Semaphore(at_once)
        asking = [asyncio.ensure_future(ask(window, limit)) for _ in range(3 * at_once)]
        await asyncio.wait(asking, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    run_virtually(main())


@dataclass(frozen=True)
class Scenario:
    """A server, and how many requests a second it allows.

    Args:
        admission: builds the server's limit.
        at_once: requests that may be in flight.
    """

    name: str
    admission: Callable[[], Admission]
    allowed: float
    target: str = ""
    seconds: float = 300.0
    latency: Latency = CONSTANT
    at_once: int = AT_ONCE

    def show(self) -> None:
        """Print the share of the allowed requests that were accepted, and the share of refusals."""
        shares, refused = [], []
        for seed in SEEDS:
            random.seed(seed)
            server = SimulatedServer(self.admission(), self.latency, seed)
            served(server, self.seconds, self.at_once)
            accepted = len(server.accepted_s)
            shares.append(accepted / (self.allowed * self.seconds))
            refused.append(server.refusals / (accepted + server.refusals))
        used, lost = statistics.median(shares), statistics.median(refused)
        target = f"   target {self.target}" if self.target else ""
        title(f"{self.name:<52} {used:>4.0%} of the limit, {lost:>5.1%} refused{target}")


def random_share(share: float, latency_s: float, target: str = "") -> Scenario:
    """Return a server that refuses this share of all requests."""
    name = f"{share:.0%} random refusals, latency {latency_s:g} s"
    allowed = AT_ONCE / latency_s
    seconds = 60 * latency_s / LATENCY_S
    return Scenario(
        name,
        lambda: randomly_refused(share),
        allowed,
        target,
        seconds,
        constant(latency_s),
    )


def bucket(
    rate: float,
    target: str = "",
    *,
    capacity: float | None = None,
    at_once: int = AT_ONCE,
    latency: Latency = CONSTANT,
    remark: str = "",
) -> Scenario:
    """Return a token bucket that refills continuously.

    It holds the tokens of one second by default.
    """
    size = rate if capacity is None else capacity
    # The large ones are measured over fewer virtual seconds.
    seconds = 300.0 if rate <= 20 else 100.0
    allowed = min(rate + size / seconds, at_once / LATENCY_S)
    name = f"token bucket of {rate:g} a second{remark}"
    return Scenario(
        name,
        lambda: token_bucket(lambda _: rate, size),
        allowed,
        target,
        seconds,
        latency,
        at_once,
    )


def in_flight(
    limit: Callable[[float], float],
    name: str,
    mean: float,
    target: str = "",
    seconds: float = 300.0,
    latency: Latency = CONSTANT,
) -> Scenario:
    """Return a server that refuses a request while too many others are in flight."""
    allowed = mean / LATENCY_S
    return Scenario(
        name,
        lambda: lambda s, now_s: s.in_flight < limit(now_s),
        allowed,
        target,
        seconds,
        latency,
    )


def changing_bucket(high: float, at_once: int) -> Scenario:
    """Return a token bucket whose rate halves and doubles every 60 s."""
    name = f"token bucket, {high:g} and {high / 2:g} a second in turn, {at_once} at once"
    rate = alternating(high)
    return Scenario(
        name,
        lambda: token_bucket(rate, high),
        0.75 * high,
        "80%",
        480.0,
        at_once=at_once,
    )


SCENARIOS = (
    random_share(0.02, 0.3, "85%"),
    random_share(0.1, 0.3, "60%"),
    random_share(0.1, 2.0),
    bucket(3),
    bucket(5, "90%, under 5%"),
    bucket(5, "90%, under 5%", at_once=60, remark=", 60 at once"),
    bucket(5, latency=varying(0.3), remark=", latencies vary"),
    bucket(5, capacity=1, remark=", capacity 1"),
    bucket(20, "90%, under 5%"),
    bucket(100, "90%, under 5%"),
    bucket(100, "90%, under 5%", at_once=60, remark=", 60 at once"),
    in_flight(lambda _: 8, "8 requests in flight", 8, "90%"),
    in_flight(
        lambda _: 8,
        "8 requests in flight, latencies vary",
        8,
        latency=varying(LATENCY_S),
    ),
    changing_bucket(10, AT_ONCE),
    changing_bucket(10, 60),
    changing_bucket(40, AT_ONCE),
    in_flight(alternating(8), "8 and 4 requests in flight in turn", 6, "80%", 480.0),
)


def show_outage() -> None:
    """Print how long after an outage of 30 s the rate is 90% of the full rate."""
    waits_s = []
    for seed in SEEDS:
        random.seed(seed)
        server = SimulatedServer(lambda _, now_s: not 30 <= now_s < 60, seed=seed)
        served(server, 100)
        enough = 0.9 * 2 * AT_ONCE / LATENCY_S
        steps_s = [60 + quarter / 4 for quarter in range(150)]
        full_s = (
            s for s in steps_s if sum(s <= time_s < s + 2 for time_s in server.accepted_s) >= enough
        )
        waits_s.append(next(full_s, 100) - 60)
    title(
        f"{'full rate after an outage of 30 s':<52} after {statistics.median(waits_s):.1f} s   "
        "target 10 s"
    )


def show_one_slot(latency_s: float = 20.0, questions: int = 104) -> None:
    """Print the requests that a server gets which answers one at a time, also abandoned ones."""
    free_at_s, requests = 0.0, 0

    async def send() -> Completion:
        nonlocal free_at_s, requests
        now_s = asyncio.get_running_loop().time()
        requests, free_at_s = requests + 1, max(now_s, free_at_s) + latency_s
        await asyncio.sleep(free_at_s - now_s)
        return Completion("yes")

    async def main() -> None:
        window, limit = Window(RetryPolicy(), Slowdown()), asyncio.Semaphore(AT_ONCE)
        asking = (
            Attempts(window, limit, Retries(), SentRequests()).send(send) for _ in range(questions)
        )
        await asyncio.gather(*asking)

    run_virtually(main())
    name = f"one slot, {latency_s:g} s a reply"
    title(f"{name:<52} {requests / questions:.2f} times the requests needed   target 1.2")


def judged_s(seed: int, refused: float, other: float) -> float:
    """Return the seconds that 376 requests take through the SDK."""
    chance = random.Random(seed)

    def fault(_: Body) -> Fault | None:
        draw = chance.random()
        if draw < refused:
            return rate_limited(retry_after=chance.choice("12"))
        if draw < refused + other:
            kind = chance.choice(["error", "reset", "slow"])
            if kind != "slow":
                return status(500, "internal error") if kind == "error" else drop_before_reply()
            time.sleep(2)
        return None

    def reply(_: Body) -> str:
        time.sleep(0.5)
        return "yes"

    async def ask(base_url: str) -> float:
        async with LLMClient("openai", is_async=True, base_url=base_url, api_key="dummy") as client:
            limit = asyncio.Semaphore(AT_ONCE)
            request = ChatRequest(model="judge-1", messages=[{"role": "user", "content": "Is it?"}])
            started_s = time.perf_counter()
            await asyncio.gather(*(client.chat(request, limit) for _ in range(376)))
            return time.perf_counter() - started_s

    with JudgeServer(reply, faults=fault) as server:
        return asyncio.run(ask(server.base_url))


def main() -> None:
    """Print all figures."""
    logging.getLogger("mind2web2").setLevel(logging.CRITICAL)
    title("rate limits, 30 requests at once: through the SDK")
    undisturbed_s = judged_s(0, 0.0, 0.0)
    title(f"{'376 requests undisturbed':<52} {undisturbed_s:.1f} s")
    for refused, other, target in ((0.02, 0.0, 1.5), (0.04, 0.06, 2)):
        disturbed_s = statistics.median(judged_s(seed, refused, other) for seed in SEEDS)
        slower = disturbed_s / undisturbed_s
        name = f"with {refused:.0%} random 429 and {other:.0%} other faults"
        title(f"{name:<52} {disturbed_s:.1f} s, {slower:.1f} times as long   target {target}")
    title("in virtual time, Retry-After 1 s, latency 0.3 s where no other is named")
    for scenario in SCENARIOS:
        scenario.show()
    show_outage()
    show_one_slot()


if __name__ == "__main__":
    main()
