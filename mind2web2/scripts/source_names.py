"""The names that a script's source uses, as far as they tell what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress

from mind2web2.utils.api_misuse import syntax_tree


def imported_names(source: bytes) -> set[str]:
    """Return the parts of all module names, and all names, that a module imports."""
    names: set[str] = set()
    for node in _nodes(source):
        if isinstance(node, ast.ImportFrom):
            names.update((node.module or "").split("."))
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(part for alias in node.names for part in alias.name.split("."))
    return names


def imported_modules(source: bytes) -> set[str]:
    """Return the modules that a module imports, by their whole names; of a name, it may be a module."""
    modules: set[str] = set()
    for node in _nodes(source):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def names_in(sources: Iterable[bytes]) -> Iterator[str]:
    """Yield names that are used, attributes with a dot and with their owner's name, and imported names."""
    for node in (node for source in sources for node in _nodes(source)):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield f".{node.attr}"
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name):
            yield node.id


def _nodes(source: bytes) -> Iterator[ast.AST]:
    # Of a module that is no Python the script has seen an error, and no clock.
    with suppress(SyntaxError, ValueError, RecursionError):
        yield from ast.walk(syntax_tree(source))
