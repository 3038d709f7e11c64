"""When and how long to wait before a request is made again."""

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from virtual_time import run_virtually

from mind2web2.llm_client.chat import Completion, Retries, SentRequests, Slowdown
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retries import Attempts, RetryPolicy, Window
from mind2web2.utils.retry_after import retry_after_s


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({}, None),
    ],
)
def test_the_servers_wish_is_read(headers, expected_s):
    """Seconds, milliseconds and dates are understood; anything else is ignored."""
    assert retry_after_s(headers) == expected_s


def test_a_date_ahead_is_the_time_until_then():
    """An HTTP-date one hour ahead asks for an hour."""
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < retry_after_s({"retry-after": in_an_hour}) <= 3600


def test_waits_double_up_to_their_bound():
    """Each wait lies in the upper half of its range, so that requests do not come back together."""
    policy = RetryPolicy(first_wait_s=2, longest_wait_s=10)
    failure = RequestFailedError("500", status=500)
    for number, bound_s in enumerate((2, 4, 8, 10, 10), start=1):
        waits_s = [policy.wait_s(number, failure) for _ in range(300)]
        assert bound_s / 2 <= min(waits_s) < bound_s * 0.6
        assert bound_s * 0.9 < max(waits_s) <= bound_s


def test_a_wait_is_never_shorter_than_the_server_asks():
    """Jitter comes on top of Retry-After."""
    failure = RequestFailedError("slow down", status=429, retry_after_s=30.0)
    assert all(30 <= RetryPolicy().wait_s(number, failure) <= 33 for number in (1, 5))


async def failing_attempts(policy, failure):
    """Return how many requests were made for something that always fails like this."""
    attempts = Attempts(Window(policy, Slowdown()), nullcontext(), Retries(), SentRequests())

    async def fail():
        raise failure

    with pytest.raises(RequestFailedError):
        await attempts.send(fail)
    return attempts.made


async def test_tries_are_bounded(quick):
    assert await failing_attempts(quick, RequestFailedError("oops", status=500)) == quick.tries


async def test_a_wish_beyond_the_bound_is_not_waited_for(quick):
    failure = RequestFailedError("busy", status=429, retry_after_s=quick.total_s + 1)
    assert await failing_attempts(quick, failure) == 1


def outage_of(seconds, failure, **policy):
    """Let everything fail for some virtual seconds.

    Return what becomes of ten requests, and the time.
    """

    async def send():
        if asyncio.get_running_loop().time() < seconds:
            raise failure
        return Completion("yes")

    async def main():
        window = Window(RetryPolicy(**policy), Slowdown())
        tries = [
            Attempts(window, nullcontext(), Retries(), SentRequests()).send(send) for _ in range(10)
        ]
        return await asyncio.gather(*tries, return_exceptions=True)

    return run_virtually(main())


@pytest.mark.parametrize(
    "failure",
    [
        RequestFailedError("connection refused", is_sent=False),
        RequestFailedError("reset", is_connection_lost=True),
        RequestFailedError("bad gateway", status=502),
        RequestFailedError("restarting", status=503, retry_after_s=3.0),
        RequestFailedError("out of memory", status=500),
    ],
)
def test_an_outage_is_waited_out_by_time(failure):
    """The time counts, not the tries; after two minutes all requests fail together."""
    ended, took_s = outage_of(100, failure)
    assert [end.text for end in ended] == ["yes"] * 10
    assert took_s <= 110
    ended, took_s = outage_of(1000, failure)
    assert all(isinstance(end, RequestFailedError) for end in ended)
    assert 110 <= took_s <= 130
    assert 10 <= outage_of(1000, failure, outage_wait_s=20)[1] <= 25


def test_few_questions_that_fail_are_no_outage():
    """One text may break a server.

    Its votes fail after their tries, long before an outage would end.
    """

    async def broken():
        raise RequestFailedError("crash", status=500)

    async def main():
        window = Window(RetryPolicy(), Slowdown())
        tries = [
            Attempts(window, nullcontext(), Retries(), SentRequests()).send(broken)
            for _ in range(3)
        ]
        return await asyncio.gather(*tries, return_exceptions=True)

    ended, took_s = run_virtually(main())
    assert [failure.is_outage for failure in ended] == [False] * 3
    assert took_s < 40


def test_a_request_that_breaks_a_server_fails_after_its_tries():
    """The server serves others between, so it is not an outage."""

    async def main():
        window = Window(RetryPolicy(), Slowdown())

        async def good():
            return Completion("yes")

        async def bad():
            await Attempts(window, nullcontext(), Retries(), SentRequests()).send(good)
            raise RequestFailedError("crashed", status=502)

        attempts = Attempts(window, nullcontext(), Retries(), SentRequests())
        with pytest.raises(RequestFailedError, match="crashed"):
            await attempts.send(bad)
        return attempts.made

    made, _ = run_virtually(main())
    assert made == RetryPolicy().tries


async def test_cancellation_is_not_retried(quick):
    """A cancelled request stays cancelled."""
    attempts = Attempts(Window(quick, Slowdown()), nullcontext(), Retries(), SentRequests())

    async def request():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await attempts.send(request)
    assert attempts.made == 1
