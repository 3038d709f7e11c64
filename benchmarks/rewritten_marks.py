"""Real reports whose marks are rewritten in other forms: does ``check --list`` find the same pairs?

    uv run python benchmarks/rewritten_marks.py FOLDER [--show]

The reports are not part of this repository; FOLDER has them. The pairs of statement and source that
a report has as it is are those that it should have in each form. It prints them by form, and with
``--show`` those that differ.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from report_grid import ARABIC, RAISED
from report_marks import citations_of

from mind2web2.urls.visible import visible
from mind2web2_check.statements import ReadReport, read_report

# Reports with marks of a list, whose reading was checked by hand (report_marks.tsv).
REPORTS = (
    "brackets_3",
    "brackets_56",
    "brackets_61",
    "document_export_58",
    "document_export_59",
    "numbered_links_58",
    "superscript_58",
    "superscript_59",
)
_CIRCLED = {number: chr(0x245F + number) for number in range(1, 21)}
_CIRCLED |= {number: chr(0x3251 - 21 + number) for number in range(21, 36)}
_CIRCLED |= {number: chr(0x32B1 - 36 + number) for number in range(36, 51)}


def _each(written: str) -> Callable[[list[int]], str]:
    return lambda numbers: "".join(written.format(number) for number in numbers)


def _joined(before: str, between: str, behind: str) -> Callable[[list[int]], str]:
    return lambda numbers: before + between.join(map(str, numbers)) + behind


FORMS: dict[str, Callable[[list[int]], str]] = {
    **{
        written.format("n"): _each(written)
        for written in (
            *("[{}]", "[^{}]", "({})", "【{}】", "\uff3b{}\uff3d", "[[{}]]", "\\[{}\\]", "^{}^"),
            *("<sup>{}</sup>", "<sup>[{}]</sup>", "[ref. {}]", "(Ref. {})", "[Source {}]"),
            *("[citation:{}]", "[#{}]", "{{{}}}", "**[{}]**"),
        )
    },
    "[n, n]": _joined("[", ", ", "]"),
    "¹": lambda numbers: ",".join(map(str, numbers)).translate(RAISED),
    "①": lambda numbers: "".join(_CIRCLED.get(number, f"[{number}]") for number in numbers),
    "[arabic n]": lambda numbers: "".join(f"[{number}]".translate(ARABIC) for number in numbers),
    "glued n": _joined("", ",", ""),
    "space n": _joined(" ", ", ", ""),
}


def rewritten(text: str, form: Callable[[list[int]], str]) -> str:
    """Return a report with each of its marks in another form; those that touch become one."""
    text = visible(text)
    groups: list[tuple[int, int, list[int]]] = []
    for mark in citations_of(text):
        numbers = [int(number) for number in re.findall(r"\d+", mark.mark)]
        is_other = re.search(r"[^\W\d_]|\]\(", text[mark.start : mark.end])
        if not (numbers and mark.addresses) or is_other:
            continue
        if re.search(r"\d\s*[-\u2013]\s*\d", mark.mark):
            numbers = list(range(numbers[0], numbers[-1] + 1))
        if groups and not text[groups[-1][1] : mark.start].strip(" ,"):
            start, _, earlier = groups.pop()
            groups.append((start, mark.end, earlier + numbers))
        else:
            groups.append((mark.start, mark.end, numbers))
    pieces, position = [], 0
    for start, end, numbers in groups:
        before = text[position:start]
        shown = form(numbers)
        if shown[0] not in "[(【\uff3b{\\*":
            before = before.rstrip(" ")
        pieces += [before, shown]
        position = end
    return "".join([*pieces, text[position:]])


def pairs(read: ReadReport) -> Counter[tuple[str, str]]:
    """Return the pairs of statement and source; a statement is its words, however it is cut."""
    return Counter(
        (re.sub(r"[\W_]+", "", each.plain), url) for each in read.statements for url in each.sources
    )


def main(folder: Path, *, shows: bool) -> int:
    """Print the figures of each form, and return the exit status."""
    total: Counter[str] = Counter()
    worst = 1.0
    for name, form in FORMS.items():
        counts: Counter[str] = Counter()
        for report in REPORTS:
            text = (folder / f"{report}.md").read_text(encoding="utf-8")
            wanted, found = pairs(read_report(text)), pairs(read_report(rewritten(text, form)))
            counts["right"] += (wanted & found).total()
            counts["wanted"] += wanted.total()
            counts["invented"] += (found - wanted).total()
            for sign, differing in (("-", wanted - found), ("+", found - wanted)):
                for said, url in differing if shows else ():
                    sys.stdout.write(f"{sign} {name} {report}: {said[-60:]} {url}\n")
        share = counts["right"] / counts["wanted"]
        worst = min(worst, share)
        sys.stdout.write(f"{name}: {share:.1%}, {counts['invented']} invented\n")
        total += counts
    share, invented = total["right"] / total["wanted"], total["invented"] / total["wanted"]
    sys.stdout.write(f"all: {share:.1%} of {total['wanted']} found, {invented:.1%} invented\n")
    return 0 if share >= 0.98 and invented <= 0.005 and worst >= 0.93 else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), shows="--show" in sys.argv))
