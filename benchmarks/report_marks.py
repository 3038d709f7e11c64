"""Marks of real reports that were checked by hand: does ``check --list`` still read them so?

    uv run python benchmarks/report_marks.py FOLDER

The reports are not part of this repository; FOLDER has them. ``report_marks.tsv`` has a line for
each mark: the report, the characters before the mark, the mark, the first address that it cites
(empty if the address was lost, "-" if this is not a mark), and a doubt if a reader could decide
otherwise.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.urls.visible import visible
from mind2web2_check.addresses import addresses_in
from mind2web2_check.blocks import blocks_of
from mind2web2_check.citations import Citation, read_citations

TABLE = Path(__file__).with_suffix(".tsv")
NO_MARK = "-"


@dataclass(frozen=True)
class CheckedMark:
    """A line of the table."""

    report: str
    before: str
    mark: str
    address: str
    doubt: str

    def difference(self, text: str, citations: Sequence[Citation]) -> str | None:
        """Return what the report is read as instead, ``None`` if it is read as the table says."""
        place = text.find(self.before + self.mark)
        if place < 0:
            return "the report does not have it"
        start = place + len(self.before)
        here = [each for each in citations if each.start <= start < each.end]
        found = here[0].addresses[:1] if here else (NO_MARK,)
        return None if found == ((self.address,) if self.address else ()) else str(found)


def checked_marks() -> list[CheckedMark]:
    """Return the lines of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            CheckedMark(**{name: _unescaped(cell) for name, cell in row.items()}) for row in rows
        ]


def _unescaped(cell: str) -> str:
    return cell.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")


def citations_of(text: str) -> Sequence[Citation]:
    """Return the citations of a report."""
    shown = visible(text)
    return read_citations(shown, blocks_of(shown), addresses_in(shown)).all


def main(folder: Path) -> int:
    """Print the marks that are read otherwise, and return the exit status."""
    marks = checked_marks()
    different = 0
    for report in sorted({mark.report for mark in marks}):
        text = (folder / f"{report}.md").read_text(encoding="utf-8")
        citations = citations_of(text)
        for mark in marks:
            found = mark.difference(text, citations) if mark.report == report else None
            if found is not None:
                different += 1
                sys.stdout.write(f"{report}: {mark.before!r} {mark.mark!r}: {found}\n")
    doubtful = sum(bool(mark.doubt) for mark in marks)
    sys.stdout.write(
        f"{len(marks) - different} of {len(marks)} marks as checked, {doubtful} doubtful\n"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
