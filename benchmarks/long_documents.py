"""How fast long documents are captured: pages of Debian's documentation, 12,000 to 60,000 px high.

The server delays every response by 0.2 s, and each package has a host of its own. The packages need
no installation; unpack them into a folder and name that:

    apt-get download python3.11-doc git-doc postgresql-doc-15 sqlite3-doc
    for package in *.deb; do dpkg -x "$package" docs; done
    uv run python benchmarks/long_documents.py docs
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measuring import title
from processes import PeakMemory, processor_s

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

from site_server import Reply, Request, SiteServer

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureRecord, CaptureSettings, NetworkSettings
from mind2web2.errors import CaptureError

DELAY_S = 0.2
ROUNDS = {1: 1, 5: 2, 10: 2}
TARGET_PAGES_A_MINUTE = {1: 60, 5: 150, 10: 180}
TARGET_GIB = 2.0
PAGES = {
    "python3.11/html/library": "re argparse asyncio-task collections ctypes datetime",
    "git-doc": "git-log git-diff git-rev-list git-show git git-fast-import",
    "postgresql-doc-15/html": "sql-select app-psql monitoring-stats pgbench release-15 "
    "sql-createtable",
    "sqlite3": "cli compile fileformat fts3 fts5 pragma",
}


class DocumentServer(SiteServer):
    """Serves each documentation package at a host of its own, slowly."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)

    def reply(self, request: Request) -> Reply:
        """Answer after the delay."""
        self.pause(DELAY_S)
        return super().reply(request)

    def settings(self) -> CaptureSettings:
        """Return how to capture from here."""
        return CaptureSettings(
            network=NetworkSettings(host_map=self.host_map, trusted_keys=(self.spki,))
        )


def link_packages(docs: Path, root: Path) -> list[str]:
    """Give each package a host in ``root`` and return the pages, hosts taking turns."""
    by_host = []
    for place, names in PAGES.items():
        package, _, folder = place.partition("/")
        host = f"{package.replace('.', '-')}.example"
        (root / host).symlink_to(docs / package)
        prefix = f"https://{host}/{folder}/" if folder else f"https://{host}/"
        by_host.append([f"{prefix}{name}.html" for name in names.split()])
    return [url for urls in zip(*by_host, strict=True) for url in urls]


async def capture(manager: BatchBrowserManager, url: str) -> CaptureRecord:
    """Capture a page that has to be whole."""
    page = await manager.capture(url)
    if page.record.failure or page.record.troubles or not page.screenshot:
        raise CaptureError(f"{url} was not captured as it should be: {page.record}")
    return page.record


async def capture_all(manager: BatchBrowserManager, urls: list[str]) -> list[CaptureRecord]:
    """Capture the pages at once; the first that fails cancels the others."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(capture(manager, url)) for url in urls]
    return [task.result() for task in tasks]


async def measure(server: DocumentServer, urls: list[str], at_once: int) -> None:
    """Capture the pages with a warm browser and print how it went."""
    urls = urls * ROUNDS[at_once]
    async with BatchBrowserManager(
        max_concurrent_pages=at_once, settings=server.settings()
    ) as manager:
        await capture_all(manager, urls[:at_once])
        with PeakMemory(every_s=3.0) as memory:
            started, used_s = time.perf_counter(), processor_s()
            records = await capture_all(manager, urls)
            took_s, used_s = time.perf_counter() - started, processor_s() - used_s
    title(
        f"  {at_once:>2} at once: {len(urls) / took_s * 60:4.0f} pages a minute (target "
        f"{TARGET_PAGES_A_MINUTE[at_once]}), {used_s / len(urls):.2f} s of processor a page, peak "
        f"memory {memory.peak_bytes / 1024**3:.1f} GiB (target {TARGET_GIB:g})"
    )
    stages = {
        stage: statistics.median(record.timings_s[stage] for record in records)
        for stage in records[0].timings_s
    }
    by_stage = ", ".join(f"{name} {seconds:.2f}" for name, seconds in stages.items())
    title(f"             median seconds by stage: {by_stage}")


def main() -> None:
    """Measure and print."""
    docs = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/doc")
    docs = docs / "usr/share/doc" if (docs / "usr/share/doc").is_dir() else docs
    missing = [package for package in PAGES if not (docs / package).is_dir()]
    if missing:
        title(f"not measured: {docs} has no {', '.join(missing)}\n{__doc__}")
        return
    title("long documents, each response delayed by 0.2 s")
    with tempfile.TemporaryDirectory() as folder:
        urls = link_packages(docs.resolve(), Path(folder))
        with DocumentServer(Path(folder)) as server:
            try:
                for at_once in ROUNDS:
                    asyncio.run(measure(server, urls, at_once))
            except* CaptureError as errors:
                raise SystemExit(str(errors.exceptions[0])) from None


if __name__ == "__main__":
    main()
