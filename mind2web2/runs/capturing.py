"""How the settings of a run have pages captured."""

from __future__ import annotations

from mind2web2.capture.models import (
    CaptureSettings,
    NetworkSettings,
    environment_proxies,
)
from mind2web2.runs.settings import RunSettings
from mind2web2.urls.proxies import parse_upstream


def capture_settings(settings: RunSettings) -> CaptureSettings:
    """Return how a browser captures.

    Raises:
        UsageError: as ``network_of``.
    """
    return CaptureSettings(
        headless=not settings.headed,
        cdp_url=settings.cdp_url,
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
