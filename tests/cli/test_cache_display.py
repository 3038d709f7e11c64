"""The display of a caching run."""

import asyncio
import io
import time

from mind2web2.capture.models import CaptureRecord, Trouble
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.crawl_display import CrawlDisplay
from mind2web2.pages.crawl import CrawlProgress, PageOutcome

URL = "https://example.com/page"


def outcome(kind="web", failure=None, trouble=None, **facts):
    """Return what came of a page."""
    troubles = (Trouble(kind="challenge", detail=trouble),) if trouble else ()
    record = CaptureRecord(
        requested_url=URL,
        final_url=URL,
        kind=kind,
        captured_at="now",
        troubles=troubles,
        failure=failure,
    )
    return PageOutcome(URL, record, **facts)


async def shown(progress, *, terminal):
    """Return what is shown of a run in this state."""
    output = io.StringIO()
    console = PlainConsole(file=output, force_terminal=terminal, width=100, color_system=None)
    async with CrawlDisplay(console, progress):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return output.getvalue()


async def test_elsewhere_than_on_a_terminal_there_is_a_line_a_page():
    outcomes = [
        outcome("pdf"),
        outcome(trouble="a puzzle"),
        outcome(None, failure="no such host", trouble="x"),
        outcome(None),
        outcome(trouble="a puzzle", is_kept=True),
        outcome(is_copied=True),
        PageOutcome(URL, None, is_copied=True),
    ]
    text = await shown(CrawlProgress(pages_total=8, outcomes=outcomes), terminal=False)
    assert [
        line.removeprefix(f"[{number}/8] {URL}: ")
        for number, line in enumerate(text.splitlines(), 1)
    ] == [
        "saved (PDF)",
        "saved, but looks wrong: a puzzle",
        "failed: no such host",
        "failed: it yielded nothing",
        "saved, but looks wrong: a puzzle, so the earlier page stays",
        "saved, copied from another task",
        "copied from another task",
    ]


async def test_a_terminal_shows_running_pages():
    running = [f"https://example.com/{number}" for number in range(7)]
    progress = CrawlProgress(False, 4, 4, 20, 9, [outcome()], dict.fromkeys(running, 0.0))
    text = await shown(progress, terminal=True)
    for words in ("[1/9]", "1/9 pages", "20 cited", *running[:5], "and 2 more"):
        assert words in text
    assert running[5] not in text


async def test_at_first_a_terminal_shows_how_many_answers_are_read():
    progress = CrawlProgress(answers_total=40, answers_read=3)
    assert "reading answers: 3 of 40 answers" in await shown(progress, terminal=True)
    progress.is_asking = True
    assert "asking a model for links: 3 of 40" in await shown(progress, terminal=True)
    assert "asking a model for links: 3 of 40" in totals_line(progress)


def totals_line(progress):
    """Return the line for a long silence."""
    return CrawlDisplay(PlainConsole(file=io.StringIO()), progress).totals_line()


def test_a_page_that_takes_long_is_named():
    begun = time.monotonic()
    progress = CrawlProgress(
        pages_total=9, running={URL: begun - 71.2, "https://example.com/b": begun}
    )
    assert totals_line(progress).startswith("[0/9] 2 pages running, for 71")
    assert totals_line(progress).endswith(f" s: {URL}")
    assert totals_line(CrawlProgress(pages_total=9)) == "[0/9] 0 pages running"
