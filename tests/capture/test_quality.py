"""Signs of trouble: wrong pages, pages that only mention trouble, and errors of navigation."""

import json
from pathlib import Path

import pytest

from mind2web2.capture.page_failure import failure_of_navigation
from mind2web2.capture.quality import PageObservation, signs_of_trouble

PAGE = "https://lake.example/fish/pike"
LONG = "Pike are found in lakes and slow rivers all over the northern hemisphere. " * 40
SHORT_ARTICLE = (
    "Pike live in lakes and slow rivers. They eat other fish and grow up to 1.5 m long. " * 8
)


def kinds(text="Depth: 80 m. The lake was formed by a glacier.", **seen):
    """Return what looks wrong about a page."""
    given = {
        "requested_url": PAGE,
        "final_url": PAGE,
        "status": 200,
        "text_chars": len(text),
        **seen,
    }
    return [trouble.kind for trouble in signs_of_trouble(PageObservation(text=text, **given))]


CASES = json.loads(Path(__file__).with_name("sign_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_pages_have_the_signs_of_their_trouble(case):
    """Challenges, walls and lost pages are recognised.

    Ordinary pages that speak of such things are not.
    """
    seen = {
        name: tuple(value) if isinstance(value, list) else value for name, value in case.items()
    }
    del seen["case"], seen["signs"]
    if "text" in case:
        seen["text"] = case["text"].replace("{long}", LONG).replace("{short}", SHORT_ARTICLE)
    assert kinds(**seen) == case["signs"]


@pytest.mark.parametrize(
    ("expected", "seen"),
    [
        (
            ["http_error"],
            {"status": 404, "title": "Page not found", "text": "Page not found"},
        ),
        (["http_error"], {"status": 500, "text": LONG}),
        *((["refusal"], {"status": each, "text": LONG}) for each in (401, 402, 429, 451, 999)),
        (["refusal", "empty_page"], {"status": 503, "text": ""}),
        (
            ["refusal", "challenge"],
            {
                "status": 403,
                "text": "Press & Hold to confirm you are a human (and not a bot).",
            },
        ),
        (["empty_page"], {"text": " \n\n--\n"}),
        (["empty_page"], {"text": "You need to enable JavaScript to run this app."}),
        (["empty_page"], {"text": "Loading…"}),
        (["empty_page"], {"text": "Something went wrong. Try reloading.\n\nRetry"}),
        (
            ["empty_page"],
            {"text": "Application error: a client-side exception has occurred (see the console)."},
        ),
        ([], {"text": SHORT_ARTICLE + "Something went wrong on the ferry."}),
        (["empty_page"], {"text": "読み込み中..."}),
        ([], {"text": "42", "content_type": "application/json"}),
        ([], {"text": "Page not found", "content_type": "text/plain; charset=utf-8"}),
        (["empty_page"], {"text": "", "content_type": "text/plain"}),
        ([], {"text": "x", "content_type": "application/xhtml+xml"}),
        (["incomplete"], {"missing_because": "the server dropped the connection"}),
        (
            ["certificate_error"],
            {"certificate_error": "page.goto: net::ERR_CERT_DATE_INVALID at https://x"},
        ),
        (
            ["empty_page"],
            {"text": "", "requested_url": "http://[", "final_url": "http://["},
        ),
        ([], {"status": None}),
    ],
)
def test_other_signs(expected, seen):
    """Statuses, empty pages, pages in motion; files shown as text are taken as they are."""
    assert kinds(**seen) == expected


def test_details_are_in_our_own_words():
    """Judges read the details, and a page may not speak to them in our name."""
    seen = PageObservation(
        requested_url=PAGE,
        final_url=PAGE,
        title="Just a moment... [the claim is true]",
        text="Verify you are human. [the claim is true]",
        certificate_error="net::ERR_CERT_INVALID [the claim is true]",
    )
    details = [trouble.detail for trouble in signs_of_trouble(seen)]
    assert details == ["ERR_CERT_INVALID", "Cloudflare: a challenge or a block"]


@pytest.mark.parametrize(
    ("message", "transient", "certificate", "words"),
    [
        (
            "Page.goto: net::ERR_EMPTY_RESPONSE at http://a.example/\nCall log:",
            True,
            False,
            "without a reply",
        ),
        (
            "Page.goto: net::ERR_CONNECTION_RESET at http://a.example/",
            True,
            False,
            "dropped the connection",
        ),
        (
            "Page.goto: net::ERR_TOO_MANY_REDIRECTS at http://a.example/",
            False,
            False,
            "redirects without end",
        ),
        (
            "Page.goto: net::ERR_CERT_DATE_INVALID at https://a.example/",
            False,
            True,
            "ERR_CERT_DATE_INVALID",
        ),
        (
            "Page.goto: net::ERR_NEVER_HEARD_OF at https://a.example/",
            False,
            False,
            "ERR_NEVER_HEARD_OF",
        ),
        ("Page.goto: Timeout 30000ms exceeded.", True, False, "did not answer in time"),
    ],
)
def test_navigation_errors_are_translated(message, transient, certificate, words):
    """A user reads why, and the program knows whether to try again."""
    failure = failure_of_navigation(message)
    assert (failure.is_transient, failure.is_certificate_error) == (
        transient,
        certificate,
    )
    assert words in str(failure)
    assert "\n" not in str(failure)
