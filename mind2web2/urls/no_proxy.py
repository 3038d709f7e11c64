"""The rule of ``NO_PROXY``: which hosts are reached without a proxy."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

# A name, an address or a network with a port; an IPv6 address has one after its brackets alone.
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:]*):(\d+)")


def is_reached_without_proxy(host: str, port: int, no_proxy: str) -> bool:
    """Tell whether a list names a host.

    Args:
        no_proxy: ``*``, names with all below them, addresses, networks or URLs, separated by commas
            or spaces; each may have a port.
    """
    host = host.lower()
    entries = no_proxy.lower().replace(",", " ").split()
    return any(_is_named(host, port, entry) for entry in entries)


def _is_named(host: str, port: int, entry: str) -> bool:
    if "://" in entry:
        entry = _without_scheme(entry)
    with_port = _WITH_PORT.fullmatch(entry)
    name = with_port[1] if with_port else entry
    if with_port and int(with_port[2]) != port:
        return False
    if name == "*":
        return True
    name = name.strip("[]").removeprefix("*").removeprefix(".")
    return bool(name) and (host == name or host.endswith(f".{name}") or _is_in_network(host, name))


def _without_scheme(url: str) -> str:
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:  # such as a bracket alone
        return ""


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
