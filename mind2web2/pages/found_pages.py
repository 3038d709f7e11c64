"""Pages in a file that an agent or a person brings, before they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mind2web2.capture.models import StoredResponse, StoredResponses
from mind2web2.urls.parts import clean_url, lookup_key, split_url

MAX_FILE_BYTES = 100 * 1024**2


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a part of a file cannot be imported."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of a file.

    Args:
        place: where in the file, such as ``line 3``.
        text: as the agent saw it; without, that of the rendered page.
        screenshot: JPEG; without, that of the rendered page.
        stored: responses to render the page from.
        fetched_at: UTC, ISO 8601.
    """

    place: str
    url: str
    text: str | None = None
    screenshot: bytes | None = None
    stored: StoredResponses | None = None
    status: int | None = None
    fetched_at: str | None = None


# Reads the pages of a file; it may be called several times.
FoundPages = Callable[[], Iterator[FoundPage | Fault]]
# The hook ``page_importers``, by the ending of a file's name such as ``warc``: takes the file and
# the URL that the user named for it, if any.
Importer = Callable[[Path, str | None], FoundPages]


class StoredByUrl:
    """Responses by any spelling of their URL."""

    def __init__(self, responses: Mapping[str, StoredResponse]) -> None:
        self._responses = {lookup_key(url): response for url, response in responses.items()}

    def get(self, url: str) -> StoredResponse | None:
        """Return the response to a URL, ``None`` for none."""
        if url.startswith("http"):
            return self._responses.get(lookup_key(url))
        return None


def is_web_address(url: str) -> bool:
    """Tell whether a text is an http or https address."""
    return lookup_key(url) is not None and split_url(clean_url(url)).scheme in (
        "http",
        "https",
    )


def file_time(path: Path) -> str:
    """Return when a file was last changed: UTC, ISO 8601."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
