"""Routes that answer with JSON, and the keys in their requests."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    Response,
)
from starlette.routing import Route

from mind2web2.viewer.front_end import json_bytes
from mind2web2.viewer.keys import AnswerKey
from mind2web2.viewer.stored_pages import PageKey


class JsonResponse(JSONResponse):
    """JSON that browsers can read, whatever numbers and characters results hold."""

    def render(self, content: object) -> bytes:
        """Return the body."""
        return json_bytes(content)


def json_route(path: str, view: Callable[[Request], Any]) -> Route:
    """Return the route that answers with a view's value.

    A view that is not a coroutine runs in a thread.
    """

    async def answer(request: Request) -> Response:
        if iscoroutinefunction(view):
            return JsonResponse(await view(request))
        return JsonResponse(await run_in_threadpool(view, request))

    return Route(path, answer)


def answer_key(request: Request) -> AnswerKey:
    """Return the answer that a request names."""
    asked = request.query_params
    return AnswerKey(asked.get("agent", ""), asked.get("task", ""), asked.get("answer", ""))


def page_key(request: Request) -> PageKey:
    """Return the page that a request names."""
    asked = request.query_params
    return PageKey(asked.get("agent", ""), asked.get("task", ""), asked.get("url", ""))
