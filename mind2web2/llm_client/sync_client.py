"""Asking a model from synchronous code, inside a running event loop as well."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from mind2web2.llm_client.provider import AsyncProviderClient


class SyncProviderClient:
    """An asynchronous client on an event loop of its own, in a thread of its own.

    Args:
        client: belongs to this object from now on.
    """

    def __init__(self, client: AsyncProviderClient) -> None:
        self._client = client
        self._open = ExitStack()
        self._portal = self._open.enter_context(start_blocking_portal("asyncio", name="judge-client"))
        self._open.callback(self._portal.call, client.close)
        # a client nobody closed would otherwise wait, at the interpreter's end, for a thread that is gone
        atexit.register(self.close)

    @property
    def endpoint(self) -> str:
        """Return what tells this provider from others."""
        return self._client.endpoint

    def response(self, **keywords: Any) -> Any:
        """Return what ``async_response`` of the asynchronous client returns; the keywords are the same."""
        return self._portal.call(partial(self._client.async_response, **keywords))

    def close(self) -> None:
        """Close the connection pool and end the thread."""
        atexit.unregister(self.close)
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
