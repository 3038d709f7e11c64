"""Measure how much of a page its capture shows: invented pages, and Debian's documentation.

Every fact of the pages made for it is known (``tests/fixtures/site_pages``). For the real ones, a
sample is drawn from their HTML: headings, paragraphs, list items, terms, code, and table cells,
which count only where row and column can be told. Ends with status 1 below 99%, or when anything
hidden is shown.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from measuring import title

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

from html_facts import SourceFact, hidden_texts, present_facts
from page_facts import CORPUS, corpus, flat, is_present, kind_of, shown
from site_server import SiteServer

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CapturedPage, CaptureSettings, NetworkSettings

TARGET = 0.99
PAGES_A_PACKAGE = 20
MIN_PAGE_BYTES = 3_000
MAX_PAGE_BYTES = 400_000
INSTALL = "apt-get install apache2-doc debian-handbook git-doc"
DOCS = Path("/usr/share/doc")


@dataclass(frozen=True, slots=True)
class Package:
    """A documentation package: the folder of its site, and its real pages."""

    name: str
    root: Path
    pages: str


PACKAGES = (
    Package("apache2-doc", DOCS / "apache2-doc" / "manual", "en/**/*.html"),
    Package("debian-handbook", DOCS / "debian-handbook" / "html" / "en-US", "*.html"),
    Package("git-doc", DOCS / "git" / "html", "*.html"),
)


@dataclass(slots=True)
class Tally:
    """The facts that were looked for and those that captures show, by kind."""

    wanted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    hidden_wanted: int = 0
    hidden_shown: int = 0
    complaints: list[str] = field(default_factory=list)

    def add(self, url: str, facts: Iterable[SourceFact], page: CapturedPage) -> None:
        """Look for facts in a capture."""
        for wanted in facts:
            self.wanted[wanted.kind] += 1
            if is_present(wanted.fact, page):
                self.found[wanted.kind] += 1
            else:
                self.complaints.append(f"{url} lacks the {wanted.kind}: {wanted.fact}")

    def add_hidden(self, url: str, texts: list[str], visible: list[str]) -> None:
        """Count what is hidden and what of it is shown."""
        self.hidden_wanted += len(texts)
        self.hidden_shown += len(visible)
        self.complaints += [f"{url} shows what is hidden: {text}" for text in visible]

    @property
    def share(self) -> float:
        """The part that was found."""
        return self.found.total() / self.wanted.total()

    @property
    def is_good(self) -> bool:
        """Return whether enough facts are shown, and nothing hidden is."""
        return self.share >= TARGET and self.hidden_shown == 0


async def captures(server: SiteServer, urls: list[str]) -> list[CapturedPage]:
    """Capture pages of a local server, several at once."""
    network = NetworkSettings(host_map=server.host_map, trusted_keys=(server.spki,))
    async with BatchBrowserManager(settings=CaptureSettings(network=network)) as manager:
        return await asyncio.gather(*map(manager.capture, urls))


def measure_corpus() -> Tally:
    """Measure on the pages made for it."""
    tally, pages = Tally(), corpus()
    with SiteServer(CORPUS) as server:
        captured = asyncio.run(captures(server, [page.url for page in pages]))
    for expected, page in zip(pages, captured, strict=True):
        tally.add(
            expected.url,
            (SourceFact(kind_of(fact), fact) for fact in expected.present),
            page,
        )
        tally.add_hidden(expected.url, list(expected.absent), shown(expected, page))
    return tally


def sampled_pages(package: Package) -> list[Path]:
    """Return some of a package's pages, the same each time."""
    files = sorted(
        file
        for file in package.root.glob(package.pages)
        if MIN_PAGE_BYTES <= file.stat().st_size <= MAX_PAGE_BYTES
    )
    return random.Random(package.name).sample(files, min(PAGES_A_PACKAGE, len(files)))


def measure_package(package: Package) -> Tally:
    """Measure on a package's pages."""
    tally, host = Tally(), f"{package.name}.example"
    files = sampled_pages(package)
    urls = [f"https://{host}/{file.relative_to(package.root).as_posix()}" for file in files]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / host).symlink_to(package.root)
        with SiteServer(Path(folder)) as server:
            captured = asyncio.run(captures(server, urls))
    for url, file, page in zip(urls, files, captured, strict=True):
        source = file.read_bytes()
        tally.add(url, present_facts(source, file.name), page)
        hidden = hidden_texts(source, file.name)
        tally.add_hidden(url, hidden, [text for text in hidden if text in flat(page.text or "")])
    return tally


def show_tally(name: str, tally: Tally, show_all: bool) -> None:
    """Print what was found, by kind."""
    title(
        f"{name}: {tally.found.total()} of {tally.wanted.total()} facts shown, {tally.share:.2%} "
        "(target 99%)"
    )
    for kind, wanted in sorted(tally.wanted.items()):
        title(
            f"  {kind:<12} {tally.found[kind]:>5} of {wanted:>5}  {tally.found[kind] / wanted:.2%}"
        )
    title(f"  hidden text  {tally.hidden_shown:>5} of {tally.hidden_wanted:>5} shown (target 0)")
    limit = None if show_all else 10
    for complaint in tally.complaints[:limit]:
        title(f"    {complaint[:200]}")


def main(show_all: bool) -> int:
    """Measure, print, and return the exit status."""
    tallies = {"pages made for it": measure_corpus()}
    for package in PACKAGES:
        if package.root.is_dir():
            tallies[package.name] = measure_package(package)
        else:
            title(f"{package.name} is not installed and not measured: {INSTALL}")
    for name, tally in tallies.items():
        show_tally(name, tally, show_all)
    return 0 if all(tally.is_good for tally in tallies.values()) else 1


if __name__ == "__main__":
    sys.exit(main("--all" in sys.argv))
