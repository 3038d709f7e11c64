"""Runs as they go on: their progress files, sent to the browser as they change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mind2web2.runs.progress_file import FILE_NAME
from mind2web2.viewer.catalog import Catalog, Json
from mind2web2.viewer.front_end import json_bytes

_LOOK_EVERY_S = 0.5
# A run writes its file every second; one that has been silent for longer was killed.
_SILENT_AFTER_S = 20.0


def run_states(catalog: Catalog) -> list[Json]:
    """Return the newest run of each agent, as far as it has come: ``running``, ``ended`` or ``stopped``."""
    found = []
    for path in sorted(catalog.paths.eval_results_root.glob(f"*/{FILE_NAME}")):
        try:
            content: Any = json.loads(path.read_bytes())
            updated = datetime.fromisoformat(content["updated"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        is_silent = (datetime.now(UTC) - updated).total_seconds() > _SILENT_AFTER_S
        if content.get("state") == "running" and is_silent:
            content["state"] = "stopped"
        if catalog.shows(path.parent.name):
            found.append({"agent": path.parent.name, **content})
    return found


def run_routes(catalog: Catalog) -> list[Route]:
    """Return the route of the stream."""

    async def stream(request: Request) -> Response:
        events = _events(catalog, request)
        return StreamingResponse(events, media_type="text/event-stream")

    return [Route("/api/runs", stream)]


async def _events(catalog: Catalog, request: Request) -> AsyncIterator[str]:
    sent = ""
    while not await request.is_disconnected():
        text = json_bytes(await run_in_threadpool(run_states, catalog)).decode()
        if text != sent:
            sent = text
            yield f"data: {text}\n\n"
        await asyncio.sleep(_LOOK_EVERY_S)
