"""The body of a model's reply: one JSON object, with what any server may write into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.structured_output import InvalidOutputError, unambiguous_json
from mind2web2.utils.json_text import JsonObject, mappings
from mind2web2.utils.shown_text import SHORTEST_ECHO, start_of, without_secrets
from mind2web2.utils.text import as_unicode_text

# How the lines of an event stream begin; one with a colon is a comment.
_STREAM_LINES = ("data:", "event:", ":")
# A server that reports more, or less than nothing, counts wrongly.
_MAX_TOKENS = 1_000_000_000
_NO_SUCH_PATH = "unexpected endpoint"


def read_body(content: str, wanted: str, secrets: tuple[str, ...] = ()) -> JsonObject:
    """Return the object in the text of a reply with a good status.

    Args:
        wanted: the list that a completion has.

    Raises:
        RequestFailedError: it is another object, or none; the text quotes it.
    """
    # Replies are stored and shown; some servers echo keys.
    content = without_secrets(content.removeprefix("\ufeff"), secrets, SHORTEST_ECHO)
    if content.startswith(_STREAM_LINES):
        raise RequestFailedError(
            "the server sends its reply as an event stream, which was not asked for and cannot be "
            "read",
            is_final=True,
        )
    try:
        body = unambiguous_json(content)
    except InvalidOutputError as error:
        raise RequestFailedError(f"the reply is ambiguous: {error}") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise RequestFailedError(f"the reply is no completion but {start_of(content)!r}")
    if body.get("error") or wanted not in body:
        raise error_in_reply(body, secrets)
    return body


def error_in_reply(body: JsonObject, secrets: tuple[str, ...]) -> RequestFailedError:
    """Return the failure that a reply describes although its status is good."""
    failure = failure_from_body(_status_in(body), json.dumps(body), secrets=secrets)
    if failure.text.lower().startswith(_NO_SUCH_PATH):
        failure.status = 404
    return failure


def _status_in(body: JsonObject) -> int | None:
    error = body.get("error")
    code = (error if isinstance(error, Mapping) else body).get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else None


def text_of(content: object) -> str:
    """Return the text of a content, which some servers split into parts."""
    if not isinstance(content, str):
        content = "".join(string(part.get("text")) for part in mappings(content))
    return as_unicode_text(content)


def string(value: object) -> str:
    """Return a field that should be a text, empty where it is none."""
    return value if isinstance(value, str) else ""


def tokens(*counts: Any) -> list[int]:
    """Return counts of tokens, zero where a server reports none that can be right."""
    return [count if type(count) is int and 0 <= count <= _MAX_TOKENS else 0 for count in counts]
