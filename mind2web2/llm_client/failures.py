"""What a failed HTTP request to a judge means: try again, ask otherwise, or give up with which cure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
)

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


# 424 is Bedrock's "error while processing the model"; 5xx are handled as a range.
_PASSING_STATUSES = frozenset({408, 409, 424, 429})

# 529 is Anthropic's "overloaded"; on Bedrock a throttled model may say so with other statuses as well.
_TOO_FAST_STATUSES = frozenset({429, 529})
_TOO_FAST_MARK = "throttlingexception"

# A gateway without a working server behind it.
_OUTAGE_STATUSES = frozenset({502, 503, 504})

# A quota is refilled by a person, not by waiting; the rest of the 429s pass.
_QUOTA_MARKS = ("insufficient_quota", "billing_hard_limit", "billing_not_active")
# What OpenAI says of a spent quota, and Gemini of its limits by the minute, with the time when to come back.
_QUOTA_WORDS = "exceeded your current quota"
_TIME_TO_COME_BACK = re.compile(r"retry in [\d.]+ ?m?s|\bretrydelay\b")
_SOON_S = 900.0

# OpenAI's answer to one request that is larger than the account's tokens per minute: it never passes.
_TOO_LARGE_FOR_RATE = "request too large"

_DECLINED_CODES = frozenset(
    {"content_filter", "content_policy_violation", "invalid_prompt", "data_inspection_failed"}
)
_DECLINED_MARKS = ("responsibleaipolicyviolation", "content management policy", "input was flagged")

# Some local servers report an overlong request as their own error.
_TOO_LONG_STATUSES = (400, 422, 500)
_TOO_LONG_CODES = frozenset(
    {"context_length_exceeded", "string_above_max_length", "exceed_context_size_error"}
)
_TOO_LONG_PHRASES = (
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "maximum number of tokens allowed",
    "maximum number of input tokens",
    "reduce the length of the messages",
    "maximum model length",
)

# What servers say of images, with statuses for which they are known to say so. The rest of a text may quote
# the request.
_IMAGE_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
BODY_TOO_LARGE = 413
_BLAME_CHARS = 1000
ImageFault = Literal["too large", "too many", "none taken"]
_TOO_LARGE_IMAGE = re.compile(
    r"image[^\n]{0,80}(?:dimension|pixel|\bpx\b|resolution|too (?:large|big)|\b[km]i?b\b|bytes|\bsize)"
    r"|(?:dimension|pixel|resolution)[^\n]{0,80}image"
)
_TOO_MANY_IMAGES = re.compile(
    r"too (?:many|much) (?:images|media)|(?:one|single|at most \d+|up to \d+|only \d+) image"
    r"|(?:exceed|max)[^\n]{0,60}\bimages\b|\bimages?\b[^\n]{0,60}(?:exceed|\bmax|at most|limit)"
)
_NO_IMAGES = re.compile(
    r"not a (?:multi-?modal|vision)|not compiled for multi-?modal|text-only|only (?:accept|support)s? text"
    r"|(?:image|vision|multi-?modal)[^\n]{0,60}(?:not|n't) (?:support|enabl|load|availabl|allow)ed"
    r"|(?:not|n't) (?:support|accept)[^\n]{0,40}(?:image|vision|multi-?modal)"
    r"|image_url[^\n]{0,20}only supported|unknown variant .?image_url|unsupported content[^\n]{0,40}image"
    r"|no endpoints? found[^\n]{0,40}image|missing data required for image|input should be 'text'"
)
# A fault of one image, or of its form, says nothing about other images.
_ONE_IMAGE = re.compile(
    r"image.{0,20}format|format.{0,20}image|mime|invalid (?:image|base64)|damaged"
    r"|could not (?:process|download|load)"
)
_WANTS_STRINGS = re.compile(
    r"(?:must|should) be a (?:valid )?str|expected (?:a )?string|of type string|not .?list.?\) to str"
    r"|untagged enum chatcompletion"
)

_LONGEST_TEXT_CHARS = 300
_MOST_WORDS_CHARS = 5000


@dataclass(frozen=True, slots=True)
class Service:
    """Where a judge is reached, and the settings a user can correct.

    Args:
        endpoint: what tells this provider from others; never holds a secret.
        key_name: what a user knows the key by: the environment variables that hold it, or that it was given.
        address_name: likewise for the setting that leads to this address.
        secrets: never to appear in an error text, whatever a server sends back.
    """

    endpoint: str
    key_name: str
    address_name: str
    secrets: tuple[str, ...] = ()


class RequestFailedError(Exception):
    """One HTTP request failed; stays inside this package and ends as a ``JudgeError``.

    Args:
        text: the server's message or the client's.
        is_sent: ``False`` if no connection was made, so that nothing of the request was sent.
        is_connection_lost: the connection failed, before or after the request was sent.

    Attributes:
        words: codes and message in lower case, to look for phrases in.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        codes: tuple[str, ...] = (),
        param: str = "",
        retry_after_s: float | None = None,
        allowances: Allowances = NOTHING_SAID,
        is_sent: bool = True,
        is_connection_lost: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = one_line(text)
        self.words = f"{' '.join(codes)} {param} {text[:_MOST_WORDS_CHARS]}".lower()
        self.status = status
        self.codes = codes
        self.retry_after_s = retry_after_s
        self.allowances = allowances
        self.is_sent = is_sent
        self.is_unreachable = is_connection_lost or not is_sent or status in _OUTAGE_STATUSES

    def __str__(self) -> str:
        """Return the status and the server's words on one line."""
        return f"{self.status} {self.text}" if self.status else self.text

    @property
    def kind(self) -> str:
        """Return the status, or that nothing of any use came about, for counting."""
        if not self.is_sent:
            return "no connection"
        return str(self.status) if self.status else "no reply"

    @property
    def is_refused_request(self) -> bool:
        """Tell whether the server found fault with what the request says."""
        return self.status in (400, 422)

    @property
    def is_declined(self) -> bool:
        """Tell whether a content filter stopped the request."""
        if self.status not in (400, 403, 422):
            return False
        return not _DECLINED_CODES.isdisjoint(self.codes) or any(
            mark in self.words for mark in _DECLINED_MARKS
        )

    @property
    def is_too_long(self) -> bool:
        """Tell whether a shorter request may pass."""
        if self.status == 413:
            return True
        if self.status not in _TOO_LONG_STATUSES:
            return False
        return not _TOO_LONG_CODES.isdisjoint(self.codes) or any(p in self.words for p in _TOO_LONG_PHRASES)

    @property
    def image_fault(self) -> ImageFault | None:
        """Tell what the server says is wrong with the images of a request, if anything."""
        if self.status == BODY_TOO_LARGE:
            return "too many"
        words = self.words[:_BLAME_CHARS]
        if self.status not in _IMAGE_STATUSES or self.is_too_long or _ONE_IMAGE.search(words):
            return None
        if _TOO_LARGE_IMAGE.search(words):
            return "too large"
        if _TOO_MANY_IMAGES.search(words):
            return "too many"
        return "none taken" if _NO_IMAGES.search(words) else None

    @property
    def wants_strings(self) -> bool:
        """Tell whether the server takes a message's content as one string only."""
        words = self.words[:_BLAME_CHARS]
        is_about_content = "content" in words or "messages" in words or self.status in (422, 500)
        is_blamed = self.status in _IMAGE_STATUSES and is_about_content
        return is_blamed and _WANTS_STRINGS.search(words) is not None

    @property
    def is_quota_spent(self) -> bool:
        """Tell whether the account has run out of money or quota."""
        if self.status != 429:
            return self.status == 402
        if any(mark in self.words for mark in _QUOTA_MARKS):
            return True
        return _QUOTA_WORDS in self.words and not self._is_open_soon

    @property
    def _is_open_soon(self) -> bool:
        """Tell whether the server names a time, not far away, at which it lets requests in again."""
        if self.retry_after_s is not None:
            return self.retry_after_s <= _SOON_S
        limits = (self.allowances.requests, self.allowances.tokens)
        if any(limit is not None and limit.remaining < 1 and limit.reset_s <= _SOON_S for limit in limits):
            return True
        return _TIME_TO_COME_BACK.search(self.words) is not None

    @property
    def is_too_fast(self) -> bool:
        """Tell whether the server wants fewer requests for a while."""
        return self.can_pass and (self.status in _TOO_FAST_STATUSES or _TOO_FAST_MARK in self.words)

    @property
    def can_pass(self) -> bool:
        """Tell whether the same request may pass later."""
        if self.is_quota_spent or self.is_too_long or self.image_fault or self.wants_strings:
            return False
        if self.status == 429 and _TOO_LARGE_FOR_RATE in self.words:
            return False
        return self.status is None or self.status in _PASSING_STATUSES or self.status >= 500


def failure_from_body(
    status: int,
    body: str,
    retry_after_s: float | None = None,
    secrets: tuple[str, ...] = (),
    allowances: Allowances = NOTHING_SAID,
) -> RequestFailedError:
    """Return the failure that an error status and its body describe, in any of the shapes servers use."""
    error = _error_object(body)
    text = error.get("message") or body or "no explanation"
    if text.lstrip().lower().startswith(("<!doctype", "<html")):
        text = "an HTML page instead of an API's answer"
    return RequestFailedError(
        without_secrets(text, secrets),
        status=status,
        codes=tuple(error[name] for name in ("code", "type") if name in error),
        param=error.get("param", ""),
        retry_after_s=retry_after_s,
        allowances=allowances,
    )


def judge_error(failure: RequestFailedError, service: Service, model: str) -> JudgeError:
    """Return the error for a failure that is final; it names the cure."""
    where = f"judge {model} at {service.endpoint}"
    if failure.is_too_long:
        return ContextTooLongError(f"{where}: request too long: {failure}")
    if failure.can_pass:
        wish = "" if failure.retry_after_s is None else f" (it asks to wait {failure.retry_after_s:g} s)"
        return JudgeUnavailableError(f"{where} unavailable: {failure}{wish}; try again later")
    text = f"{where}: {_cure(failure, service, model)}: {failure}"
    # Of the others, a firewall may forbid one request for what it says, and a router want more credit for a
    # long one than for the rest.
    is_for_all = failure.status == 401 or (failure.is_quota_spent and failure.status == 429)
    if is_for_all or failure.status in (402, 403, 404):
        return JudgeAccessError(text, is_for_all=is_for_all)
    return JudgeRequestError(text)


_SHORTEST_SECRET = 5


def one_line(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return the text on one line, shortened, without secrets."""
    text = " ".join(without_secrets(text, secrets).split())
    return text if len(text) <= _LONGEST_TEXT_CHARS else text[: _LONGEST_TEXT_CHARS - 3] + "..."


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text with every secret blotted out."""
    # Local servers take keys such as "test", which also stand in messages as plain words.
    for secret in (secret for secret in secrets if len(secret) >= _SHORTEST_SECRET):
        text = text.replace(secret, "***")
    return text


def _cure(failure: RequestFailedError, service: Service, model: str) -> str:
    if failure.status == 401:
        return f"the key is refused, check {service.key_name}"
    if failure.status == 403:
        return f"the key has no access, check {service.key_name} and the account's access to {model}"
    if failure.status == 404:
        return f"no such model or address, check the judge model and {service.address_name}"
    if failure.is_quota_spent:
        return f"the quota of {service.key_name} is spent, top up the account or use another key"
    if failure.status == 429:
        return f"one request exceeds the rate limit of {service.key_name}, raise it or use another model"
    return "the request is refused, check the judge model and its parameters"


def _error_object(body: str) -> dict[str, str]:
    """Find message, code, type and param in ``{"error": {...}}``, ``{"error": "text"}`` or a bare object."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(parsed, dict):
        return {}
    error: Any = parsed.get("error", parsed)
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        return {}
    if "message" not in error and "detail" in error:
        error = {**error, "message": _without_input(error["detail"])}
    return {name: _as_text(error[name]) for name in ("message", "code", "type", "param") if error.get(name)}


def _without_input(detail: Any) -> object:
    """Keep what a validating server says and where, without the request that some send back."""
    if not isinstance(detail, list):
        return detail
    found = [item for item in detail if isinstance(item, dict)]
    return "; ".join(f"{item.get('loc', '')} {item.get('msg', '')}" for item in found)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
