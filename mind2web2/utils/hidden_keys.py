"""Keys that this process has, which other processes and users are not to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

# A constant of prctl(2).
_PR_SET_DUMPABLE = 4
# A list of names to keep rather than of secrets to drop: a key may have any name.
_KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NO_PROXY",
    "no_proxy",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "PYTHONUTF8",
)
# Locale settings, and those by which coverage is measured in processes that a test starts.
_KEPT_BEGINNINGS = ("LC_", "COVERAGE_")
# Many networks have no other way out; with a password in it, the setting is a secret.
PROXIES = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}
)


def scrubbed_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that workers and scripts' processes get."""
    kept = {
        name: value
        for name, value in variables.items()
        if name in _KEPT
        or name.startswith(_KEPT_BEGINNINGS)
        or (name in PROXIES and "@" not in value)
    }
    # Sets have the same order in every run, and so has a claim that a script builds from one.
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0"}


def hide_memory() -> None:
    """Close ``/proc/PID/environ`` and ``mem`` of this process to others, on Linux.

    Root still reads them.
    """
    if sys.platform == "linux":
        import ctypes  # most processes hide nothing

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def hide_in_process_list(argument: str) -> None:
    """Overwrite an argument of this process where other users can read it.

    Does nothing but on Linux.
    """
    secret = os.fsencode(argument)
    try:
        position = Path("/proc/self/cmdline").read_bytes().find(secret)
        # proc(5): the 48th field is the address of the arguments; the second may hold spaces.
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45])
    except (OSError, IndexError, ValueError):
        return
    if position >= 0 and start > 0:
        import ctypes

        ctypes.memset(start + position, ord("*"), len(secret))
