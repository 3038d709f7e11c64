"""Installed packages that scripts import beside the toolkit's own dependencies, with their versions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import (
    PackageNotFoundError,
    packages_distributions,
    requires,
    version,
)

from mind2web2.utils.api_misuse import is_installed

_NAME = re.compile(r"[\w.-]+")
# Dependencies of ours whose modules have other names.
_OWN_MODULES = frozenset({"PIL", "bs4", "dateutil", "mind2web2", "yaml"})


def imported_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of the distributions that these imported modules are from.

    Modules of Python, of the toolkit and of what it depends on are left out, like those outside of the
    installation, whose files are compared.
    """
    found = {}
    for name in names:
        if name in sys.stdlib_module_names or name in _OWN_MODULES:
            continue
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is not None and is_installed(path):
            for distribution in _distributions_of(name):
                is_own = _normal(distribution) in _own_dependencies()
                present = installed_version(distribution)
                if not is_own and present is not None:
                    found[distribution] = present
    return dict(sorted(found.items()))


def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution, ``None`` for one that is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _distributions_of(module: str) -> list[str]:
    # Most have the module's name. To look for the others takes as long as a script's start.
    if installed_version(module) is not None:
        return [module]
    return _of_modules(tuple(sys.path)).get(module, [])


@lru_cache(maxsize=1)
def _of_modules(_path: tuple[str, ...]) -> dict[str, list[str]]:
    return {name: list(found) for name, found in packages_distributions().items()}


@lru_cache(maxsize=1)
def _own_dependencies() -> frozenset[str]:
    found = (_NAME.match(line) for line in requires("mind2web2") or ())
    return frozenset(_normal(match[0]) for match in found if match is not None)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
