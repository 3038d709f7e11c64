"""The part of SOCKS5 (RFC 1928) that browsers use: no authentication, CONNECT."""

from __future__ import annotations

import asyncio
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

_VERSION = 5
_NO_AUTHENTICATION = 0
_NO_ACCEPTABLE_METHOD = 0xFF
_CONNECT = 1
_IPV4, _DOMAIN, _IPV6 = 1, 3, 4


class SocksReply(IntEnum):
    """What a client is told about its request."""

    SUCCEEDED = 0
    FAILED = 1
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4
    CONNECTION_REFUSED = 5
    TIMED_OUT = 6
    COMMAND_NOT_SUPPORTED = 7
    ADDRESS_TYPE_NOT_SUPPORTED = 8


class SocksError(Exception):
    """A client that does not speak the protocol, or asks for what is not offered.

    Args:
        reply: what to tell the client; ``None`` where it would not understand.
    """

    def __init__(self, reason: str, reply: SocksReply | None = None) -> None:
        super().__init__(reason)
        self.reply = reply


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Greet a client and return the host and port that it asks for.

    Raises:
        SocksError: it asks for something else.
        EOFError: it hung up.
    """
    version, method_count = await reader.readexactly(2)
    if version != _VERSION:
        raise SocksError("not a SOCKS5 client")
    methods = await reader.readexactly(method_count)
    if _NO_AUTHENTICATION not in methods:
        writer.write(bytes((_VERSION, _NO_ACCEPTABLE_METHOD)))
        raise SocksError("the client insists on authentication")
    writer.write(bytes((_VERSION, _NO_AUTHENTICATION)))
    version, command, _, address_type = await reader.readexactly(4)
    if version != _VERSION:
        raise SocksError("not a SOCKS5 request")
    host = await _read_host(reader, address_type)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != _CONNECT:
        raise SocksError(f"command {command} is not offered", SocksReply.COMMAND_NOT_SUPPORTED)
    return host, port


def write_reply(writer: asyncio.StreamWriter, reply: SocksReply) -> None:
    """Answer a request. The address that follows is no client's business: always 0.0.0.0:0."""
    writer.write(bytes((_VERSION, reply, 0, _IPV4, 0, 0, 0, 0, 0, 0)))


async def _read_host(reader: asyncio.StreamReader, address_type: int) -> str:
    if address_type == _IPV4:
        return str(IPv4Address(await reader.readexactly(4)))
    if address_type == _IPV6:
        return str(IPv6Address(await reader.readexactly(16)))
    if address_type != _DOMAIN:
        raise SocksError(f"address type {address_type} is unknown", SocksReply.ADDRESS_TYPE_NOT_SUPPORTED)
    (length,) = await reader.readexactly(1)
    # What is not ASCII is no host name, and is refused as such by whoever looks at the host.
    return (await reader.readexactly(length)).decode("ascii", "backslashreplace")
