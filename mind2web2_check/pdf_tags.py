"""The structure that a tagged PDF declares: which contents of a page make a paragraph or a row."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2  # type: ignore[import-untyped] # it ships no types
from pypdfium2 import raw

_INLINE_TAGS = (
    "Span Strong Em Link NonStruct Lbl LBody Reference Quote Sub Annot Ruby RB RT BibEntry Code"
)
_INLINE = frozenset(_INLINE_TAGS.split())
_NOTES = frozenset(("Note", "FENote"))
_CELLS = frozenset(("TD", "TH"))
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class TaggedPart:
    """A paragraph, heading, item or note, or a row with its cells, as numbers of contents."""

    tag: str
    cells: tuple[tuple[int, ...], ...]


def tagged_parts(page: pypdfium2.PdfPage) -> list[TaggedPart]:
    """Return the parts of a page in order, its notes last; none if the page has no tags."""
    tree = raw.FPDF_StructTree_GetForPage(page)
    reader = _TagReader()
    for place in range(raw.FPDF_StructTree_CountChildren(tree) if tree else 0):
        reader.read(raw.FPDF_StructTree_GetChildAtIndex(tree, place), 0)
    reader.end_part("P")
    raw.FPDF_StructTree_Close(tree)
    return [*reader.parts, *reader.notes]


class _TagReader:
    def __init__(self) -> None:
        self.parts: list[TaggedPart] = []
        self.notes: list[TaggedPart] = []
        self._contents: list[int] = []
        self._is_label = False

    def end_part(self, tag: str) -> None:
        """End the part that is read."""
        if self._contents:
            self.parts.append(TaggedPart(tag, (tuple(self._contents),)))
            self._contents = []

    def read(self, element: raw.FPDF_STRUCTELEMENT, depth: int) -> None:
        """Read an element with all that is in it."""
        tag = _tag(element)
        if tag == "TR":
            self.end_part("P")
            cells = [child for child in _children(element) if not isinstance(child, int)]
            found = tuple(tuple(_contents(cell, depth)) for cell in cells if _tag(cell) in _CELLS)
            self.parts.append(
                TaggedPart("TH" if all(_tag(each) == "TH" for each in cells) else tag, found)
            )
        elif tag in _NOTES:
            self.notes.append(TaggedPart("Note", (tuple(_contents(element, depth)),)))
        elif depth < _MAX_DEPTH:
            self._read_children(element, tag, depth)

    def _read_children(self, element: raw.FPDF_STRUCTELEMENT, tag: str, depth: int) -> None:
        # A label goes with the paragraph of its item.
        if tag not in _INLINE and not self._is_label:
            self.end_part("P")
        for child in _children(element):
            if isinstance(child, int):
                self._contents.append(child)
                self._is_label = False
            else:
                self.read(child, depth + 1)
        self._is_label = tag == "Lbl"
        if tag not in _INLINE:
            self.end_part(tag)


def _tag(element: raw.FPDF_STRUCTELEMENT) -> str:
    length = raw.FPDF_StructElement_GetType(element, None, 0)
    buffer = ctypes.create_string_buffer(length)
    raw.FPDF_StructElement_GetType(element, buffer, length)
    return buffer.raw.decode("utf-16-le", "replace").strip("\0")


def _children(element: raw.FPDF_STRUCTELEMENT) -> Iterator[raw.FPDF_STRUCTELEMENT | int]:
    """Yield an element's elements, and the numbers of the contents that it has itself."""
    for place in range(raw.FPDF_StructElement_CountChildren(element)):
        child = raw.FPDF_StructElement_GetChildAtIndex(element, place)
        content = raw.FPDF_StructElement_GetChildMarkedContentID(element, place)
        if child:
            yield child
        elif content >= 0:
            yield content


def _contents(element: raw.FPDF_STRUCTELEMENT, depth: int) -> Iterator[int]:
    for child in _children(element) if depth < _MAX_DEPTH else ():
        if isinstance(child, int):
            yield child
        else:
            yield from _contents(child, depth + 1)
