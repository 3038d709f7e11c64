"""Copies of pages in a web archive."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlencode

from mind2web2.capture.models import CapturedPage, PageCapturer
from mind2web2.utils.json_text import mapping

log = logging.getLogger(__name__)

DEFAULT_ARCHIVE_URL = "https://archive.org"
# A copy's address names its moment; a suffix such as id_ says in which form it is wanted.
_COPY_URL = re.compile(
    r"(https?://[^?#]*?/web/)(\d{14})(?:[a-z]{2}_)?(/.+)", re.ASCII | re.IGNORECASE
)
_RAW = "id_"


@dataclass(frozen=True, slots=True)
class Archive:
    """Finds copies by the availability API, and captures them as they were archived."""

    url: str
    moments: Mapping[str, Mapping[str, datetime]]

    async def copy_for(
        self, failed: CapturedPage, moment: datetime | None, capturer: PageCapturer
    ) -> CapturedPage | None:
        """Return the copy nearest to a moment of a page whose capture failed or looks wrong.

        ``None`` where the archive has none that looks right.
        """
        url = failed.record.requested_url
        copy_url = await self._copy_url(url, moment, capturer)
        if copy_url is None:
            return None
        page = await capturer.capture(copy_url, log)
        record = page.record
        if record.kind is None or record.is_suspect:
            reason = record.failure or ", ".join(trouble.kind for trouble in record.troubles)
            log.info("archived copy not used url=%s copy=%s reason=%s", url, copy_url, reason)
            return None
        # The archive may lead to a copy of another moment.
        copy = _COPY_URL.fullmatch(record.final_url) or _COPY_URL.fullmatch(copy_url)
        assert copy is not None, "the address of a copy was made by this pattern"
        reasons = failed.record.failure or "; ".join(
            trouble.detail for trouble in failed.record.troubles
        )
        changes = {
            "requested_url": url,
            "final_url": url,
            "archived_from": copy[0],
            "archived_at": _moment_of(copy[2]),
            "notes": (
                *record.notes,
                f"an archived copy is used, as the page itself: {reasons}",
            ),
        }
        return replace(page, record=record.model_copy(update=changes))

    async def _copy_url(
        self, url: str, moment: datetime | None, capturer: PageCapturer
    ) -> str | None:
        query = {"url": url}
        if moment is not None:
            query["timestamp"] = f"{moment.astimezone(UTC):%Y%m%d%H%M%S}"
        reply = await capturer.capture(
            f"{self.url.rstrip('/')}/wayback/available?{urlencode(query)}", log
        )
        try:
            answer = mapping(json.loads(reply.text or ""))
            closest = mapping(mapping(answer.get("archived_snapshots")).get("closest"))
        except ValueError:
            reason = reply.record.failure or f"HTTP status {reply.record.status}, and no JSON"
            log.warning("the archive could not be asked for %s: %s", url, reason)
            return None
        copy = _COPY_URL.fullmatch(str(closest.get("url", "")))
        if not closest.get("available") or copy is None:
            return None
        return f"{copy[1]}{copy[2]}{_RAW}{copy[3]}"


def _moment_of(digits: str) -> str | None:
    try:
        return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC).isoformat()
    except ValueError:
        return None
