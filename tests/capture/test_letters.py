"""Letters that no font of the machine has, and what else differs between machines."""

import base64
import logging
from pathlib import Path

import pytest
from capture.shared_browser import capturing
from capture.small_site import SmallSite

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.letters import warn_of_missing_fonts
from mind2web2.capture.models import CaptureSettings, NetworkSettings, notes_for_judge
from mind2web2.capture.pdf import render_pdf
from mind2web2.pages.prepared_page import PageSettings, pdf_notes

FONTS = Path("/usr/share/fonts")
THAI = "เขื่อนเปิดตั้งแต่เดือนพฤษภาคมถึงกันยายน"
PAGES = {
    "/thai": f"<h1>The weir at Brim</h1><p>{THAI}</p>",
    "/word": f"<p>{'The weir at Brim is open. ' * 40} In Thai: ฝาย</p>",
    "/latin": "<h1>The weir at Brim</h1><p>It is open.</p>",
    "/clock": "<p id=at></p><script>at.textContent = new Date(0).toString() + "
    "navigator.language</script>",
}


@pytest.fixture
def few_fonts(tmp_path, monkeypatch):
    """Give the browser a single font, which has Latin letters."""
    font = next(FONTS.rglob("NotoSans-Regular.ttf"))
    (tmp_path / "fonts").mkdir()
    (tmp_path / "fonts" / font.name).symlink_to(font)
    folder, cache = tmp_path / "fonts", tmp_path / "cache"
    (tmp_path / "fonts.conf").write_text(
        f"<fontconfig><dir>{folder}</dir><cachedir>{cache}</cachedir></fontconfig>"
    )
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    warn_of_missing_fonts.cache_clear()


NETWORK = NetworkSettings(allow_private_network=True)


async def captured(*paths, **settings):
    """Return the captures of some pages, in a browser of their own."""
    own = CaptureSettings(network=NETWORK, **settings)
    async with BatchBrowserManager(settings=own) as manager:
        return await captured_by(manager, *paths)


async def captured_by(manager, *paths):
    """Return the captures of some pages."""
    with SmallSite() as site:
        site.pages = PAGES
        return [await manager.capture(f"http://127.0.0.1:{site.port}{path}") for path in paths]


@pytest.mark.usefixtures("few_fonts")
async def test_a_page_in_letters_without_a_font_has_no_picture(caplog):
    with caplog.at_level(logging.WARNING):
        thai, word, latin = await captured("/thai", "/word", "/latin")
    [trouble] = thai.record.troubles
    assert trouble.kind == "missing_letters"
    assert "no font for Thai (Debian: apt-get install fonts-noto-core)" in trouble.detail
    assert (thai.screenshot, THAI in thai.text) == (None, True)
    assert "no picture" in " ".join(notes_for_judge(thai.record))
    assert word.record.scripts == {"Latin": True, "Thai": False}
    assert word.screenshot and not word.record.troubles
    assert latin.screenshot and not latin.record.troubles
    [warning] = [text for text in caplog.messages if "no font for" in text]
    assert "Chinese" in warning and "fonts-noto-color-emoji" in warning


def font_url(name):
    """Return a font of the machine as an address that holds it."""
    font = next(FONTS.rglob(name)).read_bytes()
    return f"data:font/ttf;base64,{base64.b64encode(font).decode()}"


@pytest.mark.usefixtures("few_fonts")
async def test_a_page_that_brings_its_font_is_pictured():
    """The machine needs none."""
    source = f"url({font_url('NotoSansThai-Regular.ttf')})"
    PAGES["/own"] = (
        f"<style>@font-face {{ font-family: 'Own 2'; src: {source} }}</style>"
        f"<p style='font-family: \"Own 2\"'>{THAI}</p>"
    )
    [page] = await captured("/own")
    assert page.record.scripts == {"Thai": True}
    assert page.screenshot


async def test_a_machine_with_fonts_pictures_the_page(browser):
    """The record says which scripts could be drawn."""
    async with capturing(browser, NETWORK) as manager:
        [thai] = await captured_by(manager, "/thai")
    assert thai.record.scripts == {"Latin": True, "Thai": True}
    assert thai.screenshot and not thai.record.troubles


async def test_the_time_zone_is_the_same_on_every_machine(monkeypatch):
    monkeypatch.setenv("TZ", "America/Lima")
    [clock] = await captured("/clock")
    assert "GMT+0000" in clock.text and clock.text.endswith("en-US")


def pdf_in_a_foreign_font(text):
    """Return a PDF whose only font is neither embedded nor on this machine."""
    codes = "".join(f"{number:04x}" for number in range(1, len(text) + 1))
    pairs = "".join(
        f"<{number:04x}> <{ord(letter):04x}>\n" for number, letter in enumerate(text, 1)
    )
    unicode = (
        "begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange "
        f"{len(text)} beginbfchar\n{pairs}endbfchar endcmap"
    )
    drawing = f"BT /F 32 Tf 72 700 Td <{codes}> Tj ET"
    system = "<</Registry (Adobe) /Ordering (Identity) /Supplement 0>>"
    descriptor = "<</Type /FontDescriptor /FontName /Foreign /Flags 4>>"
    font = "/Type /Font /BaseFont /Foreign"
    parts = [
        "<</Type /Catalog /Pages 2 0 R>>",
        "<</Type /Pages /Kids [3 0 R] /Count 1>>",
        "<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources <</Font <</F 5 0 R>>>>>>",
        f"<</Length {len(drawing)}>>\nstream\n{drawing}\nendstream",
        f"<<{font} /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [6 0 R] /ToUnicode 7 0 "
        "R>>",
        f"<<{font} /Subtype /CIDFontType2 /CIDSystemInfo {system} /FontDescriptor {descriptor} "
        "/DW 1000>>",
        f"<</Length {len(unicode)}>>\nstream\n{unicode}\nendstream",
    ]
    body = "".join(f"{number} 0 obj\n{part}\nendobj\n" for number, part in enumerate(parts, 1))
    return f"%PDF-1.7\n{body}trailer <</Root 1 0 R>>\n%%EOF".encode()


async def test_a_pdf_without_its_font_has_no_images(browser):
    """The judge reads its text and is told; the capture is suspect.

    A font that is there does for Latin.
    """
    pdf = pdf_in_a_foreign_font("ฝายเปิด")
    PAGES["/tides.pdf"] = pdf
    async with capturing(browser, NETWORK) as manager:
        [page] = await captured_by(manager, "/tides.pdf")
    assert [trouble.kind for trouble in page.record.troubles] == ["missing_letters"]
    rendered = await render_pdf(pdf)
    assert (rendered.images, rendered.missing_scripts) == ((), ("Thai",))
    assert "ฝายเปิด" in rendered.text
    [note] = pdf_notes(rendered, PageSettings(), with_images=True)
    assert "Thai" in note
    assert (await render_pdf(pdf_in_a_foreign_font("Tides"))).missing_scripts == ()
