"""How many requests are in flight: servers with limits, queues and outages, in virtual time."""

import asyncio
import random

import pytest
from virtual_time import run_virtually

from mind2web2.llm_client.chat import Completion, Retries, SentRequests, Slowdown
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retries import FIRST_WINDOW, Attempts, RetryPolicy, Window


class SimulatedServer:
    """Answers after some seconds what it admits, and refuses the rest.

    Args:
        slots: how many requests it works on at once; the others wait. It drops those that are
            given up.
        admits: tells by the server and the time.
    """

    def __init__(self, latency_s, slots=1000, admits=lambda _server, _now_s: True, wish_s=None):
        self.sent_s = []
        self.refused = self.in_flight = self.most_at_once = 0
        self._latency_s, self._admits, self._wish_s = latency_s, admits, wish_s
        self._slots = asyncio.Semaphore(slots)

    async def send(self):
        """Answer one request."""
        now_s = asyncio.get_running_loop().time()
        self.sent_s.append(now_s)
        if not self._admits(self, now_s):
            self.refused += 1
            raise RequestFailedError("slow down", status=429, retry_after_s=self._wish_s)
        self.in_flight += 1
        self.most_at_once = max(self.most_at_once, self.in_flight)
        try:
            async with self._slots:
                await asyncio.sleep(self._latency_s)
        finally:
            self.in_flight -= 1
        return Completion("yes")


def ask(server, count, at_once=30, policy=None):
    """Ask so many questions; return what became of them, and the seconds."""
    policy = policy or RetryPolicy()

    async def main():
        window, limit = Window(policy, Slowdown()), asyncio.Semaphore(at_once)
        asking = (
            Attempts(window, limit, Retries(), SentRequests()).send(server.send)
            for _ in range(count)
        )
        return await asyncio.gather(*asking, return_exceptions=True)

    random.seed(1)
    replies, took_s = run_virtually(main())
    return [r.text if isinstance(r, Completion) else r for r in replies], took_s


def test_a_server_without_limits_is_soon_asked_as_much_as_allowed():
    server = SimulatedServer(1.0)
    replies, took_s = ask(server, 600)
    assert replies == ["yes"] * 600
    assert server.most_at_once == 30
    assert took_s < 600 / 30 + 3


@pytest.mark.parametrize(("latency_s", "slots"), [(20, 1), (20, 2), (40, 1)])
def test_a_slow_server_with_few_slots_loses_hardly_any_request(latency_s, slots, caplog):
    """A reply takes as long as those before it; what waits too long would be asked again."""
    server = SimulatedServer(latency_s, slots)
    replies, took_s = ask(server, 56)
    assert replies == ["yes"] * 56
    lost = len(server.sent_s) - 56
    assert lost <= 0.2 * 56
    assert took_s <= 1.2 * 56 * latency_s / slots
    assert ("--max_llm_requests 4" in caplog.text) is (lost > 0)


def test_a_limit_of_requests_in_flight_is_found():
    server = SimulatedServer(1.0, admits=lambda server, _: server.in_flight < 6, wish_s=1.0)
    replies, took_s = ask(server, 300)
    assert replies == ["yes"] * 300
    assert took_s < 1.3 * 300 / 6
    assert server.refused < 0.25 * 300


@pytest.mark.parametrize("share", [0.02, 0.04])
def test_random_refusals_cost_little_more_than_their_own_wait(share):
    chance = random.Random(3)
    admits = lambda _server, _now_s: chance.random() >= share  # noqa: E731
    calm = ask(SimulatedServer(1.0), 400)[1]
    replies, took_s = ask(SimulatedServer(1.0, admits=admits, wish_s=1.0), 400)
    assert replies == ["yes"] * 400
    assert took_s < calm * (1.5 if share == 0.02 else 2)


def test_what_a_minute_admits_is_used_and_the_rest_of_it_waited_for():
    left = {}

    def admits(_server, now_s):
        left[now_s // 60] = left.get(now_s // 60, 60) - 1
        return left[now_s // 60] >= 0

    server = SimulatedServer(1.0, admits=admits, wish_s=30.0)
    replies, took_s = ask(server, 300)
    assert replies == ["yes"] * 300
    assert took_s < 1.5 * 300
    assert server.refused < 100


def test_a_server_that_refuses_all_is_asked_rarely_and_fails_all_in_time():
    server = SimulatedServer(1.0, admits=lambda *_: False)
    replies, took_s = ask(server, 100)
    assert all(isinstance(reply, RequestFailedError) for reply in replies)
    assert took_s <= RetryPolicy().total_s + 120
    assert len(server.sent_s) < 400


def test_after_an_outage_the_rate_is_soon_what_it_was():
    def admits(_server, now_s):
        if 30 <= now_s < 60:
            raise RequestFailedError("restarting", status=503)
        return True

    server = SimulatedServer(0.5, admits=admits)
    assert ask(server, 4000)[0] == ["yes"] * 4000
    during = sum(30 < at_s < 60 for at_s in server.sent_s)
    after = sum(65 < at_s <= 75 for at_s in server.sent_s)
    assert during < 60
    assert after > 0.9 * 10 * 30 / 0.5


def test_cancelled_requests_take_no_place():
    async def main():
        window = Window(RetryPolicy(), Slowdown())
        async with asyncio.timeout(5):
            for _ in range(3):
                waiting = [asyncio.create_task(_hold(window)) for _ in range(FIRST_WINDOW + 5)]
                await asyncio.sleep(1)
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
            async with window.passing() as sent:
                return sent.others

    assert run_virtually(main())[0] == 0


async def _hold(window):
    async with window.passing():
        await asyncio.sleep(1000)
