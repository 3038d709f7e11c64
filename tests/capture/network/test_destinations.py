"""Destinations: looked up once, checked, and only what passed is connected to."""

import asyncio
import socket
from ipaddress import ip_address

import pytest

from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.network import destinations
from mind2web2.capture.network.destinations import (
    DestinationFailedError,
    DestinationRefusedError,
    Destinations,
    own_address_reason,
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


@pytest.mark.parametrize("answer", ["127.0.0.1", "10.1.2.3 ::1", "::ffff:192.168.0.1", "169.254.169.254"])
async def test_names_of_internal_addresses_are_refused(answer):
    """A name with nothing else than internal addresses is refused, naming each of them."""
    with pytest.raises(DestinationRefusedError) as refusal:
        await found("site.example", answer)
    assert all(str(ip_address(text)) in str(refusal.value) for text in answer.split())
    assert await found("site.example", answer, network=ANYWHERE) == [
        str(ip_address(a)) for a in answer.split()
    ]


async def test_a_name_that_is_rebound_is_not_asked_again():
    """The address that was checked is the one that is used, whatever the name server says next."""
    resolve, asked = names("8.8.8.8", "127.0.0.1")
    finder = Destinations(PUBLIC, resolve)
    both = await asyncio.gather(finder.find("Site.example", 80), finder.find("site.example.", 443))
    assert [str(address) for destination in both for address in destination.addresses] == ["8.8.8.8"] * 2
    assert asked == ["site.example"]


async def test_a_name_that_is_looked_up_again_is_checked_again(monkeypatch):
    """What passed once does not pass for good."""
    monkeypatch.setattr(destinations, "ADDRESS_LIFETIME_S", 0)
    resolve, _ = names("8.8.8.8", "127.0.0.1")
    finder = Destinations(PUBLIC, resolve)
    await finder.find("site.example", 80)
    with pytest.raises(DestinationRefusedError):
        await finder.find("site.example", 80)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0", "[::1]", "::1", "::ffff:127.0.0.1", "localhost"),
        *("localhost.", "LOCALHOST", "a.b.localhost", "fe80::1%lo", "127.0.0.1\\xff", "", ".", "a..b", "a b"),
        *("a/b", "a@b", "x" * 64, "1.2.3.4.5", "\\xe2\\x93\\x82"),
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
    """What browsers refuse is refused to every client, to private networks as well."""
    with pytest.raises(DestinationRefusedError, match=str(port)):
        await found("127.0.0.1", port=port, network=ANYWHERE)


@pytest.mark.parametrize(
    ("error", "kind", "is_transient"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "name_not_found", False),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), "dns_failure", True),
        (socket.gaierror(socket.EAI_FAIL, "failed"), "dns_failure", True),
        (UnicodeError("label too long"), "name_not_found", False),
    ],
)
async def test_failed_lookups_say_whether_they_may_pass(error, kind, is_transient):
    """A name that does not exist is told from a name server that fails."""
    with pytest.raises(DestinationFailedError) as failed:
        await found("site.example", error)
    assert (failed.value.failure.kind, failed.value.failure.is_transient) == (kind, is_transient)
    assert "site.example" in failed.value.failure.reason


async def test_a_failed_lookup_is_made_again():
    """Only answers are kept."""
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
    assert failed.value.failure.kind == "dns_failure"


async def test_mapped_hosts_go_where_they_are_mapped():
    """A host that is served elsewhere is neither looked up nor checked, on any port."""
    network = NetworkSettings(host_map={"Site.example": ("127.0.0.1", 8123)})
    destination = await Destinations(network, names()[0]).find("site.example.", 22)
    assert (str(destination.addresses[0]), destination.port) == ("127.0.0.1", 8123)


async def test_the_systems_names_are_found():
    """Without a resolver of our own the system's is asked, off the event loop."""
    with pytest.raises(DestinationFailedError) as failed:
        await Destinations(PUBLIC).find("no-such-host.invalid", 80)
    assert failed.value.failure.kind in {"name_not_found", "dns_failure"}


def test_this_machine_is_known_by_any_of_its_addresses():
    """An address that only looks public leads to services that trust whoever reaches them."""
    assert "this machine" in own_address_reason(ip_address("127.0.0.9"))
    assert own_address_reason(ip_address("192.0.2.1")) is None
