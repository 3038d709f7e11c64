"""Reasons why a page could not be captured, and whether another try may fare better."""

from __future__ import annotations

import re

from mind2web2.capture.models import TroubleKind
from mind2web2.errors import CaptureError

_NET_ERROR = re.compile(r"net::(ERR_[A-Z0-9_]+)")
# Statuses by which servers say that the same request may pass later.
PASSING_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
_PASSING_NET_ERROR = re.compile(
    "ERR_(?:(?:CONNECTION_)?TIMED_OUT|CONNECTION_(?:CLOSED|RESET|ABORTED)|(?:PROXY_|SOCKS_)?CONNECTION_FAILED"
    "|HTTP2_(?:PING_FAILED|PROTOCOL_ERROR|SERVER_REFUSED_STREAM)|INCOMPLETE_(?:CHUNKED_ENCODING|HTTP2_HEADERS)"
    "|CONTENT_LENGTH_MISMATCH|EMPTY_RESPONSE|INTERNET_DISCONNECTED|NETWORK_(?:CHANGED|IO_SUSPENDED))"
)
_IN_WORDS = {
    "ERR_ABORTED": "the server sent no page",
    "ERR_CONNECTION_CLOSED": "the server closed the connection",
    "ERR_CONNECTION_RESET": "the server dropped the connection",
    "ERR_CONTENT_LENGTH_MISMATCH": "the server dropped the connection within its reply",
    "ERR_INCOMPLETE_CHUNKED_ENCODING": "the server dropped the connection within its reply",
    "ERR_EMPTY_RESPONSE": "the server closed the connection without a reply",
    "ERR_TOO_MANY_REDIRECTS": "the page redirects without end",
    "ERR_UNSAFE_PORT": "browsers refuse this port",
    "ERR_INVALID_URL": "not an address that a browser can open",
}


class PageFailureError(CaptureError):
    """A try at a page yielded nothing.

    Args:
        kind: the trouble that the record names.
        is_transient: the next try may succeed, or this machine or its network is at fault.
        net_error: the browser's own name for it, such as ``ERR_CERT_DATE_INVALID``.
        is_unanswered: the server was silent until the limit.
    """

    def __init__(
        self,
        reason: str,
        kind: TroubleKind = "navigation_error",
        *,
        is_transient: bool = False,
        net_error: str | None = None,
        is_unanswered: bool = False,
    ) -> None:
        super().__init__(reason)
        self.is_unanswered = is_unanswered
        self.kind = kind
        self.is_transient = is_transient
        self.net_error = net_error

    @property
    def is_certificate_error(self) -> bool:
        """Tell whether the server's certificate is all that stood in the way."""
        return (self.net_error or "").startswith("ERR_CERT_")


def failure_of_navigation(message: str) -> PageFailureError:
    """Translate the browser's error message for a failed navigation."""
    error = _NET_ERROR.search(message)
    if error is None:
        if "invalid URL" in message:
            return PageFailureError(_IN_WORDS["ERR_INVALID_URL"])
        timed_out = "Timeout" in message
        reason = "the page did not answer in time" if timed_out else message.splitlines()[0][:300]
        kind: TroubleKind = "timeout" if timed_out else "navigation_error"
        return PageFailureError(reason, kind, is_transient=True, is_unanswered=timed_out)
    name = error[1]
    words = _IN_WORDS.get(name)
    return PageFailureError(
        f"{words} ({name})" if words else f"the browser could not open it ({name})",
        "timeout" if name.endswith("TIMED_OUT") else "navigation_error",
        is_transient=_PASSING_NET_ERROR.fullmatch(name) is not None,
        net_error=name,
    )
