"""The local web server of the viewer: its session, guard and routes."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.front_end import content_policy, index_html
from mind2web2.viewer.keys import Json, NoSuchResultError
from mind2web2.viewer.routes import (
    JsonResponse,
    answer_key,
    json_route,
    page_key,
)
from mind2web2.viewer.stored_pages import StoredPages

COOKIE = "mind2web2_session"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_STATIC_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Session:
    """One run of the server.

    Args:
        hosts: values of the Host header that are answered; others are those of a rebound name.
        token: the value of the browser's cookie.
        cookie: its name; browsers tell no ports apart, so that each viewer of a machine has its
            own.
    """

    hosts: frozenset[str]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    cookie: str = COOKIE

    @classmethod
    def at(cls, host: str, port: int) -> Session:
        """Return the session of a server at this address."""
        names = {*_LOOPBACK, in_url(host)}
        if not ip_address(host).is_loopback:
            host_name = socket.gethostname()
            names |= {host_name, socket.getfqdn()}
            with suppress(OSError):
                names |= {in_url(str(entry[4][0])) for entry in socket.getaddrinfo(host_name, None)}
        hosts = frozenset(f"{name}:{port}" for name in names)
        return cls(hosts, cookie=f"{COOKIE}_{port}")

    def is_key(self, value: str | None) -> bool:
        """Tell whether a value is the key of this session."""
        return value is not None and secrets.compare_digest(value.encode(), self.token.encode())


class SessionGuard:
    """Answers only the browser that the session was opened in; an ASGI middleware."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app = app
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with the reason."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        app = self._app if refusal is None else refusal
        await app(scope, receive, partial(_with_headers, send))

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        if headers.get("host") not in self._session.hosts:
            return PlainTextResponse("This server answers only under its own address.", 421)
        origin = headers.get("origin")
        is_own = origin is None or origin.partition("://")[2] in self._session.hosts
        if not is_own:
            return PlainTextResponse("Requests of other sites are refused.", 403)
        # The cookie may be that of an earlier session at this port.
        offered_keys = (
            request.cookies.get(self._session.cookie),
            request.query_params.get("token"),
        )
        if not any(self._session.is_key(value) for value in offered_keys):
            return PlainTextResponse(
                "This viewer belongs to another session: open the address that `mind2web2 view` "
                "printed.",
                403,
            )
        return None


def in_url(host: str) -> str:
    """Return a host as addresses have it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def application(
    catalog: Catalog,
    session: Session,
    features: Mapping[str, Sequence[Route]] | None = None,
) -> Starlette:
    """Return the web application.

    Args:
        features: views beyond looking at results, by the names in their addresses, with their
            routes.
    """
    features = features or {}
    pages = StoredPages(catalog.paths)

    def comparison(request: Request) -> Json:
        first, second = (request.query_params.get(name, "") for name in ("first", "second"))
        return catalog.comparison(first, second)

    def leaves(request: Request) -> Json:
        return catalog.leaves(request.query_params.get("task", ""))

    async def page(request: Request) -> Json:
        return await pages.page(page_key(request))

    async def messages(request: Request) -> Json:
        judgment = request.query_params.get("judgment", "")
        return await pages.messages(catalog, answer_key(request), judgment)

    async def image(request: Request) -> Response:
        content = await pages.image(page_key(request), request.query_params.get("name", ""))
        return Response(content, media_type="image/jpeg")

    async def index(request: Request) -> Response:
        if "token" in request.query_params:
            # Out of the address bar, the history and anything that is copied from them.
            response: Response = RedirectResponse("/", 303)
            response.set_cookie(session.cookie, session.token, httponly=True, samesite="strict")
            return response
        nonce = secrets.token_urlsafe(16)
        return HTMLResponse(
            index_html(nonce, features),
            headers={"content-security-policy": content_policy(nonce)},
        )

    return Starlette(
        routes=[
            Route("/", index),
            json_route("/api/overview", lambda _: catalog.overview()),
            json_route("/api/claims", lambda _: catalog.claims()),
            json_route("/api/leaves", leaves),
            json_route("/api/doubts", lambda _: catalog.doubts()),
            json_route("/api/comparison", comparison),
            json_route("/api/answer", lambda request: catalog.answer(answer_key(request))),
            json_route("/api/page", page),
            json_route("/api/messages", messages),
            Route("/api/image", image),
            *(route for routes in features.values() for route in routes),
        ],
        exception_handlers={Mind2Web2Error: _error_response},
    )


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until the user stops it with Ctrl-C."""
    config = uvicorn.Config(
        app, log_level="warning", server_header=False, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket at an address; port 0 takes a free one.

    Raises:
        UsageError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # Now, so that a browser that is quicker than the server waits for it.
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError(f"cannot listen at {host}:{port}: {why}; try --port 0") from error
    return listener


def open_browser(address: str) -> bool:
    """Open the user's browser, and return whether there is one."""
    return webbrowser.open(address)


async def _with_headers(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        headers = MutableHeaders(scope=message)
        for name, value in _STATIC_HEADERS.items():
            headers.setdefault(name, value)
    await send(message)


async def _error_response(_: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NoSuchResultError) else 409
    return JsonResponse({"error": " ".join(str(error).split())}, status)
