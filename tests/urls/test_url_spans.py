"""Where web addresses begin and end in running text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.urls.markdown import url_spans

PIECES = st.sampled_from(
    [*"()[]{}.,'\"\\*_~<>|! \n", "https://a.org", "www.", "/x", "&amp;", "&gt;", "[1]", "を"]
)


@pytest.mark.parametrize(
    ("text", "written", "url"),
    [
        ("(https://a.org/x_(y)).", "https://a.org/x_(y)", "https://a.org/x_(y)"),
        ("see https:\\/\\/a.org\\/x, and", "https:\\/\\/a.org\\/x", "https://a.org/x"),
        ("u='https://a.org/O'Neil','b'", "https://a.org/O'Neil", "https://a.org/O'Neil"),
        ("https://a.org/?x=1&amp;y=2&gt;", "https://a.org/?x=1&amp;y=2", "https://a.org/?x=1&y=2"),
        ("https://a.org/x[12][^n]. Next", "https://a.org/x", "https://a.org/x"),
        ("https://a.org/?x[0]=1&y[1]=2", "https://a.org/?x[0]=1&y[1]=2", "https://a.org/?x[0]=1&y[1]=2"),
        ("<https://a.org/x y>", "https://a.org/x y", "https://a.org/x y"),
        ("\\<https://a.org/x\\>", "https://a.org/x", "https://a.org/x"),
        ("https://a.org/xを見る", "https://a.org/x", "https://a.org/x"),
        ('{\\"u\\": \\"https://a.org/x\\"}', "https://a.org/x", "https://a.org/x"),
    ],
)
def test_an_address_and_its_place(text, written, url):
    """What is written there, and the URL that it means."""
    (span,) = url_spans(text)
    assert (text[span.start : span.end], span.url) == (written, url)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_addresses_follow_one_another(text):
    """In order and apart, whatever the text."""
    spans = list(url_spans(text))
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(0 <= span.start <= span.end <= len(text) for span in spans)


@pytest.mark.parametrize(
    "unit", ["[1]", "[^a]", "\\<", "(", "'", "&gt", "\\", "https:\\/\\/", "<https://a\\>"]
)
def test_a_long_text_is_searched(unit):
    """Hostile text costs time in proportion to its length, and the URL behind it is found."""
    text = "https://a.org/" + unit * (300_000 // len(unit)) + "= https://end.example/x"
    assert list(url_spans(text))[-1].url == "https://end.example/x"
