"""Rate limits are used and not fought: whole runs against servers with limits, in virtual time."""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from virtual_time import run_virtually

from mind2web2.llm_client.allowance import NOTHING_SAID, Allowance, Allowances
from mind2web2.llm_client.chat import TokenUsage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.pacing import FIRST_WINDOW, Pacer, Slowdown
from mind2web2.llm_client.retry import Attempts, RetryPolicy
from mind2web2.llm_client.transport import Completion

LATENCY_S = 1.0


@dataclass
class WindowedServer:
    """So many requests and tokens a minute; what comes beyond is refused at once."""

    requests: float = float("inf")
    tokens: float = float("inf")
    tells: bool = True
    wishes: bool = True
    period_s: float = 60.0
    tokens_each: int = 1000
    arrivals: int = 0
    refusals: int = 0
    under_way: int = 0
    most_under_way: int = 0
    ends_s: float = 0.0
    left: dict = field(default_factory=dict)

    async def send(self):
        """Answer after the latency, or refuse."""
        now_s = asyncio.get_running_loop().time()
        self.arrivals += 1
        if now_s >= self.ends_s:
            self.ends_s = now_s + self.period_s
            self.left = {"requests": self.requests, "tokens": self.tokens}
        if self.left["requests"] < 1 or self.left["tokens"] < self.tokens_each:
            self.refusals += 1
            wish_s = self.ends_s - now_s if self.wishes else None
            raise RequestFailedError(
                "slow down", status=429, retry_after_s=wish_s, allowances=self.told(now_s)
            )
        self.left["requests"] -= 1
        self.left["tokens"] -= self.tokens_each
        told = self.told(now_s)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(LATENCY_S)
        self.under_way -= 1
        return Completion("yes", usage=TokenUsage(input_tokens=self.tokens_each), allowances=told)

    def told(self, now_s):
        """Return what the headers say."""
        if not self.tells:
            return NOTHING_SAID
        rest = {"requests": self.requests, "tokens": self.tokens}
        return Allowances(
            **{
                name: Allowance(self.left[name], whole, self.ends_s - now_s)
                for name, whole in rest.items()
                if whole < float("inf")
            }
        )


def run(server, count, at_once=200):
    """Send so many requests through one pacer; return the seconds it took and what slowed it."""
    slowdown = Slowdown()

    async def all_of_them():
        pacer = Pacer(slowdown)
        limit = asyncio.Semaphore(at_once)
        attempts = [Attempts(RetryPolicy(), limit, "test", pacer) for _ in range(count)]
        return await asyncio.gather(*(attempt.send(server.send) for attempt in attempts))

    replies, took_s = run_virtually(all_of_them())
    assert [reply.text for reply in replies] == ["yes"] * count
    assert server.arrivals - server.refusals == count
    return took_s, slowdown


def test_a_server_without_limits_is_used_at_the_given_concurrency():
    """After two rounds in which the window opens, two hundred are under way all the time."""
    server = WindowedServer()
    took_s, slowdown = run(server, 4000)
    assert server.most_under_way == 200
    assert took_s <= 4000 / 200 * LATENCY_S + 3
    assert (slowdown.refusals, slowdown.in_words()) == (0, "")


@pytest.mark.parametrize("at_once", [1, 30, FIRST_WINDOW])
def test_a_usual_number_goes_out_at_once(at_once):
    """An answer's claims do not wait for a window to open."""
    server = WindowedServer(tells=False)
    took_s, _ = run(server, at_once, at_once)
    assert (took_s, server.most_under_way) == (LATENCY_S, at_once)


@pytest.mark.parametrize("limits", [{"requests": 100}, {"tokens": 100_000}])
@pytest.mark.parametrize("at_once", [30, 200])
def test_what_the_headers_say_is_used_without_a_refusal(limits, at_once):
    """A hundred a minute, in requests or tokens: 950 take nine resets, and none is refused."""
    server = WindowedServer(**limits)
    took_s, slowdown = run(server, 950, at_once)
    assert server.refusals == slowdown.refusals == 0
    # The time of a reset is counted from the reply that tells it, a second late each time.
    assert 9 * 60 <= took_s <= 9 * 61 + 10
    assert slowdown.in_words().startswith("rate limited: refused 0 times, ")


@pytest.mark.parametrize("limit", [5, 20])
def test_a_limit_below_the_first_window_costs_one_round_of_refusals(limit):
    """Nothing is known yet when the first requests go out; from then on the headers tell."""
    server = WindowedServer(requests=limit)
    took_s, _ = run(server, limit * 5)
    assert server.refusals <= FIRST_WINDOW
    assert took_s <= 5 * 60 + 10


@pytest.mark.parametrize(
    ("limit", "wishes"),
    [(1, True), (7, True), (60, True), (600, True), (7, False), (60, False), (600, False)],
)
def test_refusals_alone_are_enough(limit, wishes):
    """Without headers the window finds what is let in, no request is lost, most of the limit is used."""
    server = WindowedServer(requests=limit, tells=False, wishes=wishes)
    took_s, slowdown = run(server, limit * 6)
    assert slowdown.refusals == server.refusals
    assert server.refusals <= FIRST_WINDOW + limit * 2 + 40
    assert took_s <= 60 * 6 * 2


def test_after_a_refusal_requests_are_spaced():
    """Ten of a round are let in: after the pause about one goes each second."""

    async def play():
        pacer = Pacer()
        turns = [pacer.turn_at_once() for _ in range(FIRST_WINDOW)]
        assert pacer.turn_at_once() is None
        with_sending = [pacer.sending() for _ in turns]
        for sending in with_sending:
            sending.__enter__()
        for turn, sending in zip(turns[10:], with_sending[10:], strict=True):
            pacer.refused(turn, NOTHING_SAID, 5.0)
            sending.__exit__(None, None, None)
        times_s = []
        for _ in range(20):
            await pacer.turn()
            times_s.append(asyncio.get_running_loop().time())
        return times_s

    times_s, _ = run_virtually(play())
    assert times_s[0] == 5.0
    assert 8 <= sum(time_s < 15 for time_s in times_s) <= 12
    assert all(later_s - earlier_s > 0.5 for earlier_s, later_s in pairwise(times_s))


def refilled(rate_s, burst, latency_s=LATENCY_S, wishes=False):
    """Return a server whose limit refills continuously, as the large providers' do."""
    state = {"left": float(burst), "at_s": 0.0, "refusals": 0}

    async def send():
        now_s = asyncio.get_running_loop().time()
        state["left"] = min(burst, state["left"] + (now_s - state["at_s"]) * rate_s)
        state["at_s"] = now_s
        if state["left"] < 1:
            state["refusals"] += 1
            wish_s = (1 - state["left"]) / rate_s if wishes else None
            raise RequestFailedError("slow down", status=429, retry_after_s=wish_s)
        state["left"] -= 1
        await asyncio.sleep(latency_s)
        return Completion("yes", usage=TokenUsage(input_tokens=1000))

    return send, state


@pytest.mark.parametrize("wishes", [False, True])
@pytest.mark.parametrize(
    ("rate_s", "burst", "latency_s"),
    [(3 / 60, 3, 1.0), (3 / 60, 1, 1.0), (1.0, 1, 1.0), (1.0, 60, 1.0), (10.0, 10, 8.0), (10.0, 600, 1.0)],
)
def test_a_limit_that_refills_costs_no_request(rate_s, burst, latency_s, wishes):
    """Whatever was refused is asked again; at least half of the limit is used, and refusals stay rare."""
    send, state = refilled(rate_s, burst, latency_s, wishes)
    count = int(rate_s * 360)

    async def all_of_them():
        pacer, limit = Pacer(), asyncio.Semaphore(200)
        attempts = [Attempts(RetryPolicy(), limit, "test", pacer) for _ in range(count)]
        return await asyncio.gather(*(attempt.send(send) for attempt in attempts))

    replies, took_s = run_virtually(all_of_them())
    assert len(replies) == count
    assert took_s <= 2 * count / rate_s
    assert state["refusals"] <= 2 * FIRST_WINDOW + 0.1 * count + 30


def test_a_server_that_lets_nobody_in_fails_everybody_in_time():
    """After the time for all tries, those who still wait for their turn find out at once."""

    async def refuse():
        raise RequestFailedError("slow down", status=429)

    async def all_of_them():
        policy = RetryPolicy()
        pacer = Pacer(longest_wish_s=policy.total_s)
        attempts = [Attempts(policy, asyncio.Semaphore(5), "test", pacer) for _ in range(300)]
        asked = (attempt.send(refuse) for attempt in attempts)
        return await asyncio.gather(*asked, return_exceptions=True)

    failures, took_s = run_virtually(all_of_them())
    assert [failure.status for failure in failures] == [429] * 300
    assert 900 <= took_s <= 1000


@pytest.mark.parametrize("wish_s", [5.0, 90.0])
def test_the_whole_run_waits_as_long_as_the_server_asks(wish_s):
    """Not just the request that was refused."""

    async def play():
        pacer = Pacer()
        with pacer.given_back():
            pacer.refused(pacer.turn_at_once(), NOTHING_SAID, wish_s)
        assert pacer.turn_at_once() is None
        await pacer.turn()
        return pacer.slowdown

    slowdown, took_s = run_virtually(play())
    assert took_s == wish_s
    assert slowdown.in_words() == f"rate limited: refused once, {wish_s:.0f} s waited"


def test_a_wish_beyond_all_bounds_holds_nobody_back():
    """The request fails with it; others shall hear it for themselves rather than wait for hours."""

    async def play():
        pacer = Pacer(longest_wish_s=900)
        with pacer.given_back():
            pacer.refused(pacer.turn_at_once(), NOTHING_SAID, 86_400.0)
        await pacer.turn()

    assert run_virtually(play())[1] <= 2


def test_a_budget_that_resets_tomorrow_is_asked_about_before():
    """A limit by the day: after two minutes a request finds out."""

    async def play():
        pacer = Pacer()
        with pacer.given_back():
            pacer.answered(pacer.turn_at_once(), Allowances(requests=Allowance(0, 200, 86_400.0)), 10)
        await pacer.turn()

    assert run_virtually(play())[1] == 120


def test_a_request_larger_than_the_limit_is_tried_all_the_same():
    """The server says that it is too large; nobody waits for ever."""
    server = WindowedServer(tokens=10_000, tokens_each=4000)
    took_s, _ = run(server, 9, at_once=1)
    assert took_s <= 60 * 5


def test_old_news_changes_nothing():
    """A slow reply tells what was left before a quick one's request."""

    async def play():
        pacer = Pacer()
        first, second = pacer.turn_at_once(), pacer.turn_at_once()
        pacer.answered(second, Allowances(requests=Allowance(0, 2, 30.0)), 10)
        pacer.answered(first, Allowances(requests=Allowance(1, 2, 30.0)), 10)
        await pacer.turn()

    assert run_virtually(play())[1] == 30


def test_who_is_cancelled_while_waiting_takes_no_turn():
    """Neither before the turn comes nor in the moment when it does."""

    async def play():
        pacer = Pacer()
        with pacer.given_back():
            pacer.refused(pacer.turn_at_once(), NOTHING_SAID, 5.0)
        waiting = [asyncio.ensure_future(pacer.turn()) for _ in range(3)]
        await asyncio.sleep(1)
        waiting[0].cancel()
        asyncio.get_running_loop().call_at(5.0, waiting[1].cancel)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(end, asyncio.CancelledError) for end in ended] == [True, True, False]
        return pacer.given

    given, took_s = run_virtually(play())
    assert (given, took_s) == (1, 5)


def test_waiting_leaves_the_limit_to_others():
    """A run's permit is not held while the pace says to wait."""

    async def play():
        pacer, limit = Pacer(), asyncio.Semaphore(1)
        with pacer.given_back():
            pacer.refused(pacer.turn_at_once(), NOTHING_SAID, 5.0)
        server = WindowedServer()
        waiting = asyncio.ensure_future(Attempts(RetryPolicy(), limit, "test", pacer).send(server.send))
        await asyncio.sleep(1)
        assert not limit.locked()
        return await waiting

    assert run_virtually(play())[1] == 6


def test_waiting_for_the_pace_is_no_time_of_the_request():
    """Neither its own timeout nor the time for all tries runs."""

    async def play():
        pacer = Pacer()
        with pacer.given_back():
            pacer.refused(pacer.turn_at_once(), NOTHING_SAID, 500.0)
        policy = RetryPolicy(tries=2, total_s=10, request_timeout_s=2)
        loop, failures = asyncio.get_running_loop(), [RequestFailedError("busy", status=503)]

        async def once_busy():
            if failures:
                raise failures.pop()
            return Completion("yes")

        return await Attempts(policy, None, "test", pacer, clock=loop.time).send(once_busy)

    assert run_virtually(play())[0].text == "yes"
