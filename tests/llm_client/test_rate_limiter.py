"""Rate limits are used and not fought: whole runs against servers with limits, in virtual time."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest
from virtual_time import run_virtually

from mind2web2.llm_client.allowances import NOTHING_SAID, Allowance, Allowances
from mind2web2.llm_client.chat import Slowdown, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.rate_limiter import RateLimiter
from mind2web2.llm_client.retries import Attempts, RetryPolicy
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
                "slow down",
                status=429,
                retry_after_s=wish_s,
                allowances=self.told(now_s),
            )
        self.left["requests"] -= 1
        self.left["tokens"] -= self.tokens_each
        told = self.told(now_s)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(LATENCY_S)
        self.under_way -= 1
        return Completion("yes", usage=Usage(input_tokens=self.tokens_each), allowances=told)

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
    """Send so many requests through one limiter; return the seconds it took and what slowed it."""
    slowdown = Slowdown()

    async def all_of_them():
        limiter = RateLimiter(slowdown)
        limit = asyncio.Semaphore(at_once)
        attempts = [Attempts(RetryPolicy(), limit, limiter) for _ in range(count)]
        return await asyncio.gather(*(attempt.send(server.send) for attempt in attempts))

    replies, took_s = run_virtually(all_of_them())
    assert [reply.text for reply in replies] == ["yes"] * count
    assert server.arrivals - server.refusals == count
    return took_s, slowdown


def test_a_server_without_limits_is_used_at_the_given_concurrency():
    """After two rounds in which the window opens, two hundred are in flight all the time."""
    server = WindowedServer()
    took_s, slowdown = run(server, 4000)
    assert server.most_under_way == 200
    assert took_s <= 4000 / 200 * LATENCY_S + 3
    assert (slowdown.refusals, slowdown.in_words()) == (0, "")


@pytest.mark.parametrize("at_once", [1, 30, 32])
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
    assert slowdown.in_words().startswith("rate limit: requests held back for ")


@pytest.mark.parametrize("limit", [5, 20])
def test_a_limit_below_the_first_window_costs_one_round_of_refusals(limit):
    """Nothing is known yet when the first requests go out; from then on the headers tell."""
    server = WindowedServer(requests=limit)
    took_s, _ = run(server, limit * 5)
    assert server.refusals <= 32
    assert took_s <= 5 * 60 + 10


@pytest.mark.parametrize(
    ("limit", "wishes"),
    [
        (1, True),
        (7, True),
        (60, True),
        (600, True),
        (7, False),
        (60, False),
        (600, False),
    ],
)
def test_refusals_alone_are_enough(limit, wishes):
    """Without headers no request is lost, and nearly the whole limit is used."""
    server = WindowedServer(requests=limit, tells=False, wishes=wishes)
    took_s, slowdown = run(server, limit * 6)
    assert slowdown.refusals == server.refusals
    assert server.refusals <= 120 + limit
    assert took_s <= 60 * 7


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
        return Completion("yes", usage=Usage(input_tokens=1000))

    return send, state


@pytest.mark.parametrize("wishes", [False, True])
@pytest.mark.parametrize(
    ("rate_s", "burst", "latency_s"),
    [
        (3 / 60, 3, 1.0),
        (3 / 60, 1, 1.0),
        (1.0, 1, 1.0),
        (1.0, 60, 1.0),
        (10.0, 10, 8.0),
        (10.0, 600, 1.0),
    ],
)
def test_a_limit_that_refills_costs_no_request(rate_s, burst, latency_s, wishes):
    """The limiter sends refused requests again.

    It uses at least two thirds of the limit, and refusals stay rare.
    """
    send, state = refilled(rate_s, burst, latency_s, wishes)
    count = int(rate_s * 360)

    async def all_of_them():
        limiter, limit = RateLimiter(), asyncio.Semaphore(200)
        attempts = [Attempts(RetryPolicy(), limit, limiter) for _ in range(count)]
        return await asyncio.gather(*(attempt.send(send) for attempt in attempts))

    replies, took_s = run_virtually(all_of_them())
    assert len(replies) == count
    assert took_s <= 1.5 * count / rate_s
    assert state["refusals"] <= 85 + 0.06 * count


def in_turn(*steps, **settings):
    """Send requests one after the other through one limiter, and return the times.

    Each request comes with what becomes of it.

    A step is a completion or a failure; the last one waits for its turn only.
    """

    async def play():
        limiter, times_s = RateLimiter(**settings), []
        for step in steps:
            async with limiter.passing() as sent:
                times_s.append(asyncio.get_running_loop().time())
                if isinstance(step, Completion):
                    limiter.succeeded(sent, step)
                elif step is not None:
                    limiter.failed(sent, step, question=step)
        return times_s, limiter.slowdown

    return run_virtually(play())[0]


def refused(after_s=None):
    """Return a refusal that asks to wait."""
    return RequestFailedError("slow down", status=429, retry_after_s=after_s)


YES = Completion("yes")


def test_an_isolated_refusal_holds_no_other_request_back():
    """Only the refused request waits for as long as the server asks."""
    times_s, slowdown = in_turn(*[YES] * 10, refused(30.0), *[YES] * 10, refused(30.0), None)
    assert times_s[-1] == 0
    assert slowdown.in_words() == "rate limit: 2 refused (429)"


@pytest.mark.parametrize("wish_s", [5.0, 90.0])
def test_all_wait_where_most_requests_are_refused(wish_s):
    """As long as the server asks; then single requests probe it until one succeeds."""
    times_s, _ = in_turn(*[refused(wish_s)] * 3, refused(wish_s), YES, YES, None)
    assert times_s == [0] * 3 + [wish_s] + [2 * wish_s] * 3


def test_a_wait_beyond_the_patience_holds_no_request_back():
    """The refused request fails and names the time; others are sent soon and do so too."""
    times_s, _ = in_turn(*[refused(86_400.0)] * 3, None)
    assert times_s[-1] <= 5


def test_a_daily_budget_is_tried_before_its_reset():
    """After two minutes a request finds out."""
    told = Completion("yes", allowances=Allowances(requests=Allowance(0, 200, 86_400.0)))
    assert in_turn(told, None)[0] == [0, 120]


def test_a_request_larger_than_the_limit_is_tried_all_the_same():
    """The server says that it is too large; no request waits for ever."""
    server = WindowedServer(tokens=10_000, tokens_each=4000)
    took_s, _ = run(server, 9, at_once=1)
    assert took_s <= 60 * 5


def test_an_older_reply_changes_no_budget():
    """A slow reply says what was left before a quick one's request."""

    async def play():
        limiter = RateLimiter()
        async with limiter.passing() as first, limiter.passing() as second:
            for sent, left in ((second, 0), (first, 1)):
                told = Allowances(requests=Allowance(left, 2, 30.0))
                limiter.succeeded(sent, Completion("yes", allowances=told))
        async with limiter.passing():
            return asyncio.get_running_loop().time()

    assert run_virtually(play())[0] == 30


def test_a_server_that_refuses_everything_fails_all_requests_in_time():
    """After the time for refusals, waiting requests fail as well."""

    async def refuse():
        raise RequestFailedError("slow down", status=429)

    async def all_of_them():
        limiter, limit = RateLimiter(), asyncio.Semaphore(5)
        asked = (Attempts(RetryPolicy(), limit, limiter).send(refuse) for _ in range(300))
        return await asyncio.gather(*asked, return_exceptions=True)

    failures, took_s = run_virtually(all_of_them())
    assert [failure.status for failure in failures] == [429] * 300
    assert 800 <= took_s <= 1000


def test_cancelled_requests_take_no_turn():
    """Neither before the turn comes nor in the moment when it does."""

    async def play():
        limiter, passed = RateLimiter(), []
        told = Completion("yes", allowances=Allowances(requests=Allowance(0, 10, 5.0)))
        async with limiter.passing() as sent:
            limiter.succeeded(sent, told)

        async def one():
            async with limiter.passing() as sent:
                passed.append(sent.others)

        waiting = [asyncio.ensure_future(one()) for _ in range(3)]
        await asyncio.sleep(1)
        waiting[0].cancel()
        asyncio.get_running_loop().call_at(5.0, waiting[1].cancel)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [isinstance(end, asyncio.CancelledError) for end in ended] == [
            True,
            True,
            False,
        ]
        async with limiter.passing() as sent:
            assert sent.others == 0

    run_virtually(play())


@pytest.mark.parametrize("share", [0.02, 0.04, 0.1])
def test_random_refusals_cost_their_own_wait_only(share):
    """30 at once for a minute: the rate stays near that of a server that refuses none."""
    chance = random.Random(5)

    async def send():
        if chance.random() < share:
            raise refused(1.0)
        await asyncio.sleep(0.3)
        return YES

    assert served_in(send, 60) >= 0.9 * 60 * 30 / 0.3


def test_a_limit_of_requests_in_flight_is_found():
    """Eight at once are accepted: eight are nearly always in flight, and few are refused."""
    state = {"in_flight": 0, "refusals": 0}

    async def send():
        if state["in_flight"] >= 8:
            state["refusals"] += 1
            raise refused(1.0)
        state["in_flight"] += 1
        await asyncio.sleep(0.3)
        state["in_flight"] -= 1
        return YES

    served = served_in(send, 120)
    assert served >= 0.85 * 120 * 8 / 0.3
    assert state["refusals"] <= 0.1 * served


@pytest.mark.parametrize(
    "failure",
    [
        refused(),
        RequestFailedError("down", status=503),
        RequestFailedError("refused", is_sent=False),
    ],
)
def test_after_an_outage_the_rate_is_soon_what_it_was(failure):
    """The server is away for 30 s, and no request fails.

    At most 10 s later all slots are busy again.
    """
    times_s = []

    async def send():
        now_s = asyncio.get_running_loop().time()
        if 30 <= now_s < 60:
            raise failure
        times_s.append(now_s)
        await asyncio.sleep(0.3)
        return YES

    served_in(send, 90)
    assert sum(70 <= time_s < 80 for time_s in times_s) >= 0.9 * 10 * 30 / 0.3


def served_in(send, seconds, at_once=30):
    """Return how many requests succeed in this time, with more of them waiting than may be sent."""
    served = 0

    async def main():
        limiter, limit = RateLimiter(), asyncio.Semaphore(at_once)

        async def ask():
            nonlocal served
            while True:
                await Attempts(RetryPolicy(), limit, limiter).send(send)
                served += 1

        asking = [asyncio.ensure_future(ask()) for _ in range(3 * at_once)]
        failed, _ = await asyncio.wait(asking, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in asking:
            task.cancel()
        ended = await asyncio.gather(*asking, return_exceptions=True)
        assert not failed, ended

    run_virtually(main())
    return served


def test_requests_wait_for_a_probe_in_flight():
    """After a long outage: their failure would cancel the probe of the same answer, every time."""

    async def judge():
        loop = asyncio.get_running_loop()
        policy, limiter = RetryPolicy(outage_wait_s=5), RateLimiter(outage_wait_s=5)

        async def reply():
            if loop.time() - started_s < 30:
                raise RequestFailedError("down", status=503)
            await asyncio.sleep(LATENCY_S)
            return Completion("yes")

        started_s = loop.time()
        while loop.time() - started_s < 90:
            try:
                async with asyncio.TaskGroup() as answer:
                    for _ in range(2):
                        answer.create_task(Attempts(policy, None, limiter).send(reply))
            except ExceptionGroup:
                await asyncio.sleep(1)
            else:
                return loop.time() - started_s
        return None

    recovered_s, _ = run_virtually(judge())
    assert 30 < recovered_s < 40
