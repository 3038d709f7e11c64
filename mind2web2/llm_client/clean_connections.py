"""Connections that serve a question only if nothing has come on them since the last reply."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp
    import httpx2


def use_clean_connections(client: httpx2.AsyncClient) -> None:
    """Have a client of the SDK's aiohttp kind drop a connection on which something came unasked.

    aiohttp keeps such bytes and reads them as the reply to the next request: a server or proxy that answers
    one question twice would thereby decide another one. There is no public way; a test sends such a reply.
    """
    # Any: what these hold is the SDK's own, and private.
    transports: list[Any] = [client._transport, *client._mounts.values()]
    for transport in transports:
        if transport is not None:
            transport.get_client = partial(_session, transport.get_client)


def _session(build: Any) -> aiohttp.ClientSession:
    from aiohttp.client_proto import ResponseHandler

    class CleanConnection(ResponseHandler):
        def is_connected(self) -> bool:
            return super().is_connected() and not self.should_close

    session: aiohttp.ClientSession = build()
    connector: Any = session.connector
    connector._factory = partial(CleanConnection, loop=asyncio.get_running_loop())
    return session
