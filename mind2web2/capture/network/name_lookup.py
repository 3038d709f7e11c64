"""The system's lookup of names, which no silent name server can hold up."""

from __future__ import annotations

import asyncio
import socket
import threading
from ipaddress import ip_address
from typing import Protocol

from mind2web2.capture.network.special_addresses import IPAddress

# At most this many names are looked up at once. Each takes a thread, and some take minutes.
MAX_LOOKUPS = 32

_NAME_UNKNOWN = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


class Resolver(Protocol):
    """Finds a name's addresses; raises ``socket.gaierror`` where there are none."""

    async def __call__(self, host: str) -> list[IPAddress]:
        """Return the addresses of a host, best first."""
        ...


def is_unknown_name(error: socket.gaierror) -> bool:
    """Tell a name that does not exist from a lookup that failed."""
    return error.errno in _NAME_UNKNOWN


class SystemResolver:
    """Asks the system, in threads of its own.

    The loop's executor would not do: its few threads serve others too, and a name server that falls
    silent holds a thread for minutes, which the interpreter would wait for on its way out.
    """

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(MAX_LOOKUPS)

    async def __call__(self, host: str) -> list[IPAddress]:
        """Return the addresses of a host in the system's order."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[IPAddress]] = loop.create_future()

        def settle(addresses: list[IPAddress], error: OSError | UnicodeError | None) -> None:
            self._slots.release()
            if answer.done():  # the caller was cancelled
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(addresses)

        def look_up() -> None:
            addresses: list[IPAddress] = []
            failure: OSError | UnicodeError | None = None
            try:
                addresses = _system_lookup(host)
            except (OSError, UnicodeError) as error:
                failure = error
            try:
                loop.call_soon_threadsafe(settle, addresses, failure)
            except RuntimeError:  # the loop is closed
                return

        await self._slots.acquire()
        try:
            threading.Thread(target=look_up, name=f"lookup {host}", daemon=True).start()
        except RuntimeError as error:
            self._slots.release()
            raise socket.gaierror(socket.EAI_AGAIN, "this machine has no threads left") from error
        return await answer


def _system_lookup(host: str) -> list[IPAddress]:
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # Without repetitions, in the order of RFC 6724 that the system gives; a zone never leads
    # outside.
    texts = dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in entries)
    return [ip_address(text.partition("%")[0]) for text in texts]
