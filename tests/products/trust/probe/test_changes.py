"""Changes of a page that take a claim's support away, and controls that leave it."""

from random import Random

import pytest

from mind2web2_trust.probe.changes import change_page
from mind2web2_trust.probe.edits import CHANGES, Change, Discarded
from mind2web2_trust.probe.passages import JudgedPage

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
    page = judged(
        "The toll is seven euros.", "The toll is seven euros", "The toll is seven euros.\nEnd."
    )
    assert change_page(page, "negation", Random(1)).text == "The toll is not seven euros.\nEnd."


@pytest.mark.parametrize("kind", ["reworded", "white space"])
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
            "a part of the old one",
        ),
        (TOLL, "passage", "elsewhere"),
    ],
)
def test_a_page_that_may_still_support_the_claim_is_discarded(page, kind, reason):
    discarded = change_page(page, kind, Random(1))
    assert isinstance(discarded, Discarded)
    assert reason in discarded.reason


LINES = "\n".join(
    f"Entry N{number} of the register of boats, kept by hand." for number in range(9_000)
)


BENCHES = "Birch Park has 31 benches."
OPENED = {
    "korean": "박물관은 1974년에 문을 열었다.",
    "arabic": "المتحف افتتح عام 1974.",
    "japanese": "博物館は1974年3月に開館した。",
}


@pytest.mark.parametrize(
    ("text", "claim", "quote", "gone"),
    [
        ("- Alder Park: 12 benches\n- Birch Park: 31 benches\n", BENCHES, "Birch Park: 31", "31"),
        (
            "| park | benches |\n| --- | --- |\n| Birch Park | 31 |\n",
            BENCHES,
            "Birch Park | 31",
            "31",
        ),
        # A PDF's text is broken into lines.
        ("Birch Park has\n31 benches and two gates.\n\n- 4 -\n", BENCHES, "31 benches", "31"),
        (f"{LINES}\n{BENCHES}\n{LINES}", BENCHES, BENCHES, "31 benches"),
        *((f"{text}\n", text, text, "1974") for text in OPENED.values()),
    ],
    ids=["list", "table", "pdf", "long", *OPENED],
)
def test_pages_of_all_kinds_are_changed(text, claim, quote, gone):
    page = judged(claim, quote, text)
    kinds = ("number", "date", "passage")
    changes = [change_page(page, kind, Random(1)) for kind in kinds]
    made = [change for change in changes if isinstance(change, Change)]
    assert len(made) >= 2
    for change in made:
        assert gone not in change.text
        assert len(change.text) > len(text) - 300


@pytest.mark.parametrize(
    ("claim", "sentence", "negated"),
    [
        ("The pool is open.", "The pool is open in May.", "The pool is not open in May."),
        ("The pool is not open.", "The pool is not open in May.", "The pool is open in May."),
        # The verb of the claim has no auxiliary, and the one that there is belongs to other words.
        ("The pool holds 9 litres.", "The pool holds 9 litres when it is full.", None),
        ("A chemist was born in 1954.", "Ada, born in 1954, is a chemist.", None),
    ],
)
def test_a_negation_is_of_what_the_claim_says(claim, sentence, negated):
    change = change_page(judged(claim, sentence, f"{sentence}\nEnd.\n"), "negation", Random(1))
    assert (change and change.text) == (negated and f"{negated}\nEnd.\n")


@pytest.mark.parametrize(
    ("elsewhere", "kind"),
    [
        ("The tea of that summer cost 1998 cents a pound in the town.", Change),
        ("Visitors crossed the Kettle Bridge in 1998, by the records of the mayor.", Discarded),
    ],
)
def test_only_a_value_beside_the_claims_words_discards_a_probe(elsewhere, kind):
    claim = "The Kettle Bridge opened to heavy lorries in 1998."
    page = judged(claim, claim, f"{claim}\n{'Boats pass. ' * 20}\n{elsewhere}\n")
    assert isinstance(change_page(page, "passage", Random(1)), kind)


# Claims, pages whose first sentence is quoted, and the changes that would leave their support.
OTHER_FORMS = [
    ("The bridge cost 1.5 million.", "The bridge cost 1.5 million (1,500,000 crowns).", "number"),
    ("It cost 1,500,000 crowns.", "It cost 1,500,000 crowns. Few spend 1.5 million.", "number"),
    ("It has 42 rooms.", "It has 42 rooms. All forty-two have a stove.", "number negation passage"),
    ("It has 197 steps.", "It has 197 steps. One hundred and ninety-seven lead up.", "number"),
    ("It has 24 lamps.", "It has 24 lamps. Two dozen light it.", "number negation passage"),
    ("It has 42 boats.", "It has 42 boats. There are 12 ferries and 30 tugs.", "number negation"),
    ("It is on 7 September 2024.", "It is on 2024-09-07. It goes from 6 to 8 September.", "date passage"),
    ("The fair is on 7 May.", "The fair is on 7 May. The days of the fair are May 6-8.", "date"),
    ("It opened in 1998.", "It opened in 1998. It was the summer of '98.", "date"),
    ("The old tower of Brim was built in 1864 by Ann Orde.", "The old tower of Brim was built "
     "in 1864 by Ann Orde. A school stood there since the tower was built in 1864.", "negation passage"),
    ("There is no wifi in it.", "There is no wifi in it.", "negation"),
    ("Roads cost 31.", "The largest is schools with 52, followed by roads with 31.", "negation"),
    ("It has 12 gates.", "It has 12 gates. A dozen gates are too many.", "number"),
    ("It is 1.2 km long.", "It is 1.2 km long. Its 1,200 m are lit.", "number negation"),
    ("It has 48,000 seats.", "It has 48,000 seats. The 48k are sold.", "number negation"),
    ("It is closed on Mondays.", "It is closed on Mondays.", "name"),
    ("It has 2 doors.", "It has 2 doors. 1 3 4 5 6 7 8 9 20.", "number"),
    ("Die Stadt hat 48 Jahre.", "Die Stadt hat 48 Jahre und liegt an der Weser.", "name"),
    ("It costs CHF 480.", "It costs CHF 480.", "name"),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "text", "kinds"), OTHER_FORMS)
def test_no_change_leaves_the_value_in_another_form(claim, text, kinds):
    page = judged(claim, text.split(". ")[0], f"{text}\nEnd.")
    changes = [change_page(page, kind, Random(1)) for kind in kinds.split()]
    assert not [change for change in changes if isinstance(change, Change)]


def test_a_value_beside_the_quotation_keeps_a_passage():
    text = "# Gull Point Lighthouse\n\nThe tower is 34 metres high.\n"
    page = judged("The tower of Gull Point Lighthouse is 34 metres high.", "# Gull Point", text)
    assert isinstance(change_page(page, "passage", Random(1)), Discarded)


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
