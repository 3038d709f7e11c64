"""A small site, and a project whose answer cites all of its pages, to be cached by processes."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

from faults.preloaded import Preloaded, Started
from PIL import Image
from servers.local_http import Answer, LocalHttp, Request

from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cache_files import PageFiles

AGENT, TASK = "bot", "task"
OPTIONS = ("--allow_private_network",)
# The fields that differ between two captures of one page.
_CHANGING = ("captured_at", "timings_s")


def page(request: Request) -> Answer:
    """Answer with a small page that says where it ends."""
    number = request.path.rpartition("/")[2]
    rows = "".join(f"<p>Line {line} of page {number}.</p>" for line in range(20))
    html = f"<!doctype html><title>{number}</title>{rows}<p>End of page {number}.</p>"
    return Answer(html.encode(), headers={"Content-Type": "text/html"})


class PageSite(LocalHttp):
    """Serves the pages."""

    def __init__(self) -> None:
        """Serve any number of them."""
        super().__init__(page)


def is_whole(cache: CacheFileSys, url: str) -> bool:
    """Tell whether a listed page is there to its end, with a picture and its own record."""
    files = PageFiles.of(cache.task_dir, url)
    text = files.text.read_text(encoding="utf-8").rstrip()
    Image.open(io.BytesIO(files.screenshot.read_bytes())).load()
    record = cache.capture_record(url)
    return (
        text.endswith(f"End of page {url.rpartition('/')[2]}.")
        and record is not None
        and record.sha256 == cache.digest(url)
    )


def cached_contents(folder: Path) -> dict[str, Any]:
    """Return what the cache of a task holds, apart from times."""
    found: dict[str, Any] = {}
    for path in (*folder.iterdir(), folder.parent / f"{folder.name}.json"):
        if path.suffix != ".json":
            found[path.name] = path.read_bytes()
            continue
        found[path.name] = json.loads(path.read_bytes())
        if path.name.endswith(".capture.json"):
            found[path.name] = {
                key: value for key, value in found[path.name].items() if key not in _CHANGING
            }
    return found


class CachingProject:
    """A folder with one answer that cites the pages of a site.

    Args:
        root: the folder, made here.
    """

    def __init__(self, root: Path, site_url: str, pages: int) -> None:
        self.root = root
        self.urls = [f"{site_url}/page/{number}" for number in range(pages)]
        answer = root / "answers" / AGENT / TASK / "answer_1.md"
        answer.parent.mkdir(parents=True)
        answer.write_text("\n".join(f"- {url}" for url in self.urls), encoding="utf-8")

    def start(self, commands: Preloaded) -> Started:
        """Start a caching run."""
        command = ["cache", AGENT, *OPTIONS, "--max_concurrent_pages", 3]
        return commands.start(command, self.root, self.root / "output.txt")

    def cache(self, commands: Preloaded) -> None:
        """Run a caching run to its end."""
        process = self.start(commands)
        if process.status() != 0:
            raise AssertionError(process.printed())

    def clear(self) -> None:
        """Forget what is cached."""
        shutil.rmtree(self.root / "cache", ignore_errors=True)

    def pages(self) -> CacheFileSys:
        """Return the task's cache."""
        return CacheFileSys(self.root / "cache" / AGENT / TASK)

    def listed(self) -> list[str]:
        """Return what the index lists."""
        path = self.pages().task_dir / "index.json"
        return sorted(json.loads(path.read_bytes())) if path.exists() else []

    def captures(self) -> dict[str, str]:
        """Return when each stored page was captured, with what that took."""
        records = self.pages().capture_records()
        return {url: f"{record.captured_at} {record.timings_s}" for url, record in records.items()}

    def contents(self) -> dict[str, Any]:
        """Return what is cached, apart from times."""
        return cached_contents(self.pages().task_dir)
