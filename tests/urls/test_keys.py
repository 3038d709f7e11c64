"""URLs compared: the shared vectors, edge cases, properties, and the sites that URLs address."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind2web2.urls.parts import ascii_host, lookup_key, site_of, split_url, storage_key

URLS = json.loads(
    (Path(__file__).parents[1] / "fixtures/vectors/urls.json").read_text(encoding="utf-8")
)

# Pieces that parsers trip over, alone and combined.
PIECES = [
    "a", "A", "_", ".", "-", "~", "/", "//", "?", "&", "=", "+", ";", ":", "@", "[", "]", "(", ")",
    "#", "#/", "#!", "%", "%%", "%4", "%41", "%7e", "%2F", "%2f", "%3F", "%23", "%26", "%3D", "%2B", "%25",
    "%2525", "%5C", "%5C_", "%20", "%C3%A9", "%c3%a9", "%C3", "%A9", "%FF", "%00", "%0A", "%C2%A0",
    "%ED%A0%80", "é", "東", "\u0301", "\U0001f600", "\\", "\\_", "\\\\", "\\%",
    " ", "\t", "\n", "\x00", "\x1f", "\x85", "\u00a0", "\u3000", "\ufeff",
    "utm_a=1", "utm_a", "&utm_b=%41&", "%75tm_c=1", "q=1", "www.", "http://", "..", "/./",
]  # fmt: skip
TAILS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
ANY_TEXT = st.text(st.characters())  # lone surrogates included


def test_vectors():
    """Every query leads to the stored address it should, or to none."""
    stored = {lookup_key(storage_key(url)): url for url in URLS["stored"]}
    assert len(stored) == len(URLS["stored"])
    expected = {query["query"]: query["expected"] for query in URLS["queries"]}
    assert {query: stored.get(lookup_key(query)) for query in expected} == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "https://de.wikipedia.org/wiki/M%C3%BCnchen#Geschichte",
            "https://de.wikipedia.org/wiki/München",
        ),
        ("HTTPS://WWW.Example.COM/A/", "HTTPS://WWW.Example.COM/A"),
        ("https://a.com/", "https://a.com"),
        ("https://a.com/x//", "https://a.com/x"),
        ("https://a.com/x/?q=%C3%A9", "https://a.com/x/?q=é"),
        ("https://a.com/?next=/a/", "https://a.com/?next=/a/"),
        ("https://a.com/%2F%3F%23%26%3D%2B%25", "https://a.com/%2F%3F%23%26%3D%2B%25"),
        ("https://a.com/%2f", "https://a.com/%2F"),
        ("https://a.com/%28x%29%20%2C%3B%40%3a", "https://a.com/(x) ,;@:"),
        ("https://a.com/%2523", "https://a.com/%2523"),
        ("https://a.com/100%", "https://a.com/100%25"),
        ("https://a.com/%FF%C3", "https://a.com/%FF%C3"),
        ("https://a.com/#/route/", "https://a.com/#/route/"),
        ("https://a.com/#!route%20x", "https://a.com/#!route x"),
        ("https://a.com/x?utm_source=openai#y", "https://a.com/x?utm_source=openai"),
        ("https://a.com/x%20", "https://a.com/x%20"),
        ("https://a.com/x%5C_y", "https://a.com/x%5C_y"),
        (" https://a.com/x\\_y ", "https://a.com/x_y"),
    ],
)
def test_storage_key(url, expected):
    """Keys have no fragment but routes, are decoded, and end without a slash."""
    assert storage_key(url) == expected


@pytest.mark.parametrize(
    "spellings",
    [
        [
            "https://münchen.example/x",
            "http://xn--mnchen-3ya.example/x",
            "www.MÜNCHEN.example/x/",
            "m%C3%BCnchen.example/x",
        ],
        ["https://[2001:DB8::1]:443/x", "http://[2001:db8:0:0::1]/x"],
        [
            "https://a.com/?b=2&a=1&b=1",
            "https://a.com?b=1&b=2&a=1",
            "a.com/?&a=1&&b=1&b=2&",
        ],
        [
            "https://a.com/x?",
            "https://a.com/x",
            "https://a.com/x/?utm_id=1&utm_term",
            "a.com/x?%75tm_source=y",
        ],
        ["https://a.com/100%", "https://a.com/100%25"],
        ["https://a.com/%7euser/%c3%a9", "https://a.com/~user/é"],
        ["https://a.com/a b", "https://a.com/a%20b"],
        ["https://a.com?q=a b+c", "https://a.com?q=a+b%20c"],
        [
            "https://a.com/x\\_\\(y\\)\\*",
            "https://a.com/x_(y)*",
            "https://a.com/x%5F%28y%29%2A",
        ],
        ["https://a.com/#!x y", "https://a.com#!x%20y"],
        ["https://u@a.com/x", "http://u@www.a.com/x/"],
        ["http://a.com:443/x", "http://www.a.com:443/x/"],
    ],
)
def test_spellings_of_one_page(spellings):
    keys = {lookup_key(spelling) for spelling in spellings}
    assert len(keys) == 1
    assert None not in keys


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.com/a%2Fb", "https://a.com/a/b"),
        ("https://a.com/a%3Fb", "https://a.com/a?b"),
        ("https://a.com/a%23/b", "https://a.com/a#/b"),
        ("https://a.com/?q=a%2Bb", "https://a.com/?q=a+b"),
        ("https://a.com/a+b", "https://a.com/a%20b"),
        ("https://a.com/?a=1%26b=2", "https://a.com/?a=1&b=2"),
        ("https://a.com/%2541", "https://a.com/A"),
        ("https://a.com/%FF", "https://a.com/%FE"),
        ("https://a.com/%ff", "https://a.com/ÿ"),
        ("https://a.com/?a=", "https://a.com/?a"),
        ("https://a.com/?utmost=1", "https://a.com/"),
        ("https://a.com/?v=aB", "https://a.com/?v=Ab"),
        ("https://a.com/x", "https://a.com//x"),
        ("https://a.com/#/x", "https://a.com/#/y"),
        ("https://a.com/#/x", "https://a.com/"),
        ("https://a.com:8080/", "https://a.com/"),
        ("https://u@a.com/", "https://a.com/"),
        ("ftp://a.com/", "https://a.com/"),
        ("https://a.com/\u00e9", "https://a.com/e\u0301"),
        ("https://evil.com/https://a.com", "https://a.com"),
        ("https://a.com.evil.com", "https://a.com"),
        ("https://a.com@evil.com", "https://a.com"),
    ],
)
def test_different_pages(one, other):
    assert lookup_key(one) != lookup_key(other)
    assert storage_key(one) != storage_key(other)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\\", "#", "?", "/", "//", "://", "http://", "https://#/x", "two words", "a@b.com",
     "mailto:a@b.com", "javascript:alert(1)", "https://a.com:99999/", "https://[::1/", "https://a..b/",
     "https://\ud800.com/", "https://a.com/\udfff", "https://a\x00b.com", "%", "%%%", "file:///x",
     "x" * 1_000_000, "https://" + "[" * 1_000_000],
    ids=lambda text: ascii(text)[:30],
)  # fmt: skip
def test_what_is_no_url_matches_nothing(text):
    assert lookup_key(text) is None


@pytest.mark.parametrize(
    "unit", ["a", "/", "%", "%41", "%C3", "\\_", "&", "é", "#/", "?", " ", "a=1&", "%2"]
)
def test_very_long_urls_have_keys(unit):
    """Any long text after the host can be stored and looked up."""
    url = "https://a.com/x" + unit * (250_000 // len(unit)) + "y"
    assert lookup_key(storage_key(url)) == lookup_key(url) is not None


@given(ANY_TEXT)
def test_nothing_raises(text):
    """Any text has both keys or none."""
    storage_key(text)
    lookup_key(text)


@given(TAILS)
@example("/%%34%31")
@example("/%5C_")
@example("/\\%41")
@example("/x%C2%A0/")
def test_a_page_is_found_by_the_name_it_is_stored_under(tail):
    """Writing the key down and reading it back changes neither key."""
    for url in ("https://a.com" + tail, "https://" + tail, tail):
        if lookup_key(url) is not None:
            assert lookup_key(storage_key(url)) == lookup_key(url)
            assert storage_key(storage_key(url)) == storage_key(url)
            storage_key(url).encode()


@given(TAILS)
def test_the_lookup_key_is_its_own_key(tail):
    """Nothing in it reads differently the second time."""
    key = lookup_key("https://a.com/" + tail)
    assert lookup_key(key) == key


@given(TAILS)
def test_equal_spellings_have_equal_keys(tail):
    """The equivalences of file-layouts.md hold for any path, query and route."""
    # Backslashes could escape what the spellings add, and white space is trimmed at the ends only.
    address, hash_mark, fragment = f"/{tail}".replace("\\", "").strip().partition("#")
    path, question_mark, query = address.partition("?")
    path = path.rstrip()
    after_query = hash_mark + fragment
    key = lookup_key(f"https://a.com{path}{question_mark}{query}{after_query}")
    assert key is not None
    for start in (
        "http://a.com",
        "HTTPS://www.A.com",
        "https://a.com:443",
        "http://a.com:80",
        "a.com",
        " a.com",
    ):
        assert lookup_key(f"{start}{path}{question_mark}{query}{after_query}") == key
    assert lookup_key(f"https://a.com{path}/{question_mark}{query}{after_query}\n") == key
    assert lookup_key(f"https://a.com{path}?utm_x=1&{query}{after_query}") == key
    reordered = "&".join(reversed(query.split("&")))
    assert lookup_key(f"https://a.com{path}?{reordered}&{after_query}") == key
    if fragment[:1] not in ("/", "!"):
        assert lookup_key(f"https://a.com{path}?{query}&") == key
        assert lookup_key(f"https://a.com{path}?{query}&#section-2") == key


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1))
def test_an_encoded_character_equals_the_bare_one(text):
    """Percent-encoding every byte that is not reserved changes nothing."""
    # Letters around keep white space from the ends, and a bare backslash is a markdown escape.
    bare = "".join(character for character in text if character not in "/?#&=+%\\")
    encoded = "".join(f"%{byte:02x}" for byte in bare.encode())
    assert (
        lookup_key(f"https://a.com/x{bare}y")
        == lookup_key(f"https://a.com/x{encoded}y")
        is not None
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("EXAMPLE.com", "example.com"),
        ("münchen.example", "xn--mnchen-3ya.example"),
        ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
        ("XN--MNCHEN-3YA.example", "xn--mnchen-3ya.example"),
        ("mu\u0308nchen.example", "xn--mnchen-3ya.example"),
        ("m%C3%BCnchen.example", "xn--mnchen-3ya.example"),
        ("ex%61mple.com", "example.com"),
        ("straße.example", "xn--strae-oqa.example"),
        ("日本語。jp", "xn--wgv71a119e.jp"),
        ("\uff45\uff58ample.com", "example.com"),
        ("i❤.ws", "xn--i-7iq.ws"),
        ("exa\u00admple.com", "example.com"),
        ("foo_bar.-x-.example", "foo_bar.-x-.example"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
        ("[::ffff:1.2.3.4]", "[::ffff:102:304]"),
    ],
)
def test_a_host_has_one_form(host, expected):
    """Letter case, internationalised spellings and escapes lead to the same name."""
    assert ascii_host(host) == expected


@pytest.mark.parametrize(
    "host",
    ["", ".", "a..b", ".a", "a b", "a\x00b", "a%00b", "a%2Fb", "a%ZZ", "%FF.com", "(x)", "a\u2028b", "a@b",
     "[::1", "[]", "[1.2.3.4]", "[::g]", "[fe80::1%25eth0]", "\ufffd.com", "{host}",
     "x" * 254, "ü" * 1000, "ü" * 1_000_000],
    ids=lambda host: ascii(host)[:30],
)  # fmt: skip
def test_what_cannot_be_a_host_is_none(host):
    """Nothing raises, however long or odd."""
    assert ascii_host(host) is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.com:443/", "a.com"),
        ("http://a.com:80", "a.com"),
        ("http://a.com:0080", "a.com"),
        ("a.com:80", "a.com"),
        ("a.com:443", "a.com"),
        ("https://a.com:", "a.com"),
        ("http://a.com:443", "a.com:443"),
        ("https://a.com:80", "a.com:80"),
        ("https://a.com:8443", "a.com:8443"),
        ("https://a.com:0", "a.com:0"),
        ("https://u:p@A.com", "u:p@a.com"),
        ("https://[::1]:8080/", "[::1]:8080"),
        ("//A.com/x", "a.com"),
    ],
)
def test_the_default_port_is_dropped(url, expected):
    assert str(site_of(split_url(url))) == expected


@pytest.mark.parametrize(
    "url",
    ["https://a.com:x", "https://a.com:65536", "https://a.com:-1", "https://a.com:\uff18\uff10",
     "https://a.com:" + "9" * 5000, "https://a:b:c", "https:///x", "https://", "https:/a.com", "https://[::1]x/",
     "mailto:a@b.com", "a@b.com", "javascript:alert(1)", "data:/x", "about:", "tel:+4912345", "", "file:///x"],
    ids=lambda url: ascii(url)[:30],
)  # fmt: skip
def test_what_names_no_site_is_none(url):
    """Bad ports, missing hosts and addresses of other kinds."""
    assert site_of(split_url(url)) is None


@pytest.mark.parametrize(
    ("host", "expected"),
    [("www.a.com", "a.com"), ("wwww.a.com", "wwww.a.com"), ("www.", "www.")],
)
def test_a_leading_www_is_dropped(host, expected):
    assert str(site_of(split_url(f"https://{host}")).without_www()) == expected


def test_a_scheme_has_no_case():
    """Users of the parts compare the scheme as it is."""
    assert split_url("HTTPS://Site.example/A").scheme == "https"
    assert split_url("Site.example/A").scheme is None
