"""Failed HTTP requests to a judge: whether a retry, a shorter request or another form helps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from mind2web2.utils.json_text import mapping, mappings
from mind2web2.utils.shown_text import MAX_WORDS_CHARS, one_line, without_secrets


@dataclass(frozen=True, slots=True)
class _Sign:
    """How servers say one thing: with one of these statuses, as a code or in words.

    Args:
        chars: of a text, are searched; the rest may quote the request. ``None`` for all.
    """

    statuses: frozenset[int]
    words: re.Pattern[str]
    codes: frozenset[str] = frozenset()
    chars: int | None = None

    def is_in(self, failure: RequestFailedError) -> bool:
        """Tell whether a failure has this sign."""
        is_said = self.words.search(failure.words[: self.chars]) is not None
        is_told = is_said or not self.codes.isdisjoint(failure.codes)
        return failure.status in self.statuses and is_told


# Temporary, beside 5xx. 424 is Bedrock's "error while processing the model", 499 a gateway's word
# that its own client went away.
_PASSING_STATUSES = frozenset({408, 409, 424, 425, 429, 499})
# Permanent, although 5xx: another version of HTTP is needed.
_OTHER_VERSION = 505
# LiteLLM wraps a model's 400 in a 500 of its own.
_WRAPPED = "badrequesterror"
# Groq checks the model's JSON itself.
_INVALID_OUTPUT_CODES = frozenset({"json_validate_failed", "tool_use_failed"})
# Some local servers report a fault of the content as their own error.
_OF_CONTENT = frozenset({400, 422, 500})
_BLAME_CHARS = 1000
# Chat templates without a system's turn, or that want the user and the assistant in turn.
_WANTS_TURNS = _Sign(
    _OF_CONTENT,
    re.compile(
        r"roles? must alternate|system (?:role|message|prompt)s? (?:is |are )?not"
        r"|\broles?\b[^\n]{0,60}(?:not|only)[^\n]{0,40}(?:support|allow|accept)"
        r"|only user(?:,| and) [^\n]{0,40}roles|unexpected role"
    ),
    chars=_BLAME_CHARS,
)
# 529 is Anthropic's "overloaded"; Bedrock reports throttling with other statuses, too.
_TOO_FAST_STATUSES = frozenset({429, 529})
_TOO_FAST_MARK = "throttlingexception"
# A gateway without a working server behind it.
_OUTAGE_STATUSES = frozenset({502, 503, 504})
# A quota is refilled by a person; other 429s are temporary.
_QUOTA_MARKS = re.compile("insufficient_quota|billing_hard_limit|billing_not_active")
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
_TOO_LARGE_FOR_RATE = _Sign(frozenset({429}), re.compile("request too large"))
_DECLINED = _Sign(
    frozenset({400, 403, 422}),
    re.compile("responsibleaipolicyviolation|content management policy|input was flagged"),
    frozenset(
        {
            "content_filter",
            "content_policy_violation",
            "invalid_prompt",
            "data_inspection_failed",
        }
    ),
)
_TOO_LONG = _Sign(
    _OF_CONTENT,
    re.compile(
        "context (?:length|window|size)|(?:prompt|input) is too long|too many tokens"
        "|maximum number of (?:input )?tokens allowed|reduce the length of the messages"
        "|maximum model length"
    ),
    frozenset({"context_length_exceeded", "string_above_max_length", "exceed_context_size_error"}),
)
# Servers' words about images, and the statuses that come with them. Only the start of a text is
# searched: the rest may quote the request.
_IMAGE_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
BODY_TOO_LARGE = 413
ImageFault = Literal["too many", "none taken"]
_TOO_MANY_IMAGES = _Sign(
    _IMAGE_STATUSES,
    re.compile(
        r"too (?:many|much) (?:images|media)|(?:one|single|at most \d+|up to \d+|only \d+) image"
        r"|(?:exceed|max)[^\n]{0,60}\bimages\b|\bimages?\b[^\n]{0,60}(?:exceed|\bmax|at most|limit)"
    ),
    chars=_BLAME_CHARS,
)
_NO_IMAGES = _Sign(
    _IMAGE_STATUSES,
    re.compile(
        r"not a (?:multi-?modal|vision)|not compiled for multi-?modal|text-only|only "
        r"(?:accept|support)s? text"
        r"|(?:image|vision|multi-?modal)[^\n]{0,60}(?:not|n't) (?:support|enabl|load|availabl|allow)ed"
        r"|(?:not|n't) (?:support|accept)[^\n]{0,40}(?:image|vision|multi-?modal)"
        r"|image_url[^\n]{0,20}only supported|unknown variant .?image_url|unsupported "
        r"content[^\n]{0,40}image"
        r"|no endpoints? found[^\n]{0,40}image|missing data required for image|input should be 'text'"
    ),
    chars=_BLAME_CHARS,
)
# A fault of one image, such as its size, does not concern others.
_ONE_IMAGE = _Sign(
    _IMAGE_STATUSES,
    re.compile(
        r"image[^\n]{0,80}(?:dimension|pixel|\bpx\b|resolution|too "
        r"(?:large|big)|\b[km]i?b\b|bytes|\bsize)"
        r"|(?:dimension|pixel|resolution)[^\n]{0,80}image|"
        r"image.{0,20}format|format.{0,20}image|mime|invalid (?:image|base64)|damaged"
        r"|could not (?:process|download|load)"
    ),
    chars=_BLAME_CHARS,
)
_WANTS_STRINGS = _Sign(
    _IMAGE_STATUSES,
    re.compile(
        r"(?:must|should) be a (?:valid )?str|expected (?:a )?string|of type string|not .?list.?\) to "
        r"str"
        r"|untagged enum chatcompletion"
    ),
    chars=_BLAME_CHARS,
)
_IMAGE_FAULTS: tuple[tuple[ImageFault | None, _Sign], ...] = (
    (None, _ONE_IMAGE),
    ("too many", _TOO_MANY_IMAGES),
    ("none taken", _NO_IMAGES),
)


class RequestFailedError(Exception):
    """One HTTP request failed; the client turns it into a ``JudgeError``.

    Args:
        is_sent: ``False`` if no connection was made.
        is_connection_lost: the connection failed, before or after the request was sent.
        is_final: the same request would fail again, although no status says so.
        is_timeout: there was no reply in time.

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
        is_sent: bool = True,
        is_connection_lost: bool = False,
        is_final: bool = False,
        is_timeout: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = one_line(text)
        self.words = f"{' '.join(codes)} {param} {text[:MAX_WORDS_CHARS]}".lower()
        self.status = 400 if status == 500 and _WRAPPED in self.words else status
        self.codes = codes
        self.retry_after_s = retry_after_s
        self.is_sent = is_sent
        self.is_outage = False
        self.is_final = is_final
        self.is_timeout = is_timeout
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
        return _DECLINED.is_in(self)

    @property
    def is_invalid_output(self) -> bool:
        """Tell whether the server refuses the model's reply, not the request."""
        return not _INVALID_OUTPUT_CODES.isdisjoint(self.codes)

    @property
    def wants_turns(self) -> bool:
        """Tell whether the user and the assistant must speak in turn, and no system."""
        return _WANTS_TURNS.is_in(self)

    @property
    def is_too_long(self) -> bool:
        """Tell whether a shorter request may succeed."""
        return self.status == BODY_TOO_LARGE or _TOO_LONG.is_in(self)

    @property
    def image_fault(self) -> ImageFault | None:
        """Return the reason for which the server rejects the images, if it does."""
        if self.status == BODY_TOO_LARGE:
            return "too many"
        faults = (fault for fault, sign in _IMAGE_FAULTS if sign.is_in(self))
        return None if self.is_too_long else next(faults, None)

    @property
    def wants_strings(self) -> bool:
        """Tell whether the server takes a message's content as one string only."""
        words = self.words[:_BLAME_CHARS]
        is_about_content = "content" in words or "messages" in words or self.status in (422, 500)
        return is_about_content and _WANTS_STRINGS.is_in(self)

    @property
    def is_quota_spent(self) -> bool:
        """Tell whether the account has run out of money or quota."""
        if self.status == 400:
            return self.text.lower().startswith(_QUOTA_STARTS)
        if self.status != 429:
            return self.status == 402
        if _QUOTA_MARKS.search(self.words):
            return True
        return _QUOTA_WORDS in self.words and not self._is_open_soon

    @property
    def is_for_all(self) -> bool:
        """Tell whether the server will reject every request.

        It does so if it refuses the key, or if the quota is spent.
        """
        # A router may ask more credit (402) for a long request only.
        return self.status == 401 or (self.is_quota_spent and self.status != 402)

    @property
    def _is_open_soon(self) -> bool:
        """Tell whether the server names a near time at which it accepts requests again."""
        if self.retry_after_s is not None:
            return self.retry_after_s <= _SOON_S
        return _TIME_TO_COME_BACK.search(self.words) is not None

    @property
    def is_too_fast(self) -> bool:
        """Tell whether the server asks for fewer requests."""
        return self.can_pass and (self.status in _TOO_FAST_STATUSES or _TOO_FAST_MARK in self.words)

    @property
    def is_server_error(self) -> bool:
        """Tell whether the server broke down over the request.

        It may break down by itself, or by what is in the request.
        """
        return (
            self.status is not None
            and self.status >= 500
            and self.can_pass
            and not self.is_too_fast
        )

    @property
    def is_of_server(self) -> bool:
        """Tell whether the failure may be the server's own rather than the request's."""
        is_down = self.is_unreachable or self.is_timeout
        return is_down or self.is_too_fast or self.is_server_error

    @property
    def can_pass(self) -> bool:
        """Tell whether the failure is temporary, so that the same request may succeed later."""
        if (
            self.is_final
            or self.is_quota_spent
            or self.is_too_long
            or self.image_fault
            or self.wants_strings
            or self.wants_turns
            or _TOO_LARGE_FOR_RATE.is_in(self)
        ):
            return False
        return (
            self.status is None
            or self.status in _PASSING_STATUSES
            or (self.status >= 500 and self.status != _OTHER_VERSION)
        )


def failure_from_body(
    status: int | None,
    body: str,
    retry_after_s: float | None = None,
    secrets: tuple[str, ...] = (),
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
    )


def _error_object(body: str) -> dict[str, str]:
    """Return message, code, type and param of an error.

    They stand in the object, in its ``error``, or in an error as text.
    """
    try:
        parsed = mapping(json.loads(body))
    except (ValueError, RecursionError):
        return {}
    error = parsed.get("error", parsed)
    if isinstance(error, str):
        error = {"message": error}
    error = mapping(error)
    if "message" not in error and "detail" in error:
        error = {**error, "message": _without_input(error["detail"])}
    return {
        name: _as_text(error[name])
        for name in ("message", "code", "type", "param")
        if error.get(name)
    }


def _without_input(detail: Any) -> object:
    """Keep messages and locations of a validation error.

    The request, which some servers quote, is left out.
    """
    if not isinstance(detail, list):
        return detail
    faults = mappings(detail)
    return "; ".join(f"{item.get('loc', '')} {item.get('msg', '')}" for item in faults)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
