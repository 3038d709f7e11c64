"""``pages import`` of WARC, MHTML and PDF files."""

import gzip
import io
import time
from email.message import EmailMessage

import pytest
from fixtures.pdf_files import pdf
from projects import call
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from mind2web2.cli import main
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.importing import reader_of

SITE = "https://ottermoss.example"
TEXT = "The weir of Ottermoss was built of oak in the year 1911, and has stood since."
HTML = f"<!doctype html><title>The weir</title><p>{TEXT}</p>"
NAMES = ("weir", "lock", "boat", "paper", "moved")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose two tasks cite pages of one site; returns the first task's cache."""
    monkeypatch.chdir(tmp_path)
    for task, names in (("lake", NAMES), ("moon", ("weir",))):
        folder = tmp_path / "answers" / "bot" / task
        folder.mkdir(parents=True)
        (folder / "answer_1.md").write_text(" ".join(f"[{name}]({SITE}/{name})" for name in names))
    return CacheFileSys(tmp_path / "cache" / "bot" / "lake")


def pages(*words):
    """Run ``mind2web2 pages``."""
    return call(main, "pages", *words)


def warc(*records):
    """Return a WARC file of responses: URL, status, headers, body."""
    file = io.BytesIO()
    writer = WARCWriter(file, gzip=True)
    for url, status, headers, body in records:
        head = StatusAndHeaders(f"{status} X", list(headers.items()), protocol="HTTP/1.1")
        dated = {"WARC-Date": "2025-03-14T09:30:00Z"}
        record = writer.create_warc_record(
            url,
            "response",
            payload=io.BytesIO(body),
            http_headers=head,
            warc_headers_dict=dated,
        )
        writer.write_record(record)
        record.raw_stream.close()
    return file.getvalue()


def test_a_warc_file(project, tmp_path):
    """Pages are rendered with their own parts.

    A redirect leads on, compressed bodies and PDFs are read.
    """
    html = {"Content-Type": "text/html"}
    script = f"document.body.append('{TEXT}')"
    content = warc(
        (
            f"{SITE}/weir",
            200,
            html,
            b"<title>Weir</title><p>So we say:</p><script src='/weir.js'></script>",
        ),
        (f"{SITE}/weir.js", 200, {"Content-Type": "text/javascript"}, script.encode()),
        (f"{SITE}/moved", 301, {"Location": "/new"}, b""),
        (
            f"{SITE}/new",
            200,
            html | {"Content-Encoding": "gzip"},
            gzip.compress(HTML.encode()),
        ),
        (
            f"{SITE}/paper",
            200,
            {"Content-Type": "application/pdf"},
            pdf(["Depth: 80 m"]),
        ),
    )
    path = tmp_path / "crawl.warc.gz"
    path.write_bytes(content)
    run = pages("import", "bot", path)
    assert run.returncode == 0, run.stderr
    assert TEXT in project.get_web(f"{SITE}/weir")[0]
    assert project.get_web(f"{SITE}/moved")[0] == TEXT
    assert project.get_pdf(f"{SITE}/paper") == pdf(["Depth: 80 m"])
    assert project.capture_record(f"{SITE}/paper").captured_at == "2025-03-14T09:30:00+00:00"
    path.write_bytes(content[: len(content) // 2])
    assert "damaged after record" in pages("import", "bot", path).stderr


def test_an_mhtml_file_and_a_pdf(project, tmp_path):
    """A page saved by Chrome has its parts inside; a PDF needs its address."""
    saved = EmailMessage()
    saved["Snapshot-Content-Location"] = f"{SITE}/weir"
    saved["Date"] = "Fri, 14 Mar 2025 10:30:00 +0100"
    saved.set_content(f"{HTML}<iframe src='cid:frame-1@mhtml.blink'></iframe>", subtype="html")
    saved.make_related()
    saved.add_related("<p>Framed words.</p>", subtype="html", cid="<frame-1@mhtml.blink>")
    (tmp_path / "weir.mhtml").write_bytes(saved.as_bytes())
    run = pages("import", "bot", tmp_path / "weir.mhtml")
    assert run.returncode == 0, run.stderr
    assert TEXT in project.get_web(f"{SITE}/weir")[0]
    assert "Framed words." in project.get_web(f"{SITE}/weir")[0]
    assert project.capture_record(f"{SITE}/weir").captured_at == "2025-03-14T09:30:00+00:00"
    (tmp_path / "a.pdf").write_bytes(pdf(["Depth: 80 m"]))
    assert "add --url URL" in pages("import", "bot", tmp_path / "a.pdf").stderr
    assert pages("import", "bot", tmp_path / "a.pdf", "--url", f"{SITE}/paper").returncode == 0
    assert project.has_pdf(f"{SITE}/paper")
    assert project.capture_record(f"{SITE}/paper").imported_from == "a.pdf"


def test_an_mhtml_file_of_thousands_of_parts_is_read_at_once(tmp_path):
    """Each part's address is found in one pass, not in one for each other part."""
    html = "".join(f"<img src='cid:part-{n}@x'>" for n in range(6000))
    parts = "".join(
        f"\n--b\nContent-Type: text/html\nContent-ID: <part-{n}@x>\n\n{html}" for n in range(60)
    )
    parts += "".join(
        f"\n--b\nContent-Type: text/css\nContent-ID: <part-{n}@x>\n\na" for n in range(60, 6000)
    )
    head = f"MIME-Version: 1.0\nSnapshot-Content-Location: {SITE}/weir\n"
    head += "Content-Type: multipart/related;boundary=b\n"
    path = tmp_path / "many.mhtml"
    path.write_text(f"{head}{parts}\n--b--\n")
    started = time.process_time()
    (page,) = reader_of(path, None)()
    assert time.process_time() - started < 20
    assert b"'https://cid.invalid/part-5999%40x'" in page.stored.get(f"{SITE}/weir").body


@pytest.mark.usefixtures("project")
def test_an_mhtml_file_nested_without_end_is_one_line(tmp_path):
    nested = "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(1500)
    )
    (tmp_path / "deep.mhtml").write_text(f"MIME-Version: 1.0\n{nested}")
    run = pages("import", "bot", tmp_path / "deep.mhtml", "--url", f"{SITE}/weir")
    assert run.returncode == 2
    assert "deep.mhtml: its parts are nested too deeply" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.usefixtures("project")
def test_a_warc_file_that_unpacks_to_gigabytes_is_not_read(tmp_path, monkeypatch):
    """It is given up as soon as it is larger than any pages are."""
    monkeypatch.setattr("mind2web2.plugins.archives.warc._MAX_UNPACKED_BYTES", 1024**2)
    with gzip.open(tmp_path / "bomb.warc.gz", "wb") as file:
        file.write(bytes(8 * 1024**2))
    run = pages("import", "bot", tmp_path / "bomb.warc.gz")
    assert (run.returncode, "the file unpacks to more than 1 MB" in run.stderr) == (
        2,
        True,
    )
