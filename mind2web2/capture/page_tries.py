"""The tries at one page, within a time limit: retries, other spellings and what failures mean."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

from mind2web2.capture.browser import Browser
from mind2web2.capture.host_turns import HostTurns
from mind2web2.capture.models import (
    CapturedPage,
    CaptureRecord,
    CaptureSettings,
    PageKind,
    RefusedConnection,
    Trouble,
)
from mind2web2.capture.network.proxy import FilteringProxy, ProxySession
from mind2web2.capture.page.capture import Sighting, see_page
from mind2web2.capture.page.navigation import MainDocument
from mind2web2.capture.page_failure import PageFailureError
from mind2web2.errors import BrowserGoneError
from mind2web2.urls.parts import (
    clean_url,
    lookup_key,
    normalize_url_for_browser,
    split_url,
    storage_key,
)
from mind2web2.utils.retry_after import retry_after_s

log = logging.getLogger(__name__)

_FIRST_DELAY_S = 1.0
_MAX_DELAY_S = 20.0
# With less time left, no try is begun that could not end well.
_SHORTEST_TRY_S = 1.0
_RESTING_STATUSES = (429, 503)
_MAX_RECORDED_REFUSALS = 50
# Until a server begins to answer that is waited for once more; the proxy ends connections soon
# after.
_PATIENT_ANSWER_S = 55.0


@dataclass(frozen=True, slots=True)
class CaptureTools:
    """Tools that all captures of a run share."""

    settings: CaptureSettings
    proxy: FilteringProxy
    browser: Browser
    hosts: HostTurns
    slots: asyncio.Semaphore
    max_retries: int
    browser_version: str = ""

    @classmethod
    def of(
        cls,
        settings: CaptureSettings,
        proxy: FilteringProxy,
        browser: Browser,
        *,
        max_pages: int,
        max_retries: int,
        browser_version: str,
    ) -> Self:
        """Return the tools for so many pages at once."""
        hosts = HostTurns(settings.max_pages_per_host)
        slots = asyncio.Semaphore(max_pages)
        return cls(settings, proxy, browser, hosts, slots, max_retries, browser_version)


class PageTries:
    """The tries at one page. The time limit counts while they run, not while they wait for a turn.

    Args:
        is_patient: wait longer for the server's answer.
    """

    def __init__(
        self,
        tools: CaptureTools,
        url: str,
        *,
        is_patient: bool = False,
    ) -> None:
        self._tools = tools
        self._url = url
        self._settings = _patient(tools.settings) if is_patient else tools.settings
        self._left_s = tools.settings.page_timeout_s
        self._tries = 0
        self._refused: dict[RefusedConnection, None] = {}
        self._is_private = False

    async def run(self) -> CapturedPage:
        """Return the page, or a record with the reason of its failure.

        Raises:
            MachineError: the browser does not start any more.
        """
        failure: PageFailureError | None = None
        for address in _addresses(self._url):
            try:
                return self._captured_page(
                    await self._try_other_spellings(await self._with_retries(address), address)
                )
            except PageFailureError as error:
                # Where no scheme was given, the second one is tried; the first one's failure says
                # more.
                failure = failure or error
        failure = failure or PageFailureError("not an http or https address", "refused_address")
        return self._failed_page(failure, Sighting(MainDocument()))

    async def _with_retries(self, address: str) -> Sighting:
        delay_s = _FIRST_DELAY_S
        for tries_left in reversed(range(self._tools.max_retries + 1)):
            wait_s = min(delay_s * random.uniform(0.75, 1.25), _MAX_DELAY_S)
            may_try_again = tries_left > 0 and self._left_s > wait_s + _SHORTEST_TRY_S
            try:
                seen = await self._try(address)
                if not (may_try_again and seen.is_passing):
                    return seen
                reason = f"HTTP {seen.document.status}"
            except PageFailureError as error:
                # A server that was silent for the whole limit rarely answers the next try.
                if not (may_try_again and error.is_transient and error.kind != "timeout"):
                    raise
                reason = str(error)
            log.info("page is tried again url=%s reason=%s", address, reason)
            await asyncio.sleep(wait_s)
            self._left_s -= wait_s
            delay_s *= 2
        raise AssertionError("unreachable: the last try returns or raises")

    async def _try_other_spellings(self, seen: Sighting, address: str) -> Sighting:
        """Return the page under another spelling if the server knows only that one."""
        if seen.document.status != 404:
            return seen
        tries = self._tries
        for spelling in _other_spellings(address):
            if self._left_s < _SHORTEST_TRY_S:
                break
            try:
                other = await self._try(spelling)
            except PageFailureError as error:
                log.info("other spelling not captured url=%s reason=%s", spelling, error)
                continue
            if other.document.status is not None and other.document.status < 400:
                other.notes.append(
                    f"the address as cited gave HTTP 404, and was opened as {spelling}"
                )
                return other
        self._tries = tries
        return seen

    async def _try(self, address: str) -> Sighting:
        host = (urlsplit(address).hostname or "").lower()
        async with self._tools.hosts.turn(host), self._tools.slots:
            started = time.monotonic()
            self._tries += 1
            try:
                async with asyncio.timeout(max(self._left_s, _SHORTEST_TRY_S)):
                    seen = await self._see_whatever_the_certificate(address, host)
            except TimeoutError as error:
                limit_s = self._tools.settings.page_timeout_s
                raise PageFailureError(
                    f"not captured within {limit_s:g} s", "timeout", is_transient=True
                ) from error
            finally:
                self._left_s -= time.monotonic() - started
            if seen.document.status in _RESTING_STATUSES:
                wait_s = retry_after_s(seen.document.headers)
                if wait_s is not None or seen.document.status == 429:
                    self._tools.hosts.rest(host, wait_s)
            return seen

    async def _see_whatever_the_certificate(self, address: str, host: str) -> Sighting:
        try:
            return await self._see(address, host, None)
        except PageFailureError as error:
            if not error.is_certificate_error:
                raise
            # A person who checks a claim would dismiss the warning; the record keeps it.
            return await self._see(address, host, error.net_error)

    async def _see(self, address: str, host: str, certificate_error: str | None) -> Sighting:
        settings = self._settings
        async with self._tools.proxy.session(settings.max_page_bytes) as traffic:
            try:
                async with self._tools.browser.page(
                    traffic.server_url,
                    ignore_certificate_errors=certificate_error is not None,
                ) as (page, session):
                    guard = self._refusal_of if settings.cdp_url else None
                    seen = await see_page(
                        page, session, address, settings, certificate_error, guard
                    )
            except PageFailureError as error:
                raise _explain(error, host, traffic) from error
            except BrowserGoneError as error:
                raise PageFailureError(str(error), "crash", is_transient=True) from error
            finally:
                self._refused.update(dict.fromkeys(traffic.refused))
                self._is_private = self._is_private or traffic.is_private
            if traffic.is_exhausted:
                seen.notes.append(f"the page was cut off after {traffic.bytes_received} bytes")
                seen.troubles.append(Trouble(kind="incomplete", detail=seen.notes[-1]))
            return seen

    async def _refusal_of(self, url: str) -> str | None:
        """Say why the user's own browser, which no proxy filters, must not open a URL."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return "not an http or https address"
        port = parts.port or (443 if parts.scheme == "https" else 80)
        refused, is_private = await self._tools.proxy.outlook(parts.hostname, port)
        self._is_private = self._is_private or is_private
        if refused is None:
            return None
        self._refused[refused] = None
        return refused.reason

    def _captured_page(self, seen: Sighting) -> CapturedPage:
        if seen.pdf is None and not seen.screenshot and not (seen.text or "").strip():
            return self._failed_page(_nothing_shown(seen), seen)
        text = None if seen.pdf is not None else seen.text or ""
        return CapturedPage(self._record(seen), text=text, screenshot=seen.screenshot, pdf=seen.pdf)

    def _failed_page(self, failure: PageFailureError, seen: Sighting) -> CapturedPage:
        trouble = Trouble(kind=failure.kind, detail=str(failure))
        seen.troubles = [
            trouble,
            *(other for other in seen.troubles if other.kind != trouble.kind),
        ]
        changes = {
            "kind": None,
            "failure": str(failure),
            "is_transient": failure.is_transient,
        }
        record = self._record(seen).model_copy(update=changes)
        return CapturedPage(record, is_unanswered=failure.is_unanswered)

    def _record(self, seen: Sighting) -> CaptureRecord:
        kind: PageKind = "web" if seen.pdf is None else "pdf"
        return CaptureRecord(
            requested_url=self._url,
            final_url=seen.document.url or self._url,
            kind=kind,
            status=seen.document.status,
            content_type=seen.document.content_type or None,
            title=seen.title,
            captured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            text_chars=len(seen.text or ""),
            troubles=tuple(seen.troubles),
            is_transient=seen.is_passing,
            unfolded=seen.unfolded,
            notes=tuple(seen.notes),
            refused=tuple(self._refused)[:_MAX_RECORDED_REFUSALS],
            timings_s={stage: round(seconds, 3) for stage, seconds in seen.timings_s.items()},
            tries=self._tries,
            browser=self._tools.browser_version,
            is_private=self._is_private,
            scripts=seen.scripts,
        )


def _addresses(url: str) -> tuple[str, ...]:
    """Return the addresses to open, in this order; none if the URL is not a web address."""
    address = normalize_url_for_browser(url)
    if lookup_key(url) is None or split_url(address).scheme not in {"http", "https"}:
        return ()
    if split_url(clean_url(url)).scheme is None:
        return ("https" + address.removeprefix("http"), address)
    return (address,)


def _patient(settings: CaptureSettings) -> CaptureSettings:
    answer_s = max(settings.answer_timeout_s, _PATIENT_ANSWER_S)
    return replace(
        settings,
        answer_timeout_s=answer_s,
        load_timeout_s=max(settings.load_timeout_s, answer_s),
    )


def _other_spellings(address: str) -> list[str]:
    """Return spellings of the same page: with or without a last slash, and decoded."""
    parts = split_url(address)
    if not parts.path.strip("/"):
        return []
    if parts.path.endswith("/"):
        path = parts.path.rstrip("/")
    else:
        path = f"{parts.path}/"
    query = "" if parts.query is None else f"?{parts.query}"
    slashed = f"{parts.scheme}://{parts.authority}{path}{query}{parts.route}"
    decoded = normalize_url_for_browser(storage_key(address))
    return [spelling for spelling in dict.fromkeys((slashed, decoded)) if spelling != address]


def _explain(failure: PageFailureError, host: str, traffic: ProxySession) -> PageFailureError:
    """Return the failure in the words of the proxy, which knows why there is no connection."""
    if failure.net_error is None:
        return failure
    name = host.rstrip(".")
    refusal = next(
        (refused for refused in traffic.refused if refused.host.rstrip(".") == name),
        None,
    )
    is_unnamed = failure.net_error == "ERR_SOCKS_CONNECTION_FAILED" and not traffic.failures
    if refusal is None and is_unnamed and traffic.refused:
        # A redirect led to a host that the browser's error does not name.
        refusal = traffic.refused[-1]
    if refusal is not None:
        return PageFailureError(
            f"connection to {refusal.host} refused: {refusal.reason}", "refused_address"
        )
    known = traffic.failures.get(host) or next(iter(traffic.failures.values()), None)
    if known is not None:
        return PageFailureError(known.reason, failure.kind, is_transient=known.is_transient)
    return failure


def _nothing_shown(seen: Sighting) -> PageFailureError:
    status = seen.document.status
    prefix = (
        f"the server answered HTTP {status}, and " if status is not None and status >= 400 else ""
    )
    return PageFailureError(
        f"{prefix}the page shows neither text nor a picture",
        "empty_page",
        is_transient=seen.is_passing,
    )
