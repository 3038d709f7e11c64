"""The pages that stand in for walled, dead and changed ones."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from servers.archive_server import ArchiveServer
from servers.local_http import Answer, LocalHttp, Request

from mind2web2.capture.models import CapturedPage, CaptureRecord
from mind2web2.cli.address_crawl import AddressCrawl
from mind2web2.cli.console import PlainConsole
from mind2web2.runs.settings import RunSettings
from mind2web2_check.checking import TASK, Check
from mind2web2_check.sources import Capturing, source_page
from mind2web2_check.statements import read_report

HTML = {"Content-Type": "text/html"}
PAGES = {
    "/doi/10.1000/dam": "The landing page says that the dam is 221 m high.",
    "/now": "The page of today says that the dam is closed.",
    "/open": "The open copy says that the dam is old.",
}
OPEN_DOI = "10.1000/mill"


def answer(request: Request) -> Answer:
    if request.path == f"/unpaywall/{OPEN_DOI}" and request.query == {"email": "me@a.example"}:
        found = {"best_oa_location": {"url": f"http://{request.headers['Host']}/open"}}
        return Answer(json.dumps(found).encode(), headers={"Content-Type": "application/json"})
    text = PAGES.get(request.path)
    status = 200 if text else 403
    return Answer(f"<title>A page</title><p>{text or 'Forbidden'}</p>".encode(), status, HTML)


def copy(text: str) -> Answer:
    return Answer(f"<title>A copy</title><p>{text}</p>".encode(), headers=HTML)


async def test_landing_pages_and_copies_stand_in_and_are_named(tmp_path: Path) -> None:
    with LocalHttp(answer) as site, ArchiveServer({}) as archive:
        paths = ("/10.1000/dam/full.pdf", "/now", "/gone", f"/{OPEN_DOI}")
        sources = [f"{site.url}{path}" for path in paths]
        _, now, gone, _ = sources
        archive.copies[now] = {
            "20200101000000": copy("In 2020 the page said that the dam was open.")
        }
        archive.copies[gone] = {
            "20210101000000": copy("Eels lived there, said the page that is gone.")
        }
        settings = RunSettings(allow_private_network=True)
        console = PlainConsole(io.StringIO())
        capturing = Capturing(
            AddressCrawl(console, settings, tmp_path / TASK, archive.url),
            uses_archive=True,
            email="me@a.example",
            doi_url=f"{site.url}/doi",
            unpaywall_url=f"{site.url}/unpaywall",
        )
        moment = datetime(2020, 2, 1, tzinfo=UTC)
        await capturing.capture(sources, moment)
        found = [source_page(capturing.pages, url) for url in sources]
    words = ("landing page", "2020", "Eels", "open copy")
    assert all(word in page.text for word, page in zip(words, found, strict=True))
    assert all(page.is_stand_in and page.problem is None for page in found)
    assert found[0].read_at.endswith("/doi/10.1000/dam")
    assert "/web/20200101000000" in found[1].read_at
    assert found[3].read_at.endswith("/open")


def test_a_host_is_invented_only_where_the_public_web_has_answered(tmp_path: Path) -> None:
    gone = "https://no-such-host.invalid/a"
    check = Check("dams", "", read_report(f"It is tall [1].\n\n[1]: {gone}\n"), tmp_path)
    pages = check.pages

    def store(url: str, **details: Any) -> None:
        day = "2026-01-02T03:04:05+00:00"
        record = CaptureRecord(requested_url=url, final_url=url, captured_at=day, **details)
        pages.put_capture(CapturedPage(record, text="The dam is tall."), url=url)

    store(gone, kind=None, failure="there is no host no-such-host.invalid")
    assert [page.problem[:10] for page in check.source_pages()] == ["not opened"]
    other = "https://dam.example/"
    store(other, kind="web", status=200, is_private=True)
    text = f"It is tall [1].\n\nIt is wide [2].\n\n[1]: {gone}\n[2]: {other}\n"
    check = Check("dams", text, read_report(text), tmp_path)
    assert not any(page.is_invented for page in check.source_pages())
    store(other, kind="web", status=200)
    assert [page.is_invented for page in check.source_pages()] == [True, False]
