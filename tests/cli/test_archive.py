"""``mind2web2 cache --archive``: copies of pages that are gone or look wrong.

The copies come by a local archive's API.
"""

import asyncio

import pytest
from evaluations import page_request
from fixtures.pdf_files import pdf
from projects import call
from servers.archive_server import ArchiveServer
from servers.local_http import Answer, LocalHttp

from mind2web2.cli import main
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.library import PageLibrary
from mind2web2.verification.messages import verification_messages

HTML = {"Content-Type": "text/html"}
OPTIONS = ("--allow_private_network", "--max_retries", "0")


def page(words):
    """Return a page."""
    return Answer(
        f"<!doctype html><title>Weir</title><p>{words}, as everybody in Ottermoss knows.".encode(),
        headers=HTML,
    )


async def question(cache, url):
    """Return what a judge is asked about a stored page."""
    shown = await PageLibrary().page(page_request(cache, url))
    return str(verification_messages("task", "answer", shown, "claim", None))


@pytest.fixture
def site():
    """A site where one page is in order, one is gone, and one says so with the wrong status."""
    replies = {
        "/fine": page("The weir was built of oak"),
        "/gone": Answer(status=404),
        "/wall": Answer(b"<title>404</title><h1>Page not found</h1>", headers=HTML),
    }
    with LocalHttp(lambda request: replies.get(request.path, Answer(status=404))) as site:
        yield site


@pytest.fixture
def project(tmp_path, monkeypatch, site):
    """A project with two answers that cite a page that is gone; the first was made in May 2024."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "answers" / "bot" / "lake"
    folder.mkdir(parents=True)
    for number, created in ((1, "2024-05-10"), (2, "2025-06-01")):
        (folder / f"answer_{number}.md").write_text(f"[gone]({site.url}/gone)")
        (folder / f"answer_{number}.meta.json").write_text(f'{{"created": "{created}"}}')
    return CacheFileSys(tmp_path / "cache" / "bot" / "lake")


def test_copies_take_the_place_of_pages(project, site):
    """The nearest to the first answer is stored and says what it is, in the question too."""
    names = ("fine", "gone", "wall", "lost", "paper")
    for path in (project.task_dir.parent.parent.parent / "answers" / "bot" / "lake").glob("*.md"):
        path.write_text(" ".join(f"[{name}]({site.url}/{name})" for name in names))
    copies = {
        f"{site.url}/gone": {
            "20230101000000": page("2023"),
            "20240501120000": page("May 2024"),
            "20250601000000": page("2025"),
        },
        f"{site.url}/wall": {"20240601000000": page("June 2024")},
        f"{site.url}/lost": {"20240601000000": Answer(status=500)},
        f"{site.url}/paper": {
            "20240502000000": Answer(pdf(["A paper"]), headers={"Content-Type": "application/pdf"})
        },
    }
    with ArchiveServer(copies) as archive:
        run = call(main, "cache", "bot", *OPTIONS, "--archive", "--archive_url", archive.url)
        asked = [
            request.query["url"]
            for request in archive.requests
            if request.path == "/wayback/available"
        ]
    assert run.returncode == 1
    assert "May 2024" in project.get_web(f"{site.url}/gone")[0]
    assert "June 2024" in project.get_web(f"{site.url}/wall")[0]
    assert project.has_pdf(f"{site.url}/paper")
    assert project.has(f"{site.url}/lost") is None
    assert f"{site.url}/fine" not in asked
    record = project.capture_record(f"{site.url}/gone")
    assert record.archived_at == "2024-05-01T12:00:00+00:00"
    assert record.archived_from == f"{archive.url}/web/20240501120000id_/{site.url}/gone"
    assert (record.requested_url, record.final_url, record.is_suspect) == (
        f"{site.url}/gone",
    ) * 2 + (False,)
    assert record.notes[-1].endswith("the page itself: the server sent an empty file")
    assert f"Archived: copy of 2024-05-01\n  {site.url}/gone" in run.stdout
    questions = {
        name: asyncio.run(question(project, f"{site.url}/{name}")) for name in ("fine", "gone")
    }
    assert "a copy that a web archive made of this page on 2024-05-01" in questions["gone"]
    assert "archive" not in questions["fine"]


def test_an_archive_that_fails_changes_nothing(project, site):
    """The pages have failed for their own reasons.

    A line says that the archive could not be asked.
    """
    with LocalHttp(
        lambda _: Answer(b"<p>Sorry, we are out of order today.", status=503, headers=HTML)
    ) as archive:
        run = call(main, "cache", "bot", *OPTIONS, "--archive", "--archive_url", archive.url)
    assert run.returncode == 1
    assert project.capture_record(f"{site.url}/gone").failure == "the server sent an empty file"
    assert f"the archive could not be asked for {site.url}/gone" in run.stderr


@pytest.mark.usefixtures("project")
def test_options_of_the_archive():
    """The command that failed pages call for is suggested.

    An archive without --archive is an error.
    """
    assert (
        "--archive_url goes with --archive"
        in call(main, "cache", "bot", "--archive_url", "http://a").stderr
    )
    run = call(main, "cache", "bot", *OPTIONS)
    assert "look for copies in the Internet Archive: mind2web2 cache bot --archive" in run.stdout
