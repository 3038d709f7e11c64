"""Measure several claims on one page: a long web page, and a PDF of 30 pages.

The page is prepared for the first claim; the others are to find it ready. Each claim takes two
judge requests, as the default majority vote does. A task that ticks all the while tells how long
the event loop was blocked at most.
"""

from __future__ import annotations

import asyncio
import gc
import io
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from instant_judge import InstantClient, InstantProvider
from measuring import show, title
from PIL import Image, ImageDraw

from mind2web2 import CacheFileSys, Evaluator
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore

RUNS = 5
TARGET_FURTHER_S = 0.010
TICK_S = 0.001
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum. " * 60
WORDS = [
    "the",
    "town",
    "lake",
    "ferry",
    "museum",
    "opens",
    "daily",
    "since",
    "of",
    "and",
    "in",
    "harbour",
    "tickets",
    "cost",
    "summer",
    "winter",
]
WEB_URL, PDF_URL = (
    "https://www.ottermoss.example/history",
    "https://www.ottermoss.example/report.pdf",
)
SCREENSHOT_PX = (1280, 6000)
PDF_PAGES, PDF_PAGE_PX = 30, (1240, 1754)


class CountingCache(CacheFileSys):
    """A cache that counts how often a page is read, which is how often it is prepared."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reads: Counter[str] = Counter()

    def get_web(self, url: str, get_screenshot: bool = True) -> tuple[str, bytes | None]:
        """Return a web page."""
        self.reads[url] += 1
        return super().get_web(url, get_screenshot)

    def get_pdf(self, url: str) -> bytes:
        """Return a PDF."""
        self.reads[url] += 1
        return super().get_pdf(url)


@dataclass
class Figures:
    """Seconds of the claims on one page, a number a run, and of all further claims together."""

    first_s: list[float] = field(default_factory=list)
    further_s: list[float] = field(default_factory=list)
    at_once_s: list[float] = field(default_factory=list)
    longest_block_first_s: list[float] = field(default_factory=list)
    longest_block_further_s: list[float] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)


def text_of(chars: int) -> str:
    """Return made-up prose in lines, the same each time."""
    choose = random.Random(2)
    words = [choose.choice(WORDS) for _ in range(chars // 3)]
    lines = (" ".join(words[start : start + 14]) for start in range(0, len(words), 14))
    return "\n".join(lines)[:chars]


def picture(size_px: tuple[int, int]) -> Image.Image:
    """Return a picture of a page full of text."""
    image = Image.new("RGB", size_px, "white")
    pen = ImageDraw.Draw(image)
    for top, line in zip(range(10, size_px[1] - 20, 16), text_of(60_000).split("\n"), strict=False):
        pen.text((20, top), line, fill="black")
    return image


def screenshot() -> bytes:
    """Return a tall screenshot as JPEG."""
    buffer = io.BytesIO()
    picture(SCREENSHOT_PX).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def scanned_pdf() -> bytes:
    """Return a PDF of scanned pages."""
    buffer = io.BytesIO()
    page = picture(PDF_PAGE_PX)
    page.save(
        buffer,
        "PDF",
        save_all=True,
        append_images=[page] * (PDF_PAGES - 1),
        resolution=150,
    )
    return buffer.getvalue()


@contextmanager
def scripted() -> Iterator[InstantClient]:
    """Give a client that has only ``async_response``."""
    yield InstantClient()


@contextmanager
def recorded() -> Iterator[AnswerJudge]:
    """Give a run's judge with a new store in a file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        JudgmentStore(Path(folder) / "judgments.sqlite3") as store,
    ):
        run = CachingJudge(JudgeSpec("o4-mini"), InstantProvider(), store)
        yield AnswerJudge(run, "pages", "answer_1.md")


@asynccontextmanager
async def longest_block(found_s: list[float]) -> AsyncIterator[None]:
    """Append the longest time in which the event loop let nobody run."""
    lags_s = [0.0]

    async def tick() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(TICK_S)
            lags_s.append(time.perf_counter() - started - TICK_S)

    ticking = asyncio.create_task(tick())
    try:
        yield
        await asyncio.sleep(TICK_S)
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        found_s.append(max(lags_s))


async def verify(evaluator: Evaluator, number: int, url: str) -> float:
    """Verify one claim on the page and return the seconds."""
    leaf = evaluator.add_leaf(f"claim_{number}", "a claim")
    started = time.perf_counter()
    if not await evaluator.verify(f"The page names year {number} of the town.", leaf, url):
        raise SystemExit(f"an instant judge supports every claim, and yet: {leaf.evidence}")
    return time.perf_counter() - started


def started(client: Any, cache: CacheFileSys) -> Evaluator:
    """Return an evaluation that has prepared no page yet."""
    evaluator = Evaluator()
    evaluator.initialize("pages", client=client, answer=ANSWER, global_cache=cache)
    return evaluator


async def measure(
    client: Any, cache: CountingCache, url: str, claim_count: int, figures: Figures
) -> None:
    """Verify the claims one after the other, then as many at once on a page yet to be prepared."""
    evaluator = started(client, cache)
    reads = cache.reads[url]
    gc.collect()
    async with longest_block(figures.longest_block_first_s):
        figures.first_s.append(await verify(evaluator, 0, url))
    async with longest_block(figures.longest_block_further_s):
        figures.further_s += [
            await verify(evaluator, number, url) for number in range(1, claim_count)
        ]
    figures.reads.append(cache.reads[url] - reads)
    evaluator = started(client, cache)
    began, reads = time.perf_counter(), cache.reads[url]
    numbers = range(claim_count, 2 * claim_count)
    await asyncio.gather(*(verify(evaluator, number, url) for number in numbers))
    figures.at_once_s.append(time.perf_counter() - began)
    figures.reads.append(cache.reads[url] - reads)


def print_page(name: str, cache: CountingCache, url: str, claim_count: int) -> None:
    """Measure and print the figures of one page with both judges."""
    judges: dict[str, Callable[[], Any]] = {
        "scripted client": scripted,
        "run's judge": recorded,
    }
    title(f"{claim_count} claims on {name}, median of {RUNS}")
    for judge_name, judge in judges.items():
        figures = Figures()
        for _ in range(RUNS):
            with judge() as client:
                asyncio.run(measure(client, cache, url, claim_count, figures))
        median = statistics.median
        show(f"first claim, {judge_name}", median(figures.first_s))
        show(
            f"each further claim, {judge_name}",
            median(figures.further_s),
            TARGET_FURTHER_S,
        )
        show(
            f"slowest further claim of all, {judge_name}",
            max(figures.further_s),
            TARGET_FURTHER_S,
        )
        show(f"all {claim_count} at once, {judge_name}", median(figures.at_once_s))
        show(
            f"event loop blocked at most, first claim, {judge_name}",
            median(figures.longest_block_first_s),
        )
        show(
            f"event loop blocked at most, further, {judge_name}",
            median(figures.longest_block_further_s),
        )
        title(
            f"  preparations an evaluation, {judge_name}: "
            f"{', '.join(map(str, sorted(set(figures.reads))))}"
        )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        cache = CountingCache(Path(folder) / "task")
        cache.put_web(WEB_URL, text_of(300_000), screenshot())
        cache.put_pdf(PDF_URL, scanned_pdf())
        print_page("a page of 300 KB with a screenshot of 6,000 px", cache, WEB_URL, 10)
        print_page("a PDF of 30 scanned pages", cache, PDF_URL, 5)


if __name__ == "__main__":
    main()
