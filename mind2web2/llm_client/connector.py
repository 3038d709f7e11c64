"""Connections to a judge's server, which requests in flight take over from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client import ClientTimeout
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


class CheckedConnector(aiohttp.TCPConnector):
    """Lets no reply that nobody asked for answer a question.

    aiohttp would take what a server has sent on an idle connection for the reply to the next
    request. A second reply that arrives later than that request leaves cannot be told from its own:
    HTTP/1.1 numbers no replies.
    """

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 (aiohttp's signature)
    ) -> Connection:
        """Return a connection on which nothing has arrived."""
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
