"""Failed HTTP requests to a judge: whether a retry, a shorter request or another form helps."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from mind2web2.utils.shown_text import MAX_WORDS_CHARS, one_line, without_secrets

# Temporary, beside 5xx. 424 is Bedrock's "error while processing the model", 499 a gateway's word
# that its own client went away.
_PASSING_STATUSES = frozenset({408, 409, 424, 425, 429, 499})
# Permanent, although 5xx: another version of HTTP is needed.
_OTHER_VERSION = 505
# LiteLLM wraps a model's 400 in a 500 of its own.
_WRAPPED = "badrequesterror"
# Groq checks the model's JSON itself.
_INVALID_OUTPUT_CODES = frozenset({"json_validate_failed", "tool_use_failed"})
# Chat templates without a system's turn, or that want the user and the assistant in turn.
_WANTS_TURNS = re.compile(
    r"roles? must alternate|system (?:role|message|prompt)s? (?:is |are )?not"
    r"|\broles?\b[^\n]{0,60}(?:not|only)[^\n]{0,40}(?:support|allow|accept)"
    r"|only user(?:,| and) [^\n]{0,40}roles|unexpected role"
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
_TOO_LARGE_FOR_RATE = "request too large"
_DECLINED_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "data_inspection_failed",
    }
)
_DECLINED_MARKS = re.compile(
    "responsibleaipolicyviolation|content management policy|input was flagged"
)
# Some local servers report a request that is too long as their own error.
_TOO_LONG_STATUSES = (400, 422, 500)
_TOO_LONG_CODES = frozenset(
    {"context_length_exceeded", "string_above_max_length", "exceed_context_size_error"}
)
_TOO_LONG_PHRASES = re.compile(
    "context (?:length|window|size)|(?:prompt|input) is too long|too many tokens"
    "|maximum number of (?:input )?tokens allowed|reduce the length of the messages"
    "|maximum model length"
)
# Servers' words about images, and the statuses that come with them. Only the start of a text is
# searched: the rest may quote the request.
_IMAGE_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
BODY_TOO_LARGE = 413
_BLAME_CHARS = 1000
ImageFault = Literal["too many", "none taken"]
_TOO_MANY_IMAGES = re.compile(
    r"too (?:many|much) (?:images|media)|(?:one|single|at most \d+|up to \d+|only \d+) image"
    r"|(?:exceed|max)[^\n]{0,60}\bimages\b|\bimages?\b[^\n]{0,60}(?:exceed|\bmax|at most|limit)"
)
_NO_IMAGES = re.compile(
    r"not a (?:multi-?modal|vision)|not compiled for multi-?modal|text-only|only "
    r"(?:accept|support)s? text"
    r"|(?:image|vision|multi-?modal)[^\n]{0,60}(?:not|n't) (?:support|enabl|load|availabl|allow)ed"
    r"|(?:not|n't) (?:support|accept)[^\n]{0,40}(?:image|vision|multi-?modal)"
    r"|image_url[^\n]{0,20}only supported|unknown variant .?image_url|unsupported "
    r"content[^\n]{0,40}image"
    r"|no endpoints? found[^\n]{0,40}image|missing data required for image|input should be 'text'"
)
# A fault of one image, such as its size, does not concern others.
_ONE_IMAGE = re.compile(
    r"image[^\n]{0,80}(?:dimension|pixel|\bpx\b|resolution|too "
    r"(?:large|big)|\b[km]i?b\b|bytes|\bsize)"
    r"|(?:dimension|pixel|resolution)[^\n]{0,80}image|"
    r"image.{0,20}format|format.{0,20}image|mime|invalid (?:image|base64)|damaged"
    r"|could not (?:process|download|load)"
)
_WANTS_STRINGS = re.compile(
    r"(?:must|should) be a (?:valid )?str|expected (?:a )?string|of type string|not .?list.?\) to "
    r"str"
    r"|untagged enum chatcompletion"
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
        is_by_filter = self.status in (400, 403, 422)
        return is_by_filter and self._names(_DECLINED_CODES, _DECLINED_MARKS)

    @property
    def is_invalid_output(self) -> bool:
        """Tell whether the server refuses the model's reply, not the request."""
        return not _INVALID_OUTPUT_CODES.isdisjoint(self.codes)

    @property
    def wants_turns(self) -> bool:
        """Tell whether the user and the assistant must speak in turn, and no system."""
        return self.status in _TOO_LONG_STATUSES and bool(
            _WANTS_TURNS.search(self.words[:_BLAME_CHARS])
        )

    @property
    def is_too_long(self) -> bool:
        """Tell whether a shorter request may succeed."""
        if self.status in _TOO_LONG_STATUSES:
            return self._names(_TOO_LONG_CODES, _TOO_LONG_PHRASES)
        return self.status == BODY_TOO_LARGE

    def _names(self, codes: frozenset[str], words: re.Pattern[str]) -> bool:
        """Tell whether the server gives one of these reasons, as a code or in words."""
        return not codes.isdisjoint(self.codes) or words.search(self.words) is not None

    @property
    def image_fault(self) -> ImageFault | None:
        """Return the reason for which the server rejects the images, if it does."""
        if self.status == BODY_TOO_LARGE:
            return "too many"
        words = self.words[:_BLAME_CHARS]
        if self.status not in _IMAGE_STATUSES or self.is_too_long or _ONE_IMAGE.search(words):
            return None
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
        ):
            return False
        if self.status == 429 and _TOO_LARGE_FOR_RATE in self.words:
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
    """Keep messages and locations of a validation error.

    The request, which some servers quote, is left out.
    """
    if not isinstance(detail, list):
        return detail
    found = [item for item in detail if isinstance(item, dict)]
    return "; ".join(f"{item.get('loc', '')} {item.get('msg', '')}" for item in found)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
