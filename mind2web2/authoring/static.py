"""Text rules: what the text of a script or rubric file shows to be wrong.

The eval script or rubric file is not run for this.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.scripts.rubric_reading import parsed_rubric
from mind2web2.scripts.yaml_lines import YamlFileError
from mind2web2.utils.files import read_regular_file

# A rule's name, and what to do.
RULES = {
    "R101": ("does not parse", ""),
    "R102": ("undefined name", "import or define it, or correct its spelling"),
}
# ``builtins`` has the other names of a module, such as __name__.
_MODULE_NAMES = {*dir(builtins), "__file__", "__path__"}
_Found = tuple[int, str, str]


@dataclass(frozen=True, order=True)
class Remark:
    """A finding of a rule in a file.

    Args:
        line: from 1.
        detail: what the line shows.
    """

    path: Path
    line: int
    rule: str
    detail: str

    @property
    def place(self) -> str:
        """Return file and line."""
        return f"{self.path.name}:{self.line}"

    @property
    def is_error(self) -> bool:
        """Tell whether the file cannot be run."""
        return self.rule == "R101"

    def __str__(self) -> str:
        """Return one line with the cure."""
        name, cure = RULES[self.rule]
        return f"{self.rule} {name}: {self.detail}{cure and f'; {cure}'}"


def remarks_on(path: Path) -> list[Remark]:
    """Return the remarks on an eval script or rubric file."""
    content = read_regular_file(path)
    found = _rubric_faults(content, path) if path.suffix == RUBRIC_SUFFIX else _faults(content)
    return [Remark(path, line, rule, " ".join(detail.split())) for line, rule, detail in found]


def _rubric_faults(content: bytes, path: Path) -> list[_Found]:
    try:
        parsed_rubric(content, path)
    except YamlFileError as error:
        return [
            (each.line, "R101", f"{each.field}: {each.message}".removeprefix(": "))
            for each in error.problems
        ]
    return []


def _faults(source: bytes) -> list[_Found]:
    """Return the faults of an eval script, by line."""
    if not source.strip():
        return [(1, "R101", "the file is empty")]
    try:
        with warnings.catch_warnings():
            # Literals such as "\d" are the author's matter.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            table = symtable.symtable(source.decode("utf-8", "replace"), "script", "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return [(line, "R101", getattr(error, "msg", None) or str(error))]
    except (RecursionError, MemoryError):
        return [(1, "R101", "nested too deeply to be read")]
    return sorted(_undefined_names(tree, table))


def _undefined_names(tree: ast.Module, table: symtable.SymbolTable) -> Iterator[_Found]:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    if any(alias.name == "*" for node in imports for alias in node.names):
        return
    defined, missing, scopes = set(_MODULE_NAMES), set[str](), [table]
    while scopes:
        scope = scopes.pop()
        scopes.extend(scope.get_children())
        for symbol in scope.get_symbols():
            if not symbol.is_global() and scope is not table:
                continue
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                defined.add(symbol.get_name())
            elif symbol.is_referenced():
                missing.add(symbol.get_name())
    missing -= defined
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in missing:
            missing.discard(node.id)
            yield node.lineno, "R102", node.id
