"""A SOCKS5 proxy, the only way to the network, with a port for each capture."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Self

from mind2web2.capture.models import NetworkSettings, RefusedConnection
from mind2web2.capture.network.destinations import (
    ConnectFailure,
    DestinationFailedError,
    DestinationRefusedError,
    Destinations,
    PrivateDestinationError,
    connect,
)
from mind2web2.capture.network.name_lookup import Resolver
from mind2web2.capture.network.upstream import (
    Rewrite,
    Stream,
    UpstreamError,
    begin_request,
    open_tunnel,
)

_VERSION = 5
_NO_AUTHENTICATION = 0
_NO_ACCEPTABLE_METHOD = 0xFF
_CONNECT = 1
_IPV4, _DOMAIN, _IPV6 = 1, 3, 4


class SocksReply(IntEnum):
    """The outcome of a request, as a client learns it; the session's record says why."""

    SUCCEEDED = 0
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4


class SocksError(Exception):
    """A client that does not speak the protocol, or asks for what is not offered."""


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, int]:
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
        raise SocksError(f"command {command} is not offered")
    return host, port


def write_reply(writer: asyncio.StreamWriter, reply: SocksReply) -> None:
    """Answer a request.

    The address that follows is always 0.0.0.0:0, since clients do not need it.
    """
    writer.write(bytes((_VERSION, reply, 0, _IPV4, 0, 0, 0, 0, 0, 0)))


async def _read_host(reader: asyncio.StreamReader, address_type: int) -> str:
    if address_type == _IPV4:
        return str(IPv4Address(await reader.readexactly(4)))
    if address_type == _IPV6:
        return str(IPv6Address(await reader.readexactly(16)))
    if address_type != _DOMAIN:
        raise SocksError(f"address type {address_type} is unknown")
    (length,) = await reader.readexactly(1)
    # The check of the host refuses a name that is not ASCII.
    return (await reader.readexactly(length)).decode("ascii", "backslashreplace")


log = logging.getLogger(__name__)

CHUNK_BYTES = 256 * 1024
# Bound of the record's growth by a hostile page.
MAX_RECORDED = 200


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Bounds of one session.

    Args:
        max_tunnels: at once; a browser opens 32 to a proxy, and some more for web sockets.
        handshake_timeout_s: until a client has named its destination.
        idle_timeout_s: without a byte in either direction.
    """

    max_tunnels: int = 256
    handshake_timeout_s: float = 10.0
    idle_timeout_s: float = 60.0


class FilteringProxy:
    """Lets browsers and downloads connect to the public internet, and nowhere else.

    Each session listens on a port of loopback of its own. Any process of this machine may use it,
    and gains nothing: it could open the same connections itself.

    Args:
        resolve: finds a name's addresses; by default, the system does.
    """

    def __init__(
        self,
        network: NetworkSettings,
        *,
        resolve: Resolver | None = None,
        limits: ProxyLimits | None = None,
    ) -> None:
        self._destinations = Destinations(network, resolve)
        self._limits = limits or ProxyLimits()
        self._sessions: set[ProxySession] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in list(self._sessions):
            await session.close()

    async def outlook(self, host: str, port: int) -> tuple[RefusedConnection | None, bool]:
        """Return the refusal that a connection would meet, for browsers without the proxy.

        Returns:
            The refusal, and whether a connection that is not refused leads to a private network.
        """
        try:
            destination = await self._destinations.find(host, port)
        except DestinationRefusedError as refusal:
            return _refused_connection(host, port, refusal), False
        except DestinationFailedError:  # not refused: the connection itself will fail
            return None, False
        return None, destination.is_private

    @asynccontextmanager
    async def session(
        self, max_bytes: int, *, is_optimistic: bool = False
    ) -> AsyncIterator[ProxySession]:
        """Open a port for one capture or download, and close it with all its connections."""
        session = ProxySession(
            self._destinations, self._limits, max_bytes, is_optimistic=is_optimistic
        )
        self._sessions.add(session)
        try:
            await session.open()
            yield session
        finally:
            self._sessions.discard(session)
            await session.close()


class ProxySession:
    """One capture's port, with counts of its traffic and its refused connections.

    Attributes:
        is_private: some connection went where only a run goes that may visit private networks.

    Args:
        max_bytes: in either direction; past it every connection is cut, and no more are made.
        is_optimistic: tell a client that it is connected before it is, and reset the connection
            where that fails: for clients that never close the socket on which they received a
            failure.
    """

    def __init__(
        self,
        destinations: Destinations,
        limits: ProxyLimits,
        max_bytes: int,
        *,
        is_optimistic: bool,
    ) -> None:
        self.server_url = ""
        self.failures: dict[str, ConnectFailure] = {}
        self.is_private = False
        self.bytes_received = 0
        self.bytes_sent = 0
        self._refused: dict[RefusedConnection, None] = {}
        self._destinations = destinations
        self._limits = limits
        self._max_bytes = max_bytes
        self._is_optimistic = is_optimistic
        self._server: asyncio.Server | None = None
        self._tunnels: set[asyncio.Task[None]] = set()

    @property
    def refused(self) -> list[RefusedConnection]:
        """The refused connections, each once, the first 200 of them."""
        return list(self._refused)

    @property
    def is_exhausted(self) -> bool:
        """Tell whether the capture used up its bytes and was cut off."""
        return max(self.bytes_received, self.bytes_sent) > self._max_bytes

    async def open(self) -> None:
        """Start to listen."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, limit=CHUNK_BYTES, backlog=512
        )
        self.server_url = f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Cut every connection and wait until they are gone."""
        if self._server is not None:
            self._server.close()
        # A connection that was on its way in when the port closed still gets its task; hence the
        # loop.
        while self._tunnels:
            self._cut()
            await asyncio.wait(self._tunnels)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The server would neither await nor cancel the task, so it is kept here.
        task = asyncio.create_task(self._serve(reader, writer))
        self._tunnels.add(task)
        task.add_done_callback(self._tunnels.discard)

    def _cut(self) -> None:
        for tunnel in self._tunnels:
            tunnel.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.handshake_timeout_s):
                host, port = await read_request(reader, writer)
            await self._serve_request(reader, writer, host, port)
        except SocksError as error:
            log.debug("client of the proxy turned away reason=%s", error)
            writer.close()
        except (EOFError, OSError) as error:  # a timeout is an OSError as well
            log.debug(
                "connection to the proxy ended reason=%s",
                str(error) or type(error).__name__,
            )
        finally:
            # Drops bytes that a silent client does not take.
            if not writer.is_closing():
                _reset(writer)

    async def _serve_request(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        host: str,
        port: int,
    ) -> None:
        if self._is_optimistic:
            write_reply(writer, SocksReply.SUCCEEDED)
        try:
            upstream, rewrite = await self._connect(host, port)
        except DestinationRefusedError as refusal:
            self._record_refusal(_refused_connection(host, port, refusal))
            self._turn_away(writer, SocksReply.NOT_ALLOWED)
        except DestinationFailedError as error:
            self._record_failure(host, error.failure)
            self._turn_away(writer, SocksReply.HOST_UNREACHABLE)
        else:
            self.failures.pop(host, None)
            if not self._is_optimistic:
                write_reply(writer, SocksReply.SUCCEEDED)
            if rewrite is not None:
                await self._send_request(host, reader, upstream[1], rewrite)
            await self._tunnel((reader, writer), upstream)

    def _turn_away(self, writer: asyncio.StreamWriter, reply: SocksReply) -> None:
        if self._is_optimistic:
            _reset(writer)
        else:
            write_reply(writer, reply)
            writer.close()

    async def _send_request(
        self,
        host: str,
        reader: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        rewrite: Rewrite,
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.idle_timeout_s):
                request = await begin_request(reader, rewrite)
            upstream.write(request)
        except (UpstreamError, OSError, EOFError, asyncio.LimitOverrunError) as error:
            upstream.transport.abort()
            self._record_failure(host, ConnectFailure(str(error)))
            raise EOFError from error

    async def _connect(self, host: str, port: int) -> tuple[Stream, Rewrite | None]:
        if self.is_exhausted:
            raise DestinationRefusedError(f"the limit of {self._max_bytes} bytes is used up")
        if len(self._tunnels) > self._limits.max_tunnels:
            raise DestinationRefusedError(
                f"more than {self._limits.max_tunnels} connections at once"
            )
        destination = await self._destinations.find(host, port)
        self.is_private = self.is_private or destination.is_private
        if destination.upstream is not None:
            try:
                return await open_tunnel(destination.upstream, host, port)
            except UpstreamError as error:
                raise DestinationFailedError(ConnectFailure(str(error))) from error
        connection = await connect(host, destination)
        try:
            return await asyncio.open_connection(sock=connection, limit=CHUNK_BYTES), None
        except BaseException:
            connection.close()
            raise

    async def _tunnel(self, client: Stream, upstream: Stream) -> None:
        (from_client, to_client), (from_upstream, to_upstream) = client, upstream
        try:
            async with (
                asyncio.timeout(self._limits.idle_timeout_s) as silence,
                asyncio.TaskGroup() as pipes,
            ):
                pipes.create_task(self._pipe(from_client, to_upstream, silence, is_sent=True))
                pipes.create_task(self._pipe(from_upstream, to_client, silence, is_sent=False))
        except* OSError as errors:  # reset by one side, or silent for too long
            log.debug("tunnel ended reason=%s", errors.exceptions[0])
        else:
            # Both sides are through; the last bytes may still be on their way to a slow one.
            to_client.close()
            to_upstream.close()
            async with asyncio.timeout(self._limits.idle_timeout_s):
                await to_client.wait_closed()
                await to_upstream.wait_closed()
        finally:
            _reset(to_client)
            _reset(to_upstream)

    async def _pipe(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        silence: asyncio.Timeout,
        *,
        is_sent: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        while chunk := await source.read(CHUNK_BYTES):
            silence.reschedule(loop.time() + self._limits.idle_timeout_s)
            self._count(len(chunk), is_sent=is_sent)
            sink.write(chunk)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

    def _count(self, size_bytes: int, *, is_sent: bool) -> None:
        if is_sent:
            self.bytes_sent += size_bytes
        else:
            self.bytes_received += size_bytes
        if self.is_exhausted:
            self._cut()

    def _record_refusal(self, refusal: RefusedConnection) -> None:
        log.debug(
            "connection refused host=%s port=%d reason=%s",
            refusal.host,
            refusal.port,
            refusal.reason,
        )
        if len(self._refused) < MAX_RECORDED:
            self._refused[refusal] = None

    def _record_failure(self, host: str, failure: ConnectFailure) -> None:
        if host in self.failures or len(self.failures) < MAX_RECORDED:
            self.failures[host] = failure


def _refused_connection(
    host: str, port: int, refusal: DestinationRefusedError
) -> RefusedConnection:
    is_private = isinstance(refusal, PrivateDestinationError)
    return RefusedConnection(host=host, port=port, reason=str(refusal), is_private=is_private)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the other side does not take half a page for a whole one."""
    if writer.transport.get_extra_info("socket").fileno() >= 0:
        linger = struct.pack("ii", 1, 0)
        writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, linger
        )
    writer.transport.abort()
