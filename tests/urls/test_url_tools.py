"""URLs: cleaning, one form, a form for browsers, finding them in text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mind2web2.urls.markdown import URLs, markdown_addresses, regex_find_urls
from mind2web2.urls.parts import (
    lookup_key,
    normalize_url_for_browser,
    normalize_url_simple,
    remove_utm_parameters,
)

ANY_TEXT = st.text(st.characters())  # lone surrogates included
URL_TAILS = st.text(st.sampled_from("aA9/?&=#%2F41C3+;:@[]()é東_.~!\\ '\"<>|^`{}utm_"), max_size=30)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com/x?utm_source=chatgpt.com", "https://a.com/x"),
        (
            "https://a.com/x?b=2&utm_source=y&a=1&utm_medium=z#part",
            "https://a.com/x?b=2&a=1#part",
        ),
        ("https://a.com/x?utm_source=y#part", "https://a.com/x#part"),
        ("https://a.com/?utm_id", "https://a.com/"),
        ("https://a.com/x?utm\\_source=y", "https://a.com/x"),
        ("https://a.com/x?%75tm_source=y", "https://a.com/x"),
        ("HTTPS://A.com/%7e?b=%2F&&c", "HTTPS://A.com/%7e?b=%2F&&c"),
        ("https://a.com/utm_x?utmost=1", "https://a.com/utm_x?utmost=1"),
        ("https://a.com/x?", "https://a.com/x?"),
        ("https://a.com/#/r?utm_source=y", "https://a.com/#/r?utm_source=y"),
        ("", ""),
    ],
)
def test_remove_utm_parameters(url, expected):
    assert remove_utm_parameters(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            " HTTPS://WWW.Example.COM:443/A/?utm_source=x#part ",
            "https://example.com/A",
        ),
        ("example.com", "https://example.com"),
        ("http://www.example.com:80/%70age/", "https://example.com/page"),
        ("http://a.com:443/x", "http://a.com:443/x"),
        ("ftp://www.a.com/x", "ftp://a.com/x"),
        ("http://a.com/%C3%A9%28x%29/%2F", "https://a.com/é(x)/%2F"),
        ("https://a.com/new%20york?q=a+b&c=d", "https://a.com/new%20york?q=a+b&c=d"),
        ("https://a.com/x\\_y", "https://a.com/x_y"),
        ("https://a.com/?b=1&a=2", "https://a.com?b=1&a=2"),
        ("https://a.com/#/Route", "https://a.com#/Route"),
        ("https://münchen.example/x", "https://xn--mnchen-3ya.example/x"),
        (" no url ", "no url"),
        ("", ""),
    ],
)
def test_normalize_url_simple(url, expected):
    """A readable form; text that is not a URL stays as it is."""
    assert normalize_url_simple(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("example.com/x", "http://example.com/x"),
        ("//example.com/x", "http://example.com/x"),
        ("localhost:8000/x", "http://localhost:8000/x"),
        ("<https://a.com/x>", "https://a.com/x"),
        (
            "HTTPS://Example.com/A?utm_source=x&b=%2f#Part",
            "https://example.com/A?utm_source=x&b=%2f#Part",
        ),
        (
            "https://münchen.example/straße?q=é#ü",
            "https://xn--mnchen-3ya.example/stra%C3%9Fe?q=%C3%A9#%C3%BC",
        ),
        ("https://a.com/a b\\_c", "https://a.com/a%20b_c"),
        ("https://a.com/lo\n ng", "https://a.com/lo%20ng"),
        ("https://a.com/%7e%C3%A9[1]'|", "https://a.com/%7e%C3%A9[1]'%7C"),
        ("https://[::1]:8080/", "https://[::1]:8080/"),
        ("https://ü:p@a.com", "https://%C3%BC:p@a.com"),
        ("https://a.com?", "https://a.com?"),
        ("https://a.com/\ud800", "https://a.com/%EF%BF%BD"),
        ("about:blank", "about:blank"),
        ("data:text/html,<b>x y</b>", "data:text/html,<b>x y</b>"),
        ("mailto:a@b.com", "mailto:a@b.com"),
        ("file:///tmp/x.html", "file:///tmp/x.html"),
        ("two words", "two words"),
    ],
)
def test_normalize_url_for_browser(url, expected):
    assert normalize_url_for_browser(url) == expected


@given(ANY_TEXT)
def test_no_text_makes_them_raise(text):
    """Every function takes any text."""
    remove_utm_parameters(text)
    normalize_url_simple(text)
    normalize_url_for_browser(text)
    assert all(
        lookup_key(url) is not None for url in regex_find_urls(f"{text} https://{text} www.{text}")
    )


@given(URL_TAILS)
def test_a_changed_url_means_the_same_page(tail):
    """None of the three leads to another page, and a second time changes nothing more."""
    url = f"https://a.com/{tail}"
    for change in (
        remove_utm_parameters,
        normalize_url_simple,
        normalize_url_for_browser,
    ):
        assert lookup_key(change(url)) == lookup_key(url)
        assert change(change(url)) == change(url)
    assert normalize_url_for_browser(url).isascii()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.com/x. Or http://b.com, (https://c.com/z)!", "https://a.com/x "
                                                                     "http://b.com "
                                                                     "https://c.com/z"),
        ("https://en.wikipedia.org/wiki/Mercury_(planet).", "https://en.wikipedia.org/wiki/Mercury_(planet)"),
        ("[a](https://a.com/x_(y))[b](https://b.com 'T')", "https://a.com/x_(y) https://b.com"),
        ("[https://a.com](https://a.com/x)", "https://a.com/x"),
        ("[fonts](https://a.com/css?family=Roboto|Open+Sans)", "https://a.com/css?family=Roboto|Open+Sans"),
        ("Read example.com/x and www.a.com?u=http://b.com.", "https://example.com/x "
                                                             "https://www.a.com?u=http://b.com"),
        ("[1]: https://a.com/x \"Title\"\n[2]: <https://b.com>", "https://a.com/x https://b.com"),
        ("https://en.wikipedia.org/wiki/Mercury\\_\\(planet\\)", "https://en.wikipedia.org/wiki/Mercury_(planet)"),
        ("**https://a.com/x** *https://b.com* \\*https://c.com\\*", "https://a.com/x "
                                                                    "https://b.com https://c.com"),
        ("_https://a.com/x_ ~~https://b.com~~", "https://a.com/x https://b.com"),
        ("https://a.com/x_ and https://a.com/~", "https://a.com/x_ https://a.com/~"),
        ("| https://a.com | `https://b.com` |https://c.com|", "https://a.com https://b.com "
                                                              "https://c.com"),
        ("https://a.com,https://b.com;www.c.com/x", "https://a.com https://b.com "
                                                    "https://www.c.com/x"),
        ("https://a.com/a,b;c", "https://a.com/a,b;c"),
        ("https://web.archive.org/web/2020/http://b.com/", "https://web.archive.org/web/2020/http://b.com/"),
        ("\u201chttps://a.com/x\u201d \u300chttps://b.com\u300d", "https://a.com/x https://b.com"),
        ("https://a.com\u3002https://b.com/\u9875\uff0c\u3001", "https://a.com "
                                                                "https://b.com/\u9875"),
        ("m\u00fc https://m\u00fcn.example/stra\u00dfe.", "https://m\u00fcn.example/stra\u00dfe"),
        ("<a href=\"https://a.com/x\">y</a> {'u': 'https://b.com'}", "https://a.com/x "
                                                                     "https://b.com"),
        ("https://a.com/?a[]=1&amp;b={x} https://[::1]:80/x", "https://a.com/?a[]=1&b={x} "
                                                              "https://[::1]:80/x"),
        ("https://a.com/O'Reilly https://a.com/#/route?", "https://a.com/O'Reilly "
                                                          "https://a.com/#/route"),
        ("HTTP://A.com WWW.b.com", "HTTP://A.com https://WWW.b.com"),
        ("https://a.com https://a.com https://b.com", "https://a.com https://b.com"),
        ("http:// https://. www. xhttps://a.com me@www.a.com https://a.com:x ftp://a.com", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_regex_find_urls(text, expected):
    """URLs as they are meant, in order, each once."""
    assert regex_find_urls(text) == expected.split()


def test_a_target_in_angle_brackets_may_contain_spaces():
    """Markdown allows it, and the space is part of the URL."""
    assert regex_find_urls("[x](<https://a.com/a b>) c") == ["https://a.com/a b"]


def test_scripts_find_the_addresses_that_the_cache_has():
    answer = "See [a](https://a.com/x|y), www.b.com and [https://c.com](https://d.com)."
    cited = [lookup_key(url) for url in markdown_addresses(answer)]
    assert [lookup_key(url) for url in regex_find_urls(answer)] == cited


@pytest.mark.parametrize(
    "unit",
    ["https://a)", "<https://", "www.", "https://a.com,", "https://a.com/(", "h", "\\"],
)
def test_a_long_text_of_near_urls_is_searched(unit):
    """Hostile text costs time in proportion to its length, and the URL behind it is found."""
    text = unit * (200_000 // len(unit)) + " https://end.example/x"
    assert regex_find_urls(text)[-1] == "https://end.example/x"


def test_urls_is_an_extraction_template():
    assert URLs(urls=["https://a.com"]).urls == ["https://a.com"]
    with pytest.raises(ValidationError):
        URLs.model_validate({})
