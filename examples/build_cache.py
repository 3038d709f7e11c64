"""Rebuilds the example's page cache from the demo web site, with the system's headless Chromium.

For maintainers: run it after a change to ``examples/site`` or ``answers/example``. The pages are
served on loopback under their own host names, every section is unfolded, and what the answers cite is
stored the way a capture stores it. The leaflet is printed again only when asked for, since a printed
PDF carries the time of printing.

    python examples/build_cache.py [--print-leaflet]
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urlsplit

from page_text import page_text
from PIL import Image

from mind2web2.utils.cache_filesys import CacheFileSys
from mind2web2.utils.url_tools import normalize_url_simple, regex_find_urls

EXAMPLES = Path(__file__).resolve().parent
SITE = EXAMPLES / "site"
LEAFLET_SOURCE = EXAMPLES / "leaflet" / "summer-timetable.html"
LEAFLET = SITE / "ferry.ottermoss.example" / "downloads" / "summer-timetable.pdf"
AGENT = "example"
ANSWERS = EXAMPLES.parent / "answers" / AGENT
CACHE = EXAMPLES.parent / "cache" / AGENT

BROWSERS = ("chromium-headless-shell", "chromium")
BROWSER_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
WIDTH_PX = 1100
JPEG_QUALITY = 80
BROWSER_TIMEOUT_S = 60

# Added to every served page: unfolds sections and leaves the full height where the DOM dump shows it.
UNFOLD_SCRIPT = b"""<script>
for (const section of document.querySelectorAll("details")) section.open = true;
addEventListener("load", () => { document.documentElement.dataset.heightPx = document.body.scrollHeight; });
</script>"""
CONTENT_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".svg": "image/svg+xml"}

log = logging.getLogger("build_cache")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the demo site: its address and the file that holds it."""

    url: str
    file: Path


@dataclass(frozen=True, slots=True)
class Browser:
    """The system's Chromium, sent to the local server whatever host a page has."""

    program: str
    server_port: int

    def rendered_dom(self, url: str) -> str:
        """Return the page's DOM after its scripts have run."""
        return self._run("--dump-dom", _over_http(url)).decode()

    def screenshot_jpeg(self, url: str, height_px: int) -> bytes:
        """Return a JPEG of the page, as tall as it is."""
        with tempfile.TemporaryDirectory() as folder:
            png = Path(folder) / "page.png"
            self._run(f"--window-size={WIDTH_PX},{height_px}", f"--screenshot={png}", _over_http(url))
            jpeg = BytesIO()
            with Image.open(png) as image:
                image.convert("RGB").save(jpeg, "JPEG", quality=JPEG_QUALITY, optimize=True)
        return jpeg.getvalue()

    def print_pdf(self, source: Path, target: Path) -> None:
        """Print an HTML file to a PDF file."""
        self._run("--no-pdf-header-footer", f"--print-to-pdf={target}", source.as_uri())

    def _run(self, *arguments: str) -> bytes:
        rules = f"--host-resolver-rules=MAP * 127.0.0.1:{self.server_port}"
        command = [self.program, *BROWSER_FLAGS, f"--window-size={WIDTH_PX},800", rules, *arguments]
        return subprocess.run(command, check=True, capture_output=True, timeout=BROWSER_TIMEOUT_S).stdout


class SiteHandler(BaseHTTPRequestHandler):
    """Serves ``site/<host>/<path>``, taking the host from the request."""

    def do_GET(self) -> None:
        """Answer with the file behind the address, or 404."""
        file = site_file(f"http://{self.headers.get('Host', '')}{self.path}")
        if file is None:
            self.send_error(404)
            return
        body = file.read_bytes()
        if file.suffix == ".html":
            body = body.replace(b"</body>", UNFOLD_SCRIPT + b"</body>")
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPES.get(file.suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep requests out of the console unless debugging."""
        log.debug(format, *args)


def site_file(url: str) -> Path | None:
    """Return the file of the demo site that a URL means, or ``None``; ``www.`` may be left out."""
    parts = urlsplit(normalize_url_simple(url))
    host, path = parts.hostname or "", unquote(parts.path).strip("/")
    for folder in (SITE / host, SITE / f"www.{host}"):
        for file in (folder / path / "index.html", folder / path):
            if host and file.is_file() and SITE in file.resolve().parents:
                return file
    return None


def site_page(url: str) -> Page | None:
    """Return the page that a URL means, under the site's own spelling of its address."""
    file = site_file(url)
    if file is None:
        return None
    address = file.relative_to(SITE).as_posix().removesuffix("index.html").rstrip("/")
    return Page(f"https://{address}", file)


def cited_urls(answer: str) -> set[str]:
    """Return the URLs an answer cites: the site's spelling for its pages, others as written."""
    return {page.url if (page := site_page(url)) else url for url in regex_find_urls(answer)}


@contextmanager
def served_site() -> Iterator[int]:
    """Serve the site on a free loopback port for the length of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), SiteHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _over_http(url: str) -> str:
    # The local server has no certificate; the address does not show in the capture.
    return url.replace("https://", "http://", 1)


def store_page(cache: CacheFileSys, page: Page, browser: Browser) -> None:
    """Put one page into a task's cache."""
    if page.file.suffix == ".pdf":
        cache.put_pdf(page.url, page.file.read_bytes())
        return
    dom = browser.rendered_dom(page.url)
    height = re.search(r'data-height-px="(\d+)"', dom)
    if height is None:
        raise SystemExit(f"{page.url} did not load in {browser.program}; run with --debug for the requests")
    screenshot = browser.screenshot_jpeg(page.url, int(height[1]))
    cache.put_web(page.url, page_text(dom), screenshot)
    log.info("stored %s height_px=%s jpeg_bytes=%d", page.url, height[1], len(screenshot))


def build_task(task_id: str, browser: Browser) -> None:
    """Rebuild one task's cache folder and its list of cited URLs."""
    answers = sorted((ANSWERS / task_id).glob("answer_*.md"))
    citing: dict[str, list[str]] = {}
    for answer in answers:
        for url in cited_urls(answer.read_text(encoding="utf-8")):
            citing.setdefault(url, []).append(answer.name)
    pages = {url: page for url in citing if (page := site_page(url))}
    # Built beside the old folder and then moved, so that a failed capture leaves the old one alone.
    folder, fresh = CACHE / task_id, CACHE / f"{task_id}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    cache = CacheFileSys(fresh)
    for url in sorted(pages):
        store_page(cache, pages[url], browser)
    cache.save()
    # Of use to running processes only; the folder is kept in version control.
    for lock in fresh.glob("*.lock"):
        lock.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    types = {url: "pdf" if page.file.suffix == ".pdf" else "web" for url, page in pages.items()}
    write_url_list(task_id, citing, types)


def write_url_list(task_id: str, citing: dict[str, list[str]], url_types: dict[str, str]) -> None:
    """Write ``cache/<agent>/<task>.json``: which URLs the answers cite."""
    most_cited_first = sorted(citing, key=lambda url: (-len(citing[url]), url.lower()))
    listing = {
        "agent_name": AGENT,
        "task_id": task_id,
        "total_unique_urls": len(citing),
        "all_unique_urls": sorted(citing, key=str.lower),
        "urls": {url: citing[url] for url in most_cited_first},
        "url_types": {url: url_types[url] for url in most_cited_first if url in url_types},
        "cached_url_count": len(url_types),
    }
    text = json.dumps(listing, indent=2, ensure_ascii=False) + "\n"
    (CACHE / f"{task_id}.json").write_text(text, encoding="utf-8")


def find_browser() -> str:
    """Return the path of the system's Chromium, or end with the way to install it."""
    for name in BROWSERS:
        if program := shutil.which(name):
            return program
    raise SystemExit("no Chromium found: apt-get install chromium-headless-shell")


def main() -> int:
    """Rebuild the caches of all example tasks."""
    parser = argparse.ArgumentParser(description="Rebuild the example's page cache from examples/site.")
    parser.add_argument("--print-leaflet", action="store_true", help="print the PDF leaflet anew first")
    parser.add_argument("--debug", action="store_true", help="show every request the browser makes")
    options = parser.parse_args()
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.INFO, format="%(message)s")
    with served_site() as port:
        browser = Browser(find_browser(), port)
        if options.print_leaflet or not LEAFLET.exists():
            browser.print_pdf(LEAFLET_SOURCE, LEAFLET)
        for task_folder in sorted(path for path in ANSWERS.iterdir() if path.is_dir()):
            build_task(task_folder.name, browser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
