"""Small office documents and e-books, as programs write them.

Each holds something that readers hide.
"""

import io
import zipfile

import openpyxl
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from servers.toothed_site import picture

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
TYPES = 'xmlns="http://schemas.openxmlformats.org/package/2006/content-types"'
OFFICE_DOCUMENT = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
)


def zipped(parts):
    """Return a ZIP file of parts by name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def _cell(text, properties=""):
    return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"


def docx():
    """A heading, a table with a cell over two columns, a hidden run and a deleted one."""
    two_columns = '<w:gridSpan w:val="2"/>'
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>concealed</w:t></w:r>"
    deleted = "<w:del><w:r><w:delText>withdrawn</w:delText></w:r></w:del>"
    rows = (
        f"<w:tr><w:trPr><w:tblHeader/></w:trPr>{_cell('Year')}{_cell('Boats')}{_cell('Locks')}</w:tr>",
        f"<w:tr>{_cell('1911')}{_cell('12')}{_cell('3')}</w:tr>",
        f"<w:tr>{_cell('1912')}{_cell('none', two_columns)}</w:tr>",
    )
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>The weir</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>Built of "
        f"oak.</w:t></w:r>{hidden}{deleted}</w:p><w:tbl>{''.join(rows)}</w:tbl>"
    )
    styles = (
        f'<w:styles {WORD}><w:style w:type="paragraph" w:styleId="Heading1"><w:name '
        'w:val="heading 1"/>'
        "</w:style></w:styles>"
    )
    default_type = '<Default Extension="xml" ContentType="application/xml"/>'
    relation = f'<Relationship Id="r1" Type="{OFFICE_DOCUMENT}" Target="word/document.xml"/>'
    return zipped(
        {
            "[Content_Types].xml": f"<Types {TYPES}>{default_type}</Types>",
            "_rels/.rels": f"<Relationships {RELATIONS}>{relation}</Relationships>",
            "word/document.xml": f"<w:document {WORD}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": styles,
        }
    )


def xlsx(rows=(), far=False):
    """Values with formats, a merged cell, a hidden row, column and sheet.

    ``far`` makes the sheet huge.
    """
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Ferries"
    for row in rows or (
        ["Year", "Secret", "Guests", "Share"],
        [1911, "concealed", 200, 0.1234],
        [1912, "concealed", 999, 0.5],
        ["all", None, None, None],
    ):
        sheet.append(row)
    if not rows:
        sheet["C2"].number_format = '#,##0 "$"'
        sheet["D2"].number_format = "0.0%"
        sheet.merge_cells("A4:C4")
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["B"].hidden = True
        workbook.create_sheet("Cellar")["A1"] = "concealed"
        workbook["Cellar"].sheet_state = "hidden"
    if far:
        sheet["XFD60000"] = "the last cell"
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def pptx():
    """A slide with title, table, picture and notes, one with a chart, and a hidden one."""
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[5])
    first.shapes.title.text = "The ferry of Ottermoss"
    table = first.shapes.add_table(2, 2, Inches(1), Inches(3), Inches(4), Inches(1)).table
    for place, text in {
        (0, 0): "Year",
        (0, 1): "Trips",
        (1, 0): "1911",
        (1, 1): "730",
    }.items():
        table.cell(*place).text = text
    first.shapes.add_picture(io.BytesIO(picture("PNG")), Inches(1), Inches(5))
    first.notes_slide.notes_text_frame.text = "Mention the strike."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    data = CategoryChartData()
    data.categories = ["May", "June"]
    data.add_series("Guests", (120, 340))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "concealed"
    hidden.element.set("show", "0")
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()
