"""How the settings of a run have pages captured."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from mind2web2.capture.models import (
    CaptureSettings,
    NetworkSettings,
    environment_proxies,
)
from mind2web2.runs.settings import RunSettings

if TYPE_CHECKING:
    from mind2web2.capture.browser_manager import BatchBrowserManager


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


@dataclass(frozen=True)
class BrowserSetup:
    """A browser that captures pages, before it is opened.

    Args:
        settings: may hold passwords.
        retries: of a page whose failure may be temporary.
    """

    settings: CaptureSettings
    pages_at_once: int
    retries: int

    @classmethod
    def of(cls, settings: RunSettings, pages_at_once: int, retries: int) -> BrowserSetup:
        """Return the browser of a command's settings. Raises UsageError: as ``network_of``."""
        return cls(capture_settings(settings), pages_at_once, retries)

    def browser(self) -> BatchBrowserManager:
        """Return a browser to open."""
        manager = import_module("mind2web2.capture.browser_manager").BatchBrowserManager
        made: BatchBrowserManager = manager(
            self.settings.headless, self.pages_at_once, self.retries, settings=self.settings
        )
        return made


def network_of(settings: RunSettings) -> NetworkSettings:
    """Return what captures and downloads may connect to.

    Raises:
        UsageError: the environment names a proxy that is none.
    """
    proxies = environment_proxies()
    if settings.proxy is not None:
        proxies |= {"http": settings.proxy, "https": settings.proxy}
    return NetworkSettings(allow_private_network=settings.allow_private_network, proxies=proxies)
