"""A judge's quotation, looked up in what the judge was shown."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind2web2.rubric.verdicts import Quote
from mind2web2.verification.quotes import find_quote, locate_quote

PAGE = (
    "# Our\u00a0history\n\nThe main library \u2013 a house of brick \u2013 opened its doors on "
    "3\u00a0October 1911,\nwith 6,200 volumes and one li\u00adbrarian. It was her \u201cfirst "
    "public "
    "building\u201d; the o\ufb03ce followed\u2026\n| 2024 | 148,320 |\n\n**Length:** 3.2 km. "
    "Caf\u0065\u0301 and \u5e02\u7acb\u56fe\u4e66\u9986\u4e8e1911\u5e74\u5f00\u653e. In 19118 "
    "nothing."
)


def found(quote, text=PAGE):
    """Return how a quotation is found, and the passage."""
    quote = find_quote(quote, [("page", text)])
    return quote.match, None if quote.start is None else text[quote.start : quote.end]


@pytest.mark.parametrize(
    ("quote", "passage"),
    [
        ("with 6,200 volumes", "with 6,200 volumes"),
        ("  148,320 \n", "148,320"),
        # White space of any kind, also across lines.
        ("Our history The main", "Our\u00a0history\n\nThe main"),
        ("on 3 October 1911, with 6,200", "on 3\u00a0October 1911,\nwith 6,200"),
        # Dashes, quotation marks, ellipses, ligatures, soft hyphens, emphasis, letter case.
        ("library - a house", "library \u2013 a house"),
        ('"First public building"', "\u201cfirst public building\u201d"),
        ("'first public building'", "first public building"),
        ("one librarian", "one li\u00adbrarian"),
        ("office followed...", "o\ufb03ce followed\u2026"),
        ("Length: 3.2 km", "Length:** 3.2 km"),
        ("CAF\u00c9 and", "Caf\u0065\u0301 and"),
        ("2024 148,320", "2024 | 148,320"),
        # Words without spaces between them may be cut anywhere; numbers and Latin words may not.
        ("\u4e8e1911\u5e74", "\u4e8e1911\u5e74"),
    ],
)
def test_typography_does_not_matter(quote, passage):
    """The passage is the text's own, with its place."""
    assert found(quote) == ("found", passage)


@pytest.mark.parametrize(
    ("quote", "match"),
    [
        ("opened its door on 3 October 1911", "approximate"),
        ("The main library [...] opened its doors", "approximate"),
        ("opened its doors on the 3 October 1911", "approximate"),
        ("opened its doors on 3 October 1912", "not_found"),
        ("| 2024 | 148,330 |", "not_found"),
        ("one librarian ... The main library", "not_found"),
        ("19", "not_found"),
        ("1911 8", "not_found"),
        ("200 volumes", "not_found"),
        ("200 volumes and one librarian", "not_found"),
        ("doors on 3 October 1911, with 6", "not_found"),
        ("Length: 3", "not_found"),
        ("The museum is closed on Mondays.", "not_found"),
        # 85% of it must be alike: the first is, the second is so by 80%, the third by 75%.
        ("the big library, a house of bricks, opened its door", "approximate"),
        ("the main library, a home of red bricks, opens its door", "not_found"),
        ("with 6,200 volumes and one old caretaker", "not_found"),
    ],
)
def test_a_passage_that_is_nearly_like_it_is_approximate(quote, match):
    """Another number is another fact, however alike the words are."""
    assert found(quote)[0] == match


def test_a_number_within_a_longer_one_is_no_passage():
    """The first that stands for itself counts."""
    assert found("1911", "In 19118 and 21911, then in 1911.") == ("found", "1911")


def test_the_first_text_that_has_it_counts():
    """A page's address is evidence like its text."""
    shown = [
        ("page", "Log in to go on"),
        ("address", "https://people.example/in/ada-reed"),
    ]
    assert find_quote("people.example/in/ada-reed", shown).source == "address"
    assert find_quote("log in", shown).source == "page"


async def test_nothing_quoted_is_looked_up_nowhere():
    assert await locate_quote(" \n", [("page", PAGE)]) is None


@pytest.mark.parametrize("chars", [100, 100_000])
async def test_texts_of_any_length_are_looked_through(chars):
    text = "the ferry leaves " * (chars // 17) + PAGE
    quote = await locate_quote("one librarian", [("page", text)])
    assert (quote.match, text[quote.start : quote.end]) == (
        "found",
        "one li\u00adbrarian",
    )
    missing = await locate_quote("The museum is closed on Mondays.", [("page", text)])
    assert missing == Quote(text="The museum is closed on Mondays.", match="not_found")


@given(st.text(), st.data())
def test_any_passage_is_found_with_its_place(text, data):
    words = text.split()
    if not words:
        return
    start = data.draw(st.integers(0, len(words) - 1))
    quote = " ".join(words[start : data.draw(st.integers(start + 1, len(words)))])
    looked = find_quote(quote, [("answer", text)])
    if quote.strip("*|\u00ad "):
        assert looked.match == "found"
        assert 0 <= looked.start < looked.end <= len(text)
        assert find_quote(text[looked.start : looked.end], [("answer", text)]).match == "found"


@given(st.text(), st.text(min_size=1))
@example("", "\r")
@example("a b", " ")
def test_nothing_is_raised(text, quote):
    looked = find_quote(quote, [("page", text)])
    assert (looked.start is None) == (looked.match == "not_found")
