"""Measure the memory of 300 pages in one run, five at once, with the browser's."""

from __future__ import annotations

import asyncio
import sys

from ordinary_site import OrdinarySite, address
from processes import PeakMemory

from mind2web2.capture.browser_manager import BatchBrowserManager

PAGES = 300
AT_ONCE = 5
TARGET_BYTES = 2 * 1024**3
MIB = 1024**2


async def capture_all(site: OrdinarySite) -> None:
    """Capture every page, keeping none."""
    waiting = iter(range(PAGES))

    async def work(manager: BatchBrowserManager) -> None:
        for number in waiting:
            page = await manager.capture(address("page", number))
            if page.record.failure:
                raise SystemExit(f"page {number} was not captured: {page.record.failure}")

    async with BatchBrowserManager(
        max_concurrent_pages=AT_ONCE, settings=site.settings()
    ) as manager:
        await asyncio.gather(*(work(manager) for _ in range(AT_ONCE)))


def main() -> None:
    """Measure and print."""
    with OrdinarySite() as site, PeakMemory() as memory:
        asyncio.run(capture_all(site))
    samples = memory.samples_bytes
    third = len(samples) // 3
    first, last = max(samples[:third]), max(samples[-third:])
    sys.stdout.write(
        f"{PAGES} ordinary pages, {AT_ONCE} at once, process and browser together (PSS)\n"
        f"  peak {memory.peak_bytes / MIB:.0f} MiB, {memory.peak_bytes / TARGET_BYTES:.2f} of the "
        "target\n"
        f"  peak in the first third {first / MIB:.0f} MiB, in the last {last / MIB:.0f} MiB\n"
    )


if __name__ == "__main__":
    main()
