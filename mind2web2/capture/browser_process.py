"""One browser process: started behind the proxy, watched, and ended."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind2web2.capture.browser_program import (
    BrowserProgram,
    browser_environment,
    driver_environment,
    has_sandbox,
    launch_arguments,
    version_of,
)
from mind2web2.capture.letters import (
    COMMON_LETTERS,
    warn_of_missing_fonts,
)
from mind2web2.capture.page.drawn_letters import drawn_scripts
from mind2web2.errors import MachineError
from mind2web2.utils.aio import end_all
from mind2web2.utils.private_attributes import check_private_attributes

if TYPE_CHECKING:
    from patchright.async_api import Browser as PatchrightBrowser
    from patchright.async_api import Playwright

    from mind2web2.capture.models import CaptureSettings

log = logging.getLogger(__name__)

START_TIMEOUT_S = 45.0
CLOSE_TIMEOUT_S = 10.0
# Prefix of the folders that patchright creates for browser profiles.
_PROFILE_PREFIX = "playwright_chromiumdev_profile-"
_PROCESSES = Path("/proc")
_TELLING = re.compile(r"sandbox|error while loading|missing x server|econnrefused", re.IGNORECASE)


class BrowserProcess:
    """A browser that was started, or connected to, and the driver that it is steered through.

    Attributes:
        gone: set once the browser has ended, or no longer listens.
    """

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.is_ours = True
        self._driver: Any = None  # patchright's context manager, of a private type
        self._browser: PatchrightBrowser | None = None
        self._pid: int | None = None
        self._pid_watch: int | None = None
        self._dead_end: socket.socket | None = None
        self._profile: Path | None = None
        self._chores: set[asyncio.Task[Any]] = set()

    @classmethod
    async def start(cls, program: BrowserProgram, settings: CaptureSettings) -> BrowserProcess:
        """Start a browser. Raises MachineError: it does not start."""
        process = cls()
        await process._bring_up(process._launch(program, settings), str(program.path))
        return process

    @classmethod
    async def connect(cls, cdp_url: str) -> BrowserProcess:
        """Connect to a browser that runs already, and is not ours to end.

        Raises:
            MachineError: none answers there.
        """
        process = cls()
        process.is_ours = False
        await process._bring_up(process._connect(cdp_url), f"a browser at {cdp_url}")
        return process

    @property
    def browser(self) -> PatchrightBrowser:
        """The browser itself."""
        assert self._browser is not None, "not started"
        return self._browser

    def do(self, chore: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something that has to finish even if its caller is cancelled.

        ``stop`` waits for it.
        """
        task = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

    async def stop(self) -> None:
        """End the browser if it is ours, else let go of it; by force where it takes too long."""
        if not self.is_ours:
            # Tabs of ours that are still being closed would stay open after the disconnection.
            await self._finish_chores()
        if self._browser is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._browser.close()
            except TimeoutError:
                log.warning("browser did not close in time and is killed")
                self.kill()
            except Exception as error:  # patchright's own, or a plain one where its driver has died
                log.debug("browser has ended already reason=%s", error)
                self.kill()
        await self._finish_chores()
        self._unwatch_pid()
        await self._stop_driver()
        if self._dead_end is not None:
            self._dead_end.close()
        if self._profile is not None:
            # The driver removes it, but not if it is stopped while it does, or has died.
            await asyncio.to_thread(shutil.rmtree, self._profile, ignore_errors=True)
        self.gone.set()

    def kill(self) -> None:
        """End a browser that no longer listens, if it is ours."""
        self.gone.set()
        if self._pid is None or self._has_ended():
            return
        try:
            # The driver gives a browser a process group of its own, which some start by way of a
            # script.
            group = os.getpgid(self._pid)
            if group != os.getpgrp():
                os.killpg(group, signal.SIGKILL)
            else:
                os.kill(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            log.debug("browser has ended already")

    async def end_unless_lent(self) -> None:
        """End a browser that failed; one that is not ours counts as gone only if it is."""
        if self.is_ours or not await self._answers():
            self.kill()

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                session = await self.browser.new_browser_cdp_session()
                await session.detach()
        except Exception as error:  # patchright's own, or a plain one where its driver has died
            log.debug("browser does not answer reason=%s", error)
            return False
        return True

    async def _bring_up(self, start: Coroutine[Any, Any, None], name: str) -> None:
        from patchright.async_api import Error

        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await start
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise MachineError(f"{name} did not start within {START_TIMEOUT_S:g} s") from error
            if isinstance(error, (Error, OSError)):
                raise MachineError(f"{name} does not start: {_reason(str(error))}") from error
            raise

    async def _launch(self, program: BrowserProgram, settings: CaptureSettings) -> None:
        playwright = await self._start_driver()
        environment: dict[str, str | float | bool] = {**browser_environment()}
        # Connections that belong to no page go to a port that is bound but never listens.
        self._dead_end = socket.socket()
        self._dead_end.bind(("127.0.0.1", 0))
        version = await version_of(program)
        self._watch(
            await playwright.chromium.launch(
                executable_path=program.path,
                headless=settings.headless,
                args=launch_arguments(settings.network, version, headless=settings.headless),
                proxy={
                    "server": f"socks5://127.0.0.1:{self._dead_end.getsockname()[1]}",
                    "bypass": "<-loopback>",
                },
                chromium_sandbox=has_sandbox(settings),
                env=environment,
                # Nothing is downloaded or traced; a folder made for that would outlive a killed
                # driver.
                artifacts_dir=tempfile.gettempdir(),
                # Ours to handle: an interrupted run ends in order.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=START_TIMEOUT_S * 1000,
            )
        )
        session = await self.browser.new_browser_cdp_session()
        processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        pid = next(int(process["id"]) for process in processes if process["type"] == "browser")
        self._watch_pid(pid)
        await asyncio.to_thread(limit_pages, pid, settings.max_page_memory_bytes)
        await session.detach()
        await _look_for_fonts(self.browser)
        log.info("browser started path=%s version=%s", program.path, self.browser.version)

    async def _connect(self, cdp_url: str) -> None:
        playwright = await self._start_driver()
        self._watch(
            await playwright.chromium.connect_over_cdp(cdp_url, timeout=START_TIMEOUT_S * 1000)
        )
        log.info("connected to a running browser version=%s", self.browser.version)

    async def _start_driver(self) -> Playwright:
        from patchright._impl import _transport
        from patchright.async_api import async_playwright

        check_private_attributes("patchright")
        # Scripts can read the environment of any process of their user.
        _transport.get_driver_env = driver_environment  # type: ignore[attr-defined]  # private
        driver = async_playwright()
        playwright: Playwright = await driver.__aenter__()
        self._driver = driver
        return playwright

    def _watch(self, browser: PatchrightBrowser) -> None:
        self._browser = browser
        browser.on("disconnected", lambda _: self.gone.set())

    def _watch_pid(self, pid: int) -> None:
        """Notice the end of a browser even if its driver has died before it."""
        self._pid = pid
        self._profile = _profile_of(pid)
        if not hasattr(os, "pidfd_open"):  # only Linux has it
            return
        try:
            self._pid_watch = os.pidfd_open(pid)
        except OSError as error:
            log.debug("browser process not watched reason=%s", error)
            return
        asyncio.get_running_loop().add_reader(self._pid_watch, self.gone.set)

    def _has_ended(self) -> bool:
        """Tell whether the process is known to be no more; its number may be another's by now."""
        if self._pid_watch is not None:
            return bool(select.select([self._pid_watch], [], [], 0)[0])
        return self._browser is None or not self._browser.is_connected()

    def _unwatch_pid(self) -> None:
        if self._pid_watch is not None:
            asyncio.get_running_loop().remove_reader(self._pid_watch)
            os.close(self._pid_watch)
            self._pid_watch = None

    async def _finish_chores(self) -> None:
        if self._chores:
            _, late = await asyncio.wait(self._chores, timeout=CLOSE_TIMEOUT_S)
            await end_all(late)

    async def _stop_driver(self) -> None:
        if self._driver is None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._driver.__aexit__(None, None, None)
        except TimeoutError:
            log.warning("the browser's driver did not end in time")


async def _look_for_fonts(browser: PatchrightBrowser) -> None:
    page = await browser.new_page()
    scripts = await drawn_scripts(COMMON_LETTERS, page.evaluate)
    await page.close()
    missing = tuple(name for name, is_drawn in scripts.items() if not is_drawn)
    if missing:
        warn_of_missing_fonts(missing)


def _profile_of(pid: int) -> Path | None:
    """Return the temporary folder of a browser's profile, if the system tells."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    prefix = b"--user-data-dir="
    folders = [
        Path(os.fsdecode(text[len(prefix) :])) for text in arguments if text.startswith(prefix)
    ]
    return next((folder for folder in folders if folder.name.startswith(_PROFILE_PREFIX)), None)


def _reason(text: str) -> str:
    """Return the line of a long error text that names the cause."""
    lines = [line.strip(" -|║╔╗╚╝═") for line in text.splitlines()]
    # The command that was tried names all its switches.
    lines = [line for line in lines if line and not line.startswith("<launching>")]
    reason = next(filter(_TELLING.search, lines), lines[0] if lines else "no reason given")
    if "sandbox" in reason.lower():
        return (
            f"{reason[:200]} This container lets the browser have no user namespaces: start it "
            "with `--security-opt seccomp=unconfined` (Docker), or, if you trust the pages, write "
            "no_sandbox = true into mind2web2.toml"
        )
    if "x server" in reason.lower():
        return "there is no screen: leave out --headed, or put xvfb-run before the command"
    return reason[:400]


def limit_pages(browser_pid: int, max_bytes: int) -> None:
    """Limit the memory of each process that a browser has, or will have, for pages.

    Past the limit the system refuses more memory, and the page crashes alone. Its size says little:
    half a megabyte of HTML may unfold to gigabytes. Only Linux can limit running processes.
    """
    if sys.platform != "linux":
        return
    # Zygotes are what pages' processes are forked from, and take their limits from; first, lest one
    # slip by.
    for kind in (b"--type=zygote", b"--type=renderer"):
        for pid in list(_descendants(browser_pid)):
            _limit_if(kind, pid, max_bytes)


def _limit_if(kind: bytes, pid: int, max_bytes: int) -> None:
    import resource

    assert sys.platform == "linux"
    try:
        # Such processes write over their arguments, with spaces between them.
        if kind in (_PROCESSES / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").split():
            # Heaps and stacks, which are written to, count; a browser reserves terabytes of mere
            # addresses.
            _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
            limit_bytes = max_bytes if hard == resource.RLIM_INFINITY else min(max_bytes, hard)
            resource.prlimit(pid, resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return
    except (OSError, ValueError) as error:
        log.warning("memory of pages not limited pid=%d reason=%s", pid, error)


def _descendants(pid: int) -> Iterator[int]:
    """Yield a process's children, their children, and so on.

    By the parents of all processes: the lists of children in /proc are those of threads, and lack
    some while threads end.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            # proc(5): the name, in parentheses, may hold any sign; state and parent follow.
            parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[1]
            children[int(parent)].append(int(folder.name))
    waiting = [pid]
    while waiting:
        found = children[waiting.pop()]
        yield from found
        waiting += found
