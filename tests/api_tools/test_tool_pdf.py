"""PDFs: text and page images, unreadable files, downloads, and what a URL serves."""

import asyncio
import base64
import gzip
import io
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fixtures.pdf_files import encrypted_pdf, pdf
from PIL import Image
from servers.local_http import Answer, LocalHttp

from mind2web2.api_tools.pdf_download import MAX_TRIES, download
from mind2web2.api_tools.surroundings import downloads_from, report_downloads
from mind2web2.api_tools.tool_pdf import PDFParser, is_pdf
from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.pdf import (
    MAX_PAGE_IMAGE_PIXELS,
    MAX_PAGE_IMAGE_SIDE_PX,
    render_pdf,
)
from mind2web2.errors import CaptureError, DocumentError

ANYWHERE = NetworkSettings(allow_private_network=True)
LEAFLET = pdf(["Opening hours", "Monday 9-17"], [], ["Tickets"])


def size_of(jpeg):
    """Return width and height of a JPEG that can be read."""
    image = Image.open(io.BytesIO(jpeg))
    image.load()
    assert image.format == "JPEG"
    return image.size


@pytest.fixture
def serve():
    """Start a server with a list of answers for each path: one a request, the last one for good."""
    servers = []

    def start(**answers):
        def answer(request):
            left = answers.get(request.path.strip("/").replace(".", "_"), [Answer(status=404)])
            return left.pop(0) if len(left) > 1 else left[0]

        servers.append(LocalHttp(answer))
        return servers[-1].__enter__()

    yield start
    for server in servers:
        server.__exit__()


async def test_text_keeps_lines_and_pages_apart():
    """Lines stay lines, and every page says its number."""
    rendered = await render_pdf(LEAFLET)
    assert rendered.text == (
        "[page 1 of 3]\nOpening hours\nMonday 9-17\n\n[page 2 of 3]\n\n\n[page 3 of 3]\nTickets"
    )
    assert (rendered.page_count, rendered.text_page_count) == (3, 3)


async def test_a_word_broken_at_a_lines_end_keeps_its_hyphen():
    """No control character is left where a line ended in a hyphen."""
    assert "exam-\nple" in (await render_pdf(pdf(["exam-", "ple"]))).text


async def test_images_are_pages_at_the_asked_resolution():
    """A letter page at 144 dpi is 1224 by 1584 px, and shows the text in black."""
    rendered = await render_pdf(LEAFLET)
    assert [size_of(image) for image in rendered.images] == [(1224, 1584)] * 3
    page = Image.open(io.BytesIO(rendered.images[0])).convert("L")
    assert page.getextrema()[0] < 60
    assert page.getpixel((5, 5)) == 255


async def test_long_pdfs_are_cut_and_say_so():
    """Images and text end at their limits, 50 and 100 by default."""
    rendered = await render_pdf(
        pdf(*[[f"line of page {number}"] for number in range(1, 103)]), dpi=10
    )
    assert (len(rendered.images), rendered.text_page_count, rendered.page_count) == (
        50,
        100,
        102,
    )
    assert "line of page 100" in rendered.text
    assert "line of page 101" not in rendered.text


@pytest.mark.parametrize(
    "size_pt", [(283_465, 792), (283_465, 1), (14_400, 14_400), (1, 100_000), (0, 0)]
)
async def test_huge_pages_are_drawn_small(size_pt):
    """A page of 100 m does not fill the memory."""
    (image,) = (await render_pdf(pdf(["x"], size_pt=size_pt))).images
    width_px, height_px = size_of(image)
    assert width_px * height_px <= MAX_PAGE_IMAGE_PIXELS * 1.01
    assert max(width_px, height_px) <= MAX_PAGE_IMAGE_SIDE_PX


async def test_a_broken_page_costs_that_page_only():
    """The other pages are read, and the text says which one is missing."""
    rendered = await render_pdf(pdf(["one"], ["two"], ["three"], broken_page=2))
    assert rendered.unreadable_pages == (2,)
    assert len(rendered.images) == 2
    assert "[page 2 of 3 is damaged and cannot be read]\n\n[page 3 of 3]\nthree" in rendered.text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (encrypted_pdf("open sesame", "hidden"), "encrypted and needs a password"),
        (
            b"<!DOCTYPE html><html>Please log in</html>",
            "not a PDF: it begins like a web page",
        ),
        (b"\n <HTML>", "not a PDF: it begins like a web page"),
        (b"", "not a PDF: the file is empty"),
        (b"PK\x03\x04", "not a PDF: it does not begin with %PDF-"),
        (b"%PDF-1.7\njunk", "PDF is damaged"),
        (LEAFLET[:300], "PDF is damaged"),
        (pdf(), "PDF is damaged or has no pages"),
        (pdf(["x"], broken_page=1), "none of its pages can be read"),
    ],
)
async def test_unreadable_files_are_refused(content, says):
    """Each kind of unreadable file has its own one-line message."""
    with pytest.raises(DocumentError, match=says) as caught:
        await render_pdf(content)
    assert "\n" not in str(caught.value)


async def test_a_pdf_encrypted_for_its_owner_only_is_read():
    assert "plain to see" in (await render_pdf(encrypted_pdf("", "plain to see"))).text


async def test_a_pdf_that_takes_too_long_is_refused():
    """The time limit ends a document, not the run."""
    with pytest.raises(DocumentError, match="took longer"):
        await render_pdf(pdf(*[["x"]] * 50), timeout_s=0.01)


@pytest.mark.parametrize("kind", ["url", "path", "text path", "bytes", "buffer"])
async def test_every_kind_of_source_gives_images_and_text(kind, serve, tmp_path):
    """URL, path, bytes and buffer are read alike; images are base64 JPEGs."""
    path = tmp_path / "leaflet.pdf"
    path.write_bytes(LEAFLET)
    url = f"{serve(leaflet=[Answer(LEAFLET)]).url}/leaflet"
    sources = {
        "url": url,
        "path": path,
        "text path": str(path),
        "bytes": LEAFLET,
        "buffer": io.BytesIO(LEAFLET),
    }
    with downloads_from(ANYWHERE):
        images, text = await PDFParser().extract(sources[kind])
    assert [size_of(base64.b64decode(image)) for image in images] == [(1224, 1584)] * 3
    assert "Monday 9-17" in text


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (Path("no/such.pdf"), "no/such.pdf cannot be read as a file"),
        ("bad\0path", "cannot be read"),
        (b"<html>Log in</html>", "the given document reason=not a PDF"),
        ("http://127.0.0.1:1/x.pdf", "127.0.0.1:1/x.pdf"),
        ("http://[broken/x.pdf", "broken"),
    ],
)
async def test_an_unavailable_document_is_empty_and_logged(source, says, caplog):
    assert await PDFParser().extract(source) == ([], "")
    assert says in caplog.text


async def test_a_source_of_another_type_is_an_error_of_the_script():
    with pytest.raises(TypeError, match="not as int"):
        await PDFParser().extract(7)


@pytest.mark.parametrize(
    ("answer", "is_doubtful"),
    [
        (Answer(b"<html>gone</html>"), False),
        (Answer(status=404), False),
        (Answer(status=503, headers={"Retry-After": "0"}), True),
    ],
)
async def test_a_document_unavailable_for_now_is_in_doubt(serve, answer, is_doubtful):
    site, doubts = serve(report_pdf=[answer]), []
    with downloads_from(ANYWHERE), report_downloads(print, doubts.append):
        assert await PDFParser().extract(f"{site.url}/report.pdf") == ([], "")
    assert [site.url in doubt for doubt in doubts] == [True] * is_doubtful


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        (
            "file",
            Answer(LEAFLET, headers={"Content-Type": "application/octet-stream"}),
            True,
        ),
        ("file", Answer(LEAFLET, headers={"Content-Type": "text/html"}), True),
        ("file", Answer(b"\xef\xbb\xbf\n" + LEAFLET), True),
        (
            "landing.pdf",
            Answer(b"<html>Buy the report</html>", headers={"Content-Type": "text/html"}),
            False,
        ),
        (
            "landing.pdf",
            Answer(b"<html>login</html>", headers={"Content-Type": "application/pdf"}),
            False,
        ),
        ("page", Answer(b"<html>"), False),
        ("empty.pdf", Answer(b""), False),
        ("blocked.pdf", Answer(status=403), True),
        ("blocked", Answer(status=403), False),
    ],
)
async def test_the_server_tells_what_a_url_serves(serve, path, answer, expected):
    """The first bytes decide; the URL's ending does only where the server gives none."""
    site = serve(**{path.replace(".", "_"): [answer]})
    with downloads_from(ANYWHERE):
        assert await is_pdf(f"{site.url}/{path}") is expected
        assert await is_pdf(f"{site.url.removeprefix('http://')}/{path}") is expected


async def test_only_the_first_bytes_are_asked_for(serve):
    site = serve(big=[Answer(LEAFLET + b" " * 5000, promised_bytes=10**9)])
    with downloads_from(ANYWHERE):
        assert await is_pdf(f"{site.url}/big")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://arxiv.org/pdf/2401.00001", True),
        ("arxiv.org/pdf/hep-th/9901001v2.pdf", True),
        ("file:///etc/report.pdf", False),
        ("javascript:x.pdf", False),
        ("http://[broken/x.pdf", False),
        ("", False),
    ],
)
async def test_some_forms_need_no_server(url, expected):
    """PDF links of arXiv decide alone; other text than a web address serves nothing."""
    assert await is_pdf(url) is expected


async def fetch(answers, **bounds):
    """Return a download from a server with these answers, and the number of requests."""
    left = list(answers)
    with (
        LocalHttp(lambda _: left.pop(0) if len(left) > 1 else left[0]) as site,
        downloads_from(ANYWHERE),
    ):
        try:
            return await download(f"{site.url}/file", first_delay_s=0, **bounds), len(site.requests)
        except CaptureError as error:
            assert site.url in str(error)
            return str(error), len(site.requests)


@pytest.mark.parametrize(
    "fault",
    [
        Answer(status=429, headers={"Retry-After": "0"}),
        Answer(status=500),
        Answer(status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Answer(drops=True),
        Answer(b"half", promised_bytes=100),
    ],
)
async def test_passing_failures_recover(fault):
    """A good answer after two failures is what counts, and half an answer never does."""
    assert await fetch([fault, fault, Answer(b"whole")]) == (b"whole", 3)


@pytest.mark.parametrize("fault", [Answer(status=500), Answer(drops=True)])
async def test_tries_end(fault):
    """A server that never recovers is given up."""
    message, requests = await fetch([fault])
    assert message.startswith("cannot download")
    assert requests == MAX_TRIES


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(status=404), "HTTP 404"),
        (Answer(status=401), "HTTP 401"),
        (Answer(status=302, headers={"Location": "file:///etc/passwd"}), "protocol"),
        (Answer(b"x" * 2001), "larger than 2000 bytes"),
        (
            Answer(gzip.compress(b"0" * 3_000_000), headers={"Content-Encoding": "gzip"}),
            "larger than 2000 bytes",
        ),
        (Answer(b"junk", headers={"Content-Encoding": "gzip"}), "cannot download"),
    ],
)
async def test_lasting_failures_fail_at_once(answer, reason):
    message, requests = await fetch([answer], max_bytes=2000)
    assert reason in message
    assert "\n" not in message
    assert requests == 1


async def test_endless_redirects_end():
    """A page that leads to itself is given up."""
    message, _ = await fetch([Answer(status=302, headers={"Location": "/file"})])
    assert "redirect" in message


async def test_a_redirect_to_no_host_is_no_error_of_the_script():
    location = {"Location": f"http://{'a.' * 200}example/"}
    message, _ = await fetch([Answer(status=302, headers=location)])
    assert message.startswith("cannot download")


async def test_a_silent_server_is_given_up():
    """A download over its time limit fails, naming the limit."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with (
            downloads_from(ANYWHERE),
            pytest.raises(CaptureError, match=r"/file: no complete answer within 0\.2 s"),
        ):
            await download(url, timeout_s=0.2)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://site.example/x",
        "no scheme",
        "http://",
        "http://a..b/",
        "http://x:99999/",
        "http://x:0/",
        "http://\ud800/",
        f"http://{'a.' * 200}example/",
    ],
)
async def test_addresses_that_are_none_are_refused(url):
    with pytest.raises(CaptureError):
        await download(url, first_delay_s=0)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"]
)
async def test_internal_addresses_are_refused(host):
    with LocalHttp(lambda _: Answer(b"secret")) as site:
        port = urlsplit(site.url).port
        with pytest.raises(CaptureError, match=r"loopback"):
            await download(f"http://{host}:{port}/file", first_delay_s=60)
        assert site.requests == []
        with downloads_from(ANYWHERE):
            assert await download(f"http://{host}:{port}/file", first_delay_s=0) == b"secret"


async def test_redirects_to_internal_addresses_are_refused():
    """A public site that leads inside is followed no further."""
    with LocalHttp(lambda _: Answer(b"secret")) as inside:
        redirect = Answer(status=302, headers={"Location": f"{inside.url}/file"})
        with LocalHttp(lambda _: redirect) as site:
            network = NetworkSettings(
                host_map={"public.example": ("127.0.0.1", urlsplit(site.url).port)}
            )
            with (
                downloads_from(network),
                pytest.raises(CaptureError, match=r"loopback"),
            ):
                await download("http://public.example/file", first_delay_s=60)
            assert len(site.requests) == 1
        assert inside.requests == []


async def test_the_environments_proxy_is_no_way_around(monkeypatch):
    """A proxy that the environment names is not used."""
    with LocalHttp(lambda _: Answer(b"secret")) as elsewhere:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, elsewhere.url)
        with pytest.raises(CaptureError, match=r"private"):
            await download("http://10.0.0.1/file", first_delay_s=60)
        assert elsewhere.requests == []


async def test_tasks_inherit_what_may_be_connected_to():
    """A run sets it once; what was outside of the block stays outside."""
    with LocalHttp(lambda _: Answer(b"page")) as site:
        with downloads_from(ANYWHERE):
            task = asyncio.create_task(download(f"{site.url}/file", first_delay_s=0))
        assert await task == b"page"
        with pytest.raises(CaptureError):
            await download(f"{site.url}/file", first_delay_s=0)


async def test_a_host_that_does_not_exist_is_asked_once():
    """A name without an address is a reason of its own, and lasts."""
    with pytest.raises(CaptureError, match=r"no-such-host\.invalid"):
        await download("http://no-such-host.invalid/", first_delay_s=0)
