"""Numbers, dates and names that a text mentions."""

import pytest

from mind2web2.utils.facts import facts_in


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "It opened on 12 March 1998.",
            [("date", "12 March 1998", "1998-03-12")],
        ),
        (
            "2024-03-12, May 5th, March 2024",
            [
                ("date", "2024-03-12", "2024-03-12"),
                ("date", "May 5th", "--05-05"),
                ("date", "March 2024", "2024-03"),
            ],
        ),
        ("2024年3月12日", [("date", "2024年3月12日", "2024-03-12")]),
        ("12.03.2024", [("date", "12.03.2024", "2024-03-12")]),
        ("in 1998, for $1998", [("date", "1998", "1998"), ("number", "1998", "1998")]),
        (
            "am 3. Mai 1932, le 14 juillet",
            [("date", "3. Mai 1932", "1932-05-03"), ("date", "14 juillet", "--07-14")],
        ),
        (
            "el 3 de mayo de 1932, 3 мая 1932, 2024년 5월 3일",
            [
                ("date", "3 de mayo de 1932", "1932-05-03"),
                ("date", "3 мая 1932", "1932-05-03"),
                ("date", "2024년 5월 3일", "2024-05-03"),
            ],
        ),
        ("8.765,4 tonnes", [("number", "8.765,4", "8765.4")]),
        ("1.234.567 Bäume", [("number", "1.234.567", "1234567"), ("name", "Bäume", "bäume")]),
        ("Lübeck,210", [("number", "210", "210")]),
        ("it costs 1,234.50 euros", [("number", "1,234.50", "1234.5")]),
        (
            "10 000 people in seven rooms",
            [
                ("number", "10 000", "10000"),
                ("number", "seven", "7"),
            ],
        ),
        (
            "open from 9:00 to 17:30",
            [
                ("number", "9:00", "9:00"),
                ("number", "17:30", "17:30"),
            ],
        ),
        ("he saw the Kettle Bridge", [("name", "Kettle Bridge", "kettle bridge")]),
        (
            "The University of Oslo is old",
            [
                ("name", "University of Oslo", "university of oslo"),
            ],
        ),
        ("Visitors pay. Monday is free.", []),
        ("где Айр и река, żółta łódź", [("name", "Айр", "айр")]),
        ("ダムは高い", []),
    ],
)
def test_facts_have_places_and_values(text, facts):
    found = facts_in(text)
    assert [(fact.kind, fact.text, fact.value) for fact in found] == facts
    assert all(text[fact.start : fact.end] == fact.text for fact in found)
