"""A file's kind follows from its content rather than its name."""

import pytest

from mind2web2.capture.page.documents import (
    FetchedDocument,
    charset_of,
    file_name_of,
    is_attachment,
    is_rendered_type,
)

HTML = b"<!doctype html><title>Landing page</title><p>Download the report below."


def document(body, content_type="", file_name=""):
    """Return a response to a made-up address."""
    return FetchedDocument("https://a.example/x.pdf", content_type, body, file_name)


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"%PDF-1.7\n...", "application/pdf", "pdf"),
        (b"%PDF-1.7\n...", "application/octet-stream", "pdf"),
        (b"%PDF-1.7\n...", "", "pdf"),
        (b"\r\n\r\n%PDF-1.4", "text/html", "pdf"),
        (HTML, "application/pdf", "html"),
        (HTML, "", "html"),
        (b"<p>no doctype", "", "html"),
        (HTML, "text/plain", "text"),
        (b"<!-- note --><html><body>x", "application/octet-stream", "html"),
        (b"\x89PNG\r\n\x1a\n....", "image/png", "image"),
        (b"\x89PNG\r\n\x1a\n....", "text/plain", "image"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp", "image"),
        (b"\xff\xd8\xff\xe0", "application/octet-stream", "image"),
        (b"year,visitors\n1911,200\n", "text/csv; charset=utf-8", "text"),
        (b"year,visitors\n1911,200\n", "application/octet-stream", "text"),
        (b'{"a": 1}', "application/json", "text"),
        (b'{"a": 1}', "application/ld+json", "text"),
        (b"<a/>", "application/xml", "text"),
        ("naïve".encode("utf-16"), "text/plain", "text"),
        (b"a,b\n", "application/vnd.ms-excel", None),
        (b"a;b\n", "application/x-unheard-of", None),
        (b"PK\x03\x04" + bytes(range(32)) * 8, "application/octet-stream", None),
        (b"PK\x03\x04\0\0\0\0\0\0", "application/zip", None),
        (b"\0\1\2\3" * 100, "text/plain", None),
    ],
)
def test_content_decides_what_a_file_is(body, content_type, kind):
    """The declared type decides where the content leaves it open."""
    assert document(body, content_type).kind() == kind


def test_a_name_for_saving_tells_a_text():
    """Servers give tables odd types, and a name that programs open them by."""
    assert document(b"a;b\n1;2\n", "application/vnd.ms-excel", "table.csv").kind() == "text"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("Fähre".encode(), "text/plain", "Fähre"),
        ("Fähre".encode("latin-1"), "text/plain; charset=ISO-8859-1", "Fähre"),
        ("Fähre".encode("utf-16"), "text/plain", "Fähre"),
        (b"\xef\xbb\xbfa,b", "text/csv", "a,b"),
        ("Fähre".encode(), "text/plain; charset=us-ascii", "Fähre"),
        ("Fähre".encode(), "text/plain; charset=no-such-charset", "Fähre"),
    ],
)
def test_text_is_read_in_its_charset(body, content_type, text):
    """A wrong declaration does not garble what is plainly UTF-8."""
    assert document(body, content_type).text() == text


def test_a_text_without_a_charset_is_guessed():
    """Old text files say nothing of theirs."""
    words = "Перевозчик ходит каждый день, кроме воскресенья, и стоит два гульдена. " * 5
    assert document(words.encode("cp1251"), "text/plain").text() == words


@pytest.mark.parametrize(
    ("disposition", "attachment", "name"),
    [
        ("attachment; filename=report.csv", True, "report.csv"),
        ('ATTACHMENT; filename="a b.pdf"', True, "a b.pdf"),
        ("attachment; filename*=UTF-8''F%C3%A4hre.csv", True, "Fähre.csv"),
        ("inline; filename=a.html", False, "a.html"),
        ("", False, ""),
    ],
)
def test_what_the_server_wants_saved(disposition, attachment, name):
    """An attachment is told from what is shown in place."""
    assert (is_attachment(disposition), file_name_of(disposition)) == (attachment, name)


def test_headers_of_any_shape():
    """Headers come from servers that nobody vouches for."""
    assert charset_of("text/html; charset=") is None
    assert charset_of(";;;") is None
    assert is_rendered_type("Text/HTML; charset=x")
    assert not is_rendered_type("text/htmlx")
