"""A value that a judge read without the claimed one, compared with it."""

import pytest

from mind2web2.rubric.blind import is_claimed
from mind2web2.rubric.verdicts import BlindQuestion


@pytest.mark.parametrize(
    ("compare", "claimed", "reading", "holds"),
    [
        ("number", "1,340", "1340 m", True),
        ("number", "1,340", "1341", False),
        ("number", "1,340", "between 1300 and 1340", False),
        ("date", "12 March 1998", "1998-03-12", True),
        ("date", "March 1998", "12 March 1998", True),
        ("date", "12 March 1998", "March 1998", False),
        ("date", "1998", "1997-03-12", False),
        ("name", "J. K. Rowling", "Joanne Rowling", True),
        ("name", "J. Rowling", "Joanne Kathleen Rowling", True),
        ("name", "José Martí", "Jose Marti", True),
        ("name", "The Mill Museum", "Mill museum", True),
        ("name", "Mill Museum", "Windmill Museum", False),
        ("name", "J. K.", "Joanne Kathleen", False),
        ("text", "New-York", "new york", True),
        ("text", "New York", "York", False),
        ("text", "New York", " ", False),
        ("text", "New York", None, False),
    ],
)
def test_a_reading_is_compared_by_its_kind(compare, claimed, reading, holds):
    question = BlindQuestion(ask="what", value=claimed, compare=compare)
    assert is_claimed(question, reading) is holds


def test_a_number_may_be_off():
    question = BlindQuestion(ask="what", value="100", compare="number", within="2%")
    assert is_claimed(question, "101")
    assert not is_claimed(question, "103")
