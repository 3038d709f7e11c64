"""The viewer with the results of a whole benchmark: 130 tasks, 3 runs, 60 leaves, each on a page.

    PYTHONPATH=tests uv run python benchmarks/evidence_viewer.py

Prints how long the overview takes from a server that has just started and from a file, how long an answer
takes to open and a search to find, what the tab holds in memory, and how large the file is without pages.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from pathlib import Path

from measuring import title
from patchright.async_api import Page, async_playwright, expect
from viewer.conftest import served
from viewer.made_results import Results, leaf, result

from mind2web2.capture.browser.program import find_browser
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.report import ReportContent, write_report

TASKS, RUNS, LEAVES = 130, 3, 60
TIMES = 3
AGENT = "agent"
WORDS = [
    "lake",
    "deep",
    "cold",
    "museum",
    "ferry",
    "price",
    "year",
    "opened",
    "house",
    "street",
    "library",
    "tower",
    "bridge",
    "archive",
    "crowns",
    "north",
]


def text_of(chance: random.Random, words: int) -> str:
    """Return a text of so many words."""
    return " ".join(chance.choices(WORDS, k=words))


def made(folder: Path) -> Results:
    """Write the results, with reasons and quotations as long as usual."""
    chance = random.Random(1)
    results = Results(folder)
    for task in range(TASKS):
        for run in range(1, RUNS + 1):
            leaves = [
                leaf(
                    f"leaf-{number}",
                    text_of(chance, 18),
                    passed=chance.random() < 0.6,
                    url=f"https://site-{number % 7}.example/{task}",
                    reasoning=text_of(chance, 45),
                    desc=text_of(chance, 9),
                )
                for number in range(LEAVES)
            ]
            content = result(AGENT, f"answer_{run}", leaves, desc=text_of(chance, 80))
            results.add(content, f"task_{task:03}", text_of(chance, 900))
    results.summarise(AGENT)
    return results


async def opened_ms(page: Page, address: str, shown: str) -> float:
    """Return how long it takes until an address shows something."""
    started = time.perf_counter()
    await page.goto(address)
    await expect(page.locator(shown).first).to_be_visible(timeout=60_000)
    return (time.perf_counter() - started) * 1000


async def measured(page: Page, home: str) -> dict[str, float]:
    """Return the figures of one home of the front end, in milliseconds and megabytes."""
    base = home.partition("?")[0]
    found = {"overview ms": await opened_ms(page, home, "table.matrix td.cell a")}
    answers = [
        await opened_ms(page, f"{base}#/answer/{AGENT}/task_{task:03}/answer_1", f".node >> nth={LEAVES}")
        for task in range(0, 50, 10)
    ]
    found["answer ms"] = statistics.median(answers)
    await opened_ms(page, f"{base}#/overview", "table.matrix td.cell a")
    search = page.get_by_label("Search tasks and claims")
    await search.fill("ferry museum")
    await expect(page.locator("ul.claims li").first).to_be_visible(timeout=60_000)
    # From the key to the list, with the texts loaded by the search before.
    found["search ms"] = await page.evaluate(
        """async () => {
          const field = document.querySelector("input[type=search]");
          const times = [];
          for (const words of ["lake deep", "tower bridge", "crowns north", "year opened", "cold ferry"]) {
            const started = performance.now();
            field.value = words;
            field.dispatchEvent(new Event("input", {bubbles: true}));
            await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));
            times.push(performance.now() - started);
          }
          return times.sort((a, b) => a - b)[2];
        }"""
    )
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used = await session.send("Runtime.getHeapUsage")
    found["script memory MB"] = used["usedSize"] / 1e6
    return found


async def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = made(folder)
        started = time.perf_counter()
        file = folder / "report.html"
        await write_report(file, Catalog(results.paths), ReportContent(pages=False))
        written_s = time.perf_counter() - started
        title(f"file without pages: {file.stat().st_size / 1e6:.1f} MB, written in {written_s:.1f} s")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_browser(headless=True).path)
            for home in ("server", "file"):
                runs = []
                for _ in range(TIMES):
                    context = await browser.new_context()
                    with served(Catalog(results.paths)) as address:
                        page = await context.new_page()
                        runs.append(await measured(page, address if home == "server" else file.as_uri()))
                    await context.close()
                for figure in runs[0]:
                    values = sorted(run[figure] for run in runs)
                    spread = f"from {values[0]:.0f} to {values[-1]:.0f}"
                    title(f"{home}: {figure}: {values[TIMES // 2]:.0f} ({spread})")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
