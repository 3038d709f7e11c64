"""The checker of facts: it can say no, which is what it is there for."""

import pytest
from page_facts import CORPUS, cell_is_attributable, corpus, is_present, shown

from mind2web2.capture.models import CapturedPage, CaptureRecord

RECORD = CaptureRecord(
    requested_url="https://a.example",
    final_url="https://a.example",
    kind="web",
    captured_at="2025-01-01",
)
TABLE = """Upper basin

| Month | Level | Wind |
| --- | --- | --- |
| May | 142 cm | W 3 |
| Junes day | 137 cm | |

Lower basin

| Month | Level |
| --- | --- |
| May | 98 cm |
"""


def captured(text="", **content):
    """Return a capture with this content."""
    return CapturedPage(RECORD, text=text, **content)


@pytest.mark.parametrize(
    ("row", "column", "value", "caption", "expected"),
    [
        ("May", "Level", "142 cm", "", True),
        ("May", "Level", "142 cm", "Upper basin", True),
        ("May", "Level", "142 cm", "Lower basin", False),
        ("May", "Level", "98 cm", "Lower basin", True),
        ("May", "Level", "98 cm", "Upper basin", False),
        ("May", "Wind", "142 cm", "", False),
        ("May", "Level", "137 cm", "", False),
        (["May", "W 3"], ["Month"], "May", "", True),
        ("May", None, "W 3", "", True),
    ],
)
def test_a_cell_counts_with_its_row_and_column_only(row, column, value, caption, expected):
    fact = {"row": row, "column": column, "value": value} | (
        {"caption": caption} if caption else {}
    )
    assert cell_is_attributable(TABLE, fact) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("May: Level: 142 cm, Wind: W 3", True),
        ("May Level 142 cm", False),
        ("Month Level\nMay 142 cm", False),
        ("| Month | Level |\n| --- | --- |\n| May<br>142 cm | |", False),
        ("| | 2024 |\n| --- | --- |\n| Month | Level |\n| May | 142 cm |", True),
    ],
)
def test_lines_count_that_say_what_the_value_is(text, expected):
    """A table whose columns are lost does not."""
    assert (
        cell_is_attributable(text, {"row": "May", "column": "Level", "value": "142 cm"}) is expected
    )


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ("one two", True),
        ("onetwo", False),
        ({"order": ["one", "three"]}, True),
        ({"order": ["three", "one"]}, False),
        ({"near": ["one", "three"], "chars": 10}, True),
        ({"near": ["one", "three"], "chars": 3}, False),
        ({"exact": "two\n  three"}, True),
        ({"exact": "one two"}, False),
    ],
)
def test_text_facts(fact, expected):
    """White space matters only where it is said to."""
    assert is_present(fact, captured("**one**\ntwo\n  three")) is expected


def test_nothing_that_is_expected_is_there_by_accident():
    """An empty capture has no fact of the corpus, and one of its sources shows what is hidden."""
    pages = corpus()
    assert len(pages) >= 30
    assert [fact for page in pages for fact in page.present if is_present(fact, captured())] == []
    by_style = next(page for page in pages if page.url.endswith("/by-style"))
    source = (CORPUS / "hidden.bittern.example" / "by-style" / "index.html").read_text(
        encoding="utf-8"
    )
    assert shown(by_style, captured(source)) == list(by_style.absent)
