"""Hints about a claim and its page, each in its language, and about the pages themselves."""

from dataclasses import replace

import pytest

from mind2web2_check.hints import hints_of
from mind2web2_check.sources import SourcePage
from mind2web2_check.statements import read_report

SOURCE = "https://page.example/a"


def missing(claim: str, page: str, what: str = "number") -> list[str]:
    report = read_report(f"{claim} [1]\n\n[1] {SOURCE}\n")
    found = hints_of(report, {SOURCE: SourcePage(SOURCE, page, read_at=SOURCE)})
    return [hint.detail for hint in found if hint.kind == f"{what} not on the page"]


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


@pytest.mark.parametrize(
    ("claim", "page", "is_said"),
    [
        ("It opened on 3 May 1936.", "Opened 1936-05-03.", True),
        ("It opened on 3 May.", "It opened on May 3, 1936.", True),
        ("It opened on 3 May 1936.", "Each year on May 3.", True),
        ("It opened in May 1936.", "It opened on 3 May 1936.", True),
        ("It opened in 1936.", "No. 1936", True),
        ("It opened on 3 May 1936.", "It opened on 3 May 1937.", False),
        ("It opened on 3 May.", "It opened on 4 May 1936.", False),
        ("It opened in May 1936.", "It opened on May 3.", False),
    ],
)
def test_a_date_may_have_no_year(claim: str, page: str, is_said: bool) -> None:
    assert (missing(claim, page, "date") == []) is is_said


SAID = "nobody saw the dam break"


@pytest.mark.parametrize("marks", ['""', "“”", "„“", "«»", "»«", "「」", "『』"])
def test_a_quotation_has_the_marks_of_its_language(marks: str) -> None:
    claim = f"The {marks[0]}old{marks[1]} mayor of the town said {marks[0]}{SAID}{marks[1]}."
    assert missing(claim, "It broke.", "quotation") == [SAID]
    assert missing(claim, f"He said that {SAID.title()}.", "quotation") == []


@pytest.mark.parametrize(
    ("claim", "quoted"),
    [
        ("他说“没有人看到大坝在夜里垮塌”。", ["没有人看到大坝在夜里垮塌"]),
        ("人们称之为“大坝时代”。", []),
        ('A 12" pipe and a 14" pipe of the old dam are there.', []),
        ("They call it “the old dam” in Ayr.", []),
    ],
)
def test_words_in_quotation_marks_may_be_a_term(claim: str, quoted: list[str]) -> None:
    assert missing(claim, "It broke.", "quotation") == quoted


@pytest.mark.parametrize(
    ("claim", "page", "names"),
    [
        ("The town of Ayr is wet.", "The village is wet.", ["Ayr"]),
        ("There are Ayr-based boats.", "The boats of Ayr.", []),
        ("Their GRU was wet.", "Their gated recurrent units were wet.", []),
        ("There an H2O rose.", "There it rose.", ["H2O"]),
        ("Дамба была построена в 1936 году.", "Плотину возвели в 1936 году. Дамба.", []),
        ("Город Айр стоит у моря.", "Город стоит у моря.", ["Город Айр"]),
        ("السد بني في عام 1936 في القاهرة.", "بنى العمال السد سنة 1936", []),
        ("ダムは1936年に建設された。", "1936年", []),
        ("Zapora żółta jest łatwa.", "Zapora.", []),
    ],
)
def test_a_name_has_a_capital_letter(claim: str, page: str, names: list[str]) -> None:
    assert missing(claim, page, "name") == names


def test_an_amount_speaks_for_its_own_number_alone() -> None:
    assert missing("It has 3 gates, 1.5 million people and 7 mills.", "1,500,000") == ["3", "7"]


def about(*pages: SourcePage) -> list[tuple[str, str]]:
    found = hints_of(read_report(""), {page.source: page for page in pages})
    return [(hint.kind, hint.detail) for hint in found]


@pytest.mark.parametrize(
    ("asked", "read", "is_gone"),
    [
        ("/dam", "/", True),
        ("/dam", "/mill", False),
        ("/", "/", False),
        ("/dam", "/?p=3", False),
    ],
)
def test_a_page_whose_address_leads_to_a_home_page_is_gone(
    asked: str, read: str, is_gone: bool
) -> None:
    page = SourcePage(f"https://a.example{asked}", "Hello.", read_at=f"https://a.example{read}")
    assert [kind for kind, _ in about(page)] == ["redirected source"] * is_gone


def test_two_addresses_with_one_page_are_duplicates() -> None:
    addresses = ["https://a.example/x", "https://a.example/x#part", "https://b.example/y"]
    first, *others = [SourcePage(url, "Hello.", read_at=url, content="digest") for url in addresses]
    assert about(first, *others) == [("duplicate source", first.source)]
    assert about(*(replace(page, content=None) for page in (first, *others))) == []
