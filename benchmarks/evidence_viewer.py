"""The viewer with the results of a whole benchmark: 130 tasks, 3 runs, 60 leaves, each on a page.

    PYTHONPATH=tests uv run python benchmarks/evidence_viewer.py

Prints how long the overview takes from `mind2web2 view`, once that has printed its address, and
from a file, how long an answer takes to open and a search to find, what the tab holds in memory,
and how large the file is without pages.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measuring import title
from patchright.async_api import CDPSession, Page, async_playwright, expect
from processes import family, pss_bytes
from viewer.made_results import Results, leaf, result

from mind2web2.capture.browser_process import find_browser
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


# Follows an address and returns the milliseconds until a view shows so many elements. Without an
# address, the milliseconds since the navigation began. Asked in the page: a tool's polling takes
# longer than most views.
SHOWN_MS = """async ([address, selector, count]) => {
  const started = address ? performance.now() : 0;
  if (address) location.hash = address;
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  while (document.querySelectorAll(selector).length < count) await drawn();
  await drawn();
  return performance.now() - started;
}"""


async def cpu_ms(session: CDPSession) -> float:
    """Return the processor time that a tab has taken."""
    found = await session.send("Performance.getMetrics")
    return 1000 * next(each["value"] for each in found["metrics"] if each["name"] == "ProcessTime")


async def measured(page: Page, home: str) -> dict[str, float]:
    """Return the figures of one home of the front end, in milliseconds and megabytes."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    cells = f"table.matrix td.cell a >> nth={TASKS * RUNS - 1}"
    await page.goto(home, wait_until="commit")
    shown = await page.evaluate(SHOWN_MS, ["", "table.matrix td.cell a", TASKS * RUNS])
    found = {
        "overview ms": shown,
        "overview, processor time of the tab ms": await cpu_ms(session),
    }
    before = await cpu_ms(session)
    answers = []
    for task in range(0, 50, 10):
        # Its own nodes: those of the answer before are still there at first.
        address = f"#/answer/{AGENT}/task_{task:03}/answer_1"
        node = f".node a[href^='{address}']"
        answers.append(await page.evaluate(SHOWN_MS, [address, node, LEAVES]))
    found["answer ms"] = statistics.median(answers)
    found["answer, processor time of the tab ms"] = (await cpu_ms(session) - before) / len(answers)
    await page.evaluate("() => { location.hash = '#/overview' }")
    await expect(page.locator(cells)).to_be_visible(timeout=60_000)
    search = page.get_by_label("Search tasks and claims")
    await search.fill("ferry museum")
    await expect(page.locator("ul.claims li").first).to_be_visible(timeout=60_000)
    before = await cpu_ms(session)
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
    found["search, processor time of the tab ms"] = (await cpu_ms(session) - before) / 5
    await session.send("HeapProfiler.collectGarbage")
    found["memory of the tab MB"] = largest_tab_bytes() / 1e6
    return found


@contextmanager
def viewed(folder: Path) -> Iterator[str]:
    """Yield the address that `mind2web2 view` prints; it reads the results from then on."""
    words = ["-m", "mind2web2", "view", AGENT, "--no_browser", "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().split()[-1]
    finally:
        server.terminate()
        server.wait()


def largest_tab_bytes() -> int:
    """Return what the largest of the browser's tabs holds in memory."""
    tabs = (
        folder for folder in family() if b"--type=renderer" in (folder / "cmdline").read_bytes()
    )
    return max(map(pss_bytes, tabs))


async def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = made(folder)
        started = time.perf_counter()
        file = folder / "report.html"
        await write_report(file, Catalog(results.paths), ReportContent(pages=False))
        written_s = time.perf_counter() - started
        started = time.process_time()
        Catalog(results.paths).overview()
        title(
            f"server: processor time of its first overview: {time.process_time() - started:.2f} s"
        )
        title(
            f"file without pages: {file.stat().st_size / 1e6:.1f} MB, written in {written_s:.1f} s"
        )
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=find_browser(headless=True).path
            )
            for home in ("server", "file"):
                runs = []
                for _ in range(TIMES):
                    context = await browser.new_context()
                    page = await context.new_page()
                    with viewed(folder) as address:
                        runs.append(
                            await measured(page, address if home == "server" else file.as_uri())
                        )
                    await context.close()
                for figure in runs[0]:
                    values = sorted(run[figure] for run in runs)
                    spread = f"from {values[0]:.0f} to {values[-1]:.0f}"
                    title(f"{home}: {figure}: {values[TIMES // 2]:.0f} ({spread})")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
