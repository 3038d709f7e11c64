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
from importlib.metadata import (
    files as files_of,
)

from mind2web2.utils.api_misuse import is_installed

_NAME = re.compile(r"[\w.-]+")
# Dependencies of ours whose modules have other names.
_OWN_MODULES = frozenset({"PIL", "bs4", "dateutil", "mind2web2", "yaml"})


def imported_versions(modules: Iterable[str]) -> dict[str, str]:
    """Return the versions of the distributions that these imported modules are from.

    Modules of Python, of the toolkit and of what it depends on are left out, like those outside of the
    installation, whose files are compared.

    Args:
        modules: whole names; what follows the name of a module counts for nothing.
    """
    found = {}
    for name in modules:
        package = name.partition(".")[0]
        if package in sys.stdlib_module_names or package in _OWN_MODULES:
            continue
        path = _first_file(name)
        if path is not None and is_installed(path):
            for distribution in _distributions_of(package, path):
                is_own = _normal(distribution) in _own_dependencies()
                present = installed_version(distribution)
                if not is_own and present is not None:
                    found[distribution] = present
    return dict(sorted(found.items()))


def _first_file(module: str) -> str | None:
    """Return the file of a module's package; a namespace package has none, but packages below it have."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        path = getattr(sys.modules.get(".".join(parts[:end])), "__file__", None)
        if path is not None:
            return str(path)
    return None


def installed_version(distribution: str) -> str | None:
    """Return the version of a distribution, ``None`` for one that is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _distributions_of(package: str, path: str) -> list[str]:
    """Return the distributions of a package, of a namespace package those that have the file."""
    is_namespace = getattr(sys.modules.get(package), "__file__", None) is None
    # Most have the package's name. To look for the others takes as long as a script's start.
    if not is_namespace and installed_version(package) is not None:
        return [package]
    found = _of_modules(tuple(sys.path)).get(package, [])
    if is_namespace:
        return [each for each in found if _has_file(each, path)]
    return found


@lru_cache(maxsize=1000)
def _has_file(distribution: str, path: str) -> bool:
    """Tell whether a distribution has a file, or does not say which ones it has."""
    files = files_of(distribution)
    return files is None or any(str(file.locate()) == path for file in files)


@lru_cache(maxsize=1)
def _of_modules(_path: tuple[str, ...]) -> dict[str, list[str]]:
    return {name: list(found) for name, found in packages_distributions().items()}


@lru_cache(maxsize=1)
def _own_dependencies() -> frozenset[str]:
    found = (_NAME.match(line) for line in requires("mind2web2") or ())
    return frozenset(_normal(match[0]) for match in found if match is not None)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
