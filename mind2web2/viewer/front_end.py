"""The front end: the page that loads its files, from the server or, with all data, as one file."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import secrets
import shlex
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import combinations
from pathlib import Path

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.runs.claim_facts import page_checks
from mind2web2.runs.results import LoadedResult
from mind2web2.utils.files import staged_file
from mind2web2.viewer.catalog import AnswerKey, Catalog, Json
from mind2web2.viewer.opening import opening_sentence
from mind2web2.viewer.stored_pages import PageKey, StoredPages

STATIC = Path(__file__).parent / "static"

# Each module by the name that others import it by; the same names in both homes, so that no file differs.
MODULES = {
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "htm": "vendor/htm.js",
    **{f"viewer/{path.stem}": path.name for path in sorted(STATIC.glob("*.js"))},
}

DEFAULT_TITLE = "Mind2Web-2 results"
_PAGE = """\
<!doctype html>
<html lang="en" data-features="{features}" data-title="{title}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
{head}<title>{title}</title>
<link rel="icon" href="data:,">
{style}
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
        title=DEFAULT_TITLE,
        style='<link rel="stylesheet" href="/static/style.css">',
        imports=_import_map(
            {name: f"/static/{path}" for name, path in MODULES.items()}
        ),
        blocks="",
    )


def file_html(nonce: str, title: str) -> tuple[str, str]:
    """Return the page of a file, before and after the data: with modules and style, without a network."""
    policy = file_policy(nonce)
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    mark = "<!-- data -->"
    page = _PAGE.format(
        nonce=nonce,
        features="",
        title=html.escape(title),
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        style=f'<style nonce="{nonce}">{style}</style>',
        imports=_import_map(
            {name: _data_url(STATIC / path) for name, path in MODULES.items()}
        ),
        blocks=mark,
    )
    before, _, after = page.partition(mark)
    return before, after


def content_policy(nonce: str) -> str:
    """Return the Content-Security-Policy of the server's page."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def file_policy(nonce: str) -> str:
    """Return the Content-Security-Policy of an exported file: no connection of any kind."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src blob: data:; "
        "base-uri 'none'; form-action 'none'"
    )


_dumps = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_bytes(value: object) -> bytes:
    """Return JSON as browsers read it: null for NaN and infinite numbers, escapes for half surrogates.

    All other characters stand for themselves, which the front end relies on (``parsed`` in source.js).
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
    return (
        [_finite(entry) for entry in value]
        if isinstance(value, list | tuple)
        else value
    )


def _import_map(addresses: dict[str, str]) -> str:
    return json.dumps({"imports": addresses}).replace("</", "<\\/")


def _data_url(path: Path) -> str:
    return "data:text/javascript;base64," + base64.b64encode(path.read_bytes()).decode()


REDACTED = "[redacted]"
# Browsers open larger files slowly, or not at all.
LARGE_FILE_BYTES = 100 * 1000**2
_MAX_PICTURES_OF_A_PAGE_BYTES = 4 * 1000**2


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The parts of the results that go into the file.

    Args:
        redact_tasks: leave out the texts of tasks, which gated benchmarks keep to themselves.
        title: of the report.
    """

    pages: bool = True
    redact_tasks: bool = False
    title: str = DEFAULT_TITLE


async def write_report(path: Path, catalog: Catalog, content: ReportContent) -> int:
    """Write the file: the front end, and compressed data, a block for each answer and page; return its size.

    Blocks are written as they are made, since pages may be larger than the memory.

    Raises:
        ResultWriteError: it cannot be written.
    """
    before, after = file_html(secrets.token_urlsafe(16), content.title)
    try:
        staged = staged_file(path.parent, before)
        try:
            with staged.open("a", encoding="utf-8") as file:
                async for name, block in _blocks(catalog, content):
                    file.write(_element(name, block))
                file.write(after)
                size = file.tell()
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
    except OSError as error:
        raise ResultWriteError(
            f"cannot write {path}: {error.strerror or error}"
        ) from error
    return size


async def _blocks(
    catalog: Catalog, content: ReportContent
) -> AsyncIterator[tuple[list[str], bytes]]:
    """Yield the blocks by the names that the front end asks for (``source.js``)."""
    overview = catalog.overview()
    keys = [
        AnswerKey(row["agent"], row["task"], row["answer"])
        for row in overview["answers"]
    ]
    sentence = opening_sentence(overview["agents"], catalog.comparison)
    yield ["about"], _packed(_about(overview, content) | {"sentence": sentence})
    claims = catalog.claims()
    if content.redact_tasks:
        # Rows without a leaf have the text of a task.
        claims = [row if row[3] else [*row[:5], REDACTED] for row in claims]
    yield ["overview"], _packed(overview)
    yield ["claims"], _packed(claims)
    for pair in combinations(catalog.agents(), 2):
        yield ["comparison", *pair], _packed(catalog.comparison(*pair))
    pages: dict[PageKey, None] = {}
    for key in keys:
        found = catalog.result(key)
        answer = catalog.shown(key, found)
        pages |= dict.fromkeys(_cited(key, found))
        yield (
            ["answer", key.agent, key.answer, key.task],
            _packed(_redacted(answer, content)),
        )
    if content.pages:
        stored = StoredPages(catalog.paths)
        for page in pages:
            shown = await stored.page(page)
            yield ["page", page.agent, page.task, page.url], _packed(shown)
            left = _MAX_PICTURES_OF_A_PAGE_BYTES
            for name in shown["images"]:
                image = await stored.image(page, name)
                left -= len(image)
                if left >= 0:
                    yield ["image", page.agent, name, page.task, page.url], image


def _about(overview: Json, content: ReportContent) -> Json:
    """Return the file's content, who judged, and how to get the same scores from the judgments."""
    names = [agent["name"] for agent in overview["agents"]]
    commands = [
        (
            f"mind2web2 judgments export {name} {name}.jsonl",
            f"mind2web2 evaluate {name} --llm_provider replay --judgments {name}.jsonl",
        )
        for name in map(shlex.quote, names)
    ]
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "agents": names,
        "answers": len(overview["answers"]),
        "tasks": len({row["task"] for row in overview["answers"]}),
        "judges": sorted(
            {judge for agent in overview["agents"] for judge in agent["judges"]}
        ),
        "has_pages": content.pages,
        "most_pictures_mb": _MAX_PICTURES_OF_A_PAGE_BYTES // 1000**2,
        "has_task_texts": not content.redact_tasks,
        "export": [export for export, _ in commands],
        "replay": [replay for _, replay in commands],
    }


def _redacted(answer: Json, content: ReportContent) -> Json:
    if not content.redact_tasks:
        return answer
    trees = [
        [row | {"desc": REDACTED} if row["depth"] == 0 else row for row in tree]
        for tree in answer["trees"]
    ]
    return answer | {"trees": trees, "rubric": None}


def _cited(key: AnswerKey, found: LoadedResult | None) -> list[PageKey]:
    trees = () if found is None else found.content.trees
    urls = [
        check.url
        for tree in trees
        for node in tree.walk()
        for check in page_checks(node)
    ]
    return [PageKey(key.agent, key.task, url) for url in urls]


def _packed(value: object) -> bytes:
    return gzip.compress(json_bytes(value), mtime=0)


def _element(name: list[str], content: bytes) -> str:
    shown = html.escape(json_bytes(name).decode(), quote=True)
    encoded = base64.b64encode(content).decode()
    return f'<script type="application/octet-stream" data-block="{shown}">{encoded}</script>\n'
