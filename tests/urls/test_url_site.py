"""Hosts and ports in one form."""

import pytest

from mind2web2.urls.parts import ascii_host, site_of, split_url


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
    """Only the port that the scheme implies; other ports and users are part of the site."""
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
    ("host", "expected"), [("www.a.com", "a.com"), ("wwww.a.com", "wwww.a.com"), ("www.", "www.")]
)
def test_a_leading_www_is_dropped(host, expected):
    """Only the whole label, and never the whole host."""
    assert str(site_of(split_url(f"https://{host}")).without_www()) == expected
