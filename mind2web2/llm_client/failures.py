"""Failed HTTP requests to a judge: whether a retry or another form helps, and the error for the user."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
)

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
    """Return the rate limits that OpenAI, Azure, compatible servers or Anthropic report in headers."""
    return Allowances(_allowance(headers, "requests"), _allowance(headers, "tokens"))


def _allowance(headers: Mapping[str, str], unit: str) -> Allowance | None:
    # OpenAI names the time until the reset, Anthropic its moment. Without it, a wait could not be
    # computed.
    for name, seconds in (
        (f"x-ratelimit-{{}}-{unit}", _duration_s),
        (f"anthropic-ratelimit-{unit}-{{}}", _seconds_until),
    ):
        remaining = _count(headers.get(name.format("remaining"), ""))
        reset_s = seconds(headers.get(name.format("reset"), ""))
        if remaining is not None and reset_s is not None:
            return Allowance(remaining, _count(headers.get(name.format("limit"), "")), reset_s)
    return None


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


# Temporary, beside 5xx. 424 is Bedrock's "error while processing the model".
_PASSING_STATUSES = frozenset({408, 409, 424, 429})

# 529 is Anthropic's "overloaded"; Bedrock reports throttling with other statuses, too.
_TOO_FAST_STATUSES = frozenset({429, 529})
_TOO_FAST_MARK = "throttlingexception"

# A gateway without a working server behind it.
_OUTAGE_STATUSES = frozenset({502, 503, 504})

# A quota is refilled by a person; other 429s are temporary.
_QUOTA_MARKS = ("insufficient_quota", "billing_hard_limit", "billing_not_active")
# Anthropic's, with status 400.
_QUOTA_STARTS = (
    "your credit balance is too low",
    "you have reached your specified api usage limits",
)
# OpenAI's words for a spent quota; Gemini uses them for limits per minute, with a time to retry.
_QUOTA_WORDS = "exceeded your current quota"
_TIME_TO_COME_BACK = re.compile(r"retry in [\d.]+ ?m?s|\bretrydelay\b")
_SOON_S = 900.0

# OpenAI's reply to a request that is larger than the account's tokens per minute: permanent.
_TOO_LARGE_FOR_RATE = "request too large"

_DECLINED_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "data_inspection_failed",
    }
)
_DECLINED_MARKS = (
    "responsibleaipolicyviolation",
    "content management policy",
    "input was flagged",
)

# Some local servers report a request that is too long as their own error.
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

# Servers' words about images, and the statuses that come with them. Only the start of a text is
# searched: the rest may quote the request.
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
# A fault of one image does not concern others.
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
    """A judge's server, and the settings that a user can correct.

    Args:
        endpoint: provider and address; without secrets.
        key_name: the environment variables of the key, or another name that the user knows.
        address_name: the same for the address.
        secrets: removed from error texts, whatever a server sends back.
        address: as the user gave it, for messages; the endpoint may differ by a final ``/v1``.
    """

    endpoint: str
    key_name: str
    address_name: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    address: str = ""

    @property
    def shown(self) -> str:
        """Return provider and address for messages."""
        provider, _, address = self.endpoint.partition(" ")
        return f"{provider} {self.address or address}"


class RequestFailedError(Exception):
    """One HTTP request failed; the client turns it into a ``JudgeError``.

    Args:
        is_sent: ``False`` if no connection was made.
        is_connection_lost: the connection failed, before or after the request was sent.
        is_final: the same request would fail again, although no status says so.

    Attributes:
        is_outage: the server had failed for all requests for too long when this one was given up.
        words: codes and message in lower case, to search for phrases.
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
        is_final: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = one_line(text)
        self.words = f"{' '.join(codes)} {param} {text[:_MOST_WORDS_CHARS]}".lower()
        self.status = status
        self.codes = codes
        self.retry_after_s = retry_after_s
        self.allowances = allowances
        self.is_sent = is_sent
        self.is_outage = False
        self.is_final = is_final
        self.is_unreachable = is_connection_lost or not is_sent or status in _OUTAGE_STATUSES

    def __str__(self) -> str:
        """Return status and message on one line."""
        if self.status:
            return f"{self.status} {self.text}"
        return self.text

    @property
    def kind(self) -> str:
        """Return the status, or the kind of failure without one, for counting."""
        if not self.is_sent:
            return "no connection"
        return str(self.status) if self.status else "no reply"

    @property
    def is_refused_request(self) -> bool:
        """Tell whether the server rejected the content of the request."""
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
        """Tell whether a shorter request may succeed."""
        if self.status == 413:
            return True
        if self.status not in _TOO_LONG_STATUSES:
            return False
        return not _TOO_LONG_CODES.isdisjoint(self.codes) or any(
            p in self.words for p in _TOO_LONG_PHRASES
        )

    @property
    def image_fault(self) -> ImageFault | None:
        """Return the reason for which the server rejects the images, if it does."""
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
        if self.status == 400:
            return self.text.lower().startswith(_QUOTA_STARTS)
        if self.status != 429:
            return self.status == 402
        if any(mark in self.words for mark in _QUOTA_MARKS):
            return True
        return _QUOTA_WORDS in self.words and not self._is_open_soon

    @property
    def is_for_all(self) -> bool:
        """Tell whether the server will reject every request: it refuses the key, or the quota is spent."""
        # A router may ask more credit (402) for a long request only.
        return self.status == 401 or (self.is_quota_spent and self.status != 402)

    @property
    def _is_open_soon(self) -> bool:
        """Tell whether the server names a near time at which it accepts requests again."""
        if self.retry_after_s is not None:
            return self.retry_after_s <= _SOON_S
        limits = (self.allowances.requests, self.allowances.tokens)
        if any(
            limit is not None and limit.remaining < 1 and limit.reset_s <= _SOON_S
            for limit in limits
        ):
            return True
        return _TIME_TO_COME_BACK.search(self.words) is not None

    @property
    def is_too_fast(self) -> bool:
        """Tell whether the server asks for fewer requests."""
        return self.can_pass and (self.status in _TOO_FAST_STATUSES or _TOO_FAST_MARK in self.words)

    @property
    def is_server_error(self) -> bool:
        """Tell whether the server broke down over the request: by itself, or by what is in the request."""
        return (
            self.status is not None
            and self.status >= 500
            and self.can_pass
            and not self.is_too_fast
        )

    @property
    def can_pass(self) -> bool:
        """Tell whether the failure is temporary, so that the same request may succeed later."""
        if (
            self.is_final
            or self.is_quota_spent
            or self.is_too_long
            or self.image_fault
            or self.wants_strings
        ):
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
    """Return the failure that an error status and its body describe, in any server's format."""
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


_SHORTER = (
    "name a model with a longer context (--judge_model), or show it less of each page: --max_images, or "
    "max_text_chars in the EvaluatorConfig of the script"
)


def judge_error(failure: RequestFailedError, service: Service, model: str) -> JudgeError:
    """Return the error for a final failure; it names the cure."""
    where = f"judge {model} at {service.shown}"
    if failure.is_too_long:
        return ContextTooLongError(f"{where}: request too long: {failure}; {_SHORTER}")
    if failure.can_pass:
        wish = (
            ""
            if failure.retry_after_s is None
            else f" (it asks to wait {failure.retry_after_s:g} s)"
        )
        text = f"{where} unavailable: {failure}{wish}; try again later"
        return JudgeUnavailableError(text, is_outage=failure.is_outage)
    cure = _cure(failure, service, model)
    if failure.is_final:
        cure = f"check {service.address_name}"
    text = f"{where}: {cure}: {failure}"
    # A firewall may reject a single request with one of the others for its content.
    if failure.is_for_all or failure.is_final or failure.status in (402, 403, 404):
        return JudgeAccessError(text, is_for_all=failure.is_for_all)
    return JudgeRequestError(text)


_SHORTEST_SECRET = 5
# In a good reply, a shorter one is more likely a word than a key.
_SHORTEST_ECHO = 8
_SHOWN_CHARS = 200


def start_of(reply: bytes | str, secrets: tuple[str, ...] = ()) -> str:
    """Return the start of a server's reply for a message, without secrets."""
    # Secrets are removed before the text is cut, which might leave half of one.
    head = reply[:_MOST_WORDS_CHARS]
    text = head if isinstance(head, str) else head.decode(errors="replace")
    return one_line(text, secrets)[:_SHOWN_CHARS]


def one_line(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return the text on one line, shortened, without secrets."""
    text = " ".join(without_secrets(text, secrets).split())
    return text if len(text) <= _LONGEST_TEXT_CHARS else text[: _LONGEST_TEXT_CHARS - 3] + "..."


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """Return the text without its secrets, in whichever form a server repeats them."""
    # Local servers take keys such as "test", which are also plain words.
    forms = {
        form for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in _forms(secret)
    }
    # The longest first: one may be a part of another.
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "***")
    return text


def reply_without_secrets(reply: bytes, secrets: tuple[str, ...]) -> bytes:
    """Return a good reply, which is stored and shown, without the keys that a server echoes."""
    long = tuple(secret for secret in secrets if len(secret) >= _SHORTEST_ECHO)
    text = reply.decode(errors="surrogateescape")
    return without_secrets(text, long).encode(errors="surrogateescape")


def _forms(secret: str) -> set[str]:
    """Return a secret as addresses, JSON and HTML write it."""
    quoted = quote(secret, safe="")
    in_json = json.dumps(secret)[1:-1]
    return {
        secret,
        quoted,
        _QUOTED_CHARACTER.sub(lambda found: found[0].lower(), quoted),
        quote(secret),
        in_json,
        in_json.replace("/", "\\/"),
        html.escape(secret),
    }


_QUOTED_CHARACTER = re.compile("%[0-9A-F]{2}")


def _cure(failure: RequestFailedError, service: Service, model: str) -> str:
    if failure.status == 401:
        return f"the key is refused, check {service.key_name}"
    if failure.status == 403:
        return (
            f"the key has no access, check {service.key_name} and the account's access to {model}"
        )
    if failure.status == 404:
        return f"no such model or address, check the judge model and {service.address_name}"
    if failure.is_quota_spent:
        return f"the quota of {service.key_name} is spent, top up the account or use another key"
    if failure.status == 429:
        return f"one request exceeds the rate limit of {service.key_name}, raise it or use another model"
    return "the request is refused, check the judge model and its parameters"


def _error_object(body: str) -> dict[str, str]:
    """Return message, code, type and param, of an object, of its ``error``, or of an error as text."""
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
    return {
        name: _as_text(error[name])
        for name in ("message", "code", "type", "param")
        if error.get(name)
    }


def _without_input(detail: Any) -> object:
    """Keep messages and locations of a validation error, without the request that some servers quote."""
    if not isinstance(detail, list):
        return detail
    found = [item for item in detail if isinstance(item, dict)]
    return "; ".join(f"{item.get('loc', '')} {item.get('msg', '')}" for item in found)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
