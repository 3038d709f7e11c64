"""Packages that only some users need, and install as an extra."""

from __future__ import annotations


def missing_extra(what: str, package: str, extra: str) -> str:
    """Return what a user reads if something needs a package that is not there."""
    return (
        f"{what} needs the package {package}: run `pip install 'mind2web2[{extra}]'`, or in a clone "
        f"`uv sync --extra {extra}`"
    )
