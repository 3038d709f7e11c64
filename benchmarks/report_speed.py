"""Processor time and memory to read reports of a megabyte, by their shape.

PYTHONPATH=tests uv run --group dev python benchmarks/report_speed.py [SHAPE ...]
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fixtures.report_files import write_pdf
from markdown_it import MarkdownIt
from report_grid import RAISED

from mind2web2_check.inputs import reading

CHARS = 950_000
_WORDS = ("the", "ferry", "carries", "people", "over", "lake", "winter", "stone", "bridge", "crew")


def _said(draw: random.Random) -> str:
    words = " ".join(draw.choice(_WORDS) for _ in range(14))
    return f"{words.capitalize()} in {draw.randint(1900, 2020)}"


def _long(part: Callable[[random.Random], str], between: str) -> str:
    draw, parts, size = random.Random(1), [], 0
    while size < CHARS:
        parts.append(part(draw))
        size += len(parts[-1])
    return between.join(parts)


def _prose(mark: Callable[[int], str], sources: int = 300) -> str:
    def paragraph(draw: random.Random) -> str:
        return " ".join(f"{_said(draw)}{mark(draw.randint(1, sources))}" for _ in range(5))

    return "\n\n".join([_long(paragraph, "\n\n"), _list(sources)])


def _list(sources: int = 300) -> str:
    entries = (f"[{n}] Title {n}, https://a{n}.example/page/{n}" for n in range(1, sources + 1))
    return "## References\n\n" + "\n".join(entries)


def _mark(draw: random.Random) -> str:
    return f"[{draw.randint(1, 300)}]"


def _link(draw: random.Random) -> str:
    return f"{_said(draw)} ([source](https://a.example/{draw.randint(1, 3000)}))."


def _note(draw: random.Random) -> str:
    number = draw.randint(1, 300)
    return f"<p>{_said(draw)}.<sup><a href='#n{number}'>{number}</a></sup></p>"


def _page() -> str:
    notes = "".join(f"<li id='n{n}'><a href='https://a{n}.example/x'>x</a>" for n in range(1, 301))
    return f"<html><body>{_long(_note, '')}<ol>{notes}</ol>"


def _section(draw: random.Random) -> str:
    paragraphs = (" ".join(f"{_said(draw)} {_mark(draw)}." for _ in range(5)) for _ in range(6))
    items = "\n".join(f"- {_said(draw)} {_mark(draw)}." for _ in range(4))
    rows = "\n".join(f"| {_said(draw)} | {draw.randint(1, 99)} | {_mark(draw)} |" for _ in range(4))
    table = f"| Finding | Tons | Source |\n|---|---|---|\n{rows}"
    return "\n\n".join(["## A part", *paragraphs, items, table, _link(draw)])


def _printed() -> bytes:
    text = _long(_section, "\n\n") + "\n\n" + _list().replace("\n", "\n\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report"
        write_pdf(path, MarkdownIt().enable("table").render(text))
        return path.read_bytes()


SHAPES: dict[str, Callable[[], str | bytes]] = {
    "prose": lambda: _prose(" [{}].".format),
    "glued numbers": lambda: _prose(".{}".format),
    "raised numbers": lambda: _prose(lambda number: f".{number}".translate(RAISED)),
    "3,000 sources": lambda: _prose(" [{}].".format, 3000),
    "links": lambda: _long(_link, "\n\n"),
    "list": lambda: _long(lambda draw: f"- {_said(draw)} {_mark(draw)}", "\n") + "\n\n" + _list(),
    "table": lambda: (
        "| Finding | Source |\n|---|---|\n"
        + _long(lambda draw: f"| {_said(draw)} | {_mark(draw)} |", "\n")
        + f"\n\n{_list()}"
    ),
    "page": _page,
    "printed": _printed,
}


def main(names: list[str]) -> None:
    """Print the figures of each shape."""
    for name in names or SHAPES:
        report = SHAPES[name]()
        data = report if isinstance(report, bytes) else report.encode()
        began_s = time.process_time()
        _, read = reading(data, "report")
        seconds = time.process_time() - began_s
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sys.stdout.write(
            f"{name}: {seconds:.1f} s, {len(read.statements)} statements, {memory_mb:.0f} MB\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
