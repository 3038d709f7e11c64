"""Misspelled names and the names they are near to."""

import pytest

from mind2web2.utils.names import did_you_mean, nearest_name

_KNOWN = ["judge_model", "votes", "max_images"]


@pytest.mark.parametrize(
    ("name", "likeness", "expected"),
    [
        ("judge_mode", 0.6, "judge_model"),
        ("vote", 0.6, "votes"),
        ("votes_max", 0.6, "votes"),
        ("votes_max", 0.9, None),
        ("browser", 0.6, None),
    ],
)
def test_the_name_that_is_spelled_most_alike_is_found(name, likeness, expected):
    assert nearest_name(name, _KNOWN, likeness) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("vote", "did you mean votes?"), ("browser", "choose from three")],
)
def test_a_message_asks_for_the_near_name(name, expected):
    assert did_you_mean(name, _KNOWN, "choose from three") == expected
