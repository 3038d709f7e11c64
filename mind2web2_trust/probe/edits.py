"""The kinds of change, and a page with edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mind2web2_trust.probe.passages import JudgedPage

ChangeKind = Literal["number", "date", "name", "negation", "passage"]
ControlKind = Literal["reworded", "white space"]
Kind = ChangeKind | ControlKind
CHANGES: Sequence[ChangeKind] = (
    "number",
    "date",
    "name",
    "negation",
    "passage",
)
CONTROLS: Sequence[ControlKind] = ("reworded", "white space")


@dataclass(frozen=True, slots=True)
class Change:
    """A changed page.

    Args:
        before: the words that were changed, as the page had them.
        after: the words in their place.
        places: the changed passages, as places in the new text.
    """

    kind: Kind
    text: str
    before: str
    after: str
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Discarded:
    """A change that was not made, since the changed page might still support the claim."""

    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class Edit:
    """New words in place of those from ``start`` to ``end``."""

    start: int
    end: int
    new: str


def apply_edits(kind: Kind, page: JudgedPage, edits: Iterable[Edit]) -> Change:
    """Return the page with the edits, which do not overlap."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    ordered = sorted(edits, key=lambda edit: edit.start)
    last = length = 0
    for edit in ordered:
        unchanged = page.text[last : edit.start]
        pieces += [unchanged, edit.new]
        length += len(unchanged)
        places.append((length, length + len(edit.new)))
        length += len(edit.new)
        last = edit.end
    pieces.append(page.text[last:])
    first = ordered[0]
    return Change(
        kind,
        "".join(pieces),
        before=page.text[first.start : first.end],
        after=first.new,
        places=tuple(places),
    )
