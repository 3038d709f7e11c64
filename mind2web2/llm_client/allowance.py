"""What a server says is left of its rate limits, read from a reply's headers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

# Go's way to write a duration, which OpenAI's servers use: 120ms, 6m0s, 1h2m3.5s.
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of one rate limit, in requests or in tokens.

    Args:
        remaining: may still be used before the limit resets.
        limit: what there is after it has, ``None`` where the server does not say.
        reset_s: seconds until then.
    """

    remaining: float
    limit: float | None
    reset_s: float


@dataclass(frozen=True, slots=True)
class Allowances:
    """Both rate limits of a model; ``None`` where the server says nothing of one."""

    requests: Allowance | None = None
    tokens: Allowance | None = None


NOTHING_SAID = Allowances()


def allowances_in(headers: Mapping[str, str]) -> Allowances:
    """Return what the headers of OpenAI, Azure and compatible servers, or Anthropic's, say is left."""
    if "x-ratelimit-remaining-requests" in headers or "x-ratelimit-remaining-tokens" in headers:
        return Allowances(_openai(headers, "requests"), _openai(headers, "tokens"))
    if (
        "anthropic-ratelimit-requests-remaining" in headers
        or "anthropic-ratelimit-tokens-remaining" in headers
    ):
        return Allowances(_anthropic(headers, "requests"), _anthropic(headers, "tokens"))
    return NOTHING_SAID


def _openai(headers: Mapping[str, str], unit: str) -> Allowance | None:
    names = [f"x-ratelimit-{what}-{unit}" for what in ("remaining", "limit", "reset")]
    remaining, limit, reset = (headers.get(name, "") for name in names)
    return _allowance(remaining, limit, _duration_s(reset))


def _anthropic(headers: Mapping[str, str], unit: str) -> Allowance | None:
    names = [f"anthropic-ratelimit-{unit}-{what}" for what in ("remaining", "limit", "reset")]
    remaining, limit, reset = (headers.get(name, "") for name in names)
    return _allowance(remaining, limit, _seconds_until(reset))


def _allowance(remaining: str, limit: str, reset_s: float | None) -> Allowance | None:
    left, whole = _count(remaining), _count(limit)
    # Without a time of reset nobody could tell how long to wait; a refusal then says it.
    return None if left is None or reset_s is None else Allowance(left, whole, reset_s)


def _count(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _duration_s(text: str) -> float | None:
    plain = _count(text)
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
