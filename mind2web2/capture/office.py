"""DOCX, XLSX and PPTX files as HTML, which the browser renders and reads like any page.

The files may be hostile, and reading them takes processor time: call ``office_html`` in a worker
process.
"""

from __future__ import annotations

import base64
import html
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from io import BytesIO
from typing import Any

from mind2web2.errors import DocumentError, MachineError

MAX_UNPACKED_BYTES = 512 * 1024**2
MAX_HTML_CHARS = 12_000_000
MAX_IMAGE_BYTES = 12 * 1024**2
# Beyond either, a workbook is read row by row, without what a sheet says about its rows as a whole.
_LARGE_SHEETS_BYTES = 20 * 1024**2
_LARGE_SHEET_CELLS = 3_000_000

_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.4 sans-serif; margin: 24px }} table {{ border-collapse: collapse; margin: 12px 0 }}
td, th {{ border: 1px solid #999; padding: 2px 6px; vertical-align: top; text-align: left }}
p {{ margin: 6px 0 }} img {{ max-width: 100% }}</style><body>{body}"""
_CUT = "<p>[The document is cut here.]</p>"

_WORD_NS = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH_NS = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_DECIMALS = re.compile(r"\.(0+)[^%]*%")
_CURRENCY = re.compile(r"[$€£¥]")
_IMAGE_TYPES = {
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/bmp",
    "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class OfficeHtml:
    """A document as one HTML page.

    Args:
        notes: what the page leaves out, a line each.
    """

    html: str
    notes: tuple[str, ...] = ()


def office_html(data: bytes, title: str) -> OfficeHtml:
    """Return a document as HTML, without hidden text, sheets, rows, columns and slides.

    Raises:
        DocumentError: it is none of the known formats, damaged, encrypted, or unpacks to too much.
        MachineError: a library of the extra ``office`` is missing.
    """
    try:
        with (
            MachineError.naming_extra("An Office document", "office"),
            zipfile.ZipFile(BytesIO(data)) as archive,
        ):
            if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise DocumentError(
                    f"the file unpacks to more than {MAX_UNPACKED_BYTES // 1024**2} MB"
                )
            pieces, notes = _convert(archive, data)
            body, is_cut = _join(pieces)
    except (DocumentError, MachineError):
        raise
    except Exception as error:  # the libraries raise anything on a damaged file
        raise DocumentError(
            f"the file is damaged: {type(error).__name__}: {str(error)[:200]}"
        ) from error
    if is_cut:
        notes.append(f"the document is cut after {MAX_HTML_CHARS} characters of its HTML form")
    return OfficeHtml(_PAGE.format(title=html.escape(title), body=body), tuple(notes))


def _convert(archive: zipfile.ZipFile, data: bytes) -> tuple[Iterable[str], list[str]]:
    names = set(archive.namelist())
    if "word/document.xml" in names:
        return [_docx_html(archive)], []
    if "xl/workbook.xml" in names:
        return _xlsx_html(archive, data)
    if "ppt/presentation.xml" in names:
        return _pptx_html(data), []
    raise DocumentError("a ZIP archive that is not a DOCX, XLSX or PPTX file")


def _join(pieces: Iterable[str]) -> tuple[str, bool]:
    joined: list[str] = []
    left = MAX_HTML_CHARS
    for piece in pieces:
        joined.append(piece[:left])
        left -= len(piece)
        if left < 0:
            return "".join(joined) + _CUT, True
    return "".join(joined), False


class _Images:
    """Images as ``data:`` URLs, up to a total size."""

    def __init__(self) -> None:
        self._left_bytes = MAX_IMAGE_BYTES

    def url(self, content: bytes, media_type: str) -> str | None:
        """Return the URL, ``None`` for an image that browsers do not show or that is too much."""
        if media_type not in _IMAGE_TYPES or len(content) > self._left_bytes:
            return None
        self._left_bytes -= len(content)
        return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _docx_html(archive: zipfile.ZipFile) -> str:
    images = _Images()

    def image(picture: Any) -> dict[str, str]:
        with picture.open() as content:
            url = images.url(content.read(), picture.content_type)
        return {"src": url} if url else {"alt": "[image left out]"}

    import mammoth  # late, as the libraries of the other formats: only a worker needs them

    shown = mammoth.convert_to_html(
        _readable(archive), convert_image=mammoth.images.img_element(image)
    )
    return str(shown.value)


def _readable(archive: zipfile.ZipFile) -> BytesIO:
    """Return a DOCX file without hidden text, and with equations and fields as runs."""
    copied = BytesIO()
    with zipfile.ZipFile(copied, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            is_text = name.startswith("word/") and name.endswith(".xml")
            if is_text and re.search(rb"vanish|oMath|fldSimple", content):
                content = _with_plain_runs(content)
            copy.writestr(name, content)
    copied.seek(0)
    return copied


def _with_plain_runs(content: bytes) -> bytes:
    from lxml import etree

    root = _parse_xml(content)
    for mark in list(root.iter(f"{_WORD_NS}vanish")):
        run = mark.getparent().getparent()
        if mark.get(f"{_WORD_NS}val") not in ("0", "false", "off") and run.tag == f"{_WORD_NS}r":
            run.getparent().remove(run)
    for equation in list(root.iter(f"{_MATH_NS}oMath")):
        words = "".join(each.text or "" for each in equation.iter(f"{_MATH_NS}t"))
        _replace(equation, [_run("t", words)])
    for simple in list(root.iter(f"{_WORD_NS}fldSimple")):
        words = simple.get(f"{_WORD_NS}instr") or ""
        begin, between, end = (_run("fldChar", kind=kind) for kind in ("begin", "separate", "end"))
        _replace(simple, [begin, _run("instrText", words), between, *simple, end])
    return bytes(etree.tostring(root))


def _replace(element: Any, others: Iterable[Any]) -> None:
    for each in others:
        element.addprevious(each)
    element.getparent().remove(element)


def _run(tag: str, words: str = "", kind: str = "") -> Any:
    from lxml import etree

    run = etree.Element(f"{_WORD_NS}r")
    child = etree.SubElement(run, f"{_WORD_NS}{tag}")
    child.text = words
    if kind:
        child.set(f"{_WORD_NS}fldCharType", kind)
    return run


def _xlsx_html(archive: zipfile.ZipFile, data: bytes) -> tuple[Iterable[str], list[str]]:
    sheets_bytes = sum(
        entry.file_size
        for entry in archive.infolist()
        if entry.filename.startswith("xl/worksheets/")
    )
    import openpyxl

    is_large = sheets_bytes > _LARGE_SHEETS_BYTES
    if not is_large:
        workbook = openpyxl.load_workbook(BytesIO(data), data_only=True)
        is_large = any(
            sheet.max_row * sheet.max_column > _LARGE_SHEET_CELLS for sheet in workbook.worksheets
        )
    if not is_large:
        return _sheets_html(workbook, is_large), []
    workbook = openpyxl.load_workbook(BytesIO(data), data_only=True, read_only=True)
    note = "a large workbook: hidden rows and columns are shown, merged cells are not joined"
    return _sheets_html(workbook, is_large), [note]


def _sheets_html(workbook: Any, is_large: bool) -> Iterator[str]:
    for sheet in workbook.worksheets:
        if sheet.sheet_state != "visible":
            continue
        yield f"<h2>{html.escape(sheet.title)}</h2><table>"
        layout = _Layout()
        if is_large:
            sheet.reset_dimensions()  # a file may claim any size
        else:
            layout.read(sheet)
        yield from _rows_html(sheet, layout)
        yield "</table>"


class _Layout:
    """The hidden rows and columns of a sheet, and its merged cells."""

    def __init__(self) -> None:
        self.hidden_rows: set[int] = set()
        self.hidden_columns: set[int] = set()
        self.spans: dict[tuple[int, int], tuple[int, int]] = {}
        self.covered: set[tuple[int, int]] = set()

    def read(self, sheet: Any) -> None:
        """Note what is hidden and merged in a sheet."""
        self.hidden_rows = {number for number, row in sheet.row_dimensions.items() if row.hidden}
        self.hidden_columns = {
            number
            for column in sheet.column_dimensions.values()
            if column.hidden and column.min
            for number in range(column.min, min(column.max, sheet.max_column) + 1)
        }
        for area in sheet.merged_cells.ranges:
            rows = range(area.min_row, min(area.max_row, sheet.max_row) + 1)
            columns = range(area.min_col, min(area.max_col, sheet.max_column) + 1)
            for row in rows:
                self.covered.update((row, column) for column in columns)
            first = (area.min_row, area.min_col)
            self.covered.discard(first)
            shown_rows = set(rows) - self.hidden_rows
            shown_columns = set(columns) - self.hidden_columns
            self.spans[first] = (len(shown_rows), len(shown_columns))

    def shows(self, row: int, column: int) -> bool:
        """Tell whether a cell is shown: not hidden, and not covered by a merged one."""
        is_covered = (row, column) in self.covered
        return column not in self.hidden_columns and not is_covered


def _rows_html(sheet: Any, layout: _Layout) -> Iterator[str]:
    is_first = True
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number in layout.hidden_rows:
            continue
        cells = []
        for column, cell in enumerate(row, 1):
            if layout.shows(number, column):
                cells.append((column, cell))
        filled = [cell.value for _, cell in cells if cell.value is not None]
        if not filled:
            continue
        # A first row of words alone names the columns.
        is_header = is_first and all(isinstance(value, str) for value in filled)
        tag = "th" if is_header else "td"
        is_first = False
        line = "<tr>"
        for column, cell in cells:
            line += _cell_html(tag, cell, layout, (number, column))
        yield line


def _cell_html(tag: str, cell: Any, layout: _Layout, place: tuple[int, int]) -> str:
    rows, columns = layout.spans.get(place, (1, 1))
    span = ""
    if rows > 1:
        span += f" rowspan={rows}"
    if columns > 1:
        span += f" colspan={columns}"
    return f"<{tag}{span}>{_with_breaks(_cell_text(cell))}</{tag}>"


def _cell_text(cell: Any) -> str:
    """Return a cell's value in about the form in which a spreadsheet shows it."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        is_midnight = value.time() == time()
        return value.date().isoformat() if is_midnight else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, int | float):
        return _number_text(value, cell.number_format)
    return str(value)


def _number_text(value: float, number_format: str) -> str:
    if "%" in number_format:
        decimals = _DECIMALS.search(number_format)
        digits = len(decimals[1]) if decimals else 0
        return f"{value * 100:.{digits}f}%"
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    currency = _CURRENCY.search(number_format.replace("[$-", "["))
    return f"{currency[0]}{text}" if currency else text


def _pptx_html(data: bytes) -> Iterator[str]:
    from pptx import Presentation

    images = _Images()
    slides = list(Presentation(BytesIO(data)).slides)
    for number, slide in enumerate(slides, 1):
        if slide.element.get("show") in ("0", "false"):
            continue
        yield f"<h2>Slide {number} of {len(slides)}</h2>"
        yield from _shapes_html(slide.shapes, images)
        if (
            slide.has_notes_slide
            and (frame := slide.notes_slide.notes_text_frame)
            and frame.text.strip()
        ):
            yield f"<h3>Notes of the speaker</h3><p>{_with_breaks(frame.text)}</p>"


def _shapes_html(shapes: Iterable[Any], images: _Images) -> Iterator[str]:
    """Return shapes as they are read: from top to bottom, then from left to right."""
    from pptx.enum.shapes import MSO_SHAPE_TYPE

    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            yield from _shapes_html(shape.shapes, images)
        elif shape.has_table:
            yield from _pptx_table_html(shape.table)
        elif shape.has_chart:
            yield from _chart_html(shape.chart)
        elif shape.shape_type == MSO_SHAPE_TYPE.PICTURE:
            url = images.url(shape.image.blob, shape.image.content_type)
            yield f'<p><img src="{url}"></p>' if url else "<p>[image left out]</p>"
        elif shape.has_text_frame:
            yield from (
                f"<p>{_with_breaks(line.text)}</p>"
                for line in shape.text_frame.paragraphs
                if line.text
            )


def _pptx_table_html(table: Any) -> Iterator[str]:
    yield "<table>"
    for number, row in enumerate(table.rows):
        tag = "th" if number == 0 and table.first_row else "td"
        cells = (
            f"<{tag} rowspan={cell.span_height} "
            f"colspan={cell.span_width}>{_with_breaks(cell.text)}</{tag}>"
            for cell in row.cells
            if not cell.is_spanned
        )
        yield f"<tr>{''.join(cells)}"
    yield "</table>"


def _chart_html(chart: Any) -> Iterator[str]:
    """Return the values that a chart draws, a row for each category."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield f"<p>{html.escape(chart.chart_title.text_frame.text)}</p>"
    for plot in chart.plots:
        series = list(plot.series)
        names = "".join(f"<th>{html.escape(each.name)}</th>" for each in series)
        yield f"<table><tr><th></th>{names}"
        for number, category in enumerate(plot.categories):
            values = (each.values[number] if number < len(each.values) else None for each in series)
            cells = "".join(f"<td>{'' if value is None else value}</td>" for value in values)
            yield f"<tr><th>{html.escape(str(category))}</th>{cells}"
        yield "</table>"


def _parse_xml(content: bytes) -> Any:  # lxml ships no types
    from lxml import etree

    # Entities of the document's own could unfold without bound, or name files of this machine.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
    root = etree.fromstring(content, parser)
    if root is None:
        raise DocumentError("the file is damaged: an XML part cannot be read")
    return root


def _with_breaks(text: str) -> str:
    return html.escape(text).replace("\n", "<br>").replace("\v", "<br>")
