"""Seconds for 1,000 lookups, in mixed spellings, in caches of 50, 500 and 5,000 pages."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from mind2web2.pages.cache import CacheFileSys

PAGE_COUNTS = (50, 500, 5000)
LOOKUPS = 1000
RUNS = 7
TARGET_S = 0.020


def page_url(number: int) -> str:
    """Return the URL of a made-up page."""
    return f"https://www.site{number % 97}.example.com/articles/{number}/Caf%C3%A9_(page)?id={number}&lang=en"


def spelling(number: int, page_count: int) -> str:
    """Return a spelling of a stored page's URL, or the URL of a missing page."""
    url = page_url(number % page_count)
    spellings = (
        url,
        url.replace("https://www.", "http://"),
        url.replace("%C3%A9", "é").replace("(", "%28").replace(")", "%29"),
        url + "&utm_source=chatgpt.com#section-2",
        url.replace("_", "\\_").replace("?id", "/?id"),
        url.replace("/articles/", "/missing/"),
    )
    return spellings[number % len(spellings)]


def filled_cache(folder: Path, page_count: int) -> CacheFileSys:
    """Store the pages and open the cache anew, as a run does; printing what storing took."""
    writer = CacheFileSys(folder)
    started = time.perf_counter()
    for number in range(page_count):
        writer.put_web(page_url(number), f"page {number}", None)
    put_s = (time.perf_counter() - started) / page_count
    started = time.perf_counter()
    cache = CacheFileSys(folder)
    open_s = time.perf_counter() - started
    sys.stdout.write(
        f"{page_count:>6} pages: {put_s * 1000:.1f} ms a put, {open_s * 1000:.1f} ms to open\n"
    )
    return cache


def median_lookups_s(cache: CacheFileSys, page_count: int) -> float:
    """Return the median over several runs of the seconds for all lookups."""
    # Steps of 7 reach pages all over the cache in every spelling.
    urls = [spelling(number * 7 + number // page_count, page_count) for number in range(LOOKUPS)]
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        found = sum(cache.has(url) is not None for url in urls)
        seconds.append(time.perf_counter() - started)
        if not LOOKUPS // 2 < found < LOOKUPS:
            raise SystemExit(f"{found} of {LOOKUPS} pages found: the lookups are wrong")
    return statistics.median(seconds)


def main() -> None:
    """Measure and print a line a cache size, with the ratio to the smallest."""
    smallest_s = None
    for page_count in PAGE_COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            lookups_s = median_lookups_s(
                filled_cache(Path(folder) / "task", page_count), page_count
            )
        smallest_s = smallest_s or lookups_s
        sys.stdout.write(
            f"{page_count:>6} pages: {LOOKUPS} lookups {lookups_s * 1000:.1f} ms"
            f" ({lookups_s / smallest_s:.2f} of the smallest, {lookups_s / TARGET_S:.2f} of the "
            "target)\n"
        )


if __name__ == "__main__":
    main()
