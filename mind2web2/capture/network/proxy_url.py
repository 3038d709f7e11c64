"""The URL of a proxy, as ``--proxy`` and the environment name it."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from mind2web2.errors import UsageError

HTTPS_PORT = 443


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

    Raises:
        UsageError: it names none; the text does not repeat it, since it may hold a password.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0 or parts.scheme not in ("http", "https"):
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
