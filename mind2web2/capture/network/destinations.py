"""Where a connection to a host and port may go: looked up once within a time limit, checked."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import threading
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal, Protocol
from weakref import WeakValueDictionary

from aiohappyeyeballs import start_connection

from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.network.upstream import is_private_name, upstream_for
from mind2web2.urls.proxies import Upstream, parse_upstream

IPAddress = IPv4Address | IPv6Address

# Named apart from the networks around them, and one of them (Azure's) lies among public addresses.
_METADATA_SERVICES = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # Amazon's containers
            "100.100.100.200",  # Alibaba
            "192.0.0.192",  # Oracle
            "168.63.129.16",  # Azure
            "fd00:ec2::254",  # Amazon
            "fd20:ce::254",  # Google
        ),
    )
)

# The registries of special-purpose addresses (RFC 6890 and its updates), in our own words. They are
# written out because Python's `is_global` differs between patch releases.
_SPECIAL_IPV4 = tuple(
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "a shared address behind a carrier's NAT"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "a reserved address"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_SPECIAL_IPV6 = tuple(
    (IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("fec0::/10", "a site-local address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/32", "a Teredo address"),
        ("2001:2::/48", "an address for benchmarks"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("3fff::/20", "an address for documentation"),
    )
)
# The networks whose IPv6 addresses contain an IPv4 address: the network, and the bits to its right.
_EMBEDDINGS = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated
    (
        IPv6Network("64:ff9b::/96"),
        0,
    ),  # NAT64: the form of all IPv4 addresses in some networks
    (IPv6Network("2002::/16"), 80),  # 6to4
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*", re.ASCII)


def refusal_reason(address: IPAddress | str) -> str | None:
    """Say why an IP address is not public; ``None`` if it is.

    Raises:
        ValueError: the text is not an IP address.
    """
    if isinstance(address, str):
        address = ip_address(address)
    if address in _METADATA_SERVICES:
        return f"{address} is a cloud's metadata service"
    if isinstance(address, IPv4Address):
        kind = next((kind for network, kind in _SPECIAL_IPV4 if address in network), None)
    else:
        kind = _special_ipv6(address)
    return f"{address} is {kind}" if kind else None


def literal_address(host: str) -> IPAddress | None:
    """Return the address that a host names by numbers, in any spelling that a browser knows.

    Raises:
        ValueError: the numbers are not an address, or the address has a zone.
    """
    host = host.removeprefix("[").removesuffix("]")
    if ":" in host:
        if "%" in host:
            raise ValueError(f"{host!r} is an address with a zone")
        return IPv6Address(host)
    number = host.removesuffix(".")
    if not _NUMBER.fullmatch(number.rpartition(".")[2]):
        return None
    try:
        # The system reads one to four parts, octal and hexadecimal ones too, as browsers do.
        return IPv4Address(socket.inet_aton(number))
    except OSError as error:
        raise ValueError(f"{host!r} is a number, but no address") from error


def _special_ipv6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "an address with a zone"
    for network, kind in _SPECIAL_IPV6:
        if address in network:
            return kind
    for network, bits_to_the_right in _EMBEDDINGS:
        if address in network:
            embedded = IPv4Address(int(address) >> bits_to_the_right & 0xFFFF_FFFF)
            reason = refusal_reason(embedded)
            return f"another form of {reason.replace(' is ', ', ')}" if reason else None
    return None if address in _GLOBAL_UNICAST else "a reserved address"


# At most this many names are looked up at once. Each takes a thread, and some take minutes.
MAX_LOOKUPS = 32

_NAME_UNKNOWN = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


class Resolver(Protocol):
    """Finds a name's addresses; raises ``socket.gaierror`` where there are none."""

    async def __call__(self, host: str) -> list[IPAddress]:
        """Return the addresses of a host, best first."""
        ...


def is_unknown_name(error: socket.gaierror) -> bool:
    """Tell a name that does not exist from a lookup that failed."""
    return error.errno in _NAME_UNKNOWN


class SystemResolver:
    """Asks the system, in threads of its own.

    The loop's executor would not do: its few threads serve others too, and a name server that falls
    silent holds a thread for minutes, which the interpreter would wait for on its way out.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    async def __call__(self, host: str) -> list[IPAddress]:
        """Return the addresses of a host in the system's order."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[IPAddress]] = loop.create_future()

        def settle(addresses: list[IPAddress], error: OSError | UnicodeError | None) -> None:
            self._slots.release()
            if answer.done():  # the caller was cancelled
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(addresses)

        def look_up() -> None:
            addresses: list[IPAddress] = []
            failure: OSError | UnicodeError | None = None
            try:
                addresses = _system_lookup(host)
            except (OSError, UnicodeError) as error:
                failure = error
            try:
                loop.call_soon_threadsafe(settle, addresses, failure)
            except RuntimeError:  # the loop is closed
                return

        await self._slots.acquire()
        try:
            threading.Thread(target=look_up, name=f"lookup {host}", daemon=True).start()
        except RuntimeError as error:
            self._slots.release()
            raise socket.gaierror(socket.EAI_AGAIN, "this machine has no threads left") from error
        return await answer


def _system_lookup(host: str) -> list[IPAddress]:
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # Without repetitions, in the order of RFC 6724 that the system gives; a zone never leads
    # outside.
    texts = dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in entries)
    return [ip_address(text.partition("%")[0]) for text in texts]


LOOKUP_TIMEOUT_S = 10.0
# Browsers keep an address for about as long. Addresses kept here have been checked.
ADDRESS_LIFETIME_S = 60.0
MAX_KNOWN_NAMES = 10_000

FailureKind = Literal[
    "name_not_found", "dns_failure", "connection_refused", "unreachable", "timeout"
]

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
    """The reason why a permitted host cannot be reached."""

    kind: FailureKind
    reason: str

    @property
    def is_transient(self) -> bool:
        """Tell whether another try may fare better."""
        return self.kind != "name_not_found"


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
    """Finds the checked addresses of hosts, each name looked up once a minute at most.

    Raises:
        UsageError: the settings name something else than a proxy.
    """

    def __init__(self, network: NetworkSettings, resolve: Resolver | None = None) -> None:
        self._network = network
        self._host_map = {_plain(host): address for host, address in network.host_map.items()}
        for scheme in ("http", "https"):
            if network.proxies.get(scheme):
                parse_upstream(
                    network.proxies[scheme]
                )  # an unusable one fails now, not with every page
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
            raise DestinationFailedError(ConnectFailure("dns_failure", reason)) from error
        except (OSError, UnicodeError) as error:
            raise DestinationFailedError(_lookup_failure(host, error)) from error
        if not addresses:
            raise DestinationFailedError(ConnectFailure("name_not_found", f"{host} has no address"))
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
        return ConnectFailure("name_not_found", f"there is no host {host}")
    return ConnectFailure("dns_failure", f"the lookup of {host} failed: {error.strerror or error}")


def own_address_reason(address: IPAddress) -> str | None:
    """Say so if an address is this machine's own: it leads to services that only look public."""
    if not _can_bind(address) or _binds_anything(address.version):
        return None
    return f"{address} is this machine itself"


def _can_bind(address: IPAddress) -> bool:
    try:
        with socket.socket(_family(address), socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


@cache
def _binds_anything(version: int) -> bool:
    """Tell whether this system binds addresses that are not its own."""
    return _can_bind(IPv4Address("192.0.2.1") if version == 4 else IPv6Address("2001:db8::1"))


CONNECT_TIMEOUT_S = 10.0
# If an address does not answer within this time, the next one is tried too (RFC 8305).
NEXT_ADDRESS_DELAY_S = 0.25
MAX_ADDRESSES = 8


async def connect(host: str, destination: Destination) -> socket.socket:
    """Return a connected socket to one of a destination's addresses.

    Raises:
        DestinationFailedError: none of them answered as hoped within the time limit.
    """
    addresses = [
        (_family(address), socket.SOCK_STREAM, 0, "", (str(address), destination.port))
        for address in destination.addresses[:MAX_ADDRESSES]
    ]
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_DELAY_S)
    except TimeoutError as error:
        reason = f"{host} did not answer within {CONNECT_TIMEOUT_S:g} s"
        raise DestinationFailedError(ConnectFailure("timeout", reason)) from error
    except OSError as error:
        raise DestinationFailedError(_failure(host, error)) from error


def _family(address: IPAddress) -> socket.AddressFamily:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _failure(host: str, error: OSError) -> ConnectFailure:
    if error.errno == errno.ECONNREFUSED:
        return ConnectFailure("connection_refused", f"{host} refuses connections")
    return ConnectFailure("unreachable", f"{host} cannot be reached: {error.strerror or error}")
