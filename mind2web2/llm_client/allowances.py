"""The rate limits that servers report in the headers of their replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mind2web2.utils.retry_after import number

# A duration in Go's format, which OpenAI's servers use: 120ms, 6m0s, 1h2m3.5s.
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


@dataclass(frozen=True, slots=True)
class Allowance:
    """The state of one rate limit, in requests or in tokens.

    Args:
        remaining: usable before the reset.
        limit: usable after the reset, ``None`` where the server does not report it.
        reset_s: seconds until the reset.
    """

    remaining: float
    limit: float | None
    reset_s: float


@dataclass(frozen=True, slots=True)
class Allowances:
    """Both rate limits of a model, ``None`` where the server does not report one."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


NOTHING_SAID = Allowances()


def allowances_in(headers: Mapping[str, str]) -> Allowances:
    """Return the rate limits that a server reports in headers.

    OpenAI, Azure, compatible servers and Anthropic report them.
    """
    return Allowances(_allowance(headers, "requests"), _allowance(headers, "tokens"))


def _allowance(headers: Mapping[str, str], unit: str) -> Allowance | None:
    # OpenAI names the time until the reset, Anthropic its moment. Without it, a wait could not be
    # computed.
    for name, seconds in (
        (f"x-ratelimit-{{}}-{unit}", _duration_s),
        (f"anthropic-ratelimit-{unit}-{{}}", _seconds_until),
    ):
        remaining = number(headers.get(name.format("remaining"), ""))
        reset_s = seconds(headers.get(name.format("reset"), ""))
        if remaining is not None and reset_s is not None:
            return Allowance(remaining, number(headers.get(name.format("limit"), "")), reset_s)
    return None


def _duration_s(text: str) -> float | None:
    plain = number(text)
    if plain is not None:
        return plain
    found = _DURATION.fullmatch(text.strip())
    if found is None or not text.strip():
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _seconds_until(moment: str) -> float | None:
    try:
        when = datetime.fromisoformat(moment)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
