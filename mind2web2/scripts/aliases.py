"""Packages that scripts import under another name.

An example is a copy of this toolkit in another benchmark.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

BUILT_IN = {"obj_task_eval": "mind2web2", "cap_eval": "mind2web2"}

_own: dict[str, str] = {}


def set_script_aliases(aliases: Mapping[str, str]) -> None:
    """Let scripts of this process import packages under further names, in place of earlier ones."""
    _own.clear()
    _own.update(aliases)


def own_script_aliases() -> dict[str, str]:
    """Return the names that were set, without those that are built in."""
    return dict(_own)


def rename_imports(tree: ast.Module) -> None:
    """Let a script's imports of an alias import the package that it stands for."""
    aliases = BUILT_IN | _own
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            node.module = _new_name(node.module, aliases) or node.module
        elif isinstance(node, ast.Import):
            node.names = [new for name in node.names for new in _imports(name, aliases)]


def _new_name(module: str, aliases: Mapping[str, str]) -> str | None:
    package, dot, rest = module.partition(".")
    if package in aliases:
        return f"{aliases[package]}{dot}{rest}"
    return None


def _imports(name: ast.alias, aliases: Mapping[str, str]) -> Iterator[ast.alias]:
    renamed = _new_name(name.name, aliases)
    if renamed is None:
        yield name
        return
    package = name.name.partition(".")[0]
    if name.asname is not None:
        yield _alias(renamed, name.asname, name)
        return
    if renamed != aliases[package]:
        # ``import a.b`` binds ``a``, and loads ``a.b``.
        yield _alias(renamed, None, name)
    yield _alias(aliases[package], package, name)


def _alias(name: str, asname: str | None, place: ast.alias) -> ast.alias:
    return ast.copy_location(ast.alias(name=name, asname=asname), place)
