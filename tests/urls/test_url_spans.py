"""Where web addresses begin and end in running text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.urls.spans import bare_addresses, is_bare_address, url_spans

PIECES = st.sampled_from(
    [
        *"()[]{}.,'\"\\*_~<>|! \n",
        "https://a.org",
        "www.",
        "/x",
        "&amp;",
        "&gt;",
        "[1]",
        "を",
    ]
)


@pytest.mark.parametrize(
    ("text", "written", "url"),
    [
        ("(https://a.org/x_(y)).", "https://a.org/x_(y)", "https://a.org/x_(y)"),
        ("see https:\\/\\/a.org\\/x, and", "https:\\/\\/a.org\\/x", "https://a.org/x"),
        (
            "u='https://a.org/O'Neil','b'",
            "https://a.org/O'Neil",
            "https://a.org/O'Neil",
        ),
        (
            "https://a.org/?x=1&amp;y=2&gt;",
            "https://a.org/?x=1&amp;y=2",
            "https://a.org/?x=1&y=2",
        ),
        ("https://a.org/x[12][^n]. Next", "https://a.org/x", "https://a.org/x"),
        (
            "https://a.org/?x[0]=1&y[1]=2",
            "https://a.org/?x[0]=1&y[1]=2",
            "https://a.org/?x[0]=1&y[1]=2",
        ),
        ("<https://a.org/x y>", "https://a.org/x y", "https://a.org/x y"),
        ("\\<https://a.org/x\\>", "https://a.org/x", "https://a.org/x"),
        ("https://a.org/xを見る", "https://a.org/x", "https://a.org/x"),
        ('{\\"u\\": \\"https://a.org/x\\"}', "https://a.org/x", "https://a.org/x"),
    ],
)
def test_an_address_and_its_place(text, written, url):
    (span,) = url_spans(text)
    assert (text[span.start : span.end], span.url) == (written, url)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_addresses_follow_one_another(text):
    spans = list(url_spans(text))
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(0 <= span.start <= span.end <= len(text) for span in spans)


@pytest.mark.parametrize(
    "unit",
    ["[1]", "[^a]", "\\<", "(", "'", "&gt", "\\", "https:\\/\\/", "<https://a\\>"],
)
def test_a_long_text_is_searched(unit):
    """Hostile text costs time in proportion to its length, and the URL behind it is found."""
    text = "https://a.org/" + unit * (300_000 // len(unit)) + "= https://end.example/x"
    assert list(url_spans(text))[-1].url == "https://end.example/x"


@pytest.mark.parametrize(
    ("text", "in_prose", "in_code"),
    [
        ("example.org/a, data.gov", "example.org/a data.gov", None),
        ("docs.rs/serde and bbc.co.uk", "docs.rs/serde bbc.co.uk", ""),
        ("obj.id/2, os.name, logging.info, java.io", "obj.id/2 logging.info", ""),
        ("com.example.app, co.uk, asp.net", "", ""),
        ("README.md/CHANGELOG.md setup.py report.pdf", "", ""),
        ("Booking.com, booking.com/hotel, BOOKING.COM", "booking.com/hotel BOOKING.COM", None),
        ("ended.In 2020, M.Sc. ASP.NET/C# St.Louis", "", ""),
        ("a@example.org @example.org /example.org \\example.org x/example.org/y", "", ""),
        ("v1.2.com 1.5.in 10.1.2.3/x 2.0", "v1.2.com", None),
        ("詳細はexample.orgを参照", "example.org", None),
        ("münchen.de/rathaus пример.рф", "münchen.de/rathaus пример.рф", ""),
        ("example.org:8080/x example.org: y", "example.org:8080/x example.org", None),
    ],
)  # fmt: skip
def test_bare_addresses(text, in_prose, in_code):
    """Code has more dotted names than prose that are not hosts; ``None`` means the same result."""
    assert [span.url for span in bare_addresses(text)] == in_prose.split()
    assert [span.url for span in bare_addresses(f"`{text}`")] == (
        in_prose if in_code is None else in_code
    ).split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org/a_(b)", True),
        ("example.org", True),
        ("report.pdf", False),
        ("see example.org", False),
        ("", False),
    ],
)
def test_is_bare_address(text, expected):
    assert is_bare_address(text) is expected
