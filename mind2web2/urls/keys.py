"""The two keys of a URL: the name its page is stored under, and which stored page it means."""

from __future__ import annotations

from urllib.parse import quote

from mind2web2.urls.parts import (
    clean_url,
    decoded_for_storage,
    site_of,
    split_url,
    uniform_escapes,
)
from mind2web2.utils.text import is_unicode_text

TRACKING_PREFIX = "utm_"
_WEB_SCHEMES = (None, "http", "https")


def storage_key(url: str) -> str:
    """Return the index key of a page (file-layouts.md): no fragment, percent-decoded, no trailing slash.

    The key means the same page as the URL (``lookup_key`` agrees): what would read as something else once
    decoded stays encoded, which besides reserved characters is a backslash and white space at the end.
    """
    text = clean_url(url)
    route = split_url(text).route
    address = text.partition("#")[0]
    if not route and "?" not in address:
        address = address.rstrip("/")
    key = decoded_for_storage(address + route)
    trimmed = key.rstrip()
    return key if trimmed == key else trimmed + quote(key[len(trimmed) :])


def lookup_key(url: str) -> str | None:
    """Return the key that all spellings of one page share (file-layouts.md); ``None`` for no URL."""
    text = clean_url(url)
    if not is_unicode_text(text):
        return None
    parts = split_url(text)
    site = site_of(parts)
    if site is None:
        return None
    scheme = parts.scheme.lower() if parts.scheme else None
    prefix = "" if scheme in _WEB_SCHEMES else f"{scheme}://"
    path = uniform_escapes(parts.path).rstrip("/")
    query = _query_key(parts.query) if parts.query else ""
    return f"{prefix}{site.without_www()}{path}{query}{uniform_escapes(parts.route)}"


def _query_key(query: str) -> str:
    parameters = uniform_escapes(query.replace("+", "%20")).split("&")
    significant = sorted(part for part in parameters if part and not part.startswith(TRACKING_PREFIX))
    return f"?{'&'.join(significant)}" if significant else ""


def likely_keys(url: str) -> list[str]:
    """Return the index keys that a page may have been stored under: as spelled, and nearly so."""
    if lookup_key(url) is None:
        return []
    key = storage_key(url)
    address = key.split("://", 1)[-1]
    bare = address.removeprefix("www.")
    spellings = [f"{scheme}://{host}{bare}" for scheme in ("https", "http") for host in ("", "www.")]
    return list(dict.fromkeys([key, *spellings]))
