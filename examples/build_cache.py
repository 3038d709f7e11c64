"""Rebuild the example's page cache by captures of the demo web site.

For maintainers: run it after a change to ``examples/site``, to ``answers/example`` or to how pages
    are captured. The site is served on loopback under its own host names. The leaflet is printed
    again only when asked for, since a printed PDF carries the time of printing.

    python examples/build_cache.py [--output FOLDER] [--print-leaflet]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import sys
import tempfile
from pathlib import Path

from site_server import SITE, SiteServer

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.pages.cited_pages import AgentCache, TaskCitations, TaskPages
from mind2web2.pages.crawl import CrawlProgress, crawl, find_citations
from mind2web2.results.answers import read_answer

EXAMPLES = Path(__file__).resolve().parent
LEAFLET_SOURCE = EXAMPLES / "leaflet" / "summer-timetable.html"
LEAFLET = SITE / "ferry.ottermoss.example" / "downloads" / "summer-timetable.pdf"
AGENT = "example"
ANSWERS = EXAMPLES.parent / "answers" / AGENT
CACHE_ROOT = EXAMPLES.parent / "cache"


def answers_by_task() -> dict[str, dict[str, str]]:
    """Return the texts of the example's answers."""
    tasks = sorted(folder for folder in ANSWERS.iterdir() if folder.is_dir())
    return {
        task.name: {answer.name: read_answer(answer) for answer in sorted(task.glob("answer_*.md"))}
        for task in tasks
    }


async def capture_cited(folder: Path, server: SiteServer) -> list[TaskPages]:
    """Capture every cited page of the site into an agent's cache folder, from nothing."""
    network = NetworkSettings(host_map=server.host_map, trusted_keys=(server.spki,))
    progress = CrawlProgress()
    citations: list[TaskCitations] = await find_citations(answers_by_task(), None, progress)
    return await crawl(
        citations,
        AgentCache(folder),
        lambda: BatchBrowserManager(settings=CaptureSettings(network=network)),
        progress,
    )


def replace_folder(fresh: Path, folder: Path) -> None:
    """Put a freshly built folder in the place of an old one; it is kept in version control."""
    # Only running processes use locks.
    for lock in fresh.rglob("*.lock"):
        lock.unlink()
    # Pages are listed as they come, which is not the same from run to run.
    for index in fresh.glob("*/index.json"):
        entries = json.loads(index.read_text(encoding="utf-8"))
        in_order = json.dumps(dict(sorted(entries.items())), indent=2, ensure_ascii=False)
        index.write_text(in_order, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(fresh, folder)


def report(tasks: list[TaskPages]) -> None:
    """Print what became of each cited page."""
    for task in tasks:
        for page in task.pages:
            troubles = page.record.troubles if page.record else ()
            remarks = [
                page.failure or "",
                *(f"{trouble.kind}: {trouble.detail}" for trouble in troubles),
            ]
            told = "; ".join(filter(None, remarks))
            line = f"{task.task_id}: {page.kind or 'not had':<8} {page.url} {told}"
            sys.stdout.write(line.rstrip() + "\n")


async def print_leaflet() -> None:
    """Print the leaflet's source to a PDF file."""
    from patchright.async_api import async_playwright

    from mind2web2.capture.browser_program import find_browser

    program = find_browser(headless=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program.path)
        page = await browser.new_page()
        await page.goto(LEAFLET_SOURCE.as_uri())
        await page.pdf(path=LEAFLET, prefer_css_page_size=True, print_background=True)
        await browser.close()


def main() -> int:
    """Rebuild the caches of all example tasks."""
    parser = argparse.ArgumentParser(
        description="Rebuild the example's page cache from examples/site."
    )
    parser.add_argument(
        "--output", type=Path, default=CACHE_ROOT, help="cache folder (default: cache/)"
    )
    parser.add_argument(
        "--print-leaflet", action="store_true", help="print the PDF leaflet anew first"
    )
    parser.add_argument("--debug", action="store_true", help="log what the capture does")
    options = parser.parse_args()
    logging.basicConfig(
        level=logging.DEBUG if options.debug else logging.WARNING, format="%(message)s"
    )
    if options.print_leaflet or not LEAFLET.exists():
        asyncio.run(print_leaflet())
    with SiteServer() as server, tempfile.TemporaryDirectory() as work:
        fresh = Path(work) / AGENT
        tasks = asyncio.run(capture_cited(fresh, server))
        replace_folder(fresh, options.output / AGENT)
    report(tasks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
