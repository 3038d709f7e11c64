"""The browser of this machine: where it is, its version, and how it is started."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.errors import MachineError
from mind2web2.utils.program import program_words

if TYPE_CHECKING:
    from mind2web2.capture.models import CaptureSettings, NetworkSettings

log = logging.getLogger(__name__)

VERSION_TIMEOUT_S = 10.0

_HEADLESS_SHELL = "chromium-headless-shell"
_FULL_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
_MAC_BROWSERS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_QUIET = (
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-gpu",
    "--disable-notifications",
    "--disable-sync",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-pings",
)
_NO_WAY_AROUND_THE_PROXY = (
    # Names are the proxy's to look up; the proxy's own address is the one that may be used
    # directly.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--block-new-web-contents",
    "--disable-external-intent-requests",
)
# A browser needs these variables. It gets no others, above all no API keys, because hostile pages
# run in its processes.
_ENVIRONMENT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|DISPLAY|XAUTHORITY"
    r"|WAYLAND_DISPLAY|XDG_\w+|FONTCONFIG_\w+|SYSTEMROOT|SYSTEMDRIVE|WINDIR|USERPROFILE|APPDATA|LOCALAPPDATA"
    r"|PROGRAMFILES.*|PROGRAMDATA|COMSPEC|PATHEXT",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class BrowserProgram:
    """A browser on this machine."""

    path: Path
    is_headless_only: bool


def find_browser(headless: bool) -> BrowserProgram:
    """Return patchright's Chromium if installed, else the system's headless shell or browser.

    Raises:
        MachineError: there is none; the text says how to get one.
    """
    for program in _candidates():
        if headless or not program.is_headless_only:
            return program
    install = shlex.join([*program_words()[:-1], "patchright", "install", "chromium"])
    if headless:
        raise MachineError(
            "no browser found to capture pages with: run `apt-get install chromium-headless-shell` "
            f"or `{install}`"
        )
    raise MachineError(
        "no browser found that can show a window: run `apt-get install chromium` or "
        f"`{install}`, or leave out --headed"
    )


async def version_of(program: BrowserProgram) -> str | None:
    """Return a browser's version, such as ``140.0.7339.16``; ``None`` where it cannot be asked."""
    try:
        process = await asyncio.create_subprocess_exec(
            program.path,
            "--version",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=browser_environment(),
        )
    except OSError as error:
        raise MachineError(f"{program.path} cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(VERSION_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    number = re.search(rb"\d+(\.\d+){3}", output)
    return number[0].decode() if number else None


def launch_arguments(network: NetworkSettings, version: str | None, *, headless: bool) -> list[str]:
    """Return the switches that a browser is started with."""
    arguments = [*_QUIET, *_NO_WAY_AROUND_THE_PROXY]
    if headless and version is not None:
        # Pages share some workers, and a page's override of the user agent does not reach them.
        arguments.append(f"--user-agent={user_agent(version)}")
    if network.trusted_keys:
        arguments.append(f"--ignore-certificate-errors-spki-list={','.join(network.trusted_keys)}")
    return arguments


def user_agent(version: str) -> str:
    """Return what an ordinary Chromium of this version calls itself, on this system."""
    is_mac = sys.platform == "darwin"
    system = "Macintosh; Intel Mac OS X 10_15_7" if is_mac else "X11; Linux x86_64"
    major = version.partition(".")[0]
    return (
        f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 "
        "Safari/537.36"
    )


def browser_environment() -> dict[str, str]:
    """Return the part of our environment that a browser is given."""
    return {name: value for name, value in os.environ.items() if _ENVIRONMENT.fullmatch(name)}


def driver_environment() -> dict[str, str]:
    """Return the part of our environment that the browser's driver is given."""
    variables = {
        name: value for name, value in os.environ.items() if name.startswith("PLAYWRIGHT_")
    }
    return variables | browser_environment()


def has_sandbox(settings: CaptureSettings) -> bool:
    """Tell whether the browser is started with its sandbox; without, say so once."""
    if os.geteuid() == 0:
        _warn_of_no_sandbox(
            "running as root, so the browser has to run without its sandbox; use another user if "
            "you can"
        )
        return False
    if settings.no_sandbox:
        _warn_of_no_sandbox(
            "the browser runs without its sandbox; capture only pages that you trust"
        )
        return False
    return True


@cache
def _warn_of_no_sandbox(text: str) -> None:
    log.warning(text)


def _candidates() -> Iterator[BrowserProgram]:
    folder = _patchright_folder()
    for pattern, is_headless_only in (
        ("chromium_headless_shell-*/*/chrome-headless-shell", True),
        ("chromium_headless_shell-*/*/headless_shell", True),
        ("chromium-*/*/chrome", False),
        ("chromium-*/*/*.app/Contents/MacOS/*", False),
    ):
        # The newest of several is last, since their numbers have as many digits.
        for path in sorted(folder.glob(pattern), reverse=True):
            if os.access(path, os.X_OK):
                yield BrowserProgram(path, is_headless_only)
    for name in (_HEADLESS_SHELL, *_FULL_BROWSERS):
        if (program := shutil.which(name)) is not None:
            yield BrowserProgram(Path(program), name == _HEADLESS_SHELL)
    for text in _MAC_BROWSERS:
        if os.access(text, os.X_OK):
            yield BrowserProgram(Path(text), is_headless_only=False)


def _patchright_folder() -> Path:
    """Return where `patchright install` puts browsers."""
    configured_folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if configured_folder:
        return Path(configured_folder)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ms-playwright"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ms-playwright"
