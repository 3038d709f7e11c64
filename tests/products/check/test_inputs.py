"""Reports in the formats that programs write."""

import io
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.report_files import EXPECTED, write_docx, write_html, write_pdf

from mind2web2.errors import UsageError
from mind2web2_check.html_text import html_text
from mind2web2_check.inputs import PATH_NAME, free_name, path_from, report_in, report_name
from mind2web2_check.markup import without_markup
from mind2web2_check.rubric import page_address
from mind2web2_check.statements import Statement, read_report


@pytest.mark.parametrize("write", [write_html, write_pdf, write_docx])
def test_each_format_has_the_same_statements_and_sources(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "dams"
    write(path)
    text, read = report_in(str(path))
    assert [
        (each.text.split()[0], [url.split("/")[2] for url in each.sources])
        for each in read.statements
    ] == EXPECTED
    assert all(text[each.start : each.end] == each.text for each in read.statements)
    assert all(
        " " not in url and "\n" not in url for each in read.statements for url in each.sources
    )
    assert read.unresolved == []
    assert "# Dams 😀\n" in text


def printed_and_compared(page: str, folder: Path) -> list[Statement]:
    """Return the statements of a printed page, which are those of the page."""
    write_pdf(folder / "page.pdf", page)
    printed = report_in(str(folder / "page.pdf"))[1].statements
    shown = read_report(html_text(page)).statements
    assert [(each.plain, each.said, each.sources) for each in printed] == [
        (" ".join(each.plain.split()), " ".join(each.said.split()), each.sources) for each in shown
    ]
    return printed


PARAGRAPH = (
    "<p>The dam is thirty metres high and was built by people of the county in one long and cold "
    "winter [1]. The lake behind it is deep and wide, and nobody of the village has ever swum across "
    "it in the summer months [2]. The old bridge of stone carries the buses over the river in each "
    "season of the year but not in heavy snow [3].</p>"
)
NARROW = "<div style='float:right;width:250px;height:120px;border:1px solid;margin:8px'></div>"


@pytest.mark.parametrize(
    ("page", "count"),
    [
        (f"{PARAGRAPH * 2}<div style='column-count:2;column-gap:30px'>{PARAGRAPH * 6}</div>", 24),
        (f"{PARAGRAPH * 2}{NARROW}{PARAGRAPH * 3}", 15),
        (f"<div style='column-count:2;column-gap:30px'>{PARAGRAPH * 3}</div>", 9),
    ],
    ids=["columns below a wide text", "beside a picture", "over a column"],
)
def test_lines_that_end_early_together_are_one_sentence(
    page: str, count: int, tmp_path: Path
) -> None:
    sources = "".join(f"<li>{each} title, https://{each}.example/1</li>" for each in "abc")
    style = "<style>body { font: 12px serif; text-align: justify }</style>"
    printed = printed_and_compared(
        f"<meta charset=utf-8>{style}<h1>Dams</h1>{page}<h2>References</h2><ol>{sources}</ol>",
        tmp_path,
    )
    assert len(printed) == count


def test_a_printed_page_has_the_statements_of_the_page(tmp_path: Path) -> None:
    sentence = "The dam has stood in the upper valley of the long river for some hundred years"
    page = (
        f"<!doctype html><meta charset=utf-8><p>{sentence} [来源1](<a href='https://a.example/x'>"
        f"one</a>). {sentence}.<sup>b</sup></p><ul><li>Rain and snow fall there<ul><li>The wet and "
        f"cold upper part</ul><li>{sentence}, and {sentence} [2].</ul>"
        "<style>td, th { padding: 4px 10px }</style><table><tr><th>Town<th>People in all<tr><td>Ayr in the south<td>46 000 of them</table><h2>Sources</h2>"
        "<p>[1] https://one.example/a - One [2] https://two.example/b - Two [b] "
        "https://three.example/c-d - Three"
    )
    printed = printed_and_compared(page, tmp_path)
    assert len(printed) == 6
    assert [bool(each.sources) for each in printed] == [1, 1, 0, 0, 1, 0]


# The lines of two pages differ: equal ones are headers.
TOWNS = [
    "Ayr",
    "Wick",
    "Ely",
    "Ware",
    "Looe",
    "Ryde",
    "Hay",
    "Usk",
    "Deal",
    "Bude",
    "Diss",
    "Eye",
    "Lydd",
]
LAYOUTS = {
    "two columns": "body { columns: 2; font-size: 11px }",
    "indented first lines": "p { margin: 0; text-indent: 2em }",
    "hanging lines": "p { padding-left: 3em; text-indent: -3em; margin: 0 }",
    "narrow lines": "h2 { text-align: center } p { max-width: 24em }",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_printed_text_has_the_paragraphs_of_the_page(name: str, tmp_path: Path) -> None:
    """Paragraphs go on over lines, columns and pages; entries have addresses of several lines."""
    said = "has carried people over the lake since the year when its bridge of stone fell"
    paragraphs = [
        f"<p>The ferry of {town} and {TOWNS[n - 4]} {said}, says the council of {town}. It rained there in {1900 + n} "
        f"[{n % 9 + 1}]. {town} {said}. Then the crew of {town} left [{n % 9 + 1},{n % 5 + 1}], and "
        f"the harbour of {town} {said}.</p>"
        for n, town in enumerate(TOWNS)
    ]
    items = f"<ul><li>It {said} [1].<li>Short is one [2].<ul><li>It twice {said} [3].</ul></ul>"
    entries = "".join(
        f"<p>[{n}] The council of {TOWNS[n]} on the years of the ferry, with a name that goes on. "
        f"https://a{n}.example/{'a-part/of_it/' * (n % 5)}p{n}.html</p>"
        for n in range(1, 10)
    )
    page = (
        f"<!doctype html><meta charset=utf-8><style>{LAYOUTS[name]}</style><h2>Boats</h2>"
        f"{''.join(paragraphs[:6])}{items}<h2>More</h2>{''.join(paragraphs[6:])}"
        f"<h2>Sources</h2>{entries}"
    )
    printed_and_compared(page, tmp_path)


NARROW = "<style>td, th { padding: 1px 3px; text-align: left }</style>"
MB = "Boats cross the lake in winter and carry people, post and stone for the bridge. " * 4
TABLES = {
    "a row fills its columns": "<table><tr><th>Crossing<th>People"
    "<tr><td>The ferry from the north island<td>8,767 [1]"
    "<tr><td>A stone bridge<td>9,868 [2]"
    "<tr><td>The ferry over the winter lake in the<td>7,940 [1]</table>",
    "narrow columns": f"{NARROW}<table style='width: 21em'><tr><th>Town<th>Since<th>Seats<th>Name"
    "<tr><td>Ayr in the south [1]<td>1926 [2]<td>4,622<td>Council of the winter port [2]"
    "<tr><td>Ely<td>1916 [1]<td>3,737<td>Bridge [2]"
    "<tr><td>Ware by the lake [2]<td>1903 [1]<td>3,966<td>Crew of the island [1]</table>",
    "numbers beside cells of two lines": f"{NARROW}<table style='width: 14em; border-spacing: 0'>"
    "<style>td { vertical-align: top }</style>"
    "<tr><td>4,622<td>Council of the long winter port by the lake [1]"
    "<tr><td>3,737<td>Crew of the island and the ferry over it [2]"
    "<tr><td>3,966<td>Stone of the bridge that the crew carries [1]</table>",
    "a long cell beside short ones": f"{NARROW}<table><tr><th>Lake<th>Year<th>Boats"
    f"<tr><td>Upper lake [1]<td>1936<td>{MB}[2]"
    f"<tr><td>Lower lake [2]<td>1937<td>{MB}[1]</table>",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_printed_table_has_the_rows_of_the_page(name: str, tmp_path: Path) -> None:
    said = "The ferry carries people over the winter lake and the crew has stone for the bridge"
    page = (
        f"<!doctype html><meta charset=utf-8><p>{said}, and {said} [1].</p>{TABLES[name]}"
        f"<p>{said}, and {said} [2].</p><h2>Sources</h2><p>[1] https://one.example/a - One</p>"
        "<p>[2] https://two.example/b - Two</p>"
    )
    printed = printed_and_compared(page, tmp_path)
    assert all(each.sources for each in printed)


ENLARGED = """%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 4 0 R>>>>/Contents 5 0 R>>endobj
4 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
5 0 obj<</Length 400>>stream
BT 24 0 0 24 72 720 Tm /F 1 Tf (Boats of the lake) Tj
12 0 0 12 72 690 Tm (The ferry has carried people over it since 1936.) Tj 7 0 0 7 327 694 Tm (1) Tj
18 0 0 18 72 640 Tm (References) Tj
12 0 0 12 72 615 Tm (1. Ayr, https://one.example/a) Tj ET
endstream endobj
trailer<</Root 1 0 R>>
"""


def test_the_headings_of_a_pdf_that_enlarges_fonts_are_told_by_what_is_seen(tmp_path: Path) -> None:
    (tmp_path / "lake.pdf").write_text(ENLARGED)
    text, read = report_in(str(tmp_path / "lake.pdf"))
    assert text.splitlines()[0] == "## Boats of the lake"
    assert "## References" in text
    assert [each.sources for each in read.statements] == [["https://one.example/a"]]


def test_an_entry_that_is_a_footnote_keeps_its_number() -> None:
    page = (
        "<p>It is old.<sup><a href='#n1'>1</a></sup> It is tall [1].</p><ol><li "
        "id='n1'>https://one.example/a</ol>"
    )
    sources = [each.sources for each in read_report(html_text(page)).statements]
    assert sources == [["https://one.example/a"]] * 2


@pytest.mark.parametrize(
    ("written", "has_head"),
    [
        ("Line|Length|Source;D|12 km|<a href=https://a.example/1>a</a>;U1|19 km|", True),
        ("Line|Length;D|nine<sup>a</sup>;U1|It has nine stops.", True),
        ("<b>Line</b>|<b>2019</b>;D|twelve", True),
        ("<b>Graz</b>|<b>6</b>;<b>Linz</b>|<b>4</b>", False),
        ("Line|2019;D|twelve;U1|19 km", False),
        ("Graz is wet.|six;Linz|4;Wien|28", False),
        ("Graz|old;Linz|4;Wien|new", False),
        ("Graz|old;Linz|4", False),
    ],
)
def test_a_first_row_is_a_head_if_it_alone_is_bold_or_has_no_value(
    written: str, has_head: bool
) -> None:
    rows = written.replace(";", "<tr><td>").replace("|", "<td>")
    first, delimiter = html_text(f"<table><tr><td>{rows}</table>").splitlines()[:2]
    assert delimiter.startswith("| ---")
    assert has_head == (first.strip(" |") != "")


def test_rows_are_read_with_the_heads_of_their_columns() -> None:
    rows = "<tr><td>Line<td>Length<tr><td>The old D<td>12 km<tr><td>The new U1<td>19 km"
    read = read_report(html_text(f"<table>{rows}</table>"))
    assert [each.said for each in read.statements] == [
        "Line: The old D | Length: 12 km",
        "Line: The new U1 | Length: 19 km",
    ]


def test_a_cell_over_rows_and_columns_stands_in_its_place() -> None:
    rows = "<tr><th>a<th>b<th>c<tr><td rowspan=9 colspan=2>old<td>1<tr><td>2"
    page = f"<table>{rows}</table>"
    assert html_text(page).splitlines()[2:] == ["| old | | 1 |", "| old | | 2 |"]


def test_merged_cells_that_unfold_without_end_are_refused() -> None:
    cell = "<td rowspan=999999 colspan=999999>x"
    with pytest.raises(UsageError, match="unfold into too much text"):
        html_text(f"<table>{f'<tr>{cell}' * 200}</table>")


def test_a_list_of_contents_has_no_footnotes() -> None:
    page = (
        "<p><a href='#age'>Age</a></p><p>It is old (<a href='https://one.example/a'>1</a>).</p>"
        "<div><p id='age'>It is tall.</p></div>"
    )
    read = read_report(html_text(page))
    assert [each.text for each in read.statements][-1] == "It is tall."
    assert read.unresolved == []


def test_code_and_wrapped_links_of_a_page() -> None:
    page = (
        "<p>It is <a href='https://www.google.com/url?q=https://a.example/x&amp;sa=D'>old</a>"
        " and <a href='//b.example/y'>wet</a>.</p><pre>x[1] is code, not a claim.</pre>"
    )
    (statement,) = read_report(html_text(page)).statements
    assert [page_address(source) for source in statement.sources] == [
        "https://a.example/x",
        "https://b.example/y",
    ]


CHARSET = "<meta charset=iso-2022-jp>"


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("a.htm", f"{CHARSET}<p>橋は高い。", "iso-2022-jp"),
        ("a.txt", f"<!doctype html>{CHARSET}<p>橋は高い。", "iso-2022-jp"),
        ("a.md", f"橋は高い。 `{CHARSET}`", "utf-8"),
        ("a.md", "<ol><li>橋は高い。</ol>", "utf-16"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_declares(
    name: str, text: str, encoding: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(text.encode(encoding))
    assert "橋は高い。" in report_in(str(tmp_path / name))[0]


@pytest.mark.parametrize(
    ("report", "name"),
    [
        ("-", "standard-input"),
        ("a/My report (2).md", "My-report-2"),
        ("a/--.md", "report"),
        (f"{'橋' * 80}.md", "橋" * 63),
    ],
)
def test_a_result_has_the_name_of_its_file(report: str, name: str) -> None:
    assert report_name(report) == name


def test_a_file_of_another_format_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\0old Word")
    with pytest.raises(UsageError, match="not markdown, HTML, DOCX or PDF"):
        report_in(str(tmp_path / "a.docx"))


def test_standard_input_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("Zu alt.\r\nJa.".encode("utf-16")))
    )
    assert report_in("-")[0] == "Zu alt.\nJa."


MB = 1_000_000
SLOW = {
    "backticks": b"`" * MB,
    "bold without an end": b"**a " * (MB // 4),
    "numbered items": b"<html><ol>" + b"<li>It is 4 m tall." * (MB // 20),
    "pages of one item": b"<html><p>It is 4 m tall." * (MB // 20),
    "marks": b"It is old [1]. " * (MB // 15),
    "tables": b"| a | 4 |\n" * (MB // 10),
    "terms": b"<html><dl>" + b"<dt>1<dd>x" * (MB // 16),
    "signs": b"&" * 5000 + b" x",
    "formulas": b"\\[\n" * (MB // 8),
    "lists": b"<ol>\n" * (MB // 8),
    "letters": b"It is old.[1] " + b"a" * (MB // 2),
    "hidden": b"<span style='display:none'>" * (MB // 27),
    "an author": "\n\n".join(
        [
            *(f"It is old (Roe, May{each}, 2019)." for each in range(10_000)),
            "## References",
            *(f"Roe, A. (2019). T {each}. http://a.b/{each}" for each in range(6000)),
        ]
    ).encode(),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_report_of_a_megabyte_is_read_in_time(name: str, tmp_path: Path) -> None:
    """The time grows with the length of a report, not with its square."""
    path = tmp_path / "report.txt"
    path.write_bytes(SLOW[name])
    report_in(str(path))


def test_a_report_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.docx"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        part.write(b"<w:document><w:body><w:p><w:r><w:t>")
        for _ in range(400):
            part.write(b"x" * MB)
    with pytest.raises(UsageError, match="cannot read"):
        report_in(str(path))


def test_a_file_may_have_a_name_in_another_encoding(tmp_path: Path) -> None:
    """The second check finds the folder of the first."""
    report = tmp_path / os.fsdecode(b"caf\xe9.md")
    report.write_text("It is old.")
    folder = tmp_path / "checks" / "caf"
    folder.mkdir(parents=True)
    (folder / PATH_NAME).write_bytes(path_from(folder, str(report)))
    assert free_name(str(report), tmp_path / "checks", ()) == "caf"
    assert report_in(str(report))[0] == "It is old."


def test_an_address_is_no_report() -> None:
    with pytest.raises(UsageError, match=r"cannot read https://a\.example/b: save the page, and"):
        report_in("https://a.example/b")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("**bold** and *it*", "bold and it"),
        ("**bold *it* x**", "bold it x"),
        ("***both***", "both"),
        ("_so_ snake_case_name __x__", "so snake_case_name x"),
        ("2*3*4 and 5 * 6", "2*3*4 and 5 * 6"),
    ],
)
def test_emphasis_is_no_part_of_the_words(written: str, shown: str) -> None:
    assert without_markup(written) == shown


@pytest.mark.parametrize("name", ["report.pdf", "report.docx"])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("The dam is old [1].")
    with pytest.raises(UsageError, match=f"it is not a {name.partition('.')[2].upper()} file"):
        report_in(str(tmp_path / name))
