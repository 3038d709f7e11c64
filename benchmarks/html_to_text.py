"""How faithfully and how fast a rendered page becomes text: ours beside converters of HTML.

Facts are drawn from the HTML of Debian's documentation packages (``apache2-doc``,
``debian-handbook``, ``git-doc``) by a parser of their own: the text of every paragraph, heading,
list item, definition and cell, and every cell with its row's first cell and its column's header.
Converters get the rendered page's HTML, we read the page. Converters that are not dependencies are
measured where they happen to be installed. The few facts missed are links whose two lines ("Prev",
"11.8. ...") only the style sheet keeps apart, which the facts' parser runs together.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import statistics
import sys
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from measuring import title

from mind2web2.capture.page.isolated_world import open_worlds
from mind2web2.capture.page.text import read_text

if TYPE_CHECKING:
    from patchright.async_api import Page

DOCUMENTS = ("apache2-doc/manual/en", "debian-handbook/html/en-US", "git/html")
PAGES_A_PACKAGE = 40
BROWSER = "/usr/bin/chromium-headless-shell"
LIMIT = 10_000_000

FACT_TAGS = {
    "p",
    "li",
    "dt",
    "dd",
    "td",
    "th",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "pre",
    "caption",
}
BLOCK_TAGS = FACT_TAGS | {
    "div",
    "ul",
    "ol",
    "dl",
    "table",
    "blockquote",
    "tr",
    "section",
    "br",
    "hr",
}
VOID_TAGS = {"br", "hr", "img", "input", "meta", "link", "col", "area", "base", "wbr"}

HIDING = (
    "display:none", "visibility:hidden", "opacity:0", "font-size:0", "color:transparent", "color:#fff",
    "position:absolute;left:-9999px", "position:absolute;clip:rect(0,0,0,0)", "height:0;overflow:hidden",
    "transform:scale(0)", "clip-path:inset(50%)", "text-indent:-9999px",
)  # fmt: skip


class Facts(HTMLParser):
    """Collects texts of innermost blocks, and cells of plain tables (row, column, text)."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._open: list[tuple[str, list[str]]] = []
        self._nested_or_spanned = False
        self._table_depth = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element; a block within another ends that one's claim to be a fact."""
        if tag in BLOCK_TAGS:
            self._flush()
        if tag == "table":
            self._table_depth += 1
            self._nested_or_spanned = self._table_depth > 1
            if self._table_depth == 1:
                self.tables.append([])
        if tag == "tr" and self._table_depth == 1:
            self.tables[-1].append([])
        if tag in {"td", "th"} and {"rowspan", "colspan"} & {name for name, _ in attrs}:
            self._nested_or_spanned = True
        if tag not in VOID_TAGS:
            self._open.append((tag, []))

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those left open in it."""
        if tag not in [name for name, _ in self._open]:
            return
        while self._open:
            name, texts = self._open.pop()
            text = plain("".join(texts))
            if name in FACT_TAGS and text:
                self.texts.append(text)
            if name in {"td", "th"} and self._table_depth == 1 and self.tables[-1]:
                self.tables[-1][-1].append(text)
            if name not in BLOCK_TAGS and self._open and name not in {"script", "style", "title"}:
                self._open[-1][1].extend(texts)
            if name == tag:
                break
        if tag == "table":
            self._table_depth -= 1
            if self._nested_or_spanned and self._table_depth == 0:
                self.tables.pop()

    def handle_data(self, data: str) -> None:
        """Add text to the innermost element."""
        if self._open:
            self._open[-1][1].append(data)

    def _flush(self) -> None:
        if self._open:
            name, texts = self._open[-1]
            text = plain("".join(texts))
            if name in FACT_TAGS and text:
                self.texts.append(text)
            texts.clear()

    def cells(self) -> list[tuple[str, str, str]]:
        """Return (row's first cell, column's first cell, text) of tables without spanning cells."""
        found = []
        for rows in self.tables:
            if len(rows) > 1 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
                found += [
                    (row[0], head, cell)
                    for row in rows[1:]
                    for head, cell in zip(rows[0], row, strict=True)
                ]
        return [cell for cell in found if all(cell)]


def plain(text: str) -> str:
    """Return text with single spaces, without invisible characters and hover marks."""
    return " ".join(re.sub("[\N{PILCROW SIGN}\N{ZERO WIDTH SPACE}]", "", text).split())


def unmarked(text: str) -> str:
    """Return Markdown without the marks of links and emphasis, for which nobody is to be blamed."""
    text = re.sub(r"!?\[([^\]]*)\]\((?:[^()]|\([^()]*\))*\)", r"\1", text)
    return re.sub(r"(?<!\\)(\*\*|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))", "", text)


def attributed(text: str, cells: list[tuple[str, str, str]]) -> int:
    """Count the cells in line with their row's first cell and below their column's first."""
    rows = [line.lstrip(" :>-") for line in text.split("\n")]
    grid = [
        [plain(cell) for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        for row in rows
        if row.startswith("|")
    ]
    places: dict[tuple[str, int], list[int]] = {}
    for number, row in enumerate(grid):
        for column, cell in enumerate(row):
            places.setdefault((cell, column), []).append(number)
    found = 0
    for first, head, cell in cells:
        columns = [column for value, column in places if value == cell.replace("|", "\\|")]
        found += any(
            (head.replace("|", "\\|"), column) in places
            and any(
                grid[row][0] == first.replace("|", "\\|")
                for row in places[cell.replace("|", "\\|"), column]
            )
            for column in columns
        )
    return found


def converters() -> dict[str, Callable[[str], str]]:
    """Return the converters that are installed, by name."""
    found: dict[str, Callable[[str], str]] = {}
    if importlib.util.find_spec("html_to_markdown"):
        from html_to_markdown import convert

        def convert_html(html: str) -> str:
            return str(convert(html).content)

        found["html-to-markdown"] = convert_html
    if importlib.util.find_spec("markdownify"):
        from markdownify import markdownify

        found["markdownify"] = markdownify
    if importlib.util.find_spec("resiliparse"):
        from resiliparse.extract.html2text import extract_plain_text

        found["resiliparse"] = extract_plain_text
    if importlib.util.find_spec("selectolax"):
        from selectolax.lexbor import LexborHTMLParser

        def strip_tags(html: str) -> str:
            tree = LexborHTMLParser(html)
            tree.strip_tags(["script", "style", "template", "noscript", "head"])
            return str(tree.body.text(separator="\n"))

        found["selectolax"] = strip_tags
    return found


class Tally:
    """The facts that one way of reading kept, the text that it added, and its time."""

    def __init__(self) -> None:
        self.facts = self.kept = self.cells = self.attributed = self.chars = self.hidden = (
            self.hidings
        ) = 0
        self.times_ms: list[float] = []
        self.missed: list[str] = []

    def add(self, text: str, facts: Facts, took_ms: float) -> None:
        """Count one page."""
        flat = plain(unmarked(text)) + plain(text)
        self.facts += len(facts.texts)
        missed = [
            fact
            for fact in facts.texts
            if fact not in flat and fact.replace("|", "\\|") not in flat
        ]
        self.kept += len(facts.texts) - len(missed)
        self.missed += missed
        cells = facts.cells()
        self.cells += len(cells)
        self.attributed += max(attributed(text, cells), attributed(unmarked(text), cells))
        self.chars += len(text)
        self.times_ms.append(took_ms)

    def figures(self, name: str) -> str:
        """Return the figures as one line."""
        kept = self.kept / max(self.facts, 1)
        return (
            f"  {name:<18} {100 * kept:6.2f}% {100 * self.attributed / max(self.cells, 1):7.2f}%"
            f" {self.hidden:4} of {self.hidings} {self.chars / 1000:9.0f} k"
            f" {statistics.median(self.times_ms):7.1f} {max(self.times_ms):7.0f}\n"
        )


async def read(page: Page) -> str:
    """Read the page our way."""
    session = await page.context.new_cdp_session(page)
    return (await read_text(await open_worlds(page, session), LIMIT)).text


def pages() -> list[Path]:
    """Return an even sample of the installed documentation."""
    chosen = []
    for folder in DOCUMENTS:
        found = sorted((Path("/usr/share/doc") / folder).rglob("*.html"))
        chosen += found[:: max(len(found) // PAGES_A_PACKAGE, 1)][:PAGES_A_PACKAGE]
    return chosen


async def measure_hidden(
    page: Page, tallies: dict[str, Tally], ways: dict[str, Callable[[str], str]]
) -> None:
    """Count what ways of hiding text each way of reading is taken in by."""
    for style in HIDING:
        await page.set_content(f"<!doctype html><p>shown<div style='{style}'>secret</div>")
        html = await page.content()
        texts = {"this package": await read(page)} | {
            name: convert(html) for name, convert in ways.items()
        }
        for name, text in texts.items():
            tallies[name].hidden += "secret" in text
            tallies[name].hidings += 1


async def measure() -> None:
    """Read every page in every way and print what came of it."""
    from patchright.async_api import async_playwright

    ways = converters()
    tallies = {name: Tally() for name in ["this package", *ways]}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=BROWSER)
        page = await browser.new_page(viewport={"width": 1100, "height": 1400})
        for path in pages():
            await page.goto(path.as_uri())
            html = await page.content()
            facts = Facts(html)
            started = time.perf_counter()
            text = await read(page)
            tallies["this package"].add(text, facts, (time.perf_counter() - started) * 1000)
            for name, convert in ways.items():
                started = time.perf_counter()
                text = convert(html)
                tallies[name].add(text, facts, (time.perf_counter() - started) * 1000)
        await measure_hidden(page, tallies, ways)
        await browser.close()
    sys.stdout.write(
        f"  {'':<18} {'facts':>7} {'cells':>8} {'hidden':>10} {'text':>11} {'ms':>7} {'most':>7}\n"
    )
    for name, tally in tallies.items():
        sys.stdout.write(tally.figures(name))
    missed = tallies["this package"].missed
    if missed:
        sys.stdout.write(
            "  missed, for example:\n" + "".join(f"    {fact[:150]}\n" for fact in missed[:5])
        )


def main() -> None:
    """Measure on the documentation that is installed."""
    found = pages()
    title(
        f"HTML to text: {len(found)} pages of Debian's documentation, {len(HIDING)} ways of hiding "
        "text"
    )
    if not found:
        sys.stdout.write(
            "  none is installed: apt-get install apache2-doc debian-handbook git-doc\n"
        )
        return
    asyncio.run(measure())


if __name__ == "__main__":
    main()
