"""One HTML file of the viewer: reports with each statement marked, and what its pages say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mind2web2.plugin import (
    RunSettings,
    markdown_tree,
    visible,
    write_view,
)
from mind2web2_check.findings import CheckedReport
from mind2web2_check.rubric import page_address
from mind2web2_check.scoring import TASK
from mind2web2_check.verdicts import SourceVerdict

# Statements stand between these in the markdown. They are brackets, next to which emphasis is
# read as next to others.
_BEGIN, _END = "⸨", "⸩"
_SIGNS = str.maketrans({_BEGIN: "(", _END: ")"})
_RAISED = re.compile(r"<sup>(.*?)</sup>", re.IGNORECASE)
# Text, or [tag, {attribute: value}, child, ...].
Node = str | list[Any]
_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class ShownReport:
    """A report with what was found in it, and the folders of its check."""

    found: CheckedReport
    text: str
    project: RunSettings


async def write_page(path: Path, reports: Sequence[ShownReport]) -> None:
    """Write the file, which opens from disk and loads nothing.

    Raises:
        ResultWriteError: it cannot be written.
    """
    title = ", ".join(report.found.name for report in reports)
    pages = [
        (each.project.paths, each.found.name, TASK, map(_address, each.found.sources))
        for each in reports
    ]
    await write_view(path, title, "checked", list(map(_shown, reports)), pages)


def _address(source: SourceVerdict) -> str:
    return page_address(source.source)


def _shown(report: ShownReport) -> dict[str, Any]:
    found = report.found
    return {
        "agent": found.name,
        "task": TASK,
        "summary": found.summary,
        "markdown": _marked_tree(found, report.text),
        "statements": [each.model_dump(mode="json") for each in found.statements],
        "checks": {source.leaf: source.check for source in found.sources},
        "figures": list(found.figure_rows()),
        "lists": list(map(list, found.name_lists())),
    }


def _marked_tree(found: CheckedReport, text: str) -> list[Node]:
    """Return the report's markdown with each statement as ``mark``, which has its number."""
    shown = visible(text).translate(_SIGNS)
    pieces, position = [], 0
    for statement in found.statements:
        before, said = shown[position : statement.start], shown[statement.start : statement.end]
        pieces += [before, _BEGIN, said, _END]
        position = statement.end
    whole = "".join([*pieces, shown[position:]])
    whole = _RAISED.sub(lambda raised: raised[1].translate(_DIGITS), whole)
    return list(_Marker().marked(markdown_tree(whole)))


class _Marker:
    """Turns the signs around statements into elements; a statement may reach over several."""

    def __init__(self) -> None:
        self._number = -1
        self._is_open = False

    def marked(self, nodes: Sequence[Node]) -> Iterator[Node]:
        for node in nodes:
            if isinstance(node, str):
                yield from self._text(node)
            else:
                tag, attributes, *children = node
                yield [tag, attributes, *self.marked(children)]

    def _text(self, text: str) -> Iterator[Node]:
        is_first = False
        for piece in re.split(f"([{_BEGIN}{_END}])", text):
            if piece in (_BEGIN, _END):
                is_first = self._is_open = piece == _BEGIN
                self._number += is_first
            elif self._is_open:
                attributes: dict[str, Any] = {"statement": self._number, "first": is_first}
                yield ["mark", attributes, piece]
                is_first = False
            else:
                yield piece
