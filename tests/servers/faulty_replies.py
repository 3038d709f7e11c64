"""Everything that can be wrong with a reply to a chat completion.

Whatever a faulty reply still holds of an answer is the opposite of the true one: who reads it where
nothing is to be read gets a score wrong, and a test sees it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from enum import StrEnum
from typing import Any, Literal

_PIECES = 5


class Fault(StrEnum):
    """A fault that a request gets in place of a proper reply."""

    TOO_FAST = "429"
    TOO_FAST_SECONDS = "429, retry-after in seconds"
    TOO_FAST_MILLISECONDS = "429, retry-after-ms"
    TOO_FAST_DATE = "429, retry-after as a date"
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502, an HTML page"
    UNAVAILABLE = "503"
    ERROR_IN_REPLY = "an error with status 200"
    ERROR_IN_CHOICE = "a choice with an error"
    BROKEN_BODY = "no chat completion"
    SILENCE = "nothing, for ever"
    SILENCE_WITHIN = "half of a reply, then nothing"
    ENDLESS_DRIP = "a blank now and then, for ever"
    DROP_BEFORE = "closed before the reply"
    DROP_WITHIN = "closed within the reply"
    RESET_BEFORE = "reset before the reply"
    RESET_WITHIN = "reset within the reply"
    RESET_AFTER = "reset after the reply"
    CLOSE_AFTER = "closed after the reply, which promised to stay open"
    SLOW_DRIP = "a good reply in small pieces"
    TRUNCATED = "cut off, finish_reason length"
    COMPLETE_AT_LENGTH = "complete, but finish_reason length"
    CUT_SILENTLY = "cut off, finish_reason stop"
    CONTENT_FILTER = "finish_reason content_filter"
    AZURE_FILTER = "400 by Azure's filter"
    REFUSAL = "a refusal"
    WRONG_SHAPE = "JSON of another shape"
    IN_A_LIST = "JSON in a list"
    TWO_OBJECTS = "two JSON objects"
    TWO_FENCES = "two code fences"
    PROSE = "prose"
    CODE_FENCE = "a good reply in a code fence"
    THINKING_ALOUD = "a good reply after thoughts"
    NO_CHOICES = "no choices"
    NULL_CHOICES = "choices null"
    NO_CONTENT = "no content"
    KEY_REVOKED = "401"
    MODEL_GONE = "404, no such model"
    QUOTA_SPENT = "429, quota spent"


# A model that declines twice is taken at its word (eval-scripts.md), so that no schedule may do it
# by chance.
DECLINES = frozenset({Fault.CONTENT_FILTER, Fault.AZURE_FILTER, Fault.REFUSAL})
# These end only by the client's time limit.
HANGS = frozenset({Fault.SILENCE, Fault.SILENCE_WITHIN, Fault.ENDLESS_DRIP})
# These ask the client to slow down.
TOO_FAST = frozenset(
    {
        Fault.TOO_FAST,
        Fault.TOO_FAST_SECONDS,
        Fault.TOO_FAST_MILLISECONDS,
        Fault.TOO_FAST_DATE,
    }
)
# From one of these on nothing else comes.
FINAL = frozenset({Fault.KEY_REVOKED, Fault.MODEL_GONE, Fault.QUOTA_SPENT})
# A client that is worth its name does not notice them.
HARMLESS = frozenset({Fault.SLOW_DRIP, Fault.CODE_FENCE, Fault.THINKING_ALOUD, Fault.CLOSE_AFTER})


@dataclass(frozen=True)
class Reply:
    """A response, and how it is sent.

    Args:
        share: of the body that is sent; none of it leaves out the head as well.
        ends: what becomes of the connection then: it is kept, closed, reset, or kept waiting.
        pieces: in which the body is sent.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0
    ends: Literal["keep", "close", "reset", "hang"] = "keep"
    pieces: int = 1
    tells_length: bool = True


@dataclass(frozen=True)
class Words:
    """The reply of a healthy judge to a request, and the opposite."""

    model: str
    true: str
    false: str

    def completion(
        self,
        content: str | None,
        finish_reason: str = "stop",
        refusal: str | None = None,
    ) -> dict[str, Any]:
        """Return the body of a chat completion."""
        message = {"role": "assistant", "content": content, "refusal": refusal}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1700000000,
            "model": f"{self.model}-2025-04-16",
            "system_fingerprint": "fp_1",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 10,
                "total_tokens": 110,
            },
        }

    def said(
        self,
        content: str | None,
        finish_reason: str = "stop",
        refusal: str | None = None,
    ) -> Reply:
        """Return a reply with status 200."""
        return _as_json(self.completion(content, finish_reason, refusal))

    def failed_choice(self) -> dict[str, Any]:
        """Return a completion that broke off with an error, as routers report it."""
        completion = self.completion(self.false)
        completion["choices"][0]["error"] = {
            "code": 502,
            "message": "the provider went away",
        }
        return completion

    def error(self, status: int, message: str, code: str = "", **headers: str) -> Reply:
        """Return an error as OpenAI words it; a false completion is in it too."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {
            "error": {"message": message, "code": code},
            **self.completion(self.false),
        }
        return replace(_as_json(body), status=status, headers=named)

    def broken_off(self, share: float, ends: Literal["close", "reset", "hang"]) -> Reply:
        """Return a false reply that ends too early."""
        return replace(self.said(self.false), share=share, ends=ends)


def _as_json(body: Mapping[str, Any]) -> Reply:
    return Reply(json.dumps(body, ensure_ascii=False).encode())


def _rate_limited(words: Words, **headers: str) -> Reply:
    return words.error(429, "Rate limit reached for requests", "rate_limit_exceeded", **headers)


_REPLIES: Mapping[Fault, Callable[[Words], Reply]] = {
    Fault.TOO_FAST: _rate_limited,
    Fault.TOO_FAST_SECONDS: lambda words: _rate_limited(words, retry_after="0.01"),
    Fault.TOO_FAST_MILLISECONDS: lambda words: _rate_limited(words, retry_after_ms="5"),
    Fault.TOO_FAST_DATE: lambda words: _rate_limited(
        words, retry_after=format_datetime(datetime.now(UTC))
    ),
    Fault.SERVER_ERROR: lambda words: words.error(500, "The server had an error"),
    Fault.BAD_GATEWAY: lambda _: Reply(b"<html><body>502 Bad Gateway</body></html>", 502),
    Fault.UNAVAILABLE: lambda words: words.error(503, "The engine is overloaded"),
    Fault.ERROR_IN_REPLY: lambda words: replace(words.error(502, "upstream gave up"), status=200),
    Fault.ERROR_IN_CHOICE: lambda words: _as_json(words.failed_choice()),
    Fault.BROKEN_BODY: lambda words: replace(
        words.said(words.false), share=0.6, tells_length=False
    ),
    Fault.SILENCE: lambda words: words.broken_off(0, "hang"),
    Fault.SILENCE_WITHIN: lambda words: words.broken_off(0.5, "hang"),
    Fault.DROP_BEFORE: lambda words: words.broken_off(0, "close"),
    Fault.DROP_WITHIN: lambda words: words.broken_off(0.5, "close"),
    Fault.RESET_BEFORE: lambda words: words.broken_off(0, "reset"),
    Fault.RESET_WITHIN: lambda words: words.broken_off(0.5, "reset"),
    Fault.RESET_AFTER: lambda words: replace(words.said(words.true), ends="reset"),
    Fault.CLOSE_AFTER: lambda words: replace(words.said(words.true), ends="close"),
    Fault.SLOW_DRIP: lambda words: replace(words.said(words.true), pieces=_PIECES),
    Fault.TRUNCATED: lambda words: words.said(words.false[: len(words.false) * 2 // 3], "length"),
    Fault.COMPLETE_AT_LENGTH: lambda words: words.said(words.false, "length"),
    Fault.CUT_SILENTLY: lambda words: words.said(words.false[:-1]),
    Fault.CONTENT_FILTER: lambda words: words.said(words.false, "content_filter"),
    Fault.AZURE_FILTER: lambda words: words.error(
        400, "content management policy", "content_filter"
    ),
    Fault.REFUSAL: lambda words: words.said(words.false, refusal="I can't help with that."),
    Fault.WRONG_SHAPE: lambda words: words.said(f'{{"verdict": {words.false}}}'),
    Fault.IN_A_LIST: lambda words: words.said(f"[{words.false}]"),
    Fault.TWO_OBJECTS: lambda words: words.said(f"{words.false}\n{words.true}"),
    Fault.TWO_FENCES: lambda words: words.said(
        f"```\n{words.false}\n```\nor\n```\n{words.true}\n```"
    ),
    Fault.PROSE: lambda words: words.said(f"It is not so that {words.true}"),
    Fault.CODE_FENCE: lambda words: words.said(f"```json\n{words.true}\n```"),
    Fault.THINKING_ALOUD: lambda words: words.said(f"<think>{words.false}?</think>\n{words.true}"),
    Fault.NO_CHOICES: lambda words: _as_json({**words.completion(""), "choices": []}),
    Fault.NULL_CHOICES: lambda words: _as_json({**words.completion(""), "choices": None}),
    Fault.NO_CONTENT: lambda words: words.said(None),
    Fault.KEY_REVOKED: lambda words: words.error(
        401, "Incorrect API key provided", "invalid_api_key"
    ),
    Fault.MODEL_GONE: lambda words: words.error(404, "The model does not exist", "model_not_found"),
    Fault.QUOTA_SPENT: lambda words: words.error(
        429, "You exceeded your quota", "insufficient_quota"
    ),
}


def reply_to(words: Words, fault: Fault | None) -> Reply:
    """Return what is sent where this is wrong; of an endless drip, the beginning."""
    return words.said(words.true) if fault is None else _REPLIES[fault](words)


def falsified(value: Any) -> Any:
    """Return a value of the same shape that says otherwise."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"not {value}"
    if isinstance(value, list):
        return [falsified(item) for item in value]
    if isinstance(value, dict):
        return {name: falsified(item) for name, item in value.items()}
    return value
