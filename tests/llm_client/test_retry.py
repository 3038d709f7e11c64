"""When and how long to wait before a request is made again."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retry import Attempts, RetryPolicy, retry_after_s, waits


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
    """Seconds, milliseconds and dates are understood; anything else is no wish."""
    assert retry_after_s(headers) == expected_s


def test_a_date_ahead_is_the_time_until_then():
    """An HTTP-date one hour ahead asks for an hour."""
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    assert 3500 < retry_after_s({"retry-after": in_an_hour}) <= 3600


def waits_after(policy, failures):
    """Return the waits that follow these failures."""
    generator = waits(policy)
    generator.send(None)
    return [generator.send(failure) for failure in failures]


def test_waits_double_up_to_their_ceiling():
    """Each wait lies between zero and its own ceiling, and they spread over the range."""
    policy = RetryPolicy(first_wait_s=2, longest_wait_s=10)
    failures = [RequestFailedError("503", status=503)] * 5
    runs = [waits_after(policy, failures) for _ in range(300)]
    for ceiling_s, tried in zip((2, 4, 8, 10, 10), zip(*runs, strict=True), strict=True):
        assert 0 <= min(tried) < ceiling_s / 4
        assert ceiling_s * 3 / 4 < max(tried) <= ceiling_s


def test_a_wait_is_never_shorter_than_the_server_asks():
    """Jitter comes on top of Retry-After."""
    failure = RequestFailedError("slow down", status=429, retry_after_s=30.0)
    for wait_s in itertools.chain.from_iterable(waits_after(RetryPolicy(), [failure] * 3) for _ in range(50)):
        assert wait_s >= 30


async def failing_attempts(policy, failure):
    """Return how many requests were made for something that always fails like this."""
    attempts = Attempts(policy, None, "test")

    async def fail():
        raise failure

    with pytest.raises(RequestFailedError):
        await attempts.send(fail)
    return attempts.made


async def test_tries_are_bounded(quick):
    """What keeps failing is given up after the policy's number of tries."""
    assert await failing_attempts(quick, RequestFailedError("busy", status=503)) == quick.tries


async def test_a_wish_beyond_the_bound_is_not_waited_for(quick):
    """Asked to come back later than the policy allows, it gives up at once."""
    failure = RequestFailedError("busy", status=429, retry_after_s=quick.total_s + 1)
    assert await failing_attempts(quick, failure) == 1


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        """Return the seconds so far."""
        return self.now_s


class SlowLimit:
    """A limit whose turn comes after a hundred seconds."""

    def __init__(self, clock):
        self.clock = clock

    async def __aenter__(self):
        self.clock.now_s += 100

    async def __aexit__(self, *_):
        return None


@pytest.mark.parametrize(("request_s", "expected_tries"), [(0, 4), (10, 3), (30, 1)])
async def test_the_total_time_counts_requests_but_not_queueing(quick, request_s, expected_tries):
    """Tries end when 30 s are spent on requests, however long each waited for its turn."""
    clock = Clock()
    attempts = Attempts(quick, SlowLimit(clock), "test", clock=clock)

    async def fail():
        clock.now_s += request_s
        raise RequestFailedError("busy", status=503)

    with pytest.raises(RequestFailedError):
        await attempts.send(fail)
    assert attempts.made == expected_tries


async def test_cancellation_is_not_retried(quick):
    """A cancelled request stays cancelled."""
    attempts = Attempts(quick, None, "test")

    async def request():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await attempts.send(request)
    assert attempts.made == 1
