"""Texts of other programs as messages show them: short, on one line, and without secrets."""

from __future__ import annotations

import html
import json
import re
from functools import lru_cache
from urllib.parse import quote

from mind2web2.utils.text import cut

_LONGEST_TEXT_CHARS = 300
MAX_WORDS_CHARS = 5000
_SHORTEST_SECRET = 5
# In a good reply, a shorter one is more likely a word than a key.
SHORTEST_ECHO = 8
_SHOWN_CHARS = 200
_QUOTED_CHARACTER = re.compile("%[0-9A-F]{2}")


def start_of(reply: bytes | str, secrets: tuple[str, ...] = ()) -> str:
    """Return the start of a server's reply for a message, without secrets."""
    # Secrets are removed before the text is cut, which might leave half of one.
    head = reply[:MAX_WORDS_CHARS]
    text = head if isinstance(head, str) else head.decode(errors="replace")
    return one_line(text, secrets)[:_SHOWN_CHARS]


def one_line(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return the text on one line, shortened, without secrets."""
    return cut(" ".join(without_secrets(text, secrets).split()), _LONGEST_TEXT_CHARS)


def without_secrets(text: str, secrets: tuple[str, ...], shortest: int = _SHORTEST_SECRET) -> str:
    """Return the text without its secrets, in whichever form a server repeats them."""
    for form in _all_forms(secrets, shortest):
        text = text.replace(form, "***")
    return text


@lru_cache(maxsize=32)
def _all_forms(secrets: tuple[str, ...], shortest: int) -> list[str]:
    # Local servers take keys such as "test", which are also plain words.
    forms = {form for secret in secrets if len(secret) >= shortest for form in _forms(secret)}
    # The longest first: one may be a part of another.
    return sorted(forms, key=len, reverse=True)


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
