"""How the settings of a run have pages captured."""

from __future__ import annotations

import json
from pathlib import Path

from mind2web2.capture.models import (
    CaptureSettings,
    NetworkSettings,
    environment_proxies,
)
from mind2web2.capture.network.proxy_url import parse_upstream
from mind2web2.errors import UsageError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.json_fields import JsonObject


def capture_settings(settings: RunSettings) -> CaptureSettings:
    """Return how a browser captures.

    Raises:
        UsageError: as ``network_of``, or the file of a login cannot be read or has another form.
    """
    state = None if settings.storage_state is None else _storage_state(settings.storage_state)
    return CaptureSettings(
        headless=not settings.headed,
        cdp_url=settings.cdp_url,
        storage_state=state,
        time_zone=settings.time_zone or "UTC",
        no_sandbox=settings.no_sandbox,
        network=network_of(settings),
    )


def network_of(settings: RunSettings) -> NetworkSettings:
    """Return what captures and downloads may connect to.

    Raises:
        UsageError: the environment names a proxy that is none.
    """
    proxies = environment_proxies()
    if settings.proxy is not None:
        proxies |= {"http": settings.proxy, "https": settings.proxy}
    for scheme in ("http", "https"):
        if proxies.get(scheme):
            parse_upstream(proxies[scheme])
    return NetworkSettings(allow_private_network=settings.allow_private_network, proxies=proxies)


def _storage_state(path: Path) -> JsonObject:
    """Return cookies and local storage, as Playwright saves them."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise UsageError(f"cannot read --storage_state {path}: {reason}") from None
    fields = ("cookies", "origins")
    if not isinstance(state, dict) or not any(name in state for name in fields):
        raise UsageError(
            f"--storage_state {path} has neither cookies nor origins: save it by "
            "Playwright's context.storage_state(path=...)"
        )
    lists = [state.get(name, []) for name in fields]
    if not all(
        isinstance(found, list) and all(isinstance(one, dict) for one in found) for found in lists
    ):
        raise UsageError(f"--storage_state {path}: cookies and origins must be lists of objects")
    return dict(zip(fields, lists, strict=True))
