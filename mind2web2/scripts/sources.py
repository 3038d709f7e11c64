"""The files that a script consists of, and the parts of it that depend on more than these.

A script that uses pure modules only (``pure_modules``) gives the same tree for the same answer,
pages and judgments. Any other may read files, clock, environment or network: only running it again
tells the truth.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from threading import Lock

from mind2web2.errors import EvalScriptError
from mind2web2.scripts.aliases import own_script_aliases, rename_imports
from mind2web2.scripts.load import parsed_script
from mind2web2.scripts.pure_modules import (
    ANNOTATIONS_ONLY,
    IMPURE_ATTRIBUTES,
    IMPURE_BUILTINS,
    is_pure_module,
    is_pure_name,
)
from mind2web2.utils.names import name_list

_UNPARSED = "code that cannot be parsed"
# These functions look up attributes whose names may be computed.
_LOOKUPS = frozenset({"attrgetter", "getattr", "hasattr", "methodcaller"})


@dataclass(frozen=True)
class ScriptSources:
    """The files that a script consists of.

    Args:
        helpers: checksums of the files beside the script that it imports, by path from its folder.
        impure: the modules and names for which it has to run again.
    """

    helpers: Mapping[str, str]
    impure: tuple[str, ...]

    @property
    def why_run_again(self) -> str | None:
        """Return why only running the script again tells whether a result holds, in one phrase."""
        if not self.impure:
            return None
        return f"its script uses {name_list(self.impure)} and was run again"


def search_path(script_path: Path) -> list[str]:
    """Return where Python looks for a script's imports: last of all, in the script's own folder."""
    return [*sys.path, os.path.abspath(script_path.parent)]  # noqa: PTH100 (links stay)


def script_sources(script_path: Path) -> ScriptSources:
    """Return the sources of a script or rubric file; reads its helper files.

    Raises:
        OSError: the script cannot be read.
    """
    folder = search_path(script_path)[-1]
    aliases = tuple(sorted(own_script_aliases().items()))
    helpers: dict[str, str] = {}
    impure: set[str] = set()
    seen = {script_path}
    waiting = [_Module(script_path, "")]
    while waiting:
        module = waiting.pop()
        source = module.path.read_bytes()
        if module.path != script_path:
            name = os.path.relpath(module.path, folder)
            helpers[name] = hashlib.sha256(source).hexdigest()
        uses = _uses_of(source, module.path, aliases)
        impure |= uses.impure
        for wanted in uses.imports:
            found = _helpers(module.absolute(wanted), script_path)
            if not found:
                impure.add(wanted.text)
            waiting += [each for each in found if each.path not in seen]
            seen.update(each.path for each in found)
    return ScriptSources(dict(sorted(helpers.items())), tuple(sorted(impure)))


@dataclass(frozen=True)
class _Import:
    """An import that may be of a helper file.

    Args:
        members: the names that are taken from the module, each of which may be a module.
        level: of a relative import.
    """

    module: str
    members: tuple[str, ...] = ()
    level: int = 0

    @property
    def text(self) -> str:
        return "." * self.level + self.module


# Two threads that empty Python's import caches at once raise KeyError.
_IMPORT_CACHES = Lock()


@dataclass(frozen=True)
class _Module:
    """A file of the script's, and the package that relative imports in it start from."""

    path: Path
    package: str

    def absolute(self, name: _Import) -> _Import:
        if not name.level:
            return name
        parts = self.package.split(".")
        base = ".".join(parts[: len(parts) - name.level + 1])
        return _Import(".".join(filter(None, (base, name.module))), name.members)


def _helpers(wanted: _Import, script_path: Path) -> list[_Module]:
    """Return the files beside the script that an import loads.

    None where it loads anything else.
    """
    with _IMPORT_CACHES:
        # Files may be new since the last look.
        invalidate_caches()
    found = _files_of(wanted.module, script_path)
    if found is None:
        return []
    for member in wanted.members:
        # Without a file, the member is a name in the module.
        found += _files_of(f"{wanted.module}.{member}", script_path) or []
    return list(dict.fromkeys(found))


def _files_of(module: str, script_path: Path) -> list[_Module] | None:
    """Return the files of a module and its packages, ``None`` if one is not beside the script."""
    places = search_path(script_path)
    folder, package = places[-1], ""
    found = []
    for part in module.split("."):
        name = f"{package}.{part}" if package else part
        spec = PathFinder.find_spec(name, places)
        if spec is None:
            return None
        if spec.origin is not None:
            path = Path(spec.origin)
            if path.suffix != ".py" or not path.is_relative_to(folder):
                return None
            is_package = spec.submodule_search_locations is not None
            found.append(_Module(path, name if is_package else package))
        package, places = name, list(spec.submodule_search_locations or ())
    return found


@dataclass(frozen=True)
class _Uses:
    """The imports that may be helper files, and the impure names of one file."""

    imports: tuple[_Import, ...]
    impure: frozenset[str]


@lru_cache(maxsize=256)
def _uses_of(source: bytes, path: Path, _aliases: tuple[tuple[str, str], ...]) -> _Uses:
    """Return what a file uses, by its text.

    Args:
        _aliases: that were set; the imports depend on them.
    """
    try:
        tree = parsed_script(source, path)
        rename_imports(tree)
    except (SyntaxError, ValueError, RecursionError, EvalScriptError):
        return _Uses((), frozenset({_UNPARSED}))
    reading = _Reading()
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            reading.read_import(node)
    annotations = {id(each) for node in nodes for each in _in_annotations(node)}
    for node in nodes:
        reading.read(node, is_annotation=id(node) in annotations)
    return _Uses(tuple(dict.fromkeys(reading.imports)), frozenset(reading.impure()))


@dataclass
class _Reading:
    """The part of a file that was read so far.

    Args:
        modules: the pure modules that names stand for.
        impure_names: the impure modules, and names of modules, that names stand for.
        bases: nodes of names whose attribute is taken.
        texts: all texts, which may be names of attributes that are looked up.
    """

    imports: list[_Import] = field(default_factory=list)
    modules: dict[str, set[str]] = field(default_factory=dict)
    impure_names: dict[str, str] = field(default_factory=dict)
    annotations_only: set[str] = field(default_factory=set)
    bases: set[int] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    looks_up: bool = False
    found: set[str] = field(default_factory=set)

    def read_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note the modules that an import binds."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._import_module(alias)
        elif node.level or not _is_known(node.module or ""):
            members = tuple(alias.name for alias in node.names)
            self.imports.append(_Import(node.module or "", members, node.level))
        else:
            for alias in node.names:
                self._import_name(str(node.module), alias)

    def _import_module(self, alias: ast.alias) -> None:
        top = alias.name.partition(".")[0]
        if is_pure_module(alias.name):
            whole = top if alias.asname is None else alias.name
            self.modules.setdefault(alias.asname or top, set()).add(whole)
        elif _is_known(alias.name):
            self.impure_names[alias.asname or top] = alias.name
        else:
            self.imports.append(_Import(alias.name))

    def _import_name(self, module: str, alias: ast.alias) -> None:
        name, whole = alias.asname or alias.name, f"{module}.{alias.name}"
        if is_pure_module(whole):
            self.modules.setdefault(name, set()).add(whole)
        elif alias.name == "*":
            self.found.add(whole)
        elif not is_pure_name(module, alias.name):
            self.impure_names[name] = whole
        elif alias.name in ANNOTATIONS_ONLY:
            self.annotations_only.add(name)
        if alias.name in _LOOKUPS:
            self.looks_up = True

    def read(self, node: ast.AST, *, is_annotation: bool) -> None:
        """Note the names that a node uses; a node comes before those in it."""
        match node:
            case ast.Attribute():
                self._read_attribute(node)
            case ast.Name(id=name):
                self._read_name(name, node, is_annotation=is_annotation)
            case ast.Constant(value=str(text)):
                self.texts.update(text.split("."))
            case ast.MatchClass(kwd_attrs=names):
                self.found.update(IMPURE_ATTRIBUTES.intersection(names))

    def _read_attribute(self, node: ast.Attribute) -> None:
        if node.attr in IMPURE_ATTRIBUTES:
            self.found.add(f".{node.attr}")
        if node.attr in _LOOKUPS:
            self.looks_up = True
        for module in self._modules_of(node.value):
            if isinstance(node.value, ast.Name):
                self.bases.add(id(node.value))
            is_known = is_pure_module(f"{module}.{node.attr}") or (
                is_pure_name(module, node.attr) and node.attr not in ANNOTATIONS_ONLY
            )
            if not is_known:
                self.found.add(f"{module}.{node.attr}")

    def _modules_of(self, node: ast.expr) -> set[str]:
        """Return the pure modules that an expression stands for."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, set())
        if not isinstance(node, ast.Attribute):
            return set()
        whole = {f"{module}.{node.attr}" for module in self._modules_of(node.value)}
        return {name for name in whole if is_pure_module(name)}

    def _read_name(self, name: str, node: ast.Name, *, is_annotation: bool) -> None:
        if name in IMPURE_BUILTINS:
            self.found.add(name)
        if name in _LOOKUPS:
            self.looks_up = True
        if not isinstance(node.ctx, ast.Load):
            return
        if name in self.impure_names:
            self.found.add(self.impure_names[name])
        if name in self.modules and id(node) not in self.bases:
            self.found.add(f"{name} as a value")
        if name in self.annotations_only and not is_annotation:
            self.found.add(name)

    def impure(self) -> set[str]:
        """Return the impure names."""
        if not self.looks_up:
            return self.found
        named = self.texts & (IMPURE_ATTRIBUTES | IMPURE_BUILTINS)
        return self.found | {f".{name}" for name in named}


def _is_known(module: str) -> bool:
    """Tell whether a module is of Python, of the toolkit or listed.

    A known module is not a helper file of the script.
    """
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top == "mind2web2" or is_pure_module(module)


def _in_annotations(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a node's annotations."""
    found = [getattr(node, name, None) for name in ("annotation", "returns")]
    for annotation in found:
        if isinstance(annotation, ast.expr):
            yield from ast.walk(annotation)
