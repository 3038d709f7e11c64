"""Extracted values, compared without a judge."""

import pytest
from pydantic import BaseModel

from mind2web2.rubric.values import (
    all_different,
    first_items,
    in_domains,
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
        ("about .5 km", 0.5, 0, True),
        ("-.5", -0.5, 0, True),
        ("No.5", 5, 0, True),
        ("ISO-9001", 9001, 0, True),
        ("(-3)", -3, 0, True),
        ("10-12", 10, 0, False),
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


@pytest.mark.parametrize(
    ("url", "counts"),
    [
        ("https://Mill.Example:443/a", True),
        (" www.mill.example/a ", True),
        ("https://mill.example./a", True),
        ("https://xn--mhle-0ra.example/", True),
        ("https://a.mühle.example", True),
        ("https://notmill.example/", False),
        ("https://mill.example@other.example/", False),
        ("https://other.example/?mill.example", False),
        ("https://[mill.example", False),
        ("mill.example]", False),
        ("", False),
    ],
)
def test_addresses_on_domains(url, counts):
    """As pages are found: with or without a scheme, in any spelling of the host."""
    assert bool(in_domains([url], ["mill.example", "mühle.example"])) is counts


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
