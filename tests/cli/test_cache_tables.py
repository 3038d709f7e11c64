"""The table at the end of a caching run."""

import io
from functools import partial

from mind2web2.capture.models import CaptureRecord, RefusedConnection, Trouble
from mind2web2.cli.cache import print_cached
from mind2web2.cli.console import PlainConsole
from mind2web2.pages.cited_pages import CitedPage, TaskPages
from mind2web2.utils.program import command_line

PRIVATE = RefusedConnection(host="10.0.0.1", port=80, reason="r", is_private=True)


def page(name, kind="web", *troubles, failure=None, recorded=True, refused=()):
    """Return a cited page."""
    url = f"https://example.com/{name}"
    record = CaptureRecord(
        requested_url=url,
        final_url=url,
        kind=kind,
        captured_at="now",
        failure=failure,
        refused=refused,
        troubles=tuple(
            Trouble(kind=trouble, detail=f"looks like a {trouble}") for trouble in troubles
        ),
    )
    return CitedPage(url, kind, record if recorded else None)


def printed(*tasks):
    """Return what is printed of tasks."""
    output = io.StringIO()
    command = partial(command_line, "cache", "bot")
    print_cached(PlainConsole(file=output, width=120, color_system=None), tasks, command)
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
MOON = TaskPages(
    "moon",
    (page("gone", None, failure="no such host"), page("odd", "web", "challenge")),
)


def test_the_counts():
    assert rows(printed(LAKE, MOON)) == [
        ["lake", "6", "3", "1", "1", "1", "1"],
        ["moon", "2", "1", "0", "1", "1", "0"],
        ["all", "8", "4", "1", "2", "2", "1"],
    ]
    assert rows(printed(MOON)) == [["moon", "2", "1", "0", "1", "1", "0"]]


def test_problems_are_listed_by_reason():
    """Each task's page once, under all that is wrong with it."""
    text = printed(LAKE, MOON)
    assert "Failed: no such host\n  https://example.com/gone (lake, moon)\n" in text
    assert "Suspect: challenge: looks like a challenge\n  https://example.com/odd (moon)\n" in text
    both = "challenge: looks like a challenge; http error: looks like a http_error"
    assert f"Suspect: {both}\n  https://example.com/odd (lake)\n" in text
    assert "also counted as pages or PDFs" in text


def test_the_next_commands_are_suggested(monkeypatch):
    monkeypatch.delenv("UV", raising=False)
    text = printed(LAKE)
    assert "again: mind2web2 cache bot --only suspect\n" in text
    assert "again: mind2web2 cache bot --only failed\n" in text
    assert "--cdp_url" in text
    assert "--allow_private_network" not in text
    assert "--cdp_url" not in printed(TaskPages("task", (page("a", "web", "http_error"),)))
    private = page("a", None, "refused_address", refused=(PRIVATE,))
    of_private = printed(TaskPages("task", (private,)))
    again = "mind2web2 cache bot --only failed --allow_private_network"
    assert (
        f"If you trust the answers, to capture pages on this machine or its network: {again}\n"
        in of_private
    )
    assert "Next" not in of_private
    assert "Next" not in printed(TaskPages("task", (page("a"), page("b", "pdf"))))
