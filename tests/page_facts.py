"""Facts that a capture has to show, and facts that it must not.

The checks look for them in the text, screenshot or PDF of the capture.

A fact is a piece of text; or an object:
    {"row", "column", "value"}   a table's cell, found only if its row and column can be told from
    the text;
                                 labels may be lists, ``caption`` names the table
    {"order": [...]}             pieces of text in this order
    {"near": [a, b], "chars"}    b soon after a
    {"exact": text}              with its line breaks and white space
    {"pixels": [r, g, b], "min"} so many pixels of a colour in the screenshot
    {"pdf": text}                text of the stored PDF
"""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mind2web2.capture.models import CapturedPage

CORPUS = Path(__file__).parent / "fixtures" / "site_pages"
# JPEG blurs colours, most of all at edges.
COLOUR_TOLERANCE = 24
CAPTION_WITHIN_CHARS = 300

Fact = str | dict[str, Any]


@dataclass(frozen=True)
class CorpusPage:
    """A page of the corpus: its address, and what its capture must and must not show."""

    url: str
    group: str
    present: tuple[Fact, ...]
    absent: tuple[str, ...]


def corpus(root: Path = CORPUS) -> list[CorpusPage]:
    """Return all pages, in order."""
    return [_page(root, file) for file in sorted(root.rglob("facts.json"))]


def _page(root: Path, file: Path) -> CorpusPage:
    facts = json.loads(file.read_text(encoding="utf-8"))
    host, *steps = (file.parent / facts.get("file", "")).relative_to(root).parts
    return CorpusPage(
        f"https://{host}/{'/'.join(steps)}",
        host.partition(".")[0],
        tuple(facts["present"]),
        tuple(facts["absent"]),
    )


def kind_of(fact: Fact) -> str:
    """Return what sort of fact it is."""
    if isinstance(fact, str):
        return "text"
    return "cell" if "value" in fact else next(iter(fact))


def is_present(fact: Fact, page: CapturedPage) -> bool:
    """Tell whether a capture shows a fact."""
    text = page.text or ""
    if isinstance(fact, str):
        return flat(fact) in flat(text)
    checks = {
        "cell": lambda: cell_is_attributable(text, fact),
        "order": lambda: _in_order(flat(text), [flat(piece) for piece in fact["order"]]),
        "near": lambda: _near(flat(text), fact),
        "exact": lambda: fact["exact"] in text,
        "pixels": lambda: coloured_pixels(page.screenshot, fact["pixels"]) >= fact["min"],
        "pdf": lambda: flat(fact["pdf"]) in flat(pdf_text(page.pdf)),
    }
    return checks[kind_of(fact)]()


def missing(expected: CorpusPage, page: CapturedPage) -> list[Fact]:
    """Return the facts that a capture does not show."""
    return [fact for fact in expected.present if not is_present(fact, page)]


def shown(expected: CorpusPage, page: CapturedPage) -> list[str]:
    """Return what a capture shows that nobody sees on the page."""
    return [words for words in expected.absent if flat(words) in flat(page.text or "")]


def flat(text: str) -> str:
    """Return text for comparison.

    Runs of white space become one, and marks of emphasis, code and soft hyphens are gone.
    """
    return " ".join(re.sub(r"[*`\u00ad\u200b\u2060\ufeff]", "", text).split())


def _in_order(text: str, pieces: list[str]) -> bool:
    place = 0
    for piece in pieces:
        found = text.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return True


def _near(text: str, fact: dict[str, Any]) -> bool:
    first, then = map(flat, fact["near"])
    between = f".{{0,{fact['chars']}}}?"
    return re.search(re.escape(first) + between + re.escape(then), text) is not None


@dataclass(frozen=True)
class Table:
    """A markdown table: its rows with the cells' text, and what stands right above it."""

    above: str
    rows: tuple[tuple[str, ...], ...]


def tables(text: str) -> Iterator[Table]:
    """Yield the markdown tables of a text."""
    lines = text.split("\n")
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and lines[end].lstrip().startswith("|"):
            end += 1
        if end > start:
            above = re.split(r"\n *\|", "\n".join(lines[:start]))[-1]
            rows = [_cells(line) for line in lines[start:end]]
            yield Table(
                flat(above)[-CAPTION_WITHIN_CHARS:],
                tuple(row for row in rows if not _is_rule(row)),
            )
        start = max(end, start + 1)


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(flat(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", inner))


def _is_rule(row: tuple[str, ...]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in row)


def cell_is_attributable(text: str, fact: dict[str, Any]) -> bool:
    """Tell whether a value stands in a row with its row's label, below its column's label.

    A line that names the row and then has ``column: value`` says as much.
    """
    return any(_cell_of(table, fact) for table in tables(text)) or any(
        _line_says(flat(line), fact) for line in text.split("\n")
    )


def _cell_of(table: Table, fact: dict[str, Any]) -> bool:
    if flat(fact.get("caption", "")) not in table.above:
        return False
    value, columns = flat(fact["value"]), _labels(fact["column"])
    for number, row in enumerate(table.rows):
        if not all(any(label in cell for cell in row) for label in _labels(fact["row"])):
            continue
        for place, cell in enumerate(row):
            heads = [above[place] for above in table.rows[:number] if place < len(above)]
            if value in cell and all(any(label in head for head in heads) for label in columns):
                return True
    return False


def _line_says(line: str, fact: dict[str, Any]) -> bool:
    if line.startswith("|") or not fact["column"] or "caption" in fact:
        return False
    column = _labels(fact["column"])[-1]
    return f"{column}: {flat(fact['value'])}" in line and all(
        label in line for label in _labels(fact["row"])
    )


def _labels(labels: str | list[str] | None) -> list[str]:
    if labels is None:
        return []
    return [flat(label) for label in ([labels] if isinstance(labels, str) else labels)]


def coloured_pixels(screenshot: bytes | None, colour: list[int]) -> int:
    """Return how many pixels of a screenshot have a colour, more or less."""
    from PIL import Image, ImageChops

    if screenshot is None:
        return 0
    with Image.open(io.BytesIO(screenshot)) as image:
        plain = Image.new("RGB", image.size, tuple(colour))
        bands = ImageChops.difference(image.convert("RGB"), plain).split()
    worst = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    return sum(worst.histogram()[: COLOUR_TOLERANCE + 1])


def pdf_text(content: bytes | None) -> str:
    """Return the text of a PDF; empty for none."""
    import pypdfium2

    if content is None:
        return ""
    document = pypdfium2.PdfDocument(content)
    try:
        return "\n".join(
            document[number].get_textpage().get_text_bounded() for number in range(len(document))
        )
    finally:
        document.close()
