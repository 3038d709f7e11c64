"""URL functions for eval scripts: find URLs in text, clean them, and normalise them."""

from __future__ import annotations

import re
import string
from urllib.parse import quote

from pydantic import BaseModel

from mind2web2.urls.markdown import ANGLE_BRACKETS, url_spans
from mind2web2.urls.parts import (
    TRACKING_PREFIX,
    clean_url,
    lookup_key,
    site_of,
    split_url,
    storage_key,
    undo_markdown_escapes,
    uniform_escapes,
)
from mind2web2.utils.api_misuse import checked_call
from mind2web2.utils.text import as_unicode_text

__all__ = [
    "URLs",
    "lookup_key",
    "normalize_url_for_browser",
    "normalize_url_simple",
    "regex_find_urls",
    "remove_utm_parameters",
    "storage_key",
]

# Characters that the URL standard allows in paths and queries; existing escapes stay as they are.
_BARE_IN_BROWSER = "".join(set(string.printable) - set(string.whitespace) - set('"<>\\^`{|}'))


class URLs(BaseModel):
    """A list of URLs, as an extraction asks for it."""

    urls: list[str]


@checked_call
def remove_utm_parameters(url: str) -> str:
    """Return the URL without its ``utm_*`` parameters and otherwise as it is written."""
    address, hash_mark, fragment = url.partition("#")
    path, _, query = address.partition("?")
    parameters = query.split("&")
    kept = [part for part in parameters if not _is_tracking(part)]
    if len(kept) == len(parameters):
        return url
    without = f"{path}?{'&'.join(kept)}" if any(kept) else path
    return without + hash_mark + fragment


@checked_call
def normalize_url_simple(url: str) -> str:
    """Return a readable form that opens the same page and is equal for URLs that differ in spelling only.

    Scheme and host in lower case (``http`` where it is missing), no default port, tracking parameters,
    trailing slash or fragment (a client-side route stays), percent-decoded where that is safe. What is no
    URL is returned without white space around it and otherwise as it is.
    """
    text = clean_url(url)
    parts = split_url(remove_utm_parameters(text))
    site = site_of(parts)
    if site is None:
        return url.strip()
    scheme = (parts.scheme or "http").lower()
    query = f"?{uniform_escapes(parts.query)}" if parts.query else ""
    path = uniform_escapes(parts.path).rstrip("/")
    return f"{scheme}://{site}{path}{query}{uniform_escapes(parts.route)}"


@checked_call
def normalize_url_for_browser(url: str) -> str:
    """Return the URL as a browser can open it: absolute, ASCII only, nothing left out.

    What is no URL of a host (``about:blank``, ``data:``, plain words) is returned without white space
    around it and otherwise as it is.
    """
    target = ANGLE_BRACKETS.fullmatch(url.strip())
    text = re.sub(r"[\t\r\n]", "", clean_url(target[1] if target else url))
    parts = split_url(text)
    site = site_of(parts)
    if site is None:
        return url.strip()
    path = _escaped_for_browser(parts.path)
    query = "" if parts.query is None else f"?{_escaped_for_browser(parts.query)}"
    fragment = "" if parts.fragment is None else f"#{_escaped_for_browser(parts.fragment)}"
    return f"{(parts.scheme or 'http').lower()}://{_escaped_for_browser(str(site))}{path}{query}{fragment}"


@checked_call
def regex_find_urls(text: str) -> list[str]:
    """Return the web addresses that a text or its markdown links name, each once, in order.

    Sentence punctuation and markup around an address are no part of it; brackets inside are if they pair.
    """
    return list(dict.fromkeys(url for _, _, url in url_spans(text) if lookup_key(url) is not None))


def _is_tracking(parameter: str) -> bool:
    return uniform_escapes(undo_markdown_escapes(parameter)).startswith(TRACKING_PREFIX)


def _escaped_for_browser(text: str) -> str:
    return quote(as_unicode_text(text), safe=_BARE_IN_BROWSER)
