"""The table at the end of a caching run."""

import io

from rich.console import Console

from mind2web2.capture.record import CaptureRecord, Trouble
from mind2web2.cli.cache_tables import print_cached
from mind2web2.crawl_plan import CitedPage, TaskPages


def page(name, kind="web", *troubles, failure=None, recorded=True):
    """Return a cited page."""
    url = f"https://example.com/{name}"
    record = CaptureRecord(
        requested_url=url,
        final_url=url,
        kind=kind,
        captured_at="now",
        failure=failure,
        troubles=tuple(Trouble(kind=trouble, detail=f"looks like a {trouble}") for trouble in troubles),
    )
    return CitedPage(url, kind, record if recorded else None)


def printed(*tasks):
    """Return what is printed of tasks."""
    output = io.StringIO()
    print_cached(Console(file=output, width=120, color_system=None), "bot", tasks)
    return output.getvalue()


def rows(text):
    """Return the cells of the table's rows."""
    lines = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


LAKE = TaskPages(
    "lake",
    (
        page("clean"),
        page("paper", "pdf"),
        page("older", "web", recorded=False),
        page("odd", "web", "challenge", "http_error"),
        page("gone", None, failure="no such\nhost"),
        page("new", None, recorded=False),
    ),
)
MOON = TaskPages("moon", (page("gone", None, failure="no such host"), page("odd", "web", "challenge")))


def test_the_counts():
    """By task and in all."""
    assert rows(printed(LAKE, MOON)) == [
        ["lake", "6", "3", "1", "1", "1", "1"],
        ["moon", "2", "1", "0", "1", "1", "0"],
        ["all", "8", "4", "1", "2", "2", "1"],
    ]
    assert rows(printed(MOON)) == [["moon", "2", "1", "0", "1", "1", "0"]]


def test_what_is_wrong_is_listed_by_reason():
    """Each page once under each, with its tasks."""
    text = printed(LAKE, MOON)
    assert "Failed: no such host\n  https://example.com/gone (lake, moon)\n" in text
    assert "Suspect: challenge: looks like a challenge\n  https://example.com/odd (lake, moon)\n" in text
    assert "Suspect: http error: looks like a http_error\n  https://example.com/odd (lake)\n" in text


def test_what_to_do_next():
    """Only what fits."""
    text = printed(LAKE)
    assert "Next: mind2web2 cache bot --only suspect" in text
    assert "Next: mind2web2 cache bot --only failed" in text
    assert "--cdp_url" in text
    assert "--allow_private_network" not in text
    assert "--cdp_url" not in printed(TaskPages("task", (page("a", "web", "http_error"),)))
    assert "--allow_private_network" in printed(TaskPages("task", (page("a", None, "refused_address"),)))
    assert "Next" not in printed(TaskPages("task", (page("a"), page("b", "pdf"))))
