"""``mind2web2 plugins``: list the plugins that are there, and where they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mind2web2.utils.entry_points import EntryPoint, entry_points


def run(_: argparse.Namespace) -> int:
    """Print the plugins and return the exit status."""
    parts: dict[Path, list[EntryPoint]] = {}
    for part in entry_points():
        parts.setdefault(part.folder, []).append(part)
    for folder, added in parts.items():
        print(f"{added[0].plugin}: {_summary(folder)}")  # noqa: T201
        print(f"  adds {_hook_names(added)}; from {folder}")  # noqa: T201
    return 0


def _summary(folder: Path) -> str:
    """Return the line of a plugin's README, or the summary of an installed package."""
    readme, metadata = folder / "README.md", folder / "METADATA"
    if readme.exists():
        return readme.read_text(encoding="utf-8").partition("\n")[0]
    lines = metadata.read_text(encoding="utf-8").splitlines()
    summaries = (line for line in lines if line.startswith("Summary: "))
    return next(summaries, "").removeprefix("Summary: ")


def _hook_names(parts: Sequence[EntryPoint]) -> str:
    names: dict[str, list[str]] = {}
    for part in parts:
        names.setdefault(part.hook, []).append(part.name)
    return "; ".join(f"{hook} {', '.join(own)}" for hook, own in names.items())
