"""OpenTelemetry. Nothing of it is imported unless the environment names a receiver."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mind2web2.plugin import Listener

ADDRESSES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@asynccontextmanager
async def listener(_print_line: Callable[[str], None]) -> AsyncIterator[Listener | None]:
    """Follow a run if the environment names a receiver.

    Raises:
        UsageError: the packages of the extra ``otel`` are missing.
    """
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or not any(os.environ.get(name) for name in ADDRESSES):
        yield None
        return
    telemetry = import_module("mind2web2_telemetry.telemetry")
    async with telemetry.exporter() as exporter:
        yield exporter
