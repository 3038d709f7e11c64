"""What headers say is left of the rate limits."""

from datetime import UTC, datetime, timedelta

import pytest

from mind2web2.llm_client.failures import NOTHING_SAID, Allowance, Allowances, allowances_in


def openai_headers(reset):
    """Return OpenAI's headers on requests."""
    return {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": reset,
    }


@pytest.mark.parametrize(
    ("reset", "expected_s"),
    [("120ms", 0.12), ("1s", 1), ("6m0s", 360), ("1h2m3.5s", 3723.5), ("2m59.56s", 179.56), ("7", 7)],
)
def test_openais_durations_are_read(reset, expected_s):
    """In hours, minutes, seconds and milliseconds, or plain seconds."""
    assert allowances_in(openai_headers(reset)).requests == Allowance(499, 500, pytest.approx(expected_s))


@pytest.mark.parametrize("reset", ["", "soon", "-1s", "nan"])
def test_without_a_time_of_reset_nothing_is_known(reset):
    """How long to wait could not be told."""
    assert allowances_in(openai_headers(reset)) == NOTHING_SAID


def test_requests_and_tokens_are_two_limits():
    """A server may tell one of them only, and leave out the whole."""
    headers = {"x-ratelimit-remaining-tokens": "1000", "x-ratelimit-reset-tokens": "2s"}
    assert allowances_in(headers) == Allowances(tokens=Allowance(1000, None, 2))


def test_anthropics_times_are_read():
    """It tells the moment of the reset."""
    in_an_hour = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    headers = {
        f"anthropic-ratelimit-{unit}-{name}": value
        for unit in ("requests", "tokens")
        for name, value in (("limit", "50"), ("remaining", "0"), ("reset", in_an_hour))
    }
    told = allowances_in(headers)
    for allowance in (told.requests, told.tokens):
        assert (allowance.remaining, allowance.limit) == (0, 50)
        assert 3500 < allowance.reset_s <= 3600


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-remaining-requests": "many", "x-ratelimit-reset-requests": "1s"},
        {"anthropic-ratelimit-requests-remaining": "5", "anthropic-ratelimit-requests-reset": "later"},
    ],
)
def test_anything_else_says_nothing(headers):
    """A request is never held back for what cannot be read."""
    assert allowances_in(headers) == NOTHING_SAID
