"""Destinations: public addresses in every form and spelling, looked up once and checked."""

import asyncio
import socket
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.network import destinations
from mind2web2.capture.network.destinations import (
    DestinationFailedError,
    DestinationRefusedError,
    Destinations,
)
from mind2web2.capture.network.special_addresses import (
    literal_address,
    own_address_reason,
    refusal_reason,
)

PUBLIC = NetworkSettings()
ANYWHERE = NetworkSettings(allow_private_network=True)


def names(*answers):
    """Return a resolver that gives these answers in turn, and the list of what it was asked."""
    asked = []
    left = list(answers)

    async def resolve(host):
        asked.append(host)
        await asyncio.sleep(0)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [ip_address(text) for text in answer.split()]

    return resolve, asked


async def found(host, *answers, network=PUBLIC, port=80):
    """Return the addresses that a connection to a host would be made to."""
    destination = await Destinations(network, names(*answers)[0]).find(host, port)
    return [str(address) for address in destination.addresses]


async def test_names_lead_to_their_public_addresses_only():
    """Addresses that are none of the public internet's are dropped from what a name stands for."""
    assert await found("site.example", "10.0.0.1 8.8.8.8 ::1 2606:4700::1111") == [
        "8.8.8.8",
        "2606:4700::1111",
    ]


@pytest.mark.parametrize(
    "answer", ["127.0.0.1", "10.1.2.3 ::1", "::ffff:192.168.0.1", "169.254.169.254"]
)
async def test_names_of_internal_addresses_are_refused(answer):
    """A name with nothing else than internal addresses is refused, naming each of them."""
    with pytest.raises(DestinationRefusedError) as refusal:
        await found("site.example", answer)
    assert all(str(ip_address(text)) in str(refusal.value) for text in answer.split())
    assert await found("site.example", answer, network=ANYWHERE) == [
        str(ip_address(a)) for a in answer.split()
    ]


@pytest.mark.parametrize(
    ("host", "answer", "is_private"),
    [
        ("site.example", "8.8.8.8", False),
        ("site.example", "8.8.8.8 10.0.0.1", True),
        ("site.example", "10.0.0.1", True),
        ("127.0.0.1", "", True),
        ("replica.example", "", False),
    ],
)
async def test_a_destination_tells_whether_it_is_private(host, answer, is_private):
    """A local replica of a site stands for the site."""
    replica = {"replica.example": ("127.0.0.1", 80)}
    network = NetworkSettings(allow_private_network=True, host_map=replica)
    destination = await Destinations(network, names(answer)[0]).find(host, 80)
    assert destination.is_private is is_private


async def test_a_name_that_is_rebound_is_not_asked_again():
    """The address that was checked is the one that is used, whatever the name server says next."""
    resolve, asked = names("8.8.8.8", "127.0.0.1")
    finder = Destinations(PUBLIC, resolve)
    both = await asyncio.gather(finder.find("Site.example", 80), finder.find("site.example.", 443))
    assert [str(address) for destination in both for address in destination.addresses] == [
        "8.8.8.8"
    ] * 2
    assert asked == ["site.example"]


async def test_a_name_that_is_looked_up_again_is_checked_again(monkeypatch):
    monkeypatch.setattr(destinations, "ADDRESS_LIFETIME_S", 0)
    resolve, _ = names("8.8.8.8", "127.0.0.1")
    finder = Destinations(PUBLIC, resolve)
    await finder.find("site.example", 80)
    with pytest.raises(DestinationRefusedError):
        await finder.find("site.example", 80)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0",
        "[::1]",
        "::1",
        "::ffff:127.0.0.1",
        "localhost",
        "localhost.",
        "LOCALHOST",
        "a.b.localhost",
        "fe80::1%lo",
        "127.0.0.1\\xff",
        "",
        ".",
        "a..b",
        "a b",
        "a/b",
        "a@b",
        "x" * 64,
        "1.2.3.4.5",
        "\\xe2\\x93\\x82",
    ],
)
async def test_hosts_that_are_refused_without_a_look(host):
    """Internal addresses and nonsense are refused as they stand: nothing is looked up."""
    resolve, asked = names("8.8.8.8")
    with pytest.raises(DestinationRefusedError):
        await Destinations(PUBLIC, resolve).find(host, 80)
    assert asked == []


@pytest.mark.parametrize("port", [0, 22, 25, 6000, 6667])
async def test_ports_of_other_services_are_refused(port):
    with pytest.raises(DestinationRefusedError, match=str(port)):
        await found("127.0.0.1", port=port, network=ANYWHERE)


@pytest.mark.parametrize(
    ("error", "is_transient"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), False),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), True),
        (socket.gaierror(socket.EAI_FAIL, "failed"), True),
        (UnicodeError("label too long"), False),
    ],
)
async def test_failed_lookups_say_whether_they_may_pass(error, is_transient):
    """A name that does not exist is told from a name server that fails."""
    with pytest.raises(DestinationFailedError) as failed:
        await found("site.example", error)
    assert failed.value.failure.is_transient is is_transient
    assert "site.example" in failed.value.failure.reason


async def test_a_failed_lookup_is_made_again():
    resolve, asked = names(socket.gaierror(socket.EAI_AGAIN, "try again"), "8.8.8.8")
    finder = Destinations(PUBLIC, resolve)
    with pytest.raises(DestinationFailedError):
        await finder.find("site.example", 80)
    await finder.find("site.example", 80)
    assert len(asked) == 2


async def test_a_silent_name_server_is_given_up(monkeypatch):
    """A lookup has a time limit."""
    monkeypatch.setattr(destinations, "LOOKUP_TIMEOUT_S", 0.01)

    async def never(_):
        await asyncio.Event().wait()

    with pytest.raises(DestinationFailedError) as failed:
        await Destinations(PUBLIC, never).find("site.example", 80)
    assert failed.value.failure.reason.startswith("no answer to the lookup")


async def test_mapped_hosts_go_where_they_are_mapped():
    """A host that is served elsewhere is neither looked up nor checked, on any port."""
    network = NetworkSettings(host_map={"Site.example": ("127.0.0.1", 8123)})
    destination = await Destinations(network, names()[0]).find("site.example.", 22)
    assert (str(destination.addresses[0]), destination.port) == ("127.0.0.1", 8123)


async def test_the_systems_names_are_found():
    with pytest.raises(DestinationFailedError) as failed:
        await Destinations(PUBLIC).find("no-such-host.invalid", 80)
    assert "no-such-host.invalid" in failed.value.failure.reason


def test_this_machine_is_known_by_any_of_its_addresses():
    """An address that only looks public leads to services that trust whoever reaches them."""
    assert "this machine" in own_address_reason(ip_address("127.0.0.9"))
    assert own_address_reason(ip_address("192.0.2.1")) is None


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
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001:81b::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_public_addresses_pass(address):
    assert refusal_reason(ip_address(address)) is None


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
        (
            "::ffff:169.254.169.254",
            "another form of 169.254.169.254, a cloud's metadata service",
        ),
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
    assert reason in refusal_reason(ip_address(address))


@given(st.ip_addresses(v=4))
def test_forms_of_an_address_are_as_public_as_it_is(address):
    """An IPv4 address is judged alike in each IPv6 form that leads to it."""
    forms = (
        f"::ffff:{address}",
        f"64:ff9b::{address}",
        f"2002:{int(address) >> 16:x}:{int(address) & 0xFFFF:x}::",
    )
    for form in forms:
        assert bool(refusal_reason(ip_address(form))) == bool(refusal_reason(address))


@given(st.ip_addresses(v=4))
def test_what_python_calls_private_is_refused(address):
    """Nothing passes that Python's own tables know to be special."""
    is_special = (
        address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    )
    assert not is_special or refusal_reason(address)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [
        ("[::1]", "::1"),
        ("::FFFF:7f00:1", "::ffff:127.0.0.1"),
        ("0", "0.0.0.0"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0X7F.0.0.0x1", "127.0.0.1"),
        *(
            (text, "127.0.0.1")
            for text in ("127.1", "127.0.1", "2130706433", "017700000001", "0x7f.1")
        ),
        ("00000000000000177.0.0.1", "127.0.0.1"),
    ],
)
def test_other_spellings(spelling, address):
    assert literal_address(spelling) == ip_address(address)


@pytest.mark.parametrize(
    "name",
    ["localhost", "site.example", "1.example", "127.0.0.1.nip.io", "0x7g", "a.b", ""],
)
def test_names_are_no_addresses(name):
    """A host is a name unless its last part is a number."""
    assert literal_address(name) is None


@pytest.mark.parametrize(
    "text",
    [
        "256.1.1.1",
        "1.2.3.4.5",
        "4294967296",
        "127.0.0.256",
        "1.2.3.08",
        "a.1",
        "1..1",
        "fe80::1%lo",
        "[::g]",
        "1:2",
        "9" * 5000,
    ],
)
def test_numbers_that_are_no_addresses(text):
    with pytest.raises(ValueError, match=r"."):
        literal_address(text)


@given(
    st.ip_addresses(v=4),
    st.sampled_from(["{0:d}", "{0:#x}", "0{0:o}"]),
    st.integers(1, 4),
)
def test_every_spelling_of_every_address(address, style, parts):
    value = int(address)
    leading = [(value >> 8 * (3 - position)) & 0xFF for position in range(parts - 1)]
    last = value & ((1 << 8 * (5 - parts)) - 1)
    spelling = ".".join(style.format(number) for number in (*leading, last))
    assert literal_address(spelling) == address
