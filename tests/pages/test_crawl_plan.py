"""Which cited pages a run gets, each once, spread over their hosts."""

import pytest

from mind2web2.capture.models import CaptureRecord, Trouble
from mind2web2.pages.cited_pages import CitedPage, TaskPages
from mind2web2.pages.crawl import page_jobs

URL = "https://example.com/page"


def record(kind="web", suspect=False, failure=None):
    """Return the record of a capture."""
    troubles = (Trouble(kind="challenge", detail="a puzzle"),) if suspect else ()
    return CaptureRecord(
        requested_url=URL,
        final_url=URL,
        kind=kind,
        captured_at="now",
        troubles=troubles,
        failure=failure,
    )


MISSING = CitedPage(URL, None, None)
FAILED = CitedPage(URL, None, record(None, suspect=True, failure="timed out"))
CLEAN = CitedPage(URL, "web", record())
SUSPECT = CitedPage(URL, "web", record(suspect=True))
OUT_OF_ORDER = CitedPage(URL, "web", record(suspect=True).model_copy(update={"is_transient": True}))
OF_OLDER_TOOLS = CitedPage(URL, "pdf", None)


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ("missing", [MISSING, FAILED, OUT_OF_ORDER]),
        ("failed", [FAILED]),
        ("suspect", [SUSPECT, OUT_OF_ORDER]),
    ],
)
def test_what_each_choice_gets(choice, chosen):
    """A plain run tries failures and servers' outages again.

    Pages without a record count as cached.
    """
    for page in (MISSING, FAILED, CLEAN, SUSPECT, OUT_OF_ORDER, OF_OLDER_TOOLS):
        assert bool(page_jobs([TaskPages("task", (page,))], choice)) is (page in chosen)


def test_what_is_said_of_a_page():
    """A failure has its reason, whatever the record lacks."""
    assert [page.failure for page in (MISSING, CLEAN, SUSPECT, FAILED)] == [
        None,
        None,
        None,
        "timed out",
    ]
    assert CitedPage(URL, None, record(None)).failure == "it yielded nothing"
    assert [page.is_suspect for page in (MISSING, FAILED, CLEAN, SUSPECT)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_page_is_one_job_for_all_tasks():
    """Each has its own spelling of it."""
    spellings = [URL, "http://www.example.com/page/", "https://example.com/page#part"]
    tasks = [
        TaskPages(f"task_{number}", (CitedPage(url, None, None),))
        for number, url in enumerate(spellings)
    ]
    [job] = page_jobs(tasks, "missing")
    assert job.url == URL
    assert job.wanted_by == tuple((f"task_{number}", url) for number, url in enumerate(spellings))


def test_only_tasks_that_lack_a_page_want_it():
    """A suspect page of one task does not make another's clean one worth capturing again."""
    tasks = [
        TaskPages("clean", (CLEAN,)),
        TaskPages("suspect", (SUSPECT,)),
        TaskPages("older", (OF_OLDER_TOOLS,)),
    ]
    [job] = page_jobs(tasks, "suspect")
    assert job.wanted_by == (("suspect", URL),)


def test_hosts_take_turns():
    """Pages keep the order of citation otherwise; ``www.`` is the same host."""
    urls = [
        "https://a.com/1",
        "https://www.a.com/2",
        "https://a.com?3",
        "https://b.org/1",
        "c.net",
        "b.org/2",
    ]
    task = TaskPages("task", tuple(CitedPage(url, None, None) for url in urls))
    assert [job.url for job in page_jobs([task], "missing")] == [
        urls[0],
        urls[3],
        urls[4],
        urls[1],
        urls[5],
        urls[2],
    ]
