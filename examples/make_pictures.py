"""Make the pictures of the documentation, docs/images/, from the example's results.

A digest of what they show stands beside them.


make pictures
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
import threading
from pathlib import Path

import uvicorn
from patchright.async_api import async_playwright

from mind2web2.capture.browser_program import find_browser
from mind2web2.cli import evaluate_main
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.front_end import STATIC
from mind2web2.viewer.server import Session, SessionGuard, application, listen

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
ANSWER = "example/museum_saturday/answer_1"
# Name of the picture, view, and the element that shows that the view is complete.
VIEWS = [
    ("viewer-overview.png", "#/overview", "table.matrix td.cell"),
    (
        "viewer-answer.png",
        f"#/answer/{ANSWER}?leaf=ferry_departure",
        ".node.current .details",
    ),
    ("viewer-evidence.png", f"#/evidence/{ANSWER}/tour_start_supported", "mark"),
]
# Says what the pictures show, so that a test notices when a view has changed since.
DRAWN_FROM = IMAGES / "drawn-from.sha256"


def drawn_from() -> str:
    """Return a digest of the views and of the example that they show."""
    files = [*STATIC.glob("*.js"), *STATIC.glob("*.css"), ROOT / "examples" / "judgments.jsonl"]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def evaluated(results: Path) -> Catalog:
    """Return the example's results, replayed into a folder."""
    words = [
        "--agent_name",
        "example",
        "--llm_provider",
        "replay",
        "--judgments",
        "examples/judgments.jsonl",
    ]
    if evaluate_main([*words, "--eval_results_root", str(results)]) != 0:
        raise SystemExit("the example was not evaluated; see above")
    return Catalog(PathConfig(ROOT).apply_overrides(eval_results_root=results))


async def take(address: str) -> None:
    """Take the pictures of a viewer that is served at an address."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(headless=True).path)
        page = await browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        await page.goto(address)
        for name, view, complete in VIEWS:
            await page.goto(address.partition("?")[0] + view)
            await page.locator(complete).first.wait_for()
            await page.screenshot(path=IMAGES / name)
        await browser.close()


def main() -> None:
    """Write the pictures."""
    os.chdir(ROOT)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        catalog = evaluated(Path(folder))
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        session = Session.at("127.0.0.1", port)
        server = uvicorn.Server(
            uvicorn.Config(
                SessionGuard(application(catalog, session), session), log_level="warning"
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            asyncio.run(take(f"http://127.0.0.1:{port}/?token={session.token}"))
        finally:
            server.should_exit = True
            thread.join()
    DRAWN_FROM.write_text(f"{drawn_from()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
