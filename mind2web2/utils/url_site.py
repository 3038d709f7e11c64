"""The site a URL names: user, host and port in one form."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import unquote

from mind2web2.utils.url_parts import UrlParts, uniform_escapes

_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
# Underscores and leading hyphens are in use although the standards forbid them.
_ASCII_HOST = re.compile(r"[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+\.?")
_MAX_HOST_CHARS = 253
_MAX_PORT = 65535
# Without a scheme either default may be meant.
_DEFAULT_PORTS = {"http": ("80",), "https": ("443",), None: ("80", "443")}


class Site(NamedTuple):
    """Whom a URL addresses; ``port`` is empty where it is the scheme's own, ``user`` where there is none."""

    user: str
    host: str
    port: str

    def __str__(self) -> str:
        """Return the site as a URL writes it."""
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.host}:{self.port}" if self.port else f"{user}{self.host}"

    def without_www(self) -> Site:
        """Return the site without a leading ``www.`` of the host."""
        bare_host = self.host.removeprefix("www.")
        return self._replace(host=bare_host) if bare_host and bare_host != self.host else self


def site_of(parts: UrlParts) -> Site | None:
    """Return the site that a URL addresses, or ``None`` where it names none that could exist."""
    scheme = parts.scheme.lower() if parts.scheme else None
    user, at_sign, host_and_port = parts.authority.rpartition("@")
    if at_sign and scheme is None:
        return None  # an e-mail address
    match = _HOST_AND_PORT.fullmatch(host_and_port)
    host = ascii_host(match[1]) if match else None
    # "https:" before a single slash is a damaged scheme, not a host with an empty port.
    port = _port(match[2] or "") if match and (scheme or match[2] != "") else None
    if host is None or port is None:
        return None
    return Site(uniform_escapes(user), host, "" if port in _DEFAULT_PORTS.get(scheme, ()) else port)


def ascii_host(host: str) -> str | None:
    """Return a host in lower case and internationalised names as ``xn--``, or ``None`` if it is none."""
    if not _ASCII_HOST.fullmatch(host):
        return _ipv6_host(host) if host.startswith("[") else _international_host(host)
    return host.lower() if len(host) <= _MAX_HOST_CHARS else None


def _port(digits: str) -> str | None:
    digits = digits.lstrip("0") if digits.strip("0") else digits[:1]
    return digits if len(digits) <= 5 and int(digits or 0) <= _MAX_PORT else None


def _ipv6_host(host: str) -> str | None:
    if not host.endswith("]") or "%" in host:  # zones mean something on one machine only
        return None
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1])}]"
    except ValueError:
        return None


def _international_host(host: str) -> str | None:
    import idna  # its tables are needed for few hosts

    if len(host) > 4 * _MAX_HOST_CHARS:
        return None
    try:
        # The mapping browsers use. Their check is the looser one too: names with emoji exist.
        mapped = idna.uts46_remap(unquote(host, errors="strict"), std3_rules=False)
        ascii_name = ".".join(map(_ascii_label, mapped.split(".")))
    except UnicodeError:
        return None
    return ascii_name if _ASCII_HOST.fullmatch(ascii_name) and len(ascii_name) <= _MAX_HOST_CHARS else None


def _ascii_label(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode()}"
