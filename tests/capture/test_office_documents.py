"""Office documents, e-books and scans: captured through the real browser, within bounds."""

import io
import sys

import pytest
import pytest_asyncio
from capture.office_files import docx, pptx, xlsx, zipped
from capture.shared_browser import capturing
from capture.small_site import SmallSite
from fixtures.pdf_files import pdf
from inputs.limited import outcome_within
from PIL import Image

from mind2web2.capture import office
from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.office import office_html
from mind2web2.errors import DocumentError, MachineError

HIDDEN = ("concealed", "withdrawn", "Cellar")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(browser):
    """Captures of documents on this machine."""
    async with capturing(browser, NetworkSettings(allow_private_network=True)) as manager:
        yield manager


@pytest.fixture
def site():
    """A site whose documents a test sets."""
    with SmallSite() as site:
        yield site


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        (
            "a.docx",
            docx,
            [
                "# The weir",
                "Built of oak.",
                "| Year | Boats | Locks |",
                "| 1911 | 12 | 3 |",
                "| 1912 | none | none |",
            ],
        ),
        (
            "a.xlsx",
            xlsx,
            [
                "## Ferries",
                "| Year | Guests | Share |",
                "| 1911 | $200 | 12.3% |",
                "| all | all |  |",
            ],
        ),
        (
            "a.pptx",
            pptx,
            [
                "## Slide 1 of 3",
                "The ferry of Ottermoss",
                "| Year | Trips |",
                "| 1911 | 730 |",
                "Mention the strike.",
                "## Slide 2 of 3",
                "|  | Guests |",
                "| June | 340.0 |",
            ],
        ),
    ],
)
async def test_a_document_becomes_a_page(name, content, lines, manager, site):
    """The text is in reading order, with rows and columns, a picture, and nothing hidden."""
    site.pages[f"/{name}"] = content()
    page = await manager.capture(f"{site.url}/{name}")
    shown = [line.replace("\xa0", " ") for line in page.text.splitlines()]
    positions = [shown.index(line.replace("\xa0", " ")) for line in lines]
    assert positions == sorted(positions)
    assert not any(word in page.text for word in HIDDEN)
    assert Image.open(io.BytesIO(page.screenshot)).width == 1100
    record = page.record
    assert (record.kind, record.troubles, record.notes, record.title) == (
        "web",
        (),
        (),
        name,
    )
    assert record.content_type != "text/html"
    assert site.asked.count(f"/{name}") == len(site.asked)


async def test_a_scan_is_recorded_as_one(manager, site):
    """A PDF without text is stored as it is."""
    site.pages["/scan.pdf"], site.pages["/text.pdf"] = pdf([]), pdf([], ["Depth: 80 m"])
    scan, text = [await manager.capture(f"{site.url}/{name}.pdf") for name in ("scan", "text")]
    assert scan.record.notes == ("no text: the pages of the PDF are images",)
    assert (text.record.notes, text.record.kind) == ((), "pdf")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped({"word/document.xml": "<w:document"}), "damaged"),
        (zipped({"xl/workbook.xml": "no XML"}), "damaged"),
        (docx()[:600] + b"word/document.xml", "damaged"),
        (
            zipped({"META-INF/container.xml": "", "mimetype": "application/java"}),
            "not a DOCX",
        ),
    ],
)
async def test_a_damaged_document_is_a_failure_with_its_reason(content, reason, manager, site):
    site.pages["/a.docx"] = content
    record = (await manager.capture(f"{site.url}/a.docx")).record
    assert (record.kind, record.is_transient, record.tries) == (None, False, 1)
    assert reason in record.failure


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(office, "MAX_UNPACKED_BYTES", 3 * 1024**2)
    bomb = zipped({name: bytes(2 * 1024**2) for name in ("word/document.xml", "word/other.xml")})
    with pytest.raises(DocumentError, match="unpacks to more than 3 MB"):
        office_html(bomb, "bomb.docx")


@pytest.mark.parametrize(
    ("package", "content"), [("mammoth", docx), ("openpyxl", xlsx), ("pptx", pptx)]
)
def test_a_missing_library_is_no_fault_of_the_page(monkeypatch, package, content):
    document = content()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MachineError, match=rf"{package}: run `pip install 'mind2web2\[office\]'`"):
        office_html(document, "a")


def test_a_sheet_of_any_size_is_read_in_bounds():
    """A thousand million cells with one in the last row: what is filled is shown, with a note."""
    outcome = outcome_within(1500, 30, office_html, xlsx([["Year"], [1911]], far=True), "far.xlsx")
    assert "the last cell" in outcome.html
    assert any("large workbook" in note for note in outcome.notes)


def test_a_long_document_is_cut(monkeypatch):
    """The page and its record say so."""
    monkeypatch.setattr(office, "MAX_HTML_CHARS", 1000)
    shown = office_html(xlsx([["Year"], *([number] for number in range(5000))]), "long.xlsx")
    assert "cut here" in shown.html
    assert len(shown.html) < 3000
    assert any("is cut" in note for note in shown.notes)
