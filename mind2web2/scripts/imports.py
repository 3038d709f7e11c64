"""A script's imports: this package under another name, and names that the toolkit lacks.

A copy of this toolkit in another benchmark has another name, for example. Names are checked when a
script is loaded: it may import late, in a ``try`` that turns an error into a failed check, and so
into a wrong score.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

from mind2web2.utils.names import nearest_name

_ALIASES = {"obj_task_eval": "mind2web2", "cap_eval": "mind2web2"}


class _Aliases(MetaPathFinder, Loader):
    """Lets an import of an alias import the module that it stands for."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return the spec of a module below an alias."""
        return None if _own_name(name) == name else ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that is meant in the place of the new one."""
        sys.modules[module.__name__] = import_module(_own_name(module.__name__))


def _own_name(module: str) -> str:
    """Return the name of a module in this package, others unchanged."""
    package, dot, rest = module.partition(".")
    return f"{_ALIASES.get(package, package)}{dot}{rest}"


# Before the finder of files, which would find them below the package that an alias stands for.
sys.meta_path.insert(0, _Aliases())

_PACKAGE = "mind2web2"
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})


def missing_name(tree: ast.Module) -> str | None:
    """Return what is wrong with the first name that a script takes from the toolkit in vain.

    The text includes the name's line.

    An import in a ``try`` that expects an ``ImportError``, or for type checkers only, may be in
    vain.
    """
    optional = {id(each) for node in ast.walk(tree) for each in _optional_nodes(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in optional]
    modules: dict[str, str] = {}
    for node in nodes:
        for problem in _import_problems(node, modules):
            return problem
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and _is_bound(node)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name)) if name in modules.keys() - bound:
                if not _has(modules[name], node.attr):
                    return _missing(modules[name], node.attr, node.lineno)
    return None


def _optional_nodes(node: ast.AST) -> Iterator[ast.AST]:
    is_guarded = isinstance(node, ast.Try) and any(map(_expects_import_error, node.handlers))
    is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    if is_guarded or is_for_types:
        for statement in node.body:  # type: ignore[attr-defined]  # as both have
            yield from ast.walk(statement)


def _expects_import_error(handler: ast.ExceptHandler) -> bool:
    caught = ast.walk(handler.type) if handler.type is not None else ()
    return any(isinstance(each, ast.Name) and each.id in _IMPORT_ERRORS for each in caught)


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _import_problems(node: ast.AST, modules: dict[str, str]) -> Iterator[str]:
    """Yield what an import takes in vain.

    Note the modules that it binds by their names in the script.
    """
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                module = _own_name(alias.name)
                if not _is_ours(module):
                    continue
                if not _exists(module):
                    yield _no_module(module, node.lineno)
                bound = alias.name.partition(".")[0]
                modules[alias.asname or bound] = module if alias.asname else _PACKAGE
        case ast.ImportFrom(module=str(module), names=aliases, level=0) if _is_ours(module):
            module = _own_name(module)
            if not _exists(module):
                yield _no_module(module, node.lineno)
            for alias in aliases:
                name = f"{module}.{alias.name}"
                if alias.name != "*" and not _has(module, alias.name):
                    yield _missing(module, alias.name, node.lineno)
                if _exists(name):
                    modules[alias.asname or alias.name] = name


def _is_ours(module: str) -> bool:
    return _own_name(module).partition(".")[0] == _PACKAGE


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _has(module: str, name: str) -> bool:
    return hasattr(import_module(module), name) or _exists(f"{module}.{name}")


def _missing(module: str, name: str, line: int) -> str:
    owner: ModuleType = import_module(module)
    if hasattr(owner, "__path__"):
        return _no_module(f"{module}.{name}", line)
    nearest = nearest_name(name, [known for known in dir(owner) if not known.startswith("_")])
    hint = "" if nearest is None else f": did you mean {nearest!r}?"
    return f"uses {module}.{name} in line {line}, which the toolkit does not have{hint}"


def _no_module(name: str, line: int) -> str:
    return f"imports {name} in line {line}, which the toolkit does not have"
