"""URLs taken apart as they are written, keys to compare them, and forms for people and browsers."""

from __future__ import annotations

import ipaddress
import re
import string
from typing import NamedTuple
from urllib.parse import quote, unquote

from mind2web2.utils.text import as_unicode_text, is_unicode_text

# Every string matches: missing parts are None or empty, and nothing is interpreted here.
_URL = re.compile(
    r"(?:(?:([A-Za-z][A-Za-z0-9+.\-]*+):)?//)?([^/?#]*+)([^?#]*+)(?:\?([^#]*+))?(?:#(.*+))?",
    re.DOTALL,
)
_MARKDOWN_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_ESCAPED_BYTES = re.compile(r"((?:%[0-9A-Fa-f]{2})+)")
# Printable ASCII but space, percent sign and backslash: nothing to make uniform.
_ALREADY_UNIFORM = re.compile(r"[!-$&-\[\]-~]*+")

# These characters change their meaning when they are encoded (file-layouts.md); "%" is the escape
# character itself.
_RESERVED = "/?#&=+%"
_CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_SPACES = "".join(
    map(
        chr,
        (
            0x20,
            0xA0,
            0x1680,
            *range(0x2000, 0x200B),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x3000,
        ),
    )
)


def _escapes_of(characters: str) -> dict[int, str]:
    return {ord(character): quote(character, safe="") for character in characters}


# Bytes that are not UTF-8, decoded with "surrogateescape", go back to %XX.
_UNDECODABLE = {0xDC00 + byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}
# A bare "%" that starts no escape means itself, and a bare backslash would read as a markdown
# escape.
_BARE_IN_STORAGE = _escapes_of("%\\")
_DECODED_IN_STORAGE = _escapes_of(_RESERVED + "\\") | _UNDECODABLE
_BARE_IN_LOOKUP = _BARE_IN_STORAGE | _escapes_of(_CONTROLS + _SPACES)
_DECODED_IN_LOOKUP = _DECODED_IN_STORAGE | _BARE_IN_LOOKUP


class UrlParts(NamedTuple):
    """The parts of a URL; ``scheme``, ``query`` and ``fragment`` are ``None`` where missing."""

    scheme: str | None
    authority: str
    path: str
    query: str | None
    fragment: str | None

    @property
    def route(self) -> str:
        """Return the fragment with its ``#`` if it is a client-side route, else an empty string."""
        if self.fragment and self.fragment[0] in "/!":
            return f"#{self.fragment}"
        return ""


def split_url(text: str) -> UrlParts:
    """Take a URL apart without decoding or judging any part; the scheme is in lower case."""
    match = _URL.match(text)
    assert match is not None, "the pattern matches every string"
    scheme, *others = match.groups()
    return UrlParts(scheme.lower() if scheme else None, *others)


def undo_markdown_escapes(text: str) -> str:
    r"""Return the text with markdown's ``\_`` and the like as the bare character."""
    if "\\" not in text:
        return text
    return _MARKDOWN_ESCAPE.sub(r"\1", text)


def clean_url(text: str) -> str:
    """Return a URL without the white space around it and without markdown escapes."""
    return undo_markdown_escapes(text.strip())


def uniform_escapes(text: str) -> str:
    """Return one spelling for all that differ only in percent-encoding."""
    if _ALREADY_UNIFORM.fullmatch(text):
        return text
    return _recode(text, _BARE_IN_LOOKUP, _DECODED_IN_LOOKUP)


def decoded_for_storage(text: str) -> str:
    """Return the text percent-decoded, except where that would change its meaning."""
    if "%" not in text and "\\" not in text:
        return text
    return _recode(text, _BARE_IN_STORAGE, _DECODED_IN_STORAGE)


def _recode(text: str, bare: dict[int, str], decoded: dict[int, str]) -> str:
    # Bare text and escaped bytes take turns.
    pieces = []
    for number, piece in enumerate(_ESCAPED_BYTES.split(text)):
        is_bare = number % 2 == 0
        if is_bare:
            pieces.append(piece.translate(bare))
        else:
            pieces.append(_decode(piece).translate(decoded))
    return "".join(pieces)


def _decode(escaped_bytes: str) -> str:
    digits = escaped_bytes.replace("%", "")
    return bytes.fromhex(digits).decode(errors="surrogateescape")


_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
# Underscores and leading hyphens are in use although the standards forbid them.
_ASCII_HOST = re.compile(r"[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*\.?")
_MAX_HOST_CHARS = 253
_MAX_PORT = 65535
# Without a scheme either default may be meant.
_DEFAULT_PORTS = {"http": ("80",), "https": ("443",), None: ("80", "443")}


class Site(NamedTuple):
    """Whom a URL addresses.

    ``port`` is empty where it is the scheme's own, ``user`` where there is none.
    """

    user: str
    host: str
    port: str

    def __str__(self) -> str:
        """Return the site as a URL writes it."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{user}{self.host}{port}"

    def without_www(self) -> Site:
        """Return the site without a leading ``www.`` of the host."""
        bare_host = self.host.removeprefix("www.")
        if not bare_host or bare_host == self.host:
            return self
        return self._replace(host=bare_host)


def site_of(parts: UrlParts) -> Site | None:
    """Return the site that a URL addresses, or ``None`` where it names none that could exist."""
    scheme = parts.scheme
    user, at_sign, host_and_port = parts.authority.rpartition("@")
    if at_sign and scheme is None:
        return None  # an e-mail address
    match = _HOST_AND_PORT.fullmatch(host_and_port)
    if match is None:
        return None
    if scheme is None and match[2] == "":
        # "https:" before a single slash is a damaged scheme, not a host with an empty port.
        return None
    host = ascii_host(match[1])
    port = _port(match[2] or "")
    if host is None or port is None:
        return None
    if port in _DEFAULT_PORTS.get(scheme, ()):
        port = ""
    return Site(uniform_escapes(user), host, port)


def host_of(url: str) -> str:
    """Return the host that a URL names, with or without a scheme; an empty text for none."""
    site = site_of(split_url(clean_url(url)))
    return "" if site is None else site.host.rstrip(".")


def ascii_host(host: str) -> str | None:
    """Return a host in lower case, with ``xn--`` names, or ``None``."""
    if _ASCII_HOST.fullmatch(host):
        return host.lower() if len(host) <= _MAX_HOST_CHARS else None
    if host.startswith("["):
        return _ipv6_host(host)
    return _international_host(host)


def _port(digits: str) -> str | None:
    if not digits.strip("0"):
        return digits[:1]
    digits = digits.lstrip("0")
    if len(digits) > 5 or int(digits) > _MAX_PORT:
        return None
    return digits


def _ipv6_host(host: str) -> str | None:
    # Zones mean something on one machine only.
    has_zone = "%" in host
    if has_zone or not host.endswith("]"):
        return None
    try:
        address = ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        return None
    mapped = address.ipv4_mapped
    if mapped is not None:
        # Later versions of Python write the last four bytes with dots.
        number = int(mapped)
        return f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]"
    return f"[{address}]"


def _international_host(host: str) -> str | None:
    import idna  # its tables are needed for few hosts

    if len(host) > 4 * _MAX_HOST_CHARS:
        return None
    try:
        # The mapping browsers use. Their check is the looser one too: names with emoji exist.
        name = unquote(host, errors="strict")
        mapped = idna.uts46_remap(name, std3_rules=False)
        ascii_name = ".".join(map(_ascii_label, mapped.split(".")))
    except UnicodeError:
        return None
    if len(ascii_name) > _MAX_HOST_CHARS or not _ASCII_HOST.fullmatch(ascii_name):
        return None
    return ascii_name


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label
    punycode = label.encode("punycode").decode()
    return f"xn--{punycode}"


TRACKING_PREFIX = "utm_"
_WEB_SCHEMES = (None, "http", "https")


def storage_key(url: str) -> str:
    """Return the index key of a page (file-layouts.md).

    The key means the same page as the URL (``lookup_key`` agrees): characters that would read as
    others once decoded stay encoded, which besides reserved characters is a backslash and white
    space at the end.
    """
    text = clean_url(url)
    route = split_url(text).route
    address = text.partition("#")[0]
    if not route and "?" not in address:
        address = address.rstrip("/")
    key = decoded_for_storage(address + route)
    trimmed = key.rstrip()
    space = key[len(trimmed) :]
    return trimmed + quote(space)


def lookup_key(url: str) -> str | None:
    """Return the key that all spellings of one page share (file-layouts.md).

    ``None`` for no URL.
    """
    text = clean_url(url)
    if not is_unicode_text(text):
        return None
    parts = split_url(text)
    site = site_of(parts)
    if site is None:
        return None
    prefix = "" if parts.scheme in _WEB_SCHEMES else f"{parts.scheme}://"
    path = uniform_escapes(parts.path).rstrip("/")
    query = _query_key(parts.query) if parts.query else ""
    return f"{prefix}{site.without_www()}{path}{query}{uniform_escapes(parts.route)}"


def _query_key(query: str) -> str:
    with_escaped_spaces = query.replace("+", "%20")
    significant = []
    for part in uniform_escapes(with_escaped_spaces).split("&"):
        if part and not part.startswith(TRACKING_PREFIX):
            significant.append(part)
    if not significant:
        return ""
    significant.sort()
    return f"?{'&'.join(significant)}"


def likely_keys(url: str) -> list[str]:
    """Return the index keys that a page may have been stored under: as spelled, and nearly so."""
    if lookup_key(url) is None:
        return []
    key = storage_key(url)
    address = key.split("://", 1)[-1]
    bare = address.removeprefix("www.")
    spellings = [
        key,
        f"https://{bare}",
        f"https://www.{bare}",
        f"http://{bare}",
        f"http://www.{bare}",
    ]
    return list(dict.fromkeys(spellings))


# Characters that the URL standard allows in paths and queries; existing escapes stay as they are.
_BARE_IN_BROWSER = "".join(set(string.printable) - set(string.whitespace) - set('"<>\\^`{|}'))


ANGLE_BRACKETS = re.compile(r"(?<!\\)<([^<>\n]{1,8000})>")


def remove_utm_parameters(url: str) -> str:
    """Return the URL without its ``utm_*`` parameters and otherwise as it is written."""
    address, hash_mark, fragment = url.partition("#")
    path, _, query = address.partition("?")
    parameters = query.split("&")
    significant = [part for part in parameters if not _is_tracking(part)]
    if len(significant) == len(parameters):
        return url
    without = f"{path}?{'&'.join(significant)}" if any(significant) else path
    return without + hash_mark + fragment


def normalize_url_simple(url: str) -> str:
    """Return a readable form that is equal for all spellings of the same page.

    Always ``https`` on the web; the host in lower case and without ``www.``; no default port,
    tracking parameters, trailing slash or fragment (a client-side route stays); percent-decoded
    where that is safe. Other text is returned without white space around it and otherwise as it is.
    """
    text = clean_url(url)
    parts = split_url(remove_utm_parameters(text))
    site = site_of(parts)
    if site is None:
        return url.strip()
    scheme = parts.scheme
    # At the port of https, http is another page.
    if scheme in _WEB_SCHEMES and site.port != "443":
        scheme = "https"
    query = f"?{uniform_escapes(parts.query)}" if parts.query else ""
    path = uniform_escapes(parts.path).rstrip("/")
    return f"{scheme}://{site.without_www()}{path}{query}{uniform_escapes(parts.route)}"


def normalize_url_for_browser(url: str) -> str:
    """Return the URL as a browser can open it: absolute, ASCII only, nothing left out.

    Text that is not a URL of a host (``about:blank``, ``data:``, plain words) is returned without
    white space around it and otherwise as it is.
    """
    target = ANGLE_BRACKETS.fullmatch(url.strip())
    text = re.sub(r"[\t\r\n]", "", clean_url(target[1] if target else url))
    parts = split_url(text)
    site = site_of(parts)
    if site is None:
        return url.strip()
    scheme = parts.scheme or "http"
    address = f"{scheme}://{_escape_for_browser(str(site))}"
    address += _escape_for_browser(parts.path)
    if parts.query is not None:
        address += f"?{_escape_for_browser(parts.query)}"
    if parts.fragment is not None:
        address += f"#{_escape_for_browser(parts.fragment)}"
    return address


def _is_tracking(parameter: str) -> bool:
    return uniform_escapes(undo_markdown_escapes(parameter)).startswith(TRACKING_PREFIX)


def _escape_for_browser(text: str) -> str:
    return quote(as_unicode_text(text), safe=_BARE_IN_BROWSER)
