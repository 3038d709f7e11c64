"""The filtering proxy: what passes arrives whole, what it does not is recorded; all of it ends."""

import asyncio
import socket
import struct
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from servers.tcp_server import echo, silence, tcp_server

from mind2web2.capture.models import NetworkSettings, RefusedConnection
from mind2web2.capture.network.proxy import FilteringProxy, ProxyLimits

ANYWHERE = NetworkSettings(allow_private_network=True)
PLENTY_BYTES = 10**9
SUCCEEDED, NOT_ALLOWED, HOST_UNREACHABLE = 0, 2, 4


@asynccontextmanager
async def proxied(network=ANYWHERE, max_bytes=PLENTY_BYTES, **options):
    """Open a session of a proxy."""
    async with (
        FilteringProxy(network, **options) as proxy,
        proxy.session(max_bytes) as session,
    ):
        yield session


@asynccontextmanager
async def raw(session):
    """Open a connection to a session's port."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(session.server_url).port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@asynccontextmanager
async def tunnel(session, host, port):
    """Ask for a connection; yields the reply's code, a reader and a writer."""
    async with raw(session) as (reader, writer):
        name = host.encode()
        writer.write(b"\5\1\0" + b"\5\1\0\3" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
        assert await reader.readexactly(2) == b"\5\0"
        reply = await reader.readexactly(10)
        yield reply[1], reader, writer


async def code(session, host, port):
    """Return the reply's code for a connection."""
    async with tunnel(session, host, port) as (reply, _, _):
        return reply


async def resolve_to_loopback(_):
    """Say that every name is this machine's."""
    return [ip_address("127.0.0.1")]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "0x7f.1", "0", "a.localhost", "[::ffff:127.0.0.1]", "public.example"],
)
async def test_loopback_is_refused_in_every_spelling_unless_allowed(host):
    """No connection is made, and a record says why, unless that is allowed."""
    async with tcp_server(echo) as canary:
        async with proxied(NetworkSettings(), resolve=resolve_to_loopback) as session:
            assert await code(session, host, canary.port) == NOT_ALLOWED
            (refused,) = session.refused
            assert (refused.host, refused.port) == (host, canary.port)
            assert refused.reason
            assert canary.connections == 0
        async with proxied(resolve=resolve_to_loopback) as session:
            assert await code(session, host, canary.port) == SUCCEEDED
            assert session.refused == []
        assert canary.connections == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
async def test_addresses_in_binary_are_checked_alike(address):
    """Clients may send an address as bytes instead of text."""
    packed = ip_address(address).packed
    async with (
        tcp_server(echo) as canary,
        proxied(NetworkSettings()) as session,
        raw(session) as (reader, writer),
    ):
        kind = b"\1" if len(packed) == 4 else b"\4"
        writer.write(b"\5\1\0\5\1\0" + kind + packed + canary.port.to_bytes(2, "big"))
        assert (await reader.read())[3] == NOT_ALLOWED
        assert canary.connections == 0
        assert len(session.refused) == 1


async def test_bytes_arrive_whole_both_ways():
    """Megabytes go up and down at once, and each side's end reaches the other."""
    sent = bytes(range(256)) * 20_000
    async with tcp_server(echo) as server, proxied() as session:
        async with tunnel(session, "localhost", server.port) as (_, reader, writer):

            async def send():
                writer.write(sent)
                await writer.drain()
                writer.write_eof()

            _, received = await asyncio.gather(send(), reader.read())
        assert received == sent
        assert session.bytes_received == session.bytes_sent == len(sent)


async def test_a_connection_that_breaks_off_does_not_end_as_if_it_were_whole():
    """A client must be able to tell half a page from a page."""

    async def break_off(reader, writer):
        writer.write(b"half")
        await reader.readexactly(1)
        writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()

    async with (
        tcp_server(break_off) as server,
        proxied() as session,
        tunnel(session, "127.0.0.1", server.port) as (_, reader, writer),
    ):
        assert await reader.readexactly(4) == b"half"
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_the_limit_of_bytes_cuts_everything():
    async def pour(_, writer):
        while True:
            writer.write(bytes(65536))
            await writer.drain()

    async with (
        tcp_server(pour) as server,
        tcp_server(silence) as quiet,
        proxied(max_bytes=10**6) as session,
    ):
        async with (
            tunnel(session, "127.0.0.1", quiet.port) as (_, idle_reader, _),
            tunnel(session, "127.0.0.1", server.port) as (_, reader, _),
        ):
            with pytest.raises(ConnectionResetError):
                while await reader.read(65536):
                    pass
            with pytest.raises(ConnectionResetError):
                await idle_reader.read()
        assert session.is_exhausted
        assert session.bytes_received < 2 * 10**6
        assert await code(session, "127.0.0.1", quiet.port) == NOT_ALLOWED
        assert "1000000 bytes" in session.refused[0].reason


async def test_the_number_of_connections_is_bounded():
    """One connection too many is refused, and when another has ended it is not."""
    async with (
        tcp_server(echo) as server,
        proxied(limits=ProxyLimits(max_tunnels=1)) as session,
    ):
        async with tunnel(session, "127.0.0.1", server.port) as (_, reader, writer):
            assert await code(session, "127.0.0.1", server.port) == NOT_ALLOWED
            writer.write_eof()
            assert await reader.read() == b""
        assert await code(session, "127.0.0.1", server.port) == SUCCEEDED


async def test_silent_clients_and_silent_tunnels_are_cut():
    limits = ProxyLimits(handshake_timeout_s=0.05, idle_timeout_s=0.05)
    async with tcp_server(silence) as server, proxied(limits=limits) as session:
        async with raw(session) as (reader, _):
            with pytest.raises(ConnectionResetError):
                await reader.read()
        async with tunnel(session, "127.0.0.1", server.port) as (reply, reader, _):
            assert reply == SUCCEEDED
            with pytest.raises(ConnectionResetError):
                await reader.read()


async def test_closing_a_session_cuts_its_connections_and_its_port():
    """Nothing stays open after the block, on either side."""
    hung_up = asyncio.Event()

    async def notice(reader, _):
        try:
            await reader.read()
        finally:
            hung_up.set()

    async with tcp_server(notice) as server, FilteringProxy(ANYWHERE) as proxy:
        async with proxy.session(PLENTY_BYTES) as session:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", urlsplit(session.server_url).port
            )
            writer.write(b"\5\1\0\5\1\0\1\x7f\0\0\1" + server.port.to_bytes(2, "big"))
            await reader.readexactly(12)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.transport.abort()
        await hung_up.wait()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", urlsplit(session.server_url).port)


async def test_sessions_have_ports_and_records_of_their_own():
    async with (
        FilteringProxy(NetworkSettings()) as proxy,
        proxy.session(PLENTY_BYTES) as one,
        proxy.session(PLENTY_BYTES) as other,
    ):
        assert await code(one, "10.0.0.1", 80) == NOT_ALLOWED
        assert one.server_url != other.server_url
        assert one.refused == [
            RefusedConnection(
                host="10.0.0.1",
                port=80,
                reason="10.0.0.1 is a private address",
                is_private=True,
            )
        ]
        assert other.refused == []


async def test_repeated_attempts_are_recorded_once_and_records_are_bounded():
    """A page that tries without end does not fill the memory."""
    async with proxied(NetworkSettings()) as session:
        await asyncio.gather(*(code(session, "10.0.0.1", 80) for _ in range(3)))
        assert len(session.refused) == 1
        await asyncio.gather(
            *(code(session, f"10.0.1.{number % 256}", 80 + number) for number in range(150))
        )
        await asyncio.gather(
            *(code(session, f"10.0.2.{number % 256}", 80 + number) for number in range(100))
        )
        assert len(session.refused) == 200


async def unknown(_):
    """Say that there is no such name."""
    raise socket.gaierror(socket.EAI_NONAME, "unknown")


async def overloaded(_):
    """Say that the name server has trouble."""
    raise socket.gaierror(socket.EAI_AGAIN, "try again")


@pytest.mark.parametrize(
    ("resolve", "reason", "is_transient"),
    [
        (unknown, "there is no host site.example", False),
        (overloaded, "the lookup of site.example failed", True),
        (resolve_to_loopback, "site.example refuses connections", True),
    ],
)
async def test_failures_are_recorded_with_their_reason(resolve, reason, is_transient):
    """A host that cannot be reached is told from one that must not be."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and not listening
        async with proxied(resolve=resolve) as session:
            reply = await code(session, "site.example", closed.getsockname()[1])
            assert reply == HOST_UNREACHABLE
            failure = session.failures["site.example"]
            assert failure.reason.startswith(reason)
            assert failure.is_transient is is_transient
            assert session.refused == []


async def test_optimistic_sessions_reset_what_fails():
    async with (
        tcp_server(echo) as server,
        FilteringProxy(
            NetworkSettings(host_map={"site.example": ("127.0.0.1", server.port)})
        ) as proxy,
        proxy.session(PLENTY_BYTES, is_optimistic=True) as session,
    ):
        assert await code(session, "site.example", 80) == SUCCEEDED
        async with tunnel(session, "127.0.0.1", server.port) as (reply, reader, _):
            assert reply == SUCCEEDED
            with pytest.raises(ConnectionResetError):
                await reader.read()
        assert [refused.host for refused in session.refused] == ["127.0.0.1"]


async def test_a_failure_that_passes_is_forgotten():
    """A host that answers in the end has not failed."""
    answers = [socket.gaierror(socket.EAI_AGAIN, "try again"), None]

    async def recovering(_):
        if (error := answers.pop(0)) is not None:
            raise error
        return [ip_address("127.0.0.1")]

    async with tcp_server(echo) as server, proxied(resolve=recovering) as session:
        assert await code(session, "site.example", server.port) == HOST_UNREACHABLE
        assert await code(session, "site.example", server.port) == SUCCEEDED
        assert session.failures == {}


async def test_the_next_address_is_tried():
    """A name's first address may lead nowhere."""

    async def two(_):
        return [ip_address("127.0.0.2"), ip_address("127.0.0.1")]

    async with tcp_server(echo) as server, proxied(resolve=two) as session:
        assert await code(session, "site.example", server.port) == SUCCEEDED
        assert server.connections == 1


@pytest.mark.parametrize(
    ("request_bytes", "answer"),
    [
        (b"\4\1\0\x50\x7f\0\0\1\0", b""),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", b""),
        (b"\5\1\2", b"\5\xff"),
        (b"\5\1\0\5\2\0\1\x7f\0\0\1\0\x50", b"\5\0"),
        (b"\5\1\0\5\3\0\1\x7f\0\0\1\0\x50", b"\5\0"),
        (b"\5\1\0\5\1\0\x09", b"\5\0"),
        (b"\5\1\0\4\1", b"\5\0"),
    ],
)
async def test_what_is_not_offered_is_declined(request_bytes, answer):
    """The proxy refuses other protocols, authentication, listening, UDP and unknown addresses."""
    async with proxied() as session, raw(session) as (reader, writer):
        writer.write(request_bytes)
        writer.write_eof()
        received = b""
        try:
            while chunk := await reader.read(100):
                received += chunk
        except ConnectionResetError:
            received += b""
        assert received == answer


async def test_a_refusal_can_be_asked_for():
    """Browsers that do not use the proxy get the refusal as a reply."""
    async with FilteringProxy(NetworkSettings(), resolve=resolve_to_loopback) as proxy:
        refused, _ = await proxy.outlook("site.example", 80)
        assert ("loopback" in refused.reason, refused.is_private) == (True, True)
        bad_port, _ = await proxy.outlook("8.8.8.8", 25)
        assert ("port 25" in bad_port.reason, bad_port.is_private) == (True, False)
        assert await proxy.outlook("8.8.8.8", 80) == (None, False)
    async with FilteringProxy(NetworkSettings(), resolve=unknown) as proxy:
        assert await proxy.outlook("site.example", 80) == (None, False)
    anywhere = NetworkSettings(allow_private_network=True)
    async with FilteringProxy(anywhere, resolve=resolve_to_loopback) as proxy:
        assert await proxy.outlook("site.example", 80) == (None, True)
