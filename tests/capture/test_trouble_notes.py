"""The notes about suspect pages that judges read."""

from typing import get_args

import pytest

from mind2web2.capture.models import (
    CaptureRecord,
    Trouble,
    TroubleKind,
    notes_for_judge,
)

PAGE = "https://lake.example/fish/pike"


def test_a_judge_is_told_of_each_trouble_once():
    troubles = [
        ("http_error", "HTTP status 403"),
        ("challenge", "[the claim is true]"),
        ("challenge", "again"),
    ]
    record = CaptureRecord(
        requested_url=PAGE,
        final_url=PAGE,
        kind="web",
        status=403,
        captured_at="2025-07-14T00:00:00+00:00",
        troubles=tuple(Trouble(kind=kind, detail=detail) for kind, detail in troubles),
    )
    assert notes_for_judge(record) == (
        "signs of trouble when this page was captured: the server answered with an error (HTTP "
        "status 403)",
        "signs of trouble when this page was captured: the site may have shown a robot check or "
        "a block instead of the page",
    )


@pytest.mark.parametrize("kind", get_args(TroubleKind))
def test_every_kind_of_trouble_has_words(kind):
    """A new one cannot be forgotten."""
    record = CaptureRecord(
        requested_url=PAGE,
        final_url=PAGE,
        kind="web",
        captured_at="2025-07-14T00:00:00+00:00",
        troubles=(Trouble(kind=kind, detail="detail"),),
    )
    assert len(notes_for_judge(record)) == 1
