"""The HTTP session under the ``arxiv`` library: time limits, and no other page taken for an answer.

A module of its own, since ``requests`` takes a while to load and most scripts ask arXiv nothing.
"""

from __future__ import annotations

import re
from typing import Any

import requests

TIMEOUT_S = (5.0, 20.0)  # to connect, and between two pieces of the answer

_FEED_START = re.compile(rb"<feed[\s>]")
_TOTAL = re.compile(rb"<(?:\w{1,20}:)?totalResults[^<>]*>\s*+(\d{1,9})\s*+<")


class BoundedSession(requests.Session):
    """Raises ``ConnectionError``, which the library tries again, for whatever is not a proper answer.

    The library reads an error page, or an answer cut short, as a list of no papers; arXiv itself now and then
    sends an empty list and says in the same breath that there are matches.
    """

    def get(self, *args: Any, **kwargs: Any) -> requests.Response:  # Any: whatever requests takes
        """Return the answer if it is a whole Atom feed, or has another status than 200."""
        try:
            response = super().get(*args, timeout=TIMEOUT_S, **kwargs)
        except (requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            raise requests.ConnectionError(f"no complete answer ({type(error).__name__})") from error
        if response.status_code == requests.codes.ok:
            _check_feed(response.content)
        return response


def _check_feed(content: bytes) -> None:
    if _FEED_START.search(content) is None or not content.rstrip().endswith(b"</feed>"):
        raise requests.ConnectionError("the answer is not a whole Atom feed")
    if b"arxiv.org/api/errors" in content:
        raise requests.ConnectionError("the answer is an error report")
    total = _TOTAL.search(content)
    if total is not None and int(total[1]) > 0 and b"<entry" not in content:
        raise requests.ConnectionError("the answer lists none of the papers that it counts")
