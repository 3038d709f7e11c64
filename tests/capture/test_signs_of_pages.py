"""Pages that show something else than they say: read right, or marked."""

from pathlib import Path

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from servers.local_http import Answer, LocalHttp

from mind2web2.capture.models import NetworkSettings
from mind2web2.plugins.check.sources import SourcePage

HOST = "www.signs.example"
PDFS = Path(__file__).with_name("pdf_pages")
LOREM = (
    "The harbour office keeps a ledger of the boats, the crews and the goods that pass the quay. "
) * 4
MENU = (
    "<nav><ul>"
    + "".join(f"<li><a href=/{n}>Visiting part {n}</a>" for n in range(80))
    + "</ul></nav>"
)
FOOT = f"<footer><p>{LOREM}</p><p>{LOREM}</p></footer>"
STORY = f"<article><h1>The last ferry</h1>{f'<p>{LOREM}</p>' * 4}%s</article>{FOOT}"
PAGED = (
    "<h1>Boats</h1><table><tr><th>Boat<th>Year"
    + "".join(f"<tr><td>Boat {n}<td>{1900 + n}" for n in range(10))
    + "</table><p>%s</p>"
)
SIGNS = {
    "not found, with a menu": (
        f"<title>Page not found | Museum</title>{MENU}<main><h1>Page not found</h1></main>{FOOT}",
        "soft_404",
    ),
    "not found, in German": (
        f"<title>404 - Museum</title>{MENU}<h1>Seite nicht gefunden</h1>{FOOT}",
        "soft_404",
    ),
    "a page about lost pages": (
        f"<title>How to report a page not found error</title><h1>Broken links</h1>{MENU}{FOOT}",
        None,
    ),
    "a paywall in the text": (
        STORY % "<h2>This article is for subscribers only</h2>",
        "login_wall",
    ),
    "a paywall, in German": (STORY % "<div>Jetzt weiterlesen mit dem Abo</div>", "login_wall"),
    "a paywall, in French": (STORY % "<p>Article réservé aux abonnés</p>", "login_wall"),
    "a story about paywalls": (STORY % f"<p>{LOREM} It is for subscribers only. {LOREM}</p>", None),
    "a changelog": (STORY % "<p>This page has been removed from the index.</p>", None),
    "ten rows of 57": (PAGED % "Showing 1 to 10 of 57 entries", "incomplete"),
    "ten rows of 1,057": (PAGED % "1\u201310 of 1,057", "incomplete"),
    "ten rows of 57, in German": (PAGED % "1 bis 10 von 57 Einträgen", "incomplete"),
    "ten rows of 57, in Chinese": (PAGED % "显示第 1 至 10 项\uff0c共 57 项", "incomplete"),
    "the first ten rows of 57": (PAGED % "Showing first 10 of 57 results", "incomplete"),
    "ten rows a page": (PAGED % "Rows per page: 10 1-10 of 57", "incomplete"),
    "a fraction": (PAGED % "Add 1-1/2 cups, 1 to 3 of them at 5 pm.", None),
    "a limit of free articles": (
        STORY % "<p>You have read all your free articles.</p>",
        "login_wall",
    ),
    "all rows": (PAGED % "Showing 1 to 10 of 10 entries", None),
}
WEIR = "Мост через Оррин открыт в 1936 году — и пропускает 4100 машин."
ENCODINGS = {
    "UTF-8 without a declaration": (WEIR.encode(), "text/html"),
    "UTF-8 declared as another one": (WEIR.encode(), "text/html; charset=iso-8859-1"),
    "UTF-8 declared as another one in the page": (
        f"<meta charset=windows-1252>{WEIR}".encode(),
        "text/html",
    ),
    "windows-1251": (WEIR.encode("windows-1251"), "text/html; charset=windows-1251"),
}
TABS = (
    "<h1>Boats</h1><div id=o></div><script>const T = {a: 'Anna was built in 1901.', b: 'Bertha was "
    "built in 1902.'}; o.textContent = T[location.hash.slice(1)] || 'Choose a boat.'</script>"
)


class Site(LocalHttp):
    """Serves one reply at every path."""

    def __init__(self):
        super().__init__(lambda _: self.reply)

    def show(self, content, kind="text/html; charset=utf-8", status=200):
        body = content if isinstance(content, bytes) else f"<!doctype html>{content}".encode()
        self.reply = Answer(body, status, {"Content-Type": kind})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(browser):
    """The site, and the capture of an address on it."""
    with Site() as site:
        network = NetworkSettings(host_map={HOST: ("127.0.0.1", site._server.server_port)})
        async with capturing(browser, network, max_retries=0) as manager:
            yield site, lambda path: manager.capture(f"http://{HOST}{path}")


def signs(page):
    return [trouble.kind for trouble in page.record.troubles]


@pytest.mark.parametrize("name", SIGNS)
async def test_a_page_that_shows_something_else_has_a_sign(served, name):
    site, capture = served
    html, sign = SIGNS[name]
    site.show(html)
    assert signs(await capture("/page")) == ([] if sign is None else [sign])


@pytest.mark.parametrize("name", ENCODINGS)
async def test_a_page_is_read_in_its_encoding_whatever_it_declares(served, name):
    site, capture = served
    site.show(*ENCODINGS[name])
    page = await capture("/weir")
    assert (WEIR in page.text, signs(page)) == (True, [])


@pytest.mark.parametrize(
    "text", ["The café of the weir — “fine”", "Ã¼ is mojibake, é is none, nor is ä"]
)
async def test_a_page_in_an_old_encoding_stays_as_it_is(served, text):
    site, capture = served
    site.show(f"<p>{text}</p>".encode("cp1252"), "text/html; charset=windows-1252")
    assert (await capture("/old")).text == text


@pytest.mark.parametrize(("fragment", "shown"), [("#a", "1901"), ("#b", "1902"), ("", "Choose")])
async def test_the_fragment_chooses_the_content(served, fragment, shown):
    site, capture = served
    site.show(TABS)
    assert shown in (await capture(f"/boats{fragment}")).text


@pytest.mark.parametrize(
    ("name", "sign"), [("no-tounicode.pdf", "incomplete"), ("please-wait.pdf", "empty_page")]
)
async def test_a_pdf_without_readable_text_has_a_sign(served, name, sign):
    site, capture = served
    site.show((PDFS / name).read_bytes(), "application/pdf")
    assert signs(await capture("/form.pdf")) == [sign]


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("RETRACTED: The dam", "", True),
        ("The dam", "# RETRACTED ARTICLE: The dam\n\nIt is high.", True),
        ("Retraction Note to: The dam", "", True),
        ("The dam", "This article has been retracted.", True),
        ("The dam", "He retracted what he had said about the dam.", False),
        ("Tides", "# Tides\n\nAlso: Retraction: The gulls\n- RETRACTED: On crabs", False),
    ],
)
def test_a_page_that_says_so_is_retracted(title, text, expected):
    assert SourcePage("https://a.example", text=text, title=title).is_retracted is expected
