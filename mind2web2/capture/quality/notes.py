"""What a judge is told of a page that looks wrong."""

from __future__ import annotations

from mind2web2.capture.record import CaptureRecord, Trouble, TroubleKind

_IN_WORDS: dict[TroubleKind, str] = {
    "http_error": "the server answered with an error",
    "empty_page": "the page showed hardly any text",
    "challenge": "the site may have shown a robot check or a block instead of the page",
    "consent_wall": "the site may have shown a request for consent instead of the page",
    "login_wall": "the site may have shown a login page instead of the page",
    "soft_404": "the site may have said that the page does not exist, or led to its home page instead",
    "navigation_error": "the page did not load as it should",
    "certificate_error": "the site's certificate was not valid",
    "timeout": "the time ran out",
    "crash": "the browser crashed on the page",
    "incomplete": "the page did not come whole: parts of it may be missing",
    "too_large": "the page was too large to be read",
    "refused_address": "a part of the page came from an address that may not be visited",
    "unsupported_type": "the content is of a type that cannot be shown well",
}


def trouble_notes(record: CaptureRecord) -> tuple[str, ...]:
    """Return what a judge is told of a stored page's troubles, a line each; the same for the same record.

    In words of ours alone: they stand where a judge expects none of the page's.
    """
    notes = [
        f"signs of trouble when this page was captured: {_in_words(trouble, record)}"
        for trouble in record.troubles
    ]
    return tuple(dict.fromkeys(notes))


def _in_words(trouble: Trouble, record: CaptureRecord) -> str:
    words = _IN_WORDS[trouble.kind]
    return (
        f"{words} (HTTP status {record.status})" if trouble.kind == "http_error" and record.status else words
    )
