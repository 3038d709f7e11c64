"""Hints about numbers, as the language of the claim and that of the page write them."""

import pytest

from mind2web2_check.hints import hints_of
from mind2web2_check.sources import SourcePage
from mind2web2_check.statements import read_report

SOURCE = "https://page.example/a"


def missing(claim: str, page: str) -> list[str]:
    report = read_report(f"{claim} [1]\n\n[1] {SOURCE}\n")
    found = hints_of(report, {SOURCE: SourcePage(SOURCE, page, read_at=SOURCE)})
    return [hint.detail for hint in found if hint.kind == "number not on the page"]


@pytest.mark.parametrize(
    ("claim", "page"),
    [
        ("その町には3万人が住んでいる。", "The town has 30,000 people."),
        ("销量达到1286.6万辆。", "12,866,000 cars were sold."),
        ("予算は1億2000万円である。", "The budget is 120,000,000 yen."),
        ("그 도시에는 160만 명이 산다.", "1.6 million people live there."),
        ("The post has 3.1k likes and 450M views.", "It has 3,142 likes and 450,000,000 views."),
        ("Das kostete 1,5 Mio. Euro und 2,25 Mrd. Kronen.", "EUR 1,500,000 and SEK 2.25bn"),
        ("It has 16 lakh homes and 12 crore people.", "1,600,000 homes, 120 million people"),
        ("В городе 1,5 млн жителей.", "1 500 000 people"),
        ("Il y a 3 milliards de pages.", "3 billion pages"),
    ],
)
def test_a_magnitude_is_read_in_its_language(claim: str, page: str) -> None:
    assert missing(claim, page) == []
    assert missing(claim, "The town has 7 gates.") != []


def test_an_amount_with_another_magnitude_is_missing() -> None:
    assert missing("It has 3 million inhabitants.", "It has 30,000 inhabitants.") == ["3"]
