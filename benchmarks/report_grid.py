"""Some thousand short reports with known answers: marks, labels, headings, placements and formats.

    uv run python benchmarks/report_grid.py [--show N]

A report is right if each statement has its sources and nothing else. It is wrong if a statement has
another source, or lacks one and the mark is not listed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from mind2web2_check.html_text import html_text
from mind2web2_check.statements import ReadReport, read_report

RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
WIDE = {ord("0") + number: 0xFF10 + number for number in range(10)}
NUMBER, LETTER, KEY = "number", "letter", "key"
# Marks by the kind of their labels; "{}" is the label.
MARKS = {
    NUMBER: (
        *(
            "[{}]",
            "[^{}]",
            "({})",
            "【{}】",
            "\uff3b{}\uff3d",
            "[[{}]]",
            "﹝{}﹞",
            "\\[{}\\]",
            "<sup>{}</sup>",
        ),
        *("<sup>[{}]</sup>", "^{}^", "[ref. {}]", "(Ref. {})", "[Source {}]", "[citation:{}]"),
        *("&#91;{}&#93;", "[No. {}]"),
        *("[#{}]", "{{{}}}", "**[{}]**", "raised", "circled", "arabic", "wide", "glued"),
    ),
    LETTER: ("[{}]", "({})", "<sup>{}</sup>"),
    KEY: ("[{}]", "({})"),
}
LABELS = {
    NUMBER: (
        *("{}. ", "{}) ", "[{}] ", "({}) ", "[^{}]: ", "**[{}]** ", "**{}.** ", "- [{}] "),
        *("1. ", "#{} "),
        *("<sup>{}</sup> ", "{}: ", "Ref. {}: ", "[citation:{}] ", "raised", "circled", "arabic"),
        *("row", "【{}】", "﹝{}﹞ ", "> {}. ", "\\[{}\\] ", "[Source {}] "),
    ),
    LETTER: ("[{}] ", "({}) ", "{}) ", "**[{}]** ", "row"),
    KEY: ("[{}] ", "[{}]: ", "{}: ", "- **{}**: ", "row"),
}
# The first entry stands in its line.
IN_LINE = "**Sources:** "
HEADINGS = (
    "## Sources\n\n",
    "## References\n",
    "**Sources:**\n",
    IN_LINE,
    "Sources:\n",
    "Works cited\n\n",
    "### 5. Quellenverzeichnis\n\n",
    "参考文献\n",
    "Fuentes:\n\n",
    "---\n\n",
    "",
)
PLACES = ("before", "behind", "behind a space")
FACTS = (
    ("The ferry carries 900 people on 2 decks", (1,)),
    ("It was built in 1999 for 4.2 million crowns", (2, 3)),
    ("In 3 of 5 winters the ice stopped it", (2,)),
    ("Its crew lives in 4 cabins below the bridge", (4,)),
    ("In May 2004 the old yard closed", (5, 1)),
)
COUNT = 5


@dataclass(frozen=True)
class Case:
    """A report of the grid."""

    kind: str
    mark: str
    label: str
    heading: str
    place: str
    format: str

    @property
    def text(self) -> str:
        """Return the report."""
        entries = [self._entry(number) for number in range(1, COUNT + 1)]
        if self.label == "row":
            entries = ["| ID | Title | Address |", "|---|---|---|", *entries]
        said = " ".join(self._sentence(*fact) for fact in FACTS)
        between = "\n" if self.heading in ("Sources:\n", "**Sources:**\n", "参考文献\n") else "\n\n"
        return f"# The ferry\n\n{said}{between}{self.heading}" + "\n".join(entries) + "\n"

    def _name(self, number: int) -> str:
        return {NUMBER: str(number), LETTER: "abcde"[number - 1], KEY: f"S{number}"}[self.kind]

    def _sentence(self, words: str, numbers: tuple[int, ...]) -> str:
        if self.mark == "glued":
            marks = ",".join(map(self._name, numbers))
        else:
            joined = "," if self.mark == "raised" else ""
            marks = joined.join(_written(self.mark, self._name(number)) for number in numbers)
        space = " " if self.mark[0] in "[(【\uff3b" and self.place == "before" else ""
        if self.place == "before":
            return f"{words}{space}{marks}."
        return f"{words}.{' ' * (self.place != 'behind')}{marks}"

    def _entry(self, number: int) -> str:
        title = ("Ferries of the north", "Yard list", "Winters", "Crews", "Closing of yards")[
            number - 1
        ]
        url = address(number)
        if self.label == "row":
            return f"| {self._name(number)} | {title} | {url} |"
        return f"{_written(self.label, self._name(number))}{title}, {url}"

    def read(self) -> ReadReport:
        """Return what is read from it."""
        if self.format == "html":
            return read_report(html_text(as_html(self.text)))
        return read_report(self.text)

    def outcome(self) -> str:
        """Return ``right``, ``listed`` or what is wrong."""
        read = self.read()
        listed = {name for mark in read.unresolved for name in re.findall(r"\w+", mark)}
        found = {each.text[:12]: set(each.sources) for each in read.statements}
        result = "right" if len(read.statements) == len(FACTS) else "other statements"
        for words, numbers in FACTS:
            sources = found.get(words[:12], set())
            if sources - set(map(address, numbers)):
                return "wrong source"
            lost = [number for number in numbers if address(number) not in sources]
            if any(self._name(number) not in listed for number in lost):
                return "silent"
            result = "listed" if lost else result
        return result


def address(number: int) -> str:
    """Return the address of an entry."""
    return f"https://ferry.example/{'abcde'[number - 1]}"


def _written(form: str, label: str) -> str:
    named = {
        "raised": label.translate(RAISED),
        "circled": chr(ord("①") + int(label) - 1) if label.isdigit() else "",
        "arabic": f"[{label.translate(ARABIC)}]",
        "wide": f"\uff3b{label.translate(WIDE)}\uff3d",
        "glued": label,
    }
    ends = {"raised": " ", "circled": " ", "arabic": " "}
    if form in named:
        return named[form]
    return form.format(label) + ends.get(form, "")


def as_html(text: str) -> str:
    """Return the report as a page: paragraphs, headings and lines."""
    parts = []
    for part in re.split(r"\n\s*\n", text.strip()):
        heading = re.fullmatch(r"(#+) (.*)", part)
        if heading:
            level = len(heading[1])
            parts.append(f"<h{level}>{heading[2]}</h{level}>")
        else:
            lines = "<br>".join(re.sub(r"^#+ ", "", line) for line in part.split("\n"))
            parts.append(f"<p>{lines}</p>")
    body = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", "".join(parts))
    return f"<!doctype html><meta charset=utf-8><body>{body}</body>"


def cases() -> Iterator[Case]:
    """Yield the grid."""
    for kind, marks in MARKS.items():
        for mark, label, heading, place in product(marks, LABELS[kind], HEADINGS, PLACES):
            # Numbers glued behind a space are no marks of any program.
            if mark == "glued" and place == "behind a space":
                continue
            # No row, quotation or label without signs begins behind a name.
            is_unsigned = kind != NUMBER or label in ("row", "> {}. ", "1. ")
            if heading == IN_LINE and is_unsigned:
                continue
            yield Case(kind, mark, label, heading, place, "markdown")
            is_plain = label in ("[{}] ", "{}. ", "({}) ", "<sup>{}</sup> ")
            if is_plain and "\\" not in mark and "^" not in mark:
                yield Case(kind, mark, label, heading, place, "html")


def main(show: int = 0) -> int:
    """Read the grid, print the figures and return the exit status."""
    outcomes: Counter[str] = Counter()
    by_part: Counter[tuple[str, str, str]] = Counter()
    for case in cases():
        outcome = case.outcome()
        outcomes[outcome] += 1
        if outcome != "right":
            for part in ("mark", "label", "heading", "place", "format"):
                by_part[outcome, part, getattr(case, part)] += 1
            if show > 0:
                show -= 1
                sys.stdout.write(f"{outcome}: {case}\n")
    total = outcomes.total()
    sys.stdout.write(f"{total} reports: {dict(outcomes)}, right {outcomes['right'] / total:.1%}\n")
    for (outcome, part, value), count in by_part.most_common(
        40 if outcomes["right"] < total else 0
    ):
        sys.stdout.write(f"  {outcome}, {part} {value!r}: {count}\n")
    return 1 if outcomes["wrong source"] or outcomes["silent"] else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[2]) if sys.argv[1:2] == ["--show"] else 0))
