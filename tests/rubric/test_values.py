"""Extracted values, compared without a judge."""

import pytest
from pydantic import BaseModel

from mind2web2.rubric.values import (
    all_different,
    first_items,
    is_empty,
    same_date,
    same_number,
    same_text,
    same_value,
    shown,
    total,
)


class Fish(BaseModel):
    """An item."""

    name: str | None = None
    size: int | None = None


@pytest.mark.parametrize(
    "value", [None, "", " \n", [], ["", None], (), Fish(), [Fish()], Fish(name=" ")]
)
def test_empty_values(value):
    """Nothing is said by blanks, and by groups and lists of blanks."""
    assert is_empty(value)


@pytest.mark.parametrize("value", [0, 0.0, False, "0", ["a"], Fish(size=0)])
def test_values_that_say_something(value):
    """A number and a no are values."""
    assert not is_empty(value)


@pytest.mark.parametrize(
    ("one", "other", "within", "expected"),
    [
        (10, 10.0, 0, True),
        ("1,250 crowns", 1250, 0, True),
        (99, 100, "1%", True),
        (98.9, 100, "1%", False),
        (0.1 + 0.2, 0.3, 0, True),
        ("10 to 20", 10, 0, False),
        (None, None, 5, False),
        (True, 1, 0, False),
        (10.5, 10, 0.5, True),
    ],
)
def test_numbers(one, other, within, expected):
    """A text counts as the one number in it."""
    assert same_number(one, other, within) is expected


@pytest.mark.parametrize(
    ("compare", "one", "other", "expected"),
    [
        (same_text, "Mill  Museum!", "mill museum", True),
        (same_text, "Mill", "Museum", False),
        (same_text, "", "", False),
        (same_value, "Mill", "mill", False),
        (same_value, 0, 0, True),
        (same_date, "3 May 2024", "2024-05-03", True),
        (same_date, "May 2024", "May 2024", False),
        (same_date, "soon", "soon", False),
    ],
)
def test_texts_and_dates(compare, one, other, expected):
    """Values that are missing equal nothing."""
    assert compare(one, other) is expected


def test_lists():
    """Missing items are empty ones; values that must differ are given."""
    fish = [Fish(), Fish(name="pike"), Fish(name="carp"), Fish(name="eel")]
    assert first_items(fish, 2, Fish) == [Fish(name="pike"), Fish(name="carp")]
    assert first_items(fish[:2], 2, Fish) == [Fish(name="pike"), Fish()]
    assert all_different(["pike", "carp"])
    assert not all_different(["pike", "Pike"])
    assert not all_different(["pike", None])
    assert total(["1", 2]) == 3
    assert total([1, None]) is None
    assert [shown(value) for value in (46.0, 46.5, None, True, "x")] == [
        "46",
        "46.5",
        "",
        "yes",
        "x",
    ]
