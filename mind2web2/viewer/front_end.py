"""The front end: one page with modules and style, from the server or as a file.

A page that loads two dozen files would wait for each while the server's process reads results.
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

from mind2web2.utils.program import program

STATIC = Path(__file__).parent / "static"

# Each module by the name that others import it by.
MODULES = {
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "htm": "vendor/htm.js",
    **{f"viewer/{path.stem}": path.name for path in sorted(STATIC.glob("*.js"))},
}

DEFAULT_TITLE = "Mind2Web-2 results"
_PAGE = """\
<!doctype html>
<html lang="en" data-features="{features}" data-program="{program}" data-title="{title}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
{head}<title>{title}</title>
<link rel="icon" href="data:,">
<style nonce="{nonce}">{style}</style>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<div id="app"></div>
<script type="importmap" nonce="{nonce}">{imports}</script>
{blocks}<script type="module" nonce="{nonce}">import "viewer/main";</script>
</body>
</html>
"""


def index_html(nonce: str, features: Iterable[str] = ()) -> str:
    """Return the page that the server sends.

    Args:
        features: the views that need the server, by the names in their addresses.
    """
    return _PAGE.format(
        nonce=nonce,
        head="",
        features=" ".join(features),
        program=html.escape(program()),
        title=DEFAULT_TITLE,
        style=_style(),
        imports=_import_map(),
        blocks="",
    )


def content_policy(nonce: str) -> str:
    """Return the Content-Security-Policy of the server's page."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        "img-src 'self' blob: data:; connect-src 'self'; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


_dumps = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_bytes(value: object) -> bytes:
    """Return JSON as browsers read it, with null for NaN and infinite numbers.

    All other characters stand for themselves, which the front end relies on (``parsed`` in
    source.js).
    """
    try:
        text = _dumps(value)
    except ValueError:
        text = _dumps(_finite(value))
    return text.encode("utf-8", "backslashreplace")


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


@cache
def _style() -> str:
    return (STATIC / "style.css").read_text(encoding="utf-8")


@cache
def _import_map() -> str:
    addresses = {name: _data_url(STATIC / path) for name, path in MODULES.items()}
    return json.dumps({"imports": addresses})


def file_html(nonce: str, title: str, view: str = "") -> tuple[str, str]:
    """Return the page of a file, before and after the data.

    Args:
        view: the only one that it has; empty for those of results.
    """
    policy = file_policy(nonce)
    mark = "<!-- data -->"
    page = _PAGE.format(
        nonce=nonce,
        features=view,
        program="mind2web2",
        title=html.escape(title),
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        style=_style(),
        imports=_import_map(),
        blocks=mark,
    )
    before, _, after = page.partition(mark)
    return before, after


def file_policy(nonce: str) -> str:
    """Return the Content-Security-Policy of an exported file: no connection of any kind."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src blob: "
        "data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _data_url(path: Path) -> str:
    return "data:text/javascript;base64," + base64.b64encode(path.read_bytes()).decode()
