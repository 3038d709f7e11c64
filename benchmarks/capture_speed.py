"""Measure captures from a local site: one by one with a warm browser, and many at once.

The server takes 0.2 s for each page and 0.05 s for each of its parts. The stage ``open`` is the
time spent waiting for pages, the server's delay included; the rest is our own work. Processor time
is that of this process, the browser and the server together.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from measuring import show, title
from ordinary_site import OrdinarySite, address
from processes import processor_s

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureRecord

AT_ONCE = (1, 5, 10)
RUNS = 3
PAGES_A_RUN = {1: 20, 5: 60, 10: 60}
WARM_PAGES = 15
TARGET_PLAIN_S = 1.0
TARGET_PAGES_A_MINUTE = {5: 120}
WAITING_STAGE = "open"


@dataclass(frozen=True, slots=True)
class Run:
    """One run over some pages."""

    pages: int
    took_s: float
    processor_s: float
    records: tuple[CaptureRecord, ...]

    @property
    def pages_a_minute(self) -> float:
        """How many it would have been in a minute."""
        return self.pages / self.took_s * 60

    @property
    def waiting_share(self) -> float:
        """The part of the pages' time that was spent waiting for them."""
        waited_s = sum(record.timings_s.get(WAITING_STAGE, 0.0) for record in self.records)
        return waited_s / sum(sum(record.timings_s.values()) for record in self.records)


async def capture(manager: BatchBrowserManager, url: str) -> CaptureRecord:
    """Capture a page that has to be as good as any."""
    page = await manager.capture(url)
    if page.record.failure or page.record.troubles or not page.screenshot:
        raise SystemExit(f"{url} was not captured as it should be: {page.record}")
    return page.record


async def warm_pages_s(site: OrdinarySite, kind: str) -> list[float]:
    """Return the seconds of pages captured one after the other, the first ones left out."""
    took_s = []
    async with BatchBrowserManager(max_concurrent_pages=1, settings=site.settings()) as manager:
        for number in range(WARM_PAGES + 2):
            started = time.perf_counter()
            await capture(manager, address(kind, number))
            took_s.append(time.perf_counter() - started)
    return took_s[2:]


async def run_at_once(site: OrdinarySite, at_once: int, numbers: Iterator[int]) -> Run:
    """Capture pages never seen before, so many at once."""
    urls = [address("page", next(numbers)) for _ in range(PAGES_A_RUN[at_once])]
    async with BatchBrowserManager(
        max_concurrent_pages=at_once, settings=site.settings()
    ) as manager:
        await asyncio.gather(
            *(capture(manager, address("plain", number)) for number in range(at_once))
        )
        started, used_s = time.perf_counter(), processor_s()
        records = await asyncio.gather(*(capture(manager, url) for url in urls))
        took_s, used_s = time.perf_counter() - started, processor_s() - used_s
    return Run(len(urls), took_s, used_s, tuple(records))


def print_warm(site: OrdinarySite) -> None:
    """Measure and print single pages."""
    title(f"one page at a time, the browser warm, median of {WARM_PAGES}")
    show(
        "a plain page",
        statistics.median(asyncio.run(warm_pages_s(site, "plain"))),
        TARGET_PLAIN_S,
    )
    show("an ordinary page", statistics.median(asyncio.run(warm_pages_s(site, "page"))))


def print_at_once(site: OrdinarySite, at_once: int, numbers: Iterator[int]) -> None:
    """Measure and print many pages."""
    runs = [asyncio.run(run_at_once(site, at_once, numbers)) for _ in range(RUNS)]
    rate = statistics.median(run.pages_a_minute for run in runs)
    target = TARGET_PAGES_A_MINUTE.get(at_once)
    share = f"{rate / target:6.2f} of {target}" if target else ""
    waiting = statistics.median(run.waiting_share for run in runs)
    busy_s = statistics.median(run.processor_s / run.pages for run in runs)
    sys.stdout.write(
        f"  {at_once:>2} at once: {rate:6.0f} pages a minute {share:<17}"
        f" {waiting:4.0%} of a page's time waiting, {busy_s:.2f} s of processor a page\n"
    )
    stages = {stage for run in runs for record in run.records for stage in record.timings_s}
    records = [record for run in runs for record in run.records]
    medians = {
        stage: statistics.median(record.timings_s.get(stage, 0.0) for record in records)
        for stage in sorted(stages)
    }
    title(
        "             median seconds by stage: "
        + ", ".join(f"{name} {s:.2f}" for name, s in medians.items())
    )


def main() -> None:
    """Measure and print."""
    numbers = itertools.count(1000)
    with OrdinarySite() as site:
        print_warm(site)
        title(f"ordinary pages at once, median of {RUNS} runs")
        for at_once in AT_ONCE:
            print_at_once(site, at_once, numbers)


if __name__ == "__main__":
    main()
