"""MHTML files: pages that a browser saved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC
from email import message_from_bytes
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from mind2web2.capture.models import StoredResponse
from mind2web2.pages.found_pages import (
    MAX_FILE_BYTES,
    Fault,
    FoundPage,
    FoundPages,
    StoredByUrl,
    file_time,
    is_web_address,
)
from mind2web2.utils.files import read_regular_file

_CONTENT_ID = "https://cid.invalid/"
_CID_ADDRESS = re.compile(rb"cid:([^\s\"'()<>&\\]{1,500})")
_MAX_PARTS = 20_000
# A saved page has its parts side by side, at most in one frame each.
_MAX_NESTED_PARTS = 100
_MAIN_TYPES = ("text/html", "application/xhtml+xml")


def importer(path: Path, url: str | None) -> FoundPages:
    """Return what reads the page of an MHTML file."""
    return partial(_mhtml_page, path, url)


def _check_nesting(message: Message) -> None:
    """Raise ``RecursionError`` for a message whose parts are nested deeper than any page's are."""
    stack = [(message, 0)]
    while stack:
        part, depth = stack.pop()
        if depth > _MAX_NESTED_PARTS:
            raise RecursionError
        if part.is_multipart():
            stack += [(each, depth + 1) for each in part.get_payload()]  # type: ignore[misc]


def _mhtml_page(path: Path, url: str | None) -> Iterator[FoundPage | Fault]:
    try:
        message = message_from_bytes(read_regular_file(path, MAX_FILE_BYTES))
        _check_nesting(message)
        parts = [part for part in message.walk() if not part.is_multipart()]
    except RecursionError:
        yield Fault(path.name, "its parts are nested too deeply")
        return
    if len(parts) > _MAX_PARTS:
        yield Fault(path.name, f"it has more than {_MAX_PARTS:,} parts")
        return
    main = next((part for part in parts if part.get_content_type() in _MAIN_TYPES), None)
    if main is None:
        yield Fault(path.name, "it holds no page")
        return
    url = url or message.get("Snapshot-Content-Location") or main.get("Content-Location")
    if url is None or not is_web_address(url):
        yield Fault(path.name, "it does not say where it comes from: add --url URL")
        return
    try:
        saved_at = (
            parsedate_to_datetime(message["Date"]).astimezone(UTC).isoformat(timespec="seconds")
        )
    except (TypeError, ValueError):
        saved_at = file_time(path)
    content_ids = frozenset(filter(None, map(_content_id, parts)))
    responses = _mhtml_responses(parts, content_ids) | {url: _part_response(main, content_ids)}
    yield FoundPage(path.name, url, stored=StoredByUrl(responses), fetched_at=saved_at)


def _mhtml_responses(
    parts: Sequence[Message], content_ids: frozenset[str]
) -> dict[str, StoredResponse]:
    responses: dict[str, StoredResponse] = {}
    for part in parts:
        response = _part_response(part, content_ids)
        if part["Content-ID"]:
            responses[_cid_url(_content_id(part))] = response
        if part["Content-Location"]:
            responses.setdefault(part["Content-Location"], response)
    return responses


def _part_response(part: Message, content_ids: frozenset[str]) -> StoredResponse:
    body = part.get_payload(decode=True)
    content = body if isinstance(body, bytes) else b""
    if part.get_content_maintype() == "text":
        # Browsers load no cid: addresses outside of MHTML files. All at once: there may be
        # thousands.
        content = _CID_ADDRESS.sub(partial(_web_address_of, content_ids), content)
    return StoredResponse(content, {"content-type": part.get("Content-Type", "")})


def _web_address_of(content_ids: frozenset[str], address: re.Match[bytes]) -> bytes:
    content_id = address[1].decode(errors="replace")
    if content_id in content_ids:
        return _cid_url(content_id).encode()
    return address[0]


def _content_id(part: Message) -> str:
    return str(part.get("Content-ID", "")).strip("<> ")


def _cid_url(content_id: str) -> str:
    return f"{_CONTENT_ID}{quote(content_id, safe='')}"
