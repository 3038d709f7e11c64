"""Addresses of proxies, and the rule of ``NO_PROXY``: which hosts are reached without one."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from mind2web2.errors import UsageError

# A name, an address or a network with a port; an IPv6 address has one after its brackets alone.
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:]*):(\d+)")
HTTPS_PORT = 443


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


@dataclass(frozen=True, slots=True)
class Upstream:
    """A proxy server.

    Args:
        authorization: a header line, empty without credentials; never logged.
    """

    host: str
    port: int
    is_tls: bool = False
    authorization: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"proxy {self.host}:{self.port}"


def parse_upstream(url: str) -> Upstream:
    """Return the proxy that a URL names, such as ``http://user:password@proxy.example:3128``.

    Without a scheme it needs a port: a word alone is more likely a mistake than a host.

    Raises:
        UsageError: it names none; the text does not repeat it, since it may hold a password.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    is_address = port is not None or "://" in url
    if not host or port == 0 or not is_address or parts.scheme not in ("http", "https"):
        raise UsageError(
            "the proxy (--proxy, HTTP_PROXY, HTTPS_PROXY) must be http://HOST:PORT or "
            "https://HOST:PORT, "
            "with USER:PASSWORD@ before HOST if it asks for them; write special characters as %XX"
        )
    header = b""
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        header = b"Proxy-Authorization: Basic " + base64.b64encode(credentials) + b"\r\n"
    is_tls = parts.scheme == "https"
    return Upstream(host, port or (HTTPS_PORT if is_tls else 80), is_tls, header)
