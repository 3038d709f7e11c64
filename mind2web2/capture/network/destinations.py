"""Where a connection to a host and port may go: looked up once within a time limit, checked."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from weakref import WeakValueDictionary

from aiohappyeyeballs import start_connection

from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.network.name_lookup import Resolver, SystemResolver, is_unknown_name
from mind2web2.capture.network.special_addresses import (
    IPAddress,
    family_of,
    literal_address,
    own_address_reason,
    refusal_reason,
)
from mind2web2.capture.network.upstream import is_private_name, upstream_for
from mind2web2.urls.proxies import Upstream

LOOKUP_TIMEOUT_S = 10.0
# Browsers keep an address for about as long. Addresses kept here have been checked.
ADDRESS_LIFETIME_S = 60.0
MAX_KNOWN_NAMES = 10_000
CONNECT_TIMEOUT_S = 10.0
# If an address does not answer within this time, the next one is tried too (RFC 8305).
NEXT_ADDRESS_DELAY_S = 0.25
MAX_ADDRESSES = 8

_HOST_NAME = re.compile(r"(?=.{1,253}\.?$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
# Services that understand a request well enough to be harmed by it: the Fetch standard's "bad
# ports".
_BAD_PORT_LIST = """
    0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117
    119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601
    636 989 990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679
    6697 10080
"""
_BAD_PORTS = frozenset(int(port) for port in _BAD_PORT_LIST.split())


@dataclass(frozen=True, slots=True)
class Destination:
    """Addresses to try in this order, all of them checked, or the proxy that looks the name up.

    Args:
        is_private: a run that may not visit private networks refuses the host.
    """

    addresses: tuple[IPAddress, ...]
    port: int
    upstream: Upstream | None = None
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class ConnectFailure:
    """The reason why a permitted host cannot be reached, and whether another try may."""

    reason: str
    is_transient: bool = True


class DestinationRefusedError(Exception):
    """A destination that must not be connected to; never leaves the proxy."""


class PrivateDestinationError(DestinationRefusedError):
    """A private destination, which is refused unless private networks are allowed."""


class DestinationFailedError(Exception):
    """A destination without a usable address; never leaves the proxy."""

    def __init__(self, failure: ConnectFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class Destinations:
    """Finds the checked addresses of hosts, each name looked up once a minute at most."""

    def __init__(self, network: NetworkSettings, resolve: Resolver | None = None) -> None:
        self._network = network
        self._host_map = {_plain(host): address for host, address in network.host_map.items()}
        self._resolve = resolve or SystemResolver()
        self._known: dict[str, tuple[float, tuple[IPAddress, ...]]] = {}
        self._lookups: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, host: str, port: int) -> Destination:
        """Return where a connection to a host goes.

        Raises:
            DestinationRefusedError: it must not be made.
            DestinationFailedError: the host has no usable address.
        """
        host = _plain(host)
        if host in self._host_map:
            mapped_host, mapped_port = self._host_map[host]
            return Destination(await self._addresses_of(_plain(mapped_host)), mapped_port)
        if port in _BAD_PORTS:
            raise DestinationRefusedError(f"port {port} belongs to a service that is not the web's")
        upstream = upstream_for(host, port, self._network.proxies)
        if upstream is not None:
            # Only the proxy knows where a public name leads.
            reason = _unresolved_reason(host)
            self._check_allowed(reason)
            return Destination((), port, upstream, is_private=reason is not None)
        addresses = await self._addresses_of(host)
        public, reason = _public_of(addresses)
        if public and not self._network.allow_private_network:
            return Destination(public, port)
        self._check_allowed(reason)
        return Destination(addresses, port, is_private=reason is not None)

    def _check_allowed(self, reason: str | None) -> None:
        if reason is not None and not self._network.allow_private_network:
            raise PrivateDestinationError(reason)

    async def _addresses_of(self, host: str) -> tuple[IPAddress, ...]:
        literal = _literal(host)
        if literal is not None:
            return (literal,)
        if host == "localhost" or host.endswith(".localhost"):
            return (IPv4Address("127.0.0.1"), IPv6Address("::1"))
        return await self._look_up(host)

    async def _look_up(self, host: str) -> tuple[IPAddress, ...]:
        clock = asyncio.get_running_loop().time
        async with self._lookups.setdefault(host, asyncio.Lock()):
            known_until, addresses = self._known.get(host, (0.0, ()))
            if clock() < known_until:
                return addresses
            addresses = await self._ask(host)
            if len(self._known) >= MAX_KNOWN_NAMES:
                self._known.clear()
            self._known[host] = clock() + ADDRESS_LIFETIME_S, addresses
            return addresses

    async def _ask(self, host: str) -> tuple[IPAddress, ...]:
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                addresses = await self._resolve(host)
        except TimeoutError as error:
            reason = f"no answer to the lookup of {host} within {LOOKUP_TIMEOUT_S:g} s"
            raise DestinationFailedError(ConnectFailure(reason)) from error
        except (OSError, UnicodeError) as error:
            raise DestinationFailedError(_lookup_failure(host, error)) from error
        if not addresses:
            raise DestinationFailedError(
                ConnectFailure(f"{host} has no address", is_transient=False)
            )
        return tuple(addresses)


def _unresolved_reason(host: str) -> str | None:
    """Say why a host is private as far as its name or number tells."""
    literal = _literal(host)
    if literal is not None:
        return _public_of((literal,))[1]
    if not is_private_name(host):
        return None
    return f"{host} is a name of this machine or a private network"


def _public_of(
    addresses: tuple[IPAddress, ...],
) -> tuple[tuple[IPAddress, ...], str | None]:
    """Return the public ones of some addresses, and why the others are private."""
    public = []
    reasons = []
    for address in addresses:
        reason = refusal_reason(address) or own_address_reason(address)
        if reason is None:
            public.append(address)
        else:
            reasons.append(reason)
    return tuple(public), "; ".join(reasons) or None


def _literal(host: str) -> IPAddress | None:
    """Return the address that a host is written as, ``None`` for a name.

    Raises:
        DestinationRefusedError: it is neither.
    """
    try:
        literal = literal_address(host)
    except ValueError as error:
        raise DestinationRefusedError(f"not a host: {error}") from error
    if literal is None and not _HOST_NAME.fullmatch(host):
        raise DestinationRefusedError("not a host name")
    return literal


def _plain(host: str) -> str:
    """Return a host in lower case, without a trailing dot."""
    return host.lower().removesuffix(".")


def _lookup_failure(host: str, error: OSError | UnicodeError) -> ConnectFailure:
    if isinstance(error, UnicodeError) or (
        isinstance(error, socket.gaierror) and is_unknown_name(error)
    ):
        return ConnectFailure(f"there is no host {host}", is_transient=False)
    return ConnectFailure(f"the lookup of {host} failed: {error.strerror or error}")


async def connect(host: str, destination: Destination) -> socket.socket:
    """Return a connected socket to one of a destination's addresses.

    Raises:
        DestinationFailedError: none of them answered as hoped within the time limit.
    """
    addresses = [
        (family_of(address), socket.SOCK_STREAM, 0, "", (str(address), destination.port))
        for address in destination.addresses[:MAX_ADDRESSES]
    ]
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_DELAY_S)
    except TimeoutError as error:
        reason = f"{host} did not answer within {CONNECT_TIMEOUT_S:g} s"
        raise DestinationFailedError(ConnectFailure(reason)) from error
    except OSError as error:
        raise DestinationFailedError(_failure(host, error)) from error


def _failure(host: str, error: OSError) -> ConnectFailure:
    if error.errno == errno.ECONNREFUSED:
        return ConnectFailure(f"{host} refuses connections")
    return ConnectFailure(f"{host} cannot be reached: {error.strerror or error}")
