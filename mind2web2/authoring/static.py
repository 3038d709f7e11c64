"""Text rules: what the text of a script or rubric file shows to be wrong.

The eval script or rubric file is not run for this.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections import defaultdict
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
    "R202": ("sources without a gate", "add a critical test that there are any"),
    "R305": ("leaf never judged", "verify it, or decide it by code"),
}
# ``builtins`` has the other names of a module, such as __name__.
_MODULE_NAMES = {*dir(builtins), "__file__", "__path__"}
_IGNORED = re.compile(r"#\s*(?:lint|rehearse):\s*ignore(?:\[([\w ,]*)\])?")
_TESTS = ("add_custom_node", "add_existence_node")
# How far names are followed to what they stand for.
_MAX_STEPS = 4
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

    @property
    def is_certain(self) -> bool:
        """Tell whether a run that finds nothing does not refute it."""
        return self.rule in ("R101", "R102")

    def __str__(self) -> str:
        """Return one line with the cure."""
        name, cure = RULES[self.rule]
        return f"{self.rule} {name}: {self.detail}{cure and f'; {cure}'}"


def remarks_on(path: Path) -> list[Remark]:
    """Return the remarks on an eval script or rubric file, without those that a comment ignores."""
    content = read_regular_file(path)
    found = _rubric_faults(content, path) if path.suffix == RUBRIC_SUFFIX else _faults(content)
    lines = content.decode("utf-8", "replace").splitlines()
    return [
        Remark(path, line, rule, " ".join(detail.split()))
        for line, rule, detail in found
        if not _is_ignored(lines, line, rule)
    ]


def _is_ignored(lines: list[str], line: int, rule: str) -> bool:
    """Tell whether a comment on the line, or alone on the one above, ignores the rule."""
    above = [text for text in lines[max(line - 2, 0) : line - 1] if text.strip().startswith("#")]
    comments = (_IGNORED.search(text) for text in [*lines[line - 1 : line], *above])
    return any(each and (each[1] is None or rule in each[1]) for each in comments)


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
    return sorted(
        {*_undefined_names(tree, table), *_find_ungated_sources(tree), *_find_unjudged_leaves(tree)}
    )


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


def _calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(attr=name)) if name in names:
                yield node


def _argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    return given.get(name, call.args[position] if len(call.args) > position else None)


def _find_ungated_sources(tree: ast.Module) -> Iterator[_Found]:
    """Find sources that are a field of an extraction, and that nothing tests."""
    stands_for: dict[str, list[ast.AST]] = defaultdict(list)
    gated: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    stands_for[target.id].append(node.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            stands_for[node.name].append(node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            gated |= _names(node.test)
    for call in _calls(tree, *_TESTS):
        critical = _argument(call, "critical", 4)
        is_gate = not (isinstance(critical, ast.Constant) and critical.value is False)
        result = _argument(call, "result", 0)
        if is_gate and result is not None:
            gated |= _names(result)
    for _ in range(_MAX_STEPS):
        values = [value for name in gated for value in stands_for.get(name, ())]
        gated = gated.union(*map(_names, values))
    for call in _calls(tree, "verify"):
        sources = _argument(call, "sources", 2)
        field = sources
        if isinstance(sources, ast.Name) and len(stands_for[sources.id]) == 1:
            field = stands_for[sources.id][0]  # type: ignore[assignment]
        if isinstance(field, ast.Attribute) and field.attr not in gated and sources is not None:
            yield call.lineno, "R202", f"sources={ast.unparse(sources)}"


def _names(expression: ast.AST) -> set[str]:
    nodes = list(ast.walk(expression))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def _find_unjudged_leaves(tree: ast.Module) -> Iterator[_Found]:
    """Find leaves that no name leads to, or one that is never read."""
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(attr="add_leaf")) as call):
                pass
            case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(attr="add_leaf")) as call):
                if name in read:
                    continue
            case _:
                continue
        is_decided = _argument(call, "score", 4) or _argument(call, "status", 5)
        if not is_decided:
            named = _argument(call, "id", 0)
            yield node.lineno, "R305", ast.unparse(named) if named else "the node"
