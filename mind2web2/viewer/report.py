"""The viewer as one file, with all data in it."""

from __future__ import annotations

import base64
import gzip
import html
import secrets
import shlex
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from mind2web2 import __version__
from mind2web2.errors import ResultWriteError
from mind2web2.results.stored_results import LoadedResult
from mind2web2.utils.files import check_replaceable, stage_file
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.front_end import DEFAULT_TITLE, file_html, json_bytes
from mind2web2.viewer.keys import AnswerKey, Json, NoSuchResultError
from mind2web2.viewer.stored_pages import PageKey, StoredPages

REDACTED = "[redacted]"
# Browsers open larger files slowly, or not at all.
LARGE_FILE_BYTES = 100 * 1000**2
# A part of the data by the names that the front end asks for (``source.js``).
Block = tuple[list[str], bytes]


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The parts of the results that go into the file.

    Args:
        most_picture_bytes: further pictures of a page are left out.
        redact_tasks: leave out the texts of tasks, which gated benchmarks keep to themselves.
        title: of the report.
    """

    pages: bool = True
    most_picture_bytes: int = 4 * 1000**2
    redact_tasks: bool = False
    title: str = DEFAULT_TITLE


async def write_report(path: Path, catalog: Catalog, content: ReportContent) -> int:
    """Write the file with all data of a catalog, and return its size.

    Raises:
        ResultWriteError: it cannot be written.
    """
    return await _write_file(path, content.title, _blocks(catalog, content))


async def write_view(
    path: Path,
    title: str,
    view: str,
    data: object,
    pages: Iterable[tuple[PathConfig, str, str, Iterable[str]]],
) -> None:
    """Write a file that shows one view, with the texts of pages.

    Args:
        view: its name in the front end.
        data: what it shows, as JSON has it.
        pages: their addresses, with the folders, the agent and the task that they belong to.

    Raises:
        ResultWriteError: it cannot be written.
    """

    async def blocks() -> AsyncIterator[Block]:
        yield [view], pack(data)
        for paths, agent, task, urls in pages:
            keys = [PageKey(agent, task, url) for url in dict.fromkeys(urls)]
            async for block in _page_blocks(StoredPages(paths), keys, most_picture_bytes=0):
                yield block

    await _write_file(path, title, blocks(), view)


async def _write_file(path: Path, title: str, blocks: AsyncIterator[Block], view: str = "") -> int:
    """Write the front end and compressed data, and return the file's size.

    Blocks are written as they are made, since pages may be larger than the memory.

    Args:
        view: the only one that the file has; empty for those of results.

    Raises:
        ResultWriteError: it cannot be written.
    """
    before, after = file_html(secrets.token_urlsafe(16), title, view)
    with ResultWriteError.unable_to(f"write to {path}"):
        check_replaceable(path)
        staged = stage_file(path.parent, before)
        try:
            with staged.open("a", encoding="utf-8") as file:
                async for name, block in blocks:
                    file.write(_element(name, block))
                file.write(after)
                size = file.tell()
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
    return size


async def _blocks(catalog: Catalog, content: ReportContent) -> AsyncIterator[Block]:
    overview = catalog.overview()
    keys = [AnswerKey(row["agent"], row["task"], row["answer"]) for row in overview["answers"]]
    yield ["about"], pack(_about(overview, content))
    claims = catalog.claims()
    if content.redact_tasks:
        # Rows without a leaf have the text of a task.
        claims = [row if row[3] else [*row[:5], REDACTED] for row in claims]
    yield ["overview"], pack(overview)
    yield ["claims"], pack(claims)
    yield ["doubts"], pack(_doubts(catalog, content))
    for task in dict.fromkeys(key.task for key in keys):
        with suppress(NoSuchResultError):
            # Its answers may all be without a result.
            yield ["leaves", task], pack(catalog.leaves(task))
    for pair in combinations(catalog.agents(), 2):
        yield ["comparison", *pair], pack(catalog.comparison(*pair))
    async for block in answer_blocks(catalog, keys, content):
        yield block


async def answer_blocks(
    catalog: Catalog, keys: Sequence[AnswerKey], content: ReportContent
) -> AsyncIterator[Block]:
    """Yield answers with their results, and the pages that they cite."""
    pages: dict[PageKey, None] = {}
    for key in keys:
        result = catalog.result(key)
        answer = catalog.answer_with(key, result)
        pages |= dict.fromkeys(_cited_pages(key, result))
        yield (
            ["answer", key.agent, key.answer, key.task],
            pack(_redact(answer, content)),
        )
    if content.pages:
        stored = StoredPages(catalog.paths)
        async for block in _page_blocks(stored, pages, content.most_picture_bytes):
            yield block


async def _page_blocks(
    stored: StoredPages, pages: Iterable[PageKey], most_picture_bytes: int
) -> AsyncIterator[Block]:
    for page in pages:
        shown = await stored.page(page)
        yield ["page", page.agent, page.task, page.url], pack(shown)
        left = most_picture_bytes
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
            f"mind2web2 export {name} --judgments {name}.jsonl",
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
        "judges": sorted({judge for agent in overview["agents"] for judge in agent["judges"]}),
        "has_pages": content.pages,
        "most_pictures_mb": content.most_picture_bytes // 1000**2,
        "has_task_texts": not content.redact_tasks,
        "export": [export for export, _ in commands],
        "replay": [replay for _, replay in commands],
    }


def _redact(answer: Json, content: ReportContent) -> Json:
    if not content.redact_tasks:
        return answer
    trees = [
        [row | {"desc": REDACTED} if row["depth"] == 0 else row for row in tree]
        for tree in answer["trees"]
    ]
    return answer | {"trees": trees}


def _doubts(catalog: Catalog, content: ReportContent) -> Json:
    """Return the doubts; without the passages of pages, if the file has no pages."""
    doubts = catalog.doubts()
    if content.pages:
        return doubts
    agents = [
        one
        | {"stayed": [each | {"page_before": None, "page_after": None} for each in one["stayed"]]}
        for one in doubts["agents"]
    ]
    return doubts | {"agents": agents}


def _cited_pages(key: AnswerKey, result: LoadedResult | None) -> list[PageKey]:
    leaves = () if result is None else result.content.leaves()
    return [
        PageKey(key.agent, key.task, check.url) for leaf in leaves for check in leaf.grounds.pages
    ]


def pack(value: object) -> bytes:
    """Return a value as the front end unpacks it."""
    return gzip.compress(json_bytes(value), mtime=0)


def _element(name: list[str], content: bytes) -> str:
    shown = html.escape(json_bytes(name).decode(), quote=True)
    encoded = base64.b64encode(content).decode()
    return f'<script type="application/octet-stream" data-block="{shown}">{encoded}</script>\n'
