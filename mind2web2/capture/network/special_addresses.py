"""Addresses that are not public: special-purpose networks, metadata services, this machine."""

from __future__ import annotations

import re
import socket
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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


def refusal_reason(address: IPAddress) -> str | None:
    """Say why an IP address is not public; ``None`` if it is."""
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


def own_address_reason(address: IPAddress) -> str | None:
    """Say so if an address is this machine's own: it leads to services that only look public."""
    if not _can_bind(address) or _binds_anything(address.version):
        return None
    return f"{address} is this machine itself"


def _can_bind(address: IPAddress) -> bool:
    try:
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


@cache
def _binds_anything(version: int) -> bool:
    """Tell whether this system binds addresses that are not its own."""
    return _can_bind(IPv4Address("192.0.2.1") if version == 4 else IPv6Address("2001:db8::1"))


def family_of(address: IPAddress) -> socket.AddressFamily:
    """Return the family of an address's sockets."""
    return socket.AF_INET if address.version == 4 else socket.AF_INET6
