"""The words that a page shares with a question."""

from textwrap import wrap

import pytest
from fixtures.pdf_files import pdf

from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.shared_words import shared_words, unfair_sources

QUESTION = (
    "Find three lakes in Norway that are deeper than four hundred metres"
    " and name the towns on their shores."
)


@pytest.mark.parametrize(
    ("text", "passage"),
    [
        (f"The task is: {QUESTION.upper()} Good luck", QUESTION.rstrip(".")),
        ("In Norway that are deeper than four hundred metres", None),
        (
            "Lakes in Norway, that are deeper than four hundred metres and cold",
            "lakes in Norway that are deeper than four hundred metres and",
        ),
        ("Norway has deep lakes.", None),
    ],
)
def test_a_page_shares_ten_words_in_a_row_or_nothing(text: str, passage: str | None) -> None:
    shared = shared_words(QUESTION, text)
    assert (shared.passage if shared else None) == passage


def test_a_page_with_the_question_is_a_barred_source(tmp_path) -> None:
    pages = CacheFileSys(tmp_path)
    pages.put_web("https://copy.example/tasks", f"Task 7: {QUESTION}", None)
    pages.put_web("https://lake.example/", "The lake is 500 metres deep.", None)
    pages.put_pdf("https://paper.example/tasks.pdf", pdf(wrap(QUESTION, 60)))
    judged = [
        "https://copy.example/tasks",
        "https://lake.example/",
        "https://paper.example/tasks.pdf",
    ]
    found = unfair_sources("", judged, pages, QUESTION)
    rule = "the page has 100% of the question's runs of 8 words"
    assert [(each["url"], each["rule"]) for each in found] == [(judged[0], rule), (judged[2], rule)]
