"""Reports that Chromium prints to PDF: are they read as their pages are?

    PYTHONPATH=tests:examples uv run --group dev python benchmarks/printed_reports.py [FOLDER]

The reports are the invented ones of ``checked_reports.py``, every tenth page of ``report_grid.py``,
and the markdown files of FOLDER.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import checked_reports
import report_grid
from invented.world import World
from markdown_it import MarkdownIt
from patchright.sync_api import sync_playwright

from mind2web2.capture.browser_program import find_browser
from mind2web2_check.html_text import html_text
from mind2web2_check.inputs import report_in
from mind2web2_check.statements import ReadReport, read_report


def reports(folder: Path | None) -> Iterator[str]:
    """Yield the reports as pages."""
    markdown = MarkdownIt().enable("table")
    world = World(checked_reports.SEED)
    for number in range(checked_reports.REPORTS):
        places = checked_reports.places(world, "https://site.example")
        statements = checked_reports.distinct_statements(world, places)
        form = checked_reports.FORMS[number % len(checked_reports.FORMS)]
        yield markdown.render(form(statements))
    pages = [case for case in report_grid.cases() if case.format == "html"]
    yield from (report_grid.as_html(case.text) for case in pages[::10])
    for path in sorted(folder.glob("*.md")) if folder else ():
        yield markdown.render(path.read_text(encoding="utf-8"))


def pairs(read: ReadReport) -> Counter[tuple[str, frozenset[str]]]:
    """Return the statements, each with its sources."""
    return Counter(
        (re.sub(r"[\W_]+", "", each.plain), frozenset(each.sources)) for each in read.statements
    )


def printed(pages: Iterator[str], work: Path) -> list[tuple[str, Path]]:
    """Return the pages, each with the PDF that the browser prints of it."""
    both = []
    with sync_playwright() as driver:
        executable = find_browser(headless=True).path
        page = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"]).new_page()
        for number, report in enumerate(pages):
            path = work / f"{number}.pdf"
            page.set_content(report)
            page.pdf(path=path)
            both.append((report, path))
    return both


def main(folder: Path | None) -> int:
    """Print how many statements and sources are the same, and return the exit status."""
    same, wanted, found = 0, 0, 0
    with tempfile.TemporaryDirectory() as work:
        for report, path in printed(reports(folder), Path(work)):
            shown, read = pairs(read_report(html_text(report))), pairs(report_in(str(path))[1])
            same += (shown & read).total()
            wanted, found = wanted + shown.total(), found + read.total()
    sys.stdout.write(
        f"{same} of {wanted} statements with the same sources ({same / wanted:.1%}), "
        f"{found - same} others\n"
    )
    return int(same < 0.95 * wanted)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None))
