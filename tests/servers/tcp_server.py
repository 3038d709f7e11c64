"""Plain TCP and UDP on loopback.

Servers say what a function says, and canaries count who calls.
"""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace


@asynccontextmanager
async def tcp_server(serve, ssl=None):
    """Serve each connection with ``await serve(reader, writer)``.

    Yields port and connection count.
    """
    tasks = set()
    served = SimpleNamespace(port=0, connections=0)

    async def handle(reader, writer):
        try:
            await serve(reader, writer)
        except (OSError, EOFError):
            return
        finally:
            writer.close()

    def accept(reader, writer):
        served.connections += 1
        task = asyncio.create_task(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=ssl)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(reader, writer):
    """Send back what comes, and end when the other side does."""
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()


async def silence(reader, _):
    """Say nothing until the other side hangs up."""
    await reader.read()


@asynccontextmanager
async def udp_canary():
    """Count the datagrams that arrive on loopback."""
    counted = SimpleNamespace(port=0, datagrams=0, arrived=asyncio.Event())

    class Canary(asyncio.DatagramProtocol):
        def datagram_received(self, *_):
            counted.datagrams += 1
            counted.arrived.set()

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        Canary, ("127.0.0.1", 0)
    )
    counted.port = transport.get_extra_info("sockname")[1]
    try:
        yield counted
    finally:
        transport.close()
