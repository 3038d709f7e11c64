"""Addresses: what is none of the public internet's, in every form and spelling."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.capture.network.destinations import literal_address, refusal_reason

PRIVATE_NETWORKS = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 ::/128 ::1/128
    fc00::/7 fe80::/10 fec0::/10 ff00::/8 2001:db8::/32 100::/64 64:ff9b:1::/48 2001::/23 3fff::/20 5f00::/16
"""


@pytest.mark.parametrize("network", list(map(ip_network, PRIVATE_NETWORKS.split())), ids=str)
def test_networks_are_refused_from_end_to_end(network):
    """The first and the last address of what is not public are refused."""
    assert refusal_reason(network[0])
    assert refusal_reason(network[-1])


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1"),
        *("198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001:81b::200e"),
        *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"),
    ],
)
def test_public_addresses_pass(address):
    """What lies just beside the special networks, and public addresses in other forms, may be used."""
    assert refusal_reason(address) is None


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "127.0.0.1 is a loopback address"),
        ("169.254.169.254", "metadata"),
        ("169.254.170.2", "metadata"),
        ("100.100.100.200", "metadata"),
        ("192.0.0.192", "metadata"),
        ("168.63.129.16", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("::ffff:169.254.169.254", "another form of 169.254.169.254, a cloud's metadata service"),
        ("::127.0.0.1", "another form of 127.0.0.1"),
        ("::ffff:0:10.0.0.1", "another form of 10.0.0.1"),
        ("64:ff9b::192.168.1.1", "another form of 192.168.1.1, a private address"),
        ("2002:7f00:1::1", "another form of 127.0.0.1"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
        ("fe80::1%eth0", "zone"),
        ("2606:4700::1111%1", "zone"),
        ("255.255.255.255", "reserved"),
    ],
)
def test_the_reason_names_the_kind(address, reason):
    """A refusal says what is wrong with an address, the one inside of it included."""
    assert reason in refusal_reason(address)


@given(st.ip_addresses(v=4))
def test_forms_of_an_address_are_as_public_as_it_is(address):
    """An IPv4 address is judged alike in each IPv6 form that leads to it."""
    forms = (
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        f"2002:{int(address) >> 16:x}:{int(address) & 0xFFFF:x}::",
    )
    for form in forms:
        assert bool(refusal_reason(form)) == bool(refusal_reason(address))


@given(st.ip_addresses(v=4))
def test_what_python_calls_private_is_refused(address):
    """Nothing passes that Python's own tables know to be special."""
    is_special = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    assert not is_special or refusal_reason(address)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [
        ("[::1]", "::1"),
        ("::FFFF:7f00:1", "::ffff:127.0.0.1"),
        ("0", "0.0.0.0"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0X7F.0.0.0x1", "127.0.0.1"),
        *((text, "127.0.0.1") for text in ("127.1", "127.0.1", "2130706433", "017700000001", "0x7f.1")),
        ("00000000000000177.0.0.1", "127.0.0.1"),
    ],
)
def test_other_spellings(spelling, address):
    """With brackets or a dot at the end, in capitals, short, with leading zeros."""
    assert literal_address(spelling) == ip_address(address)


@pytest.mark.parametrize(
    "name", ["localhost", "site.example", "1.example", "127.0.0.1.nip.io", "0x7g", "a.b", ""]
)
def test_names_are_no_addresses(name):
    """A host whose last part is no number is a name."""
    assert literal_address(name) is None


@pytest.mark.parametrize(
    "text",
    [
        *("256.1.1.1", "1.2.3.4.5", "4294967296", "127.0.0.256", "1.2.3.08", "a.1", "1..1", "fe80::1%lo"),
        *("[::g]", "1:2", "9" * 5000),
    ],
)
def test_numbers_that_are_no_addresses(text):
    """What looks like an address and is none is said to be so, and never looked up as a name."""
    with pytest.raises(ValueError, match=r"."):
        literal_address(text)


@given(st.ip_addresses(v=4), st.sampled_from(["{0:d}", "{0:#x}", "0{0:o}"]), st.integers(1, 4))
def test_every_spelling_of_every_address(address, style, parts):
    """Decimal, octal and hexadecimal, in one to four parts."""
    value = int(address)
    leading = [(value >> 8 * (3 - position)) & 0xFF for position in range(parts - 1)]
    last = value & ((1 << 8 * (5 - parts)) - 1)
    spelling = ".".join(style.format(number) for number in (*leading, last))
    assert literal_address(spelling) == address
