"""The browser manager, under the name that eval scripts import."""

from mind2web2.capture.browser_manager import BatchBrowserManager

__all__ = ["BatchBrowserManager"]
