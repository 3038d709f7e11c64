"""What the browser's errors mean."""

import pytest

from mind2web2.capture.quality.failures import failure_of_navigation


@pytest.mark.parametrize(
    ("message", "transient", "certificate", "words"),
    [
        (
            "Page.goto: net::ERR_EMPTY_RESPONSE at http://a.example/\nCall log:",
            True,
            False,
            "without a reply",
        ),
        ("Page.goto: net::ERR_CONNECTION_RESET at http://a.example/", True, False, "dropped the connection"),
        (
            "Page.goto: net::ERR_TOO_MANY_REDIRECTS at http://a.example/",
            False,
            False,
            "redirects without end",
        ),
        ("Page.goto: net::ERR_CERT_DATE_INVALID at https://a.example/", False, True, "ERR_CERT_DATE_INVALID"),
        ("Page.goto: net::ERR_NEVER_HEARD_OF at https://a.example/", False, False, "ERR_NEVER_HEARD_OF"),
        ("Page.goto: Timeout 30000ms exceeded.", True, False, "did not answer in time"),
    ],
)
def test_an_error_in_words(message, transient, certificate, words):
    """A user reads why, and the program knows whether to try again."""
    failure = failure_of_navigation(message)
    assert (failure.is_transient, failure.is_certificate_error) == (transient, certificate)
    assert words in str(failure)
    assert "\n" not in str(failure)
