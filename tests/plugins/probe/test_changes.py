"""Changes of a page that take a claim's support away, and controls that leave it."""

from random import Random

import pytest

from mind2web2.plugins.probe.changes import (
    CHANGES,
    Change,
    Discarded,
    change_page,
)
from mind2web2.plugins.probe.passages import JudgedPage

PAGE = (
    """# Kettle Bridge

The Kettle Bridge was opened on 12 March 1998. It is 340 m long, longer than the Harrow Bridge.
Visitors pay 7 euros. The toll of the Kettle Bridge is seven euros in summer.

| name | length |
| Kettle Bridge | 340 m |
"""
    + "The garden beside it has 55 trees, all of them planted by hand. " * 10
)


def judged(claim, quote, text=PAGE, address="https://kb.example/page"):
    start = text.index(quote)
    return JudgedPage(claim, text, start, start + len(quote), address)


LENGTH = judged("The Kettle Bridge is 340 m long.", "It is 340 m long")
TOLL = judged(
    "The toll of the Kettle Bridge is seven euros.",
    "The toll of the Kettle Bridge is seven euros in summer.",
)
OPENING = judged("The Kettle Bridge opened in 1998.", "opened on 12 March 1998")
LONGER = judged(
    "The Kettle Bridge is longer than the Harrow Bridge.",
    "longer than the Harrow Bridge",
)


@pytest.mark.parametrize(
    ("page", "kind", "gone"),
    [
        (LENGTH, "number", ["340"]),
        (TOLL, "number", ["7 euros", "seven"]),
        (OPENING, "date", ["1998"]),
        (LONGER, "comparison", ["longer"]),
        (LONGER, "name", ["Harrow"]),
        (OPENING, "passage", ["1998"]),
    ],
)
def test_a_change_leaves_no_place_that_supports_the_claim(page, kind, gone):
    change = change_page(page, kind, Random(1))
    assert isinstance(change, Change)
    assert not [words for words in gone if words in change.text]
    assert change.text.endswith(page.text[-50:])


def test_a_negation_turns_the_sentence_around():
    change = change_page(TOLL, "negation", Random(1))
    assert "The toll of the Kettle Bridge is not seven euros" in change.text


@pytest.mark.parametrize("kind", ["reworded", "unrelated fact", "white space"])
def test_a_control_keeps_each_word_of_the_quotation(kind):
    change = change_page(OPENING, kind, Random(1))
    assert change.text != OPENING.text
    assert "The Kettle Bridge was opened on 12 March 1998." in change.text


@pytest.mark.parametrize(
    ("page", "kind", "reason"),
    [
        (
            judged("The bridge is at least 340 m long.", "It is 340 m long"),
            "number",
            "bound",
        ),
        (
            judged(
                "The Kettle Bridge is 340 m long.",
                "It is 340 m long",
                address="https://kb.example/340",
            ),
            "number",
            "address",
        ),
        (
            judged("The Kettle Bridge is old.", "The Kettle Bridge", PAGE + "Kettlebridge."),
            "name",
            "part of the name",
        ),
        (TOLL, "passage", "elsewhere"),
    ],
)
def test_a_page_that_may_still_support_the_claim_is_discarded(page, kind, reason):
    discarded = change_page(page, kind, Random(1))
    assert isinstance(discarded, Discarded)
    assert reason in discarded.reason


def test_the_same_seed_makes_the_same_changes():
    assert [change_page(LENGTH, kind, Random(7)) for kind in CHANGES] == [
        change_page(LENGTH, kind, Random(7)) for kind in CHANGES
    ]


def test_places_are_those_of_the_changed_text():
    change = change_page(LENGTH, "number", Random(1))
    assert {change.text[start:end] for start, end in change.places} == {change.after}


def test_pages_in_other_scripts_are_changed():
    text = "桥梁概况\n凯特尔桥全长340米。于1998年开放。\n"
    page = judged("凯特尔桥全长340米。", "凯特尔桥全长340米", text)
    change = change_page(page, "number", Random(1))
    assert isinstance(change, Change)
    assert "340" not in change.text
