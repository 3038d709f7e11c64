"""The environment of scripts' processes: what programs need to run, and nothing that is secret."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

# By name rather than by what looks like a secret: a key may have any name.
_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NO_PROXY", "no_proxy"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONUTF8"),
    }
)
# Locale settings, and those by which coverage is measured in processes that a test starts.
_KEPT_BEGINNINGS = ("LC_", "COVERAGE_")
# The way out of many networks; with a password in it, it is a secret.
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})

_PR_SET_DUMPABLE = 4


def hide_from_scripts() -> None:
    """Keep other processes of the same user out of this one's memory and environment (Linux), root aside."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def scrubbed_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that scripts' processes are given."""
    kept = {name: value for name, value in variables.items() if _is_kept(name, value)}
    # Sets have the same order in every run, and so has a claim that a script builds from one.
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0"}


def withheld_proxies(variables: Mapping[str, str]) -> list[str]:
    """Return the names of the settings of proxies that are left out since they have a password."""
    return sorted(name for name, value in variables.items() if name in _PROXIES and not _is_kept(name, value))


def _is_kept(name: str, value: str) -> bool:
    if name in _PROXIES:
        return "@" not in value
    return name in _KEPT or name.startswith(_KEPT_BEGINNINGS)
