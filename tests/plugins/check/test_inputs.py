"""Reports in the formats that programs write."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.report_files import EXPECTED, write_docx, write_html, write_pdf

from mind2web2.errors import UsageError
from mind2web2.plugins.check.html_text import html_text
from mind2web2.plugins.check.inputs import report_text
from mind2web2.plugins.check.rubric import page_address
from mind2web2.plugins.check.statements import read_report


@pytest.mark.parametrize("write", [write_html, write_pdf, write_docx])
def test_each_format_has_the_same_statements_and_sources(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "dams"
    write(path)
    text = report_text(str(path))
    read = read_report(text)
    assert [
        (each.text.split()[0], [url.split("/")[2] for url in each.sources])
        for each in read.statements
    ] == EXPECTED
    assert all(text[each.start : each.end] == each.text for each in read.statements)
    assert all(
        " " not in url and "\n" not in url for each in read.statements for url in each.sources
    )
    assert read.unresolved == []


def test_an_entry_that_is_a_footnote_keeps_its_number() -> None:
    page = (
        "<p>It is old.<sup><a href='#n1'>1</a></sup> It is tall [1].</p><ol><li "
        "id='n1'>https://one.example/a</ol>"
    )
    sources = [each.sources for each in read_report(html_text(page)).statements]
    assert sources == [["https://one.example/a"]] * 2


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


def test_a_file_of_another_format_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\0old Word")
    with pytest.raises(UsageError, match="none of markdown, HTML, DOCX and PDF"):
        report_text(str(tmp_path / "a.docx"))


def test_standard_input_is_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("Zu alt.\r\nJa.".encode("utf-16")))
    )
    assert report_text("-") == "Zu alt.\nJa."
