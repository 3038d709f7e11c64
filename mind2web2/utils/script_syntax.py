"""Eval scripts' syntax trees: where a verification is not waited for, and where its verdict may be seen.

Only places inside of ``async def`` are changed, and only so far that they call the hidden functions of
``deferred_reads``: a verification that is a statement of its own goes through ``deferred``, and whatever
reads results is preceded by waiting for them. What no syntax shows is caught while the script runs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeVar

from mind2web2.utils.script_hazards import needs_program_order

VERIFYING = frozenset({"verify", "batch_verify", "simple_verify", "verify_by_url", "verify_by_urls"})

# Attributes that show verdicts, whatever else in a script may have such a name.
_RESULTS = frozenset(
    {
        "score",
        "status",
        "evidence",
        "verdict",
        "aggregated_score",
        "compute_score",
        "get_summary",
        "has_blocking_leaf",
        "blocking_children",
        "blocking_critical_children",
        *("ledger", "abandoned"),
    }
)
# Those of nodes and caches that objects of other kinds have as often: what they belong to is looked at.
_COMMON = frozenset(
    {
        *("model_dump", "model_dump_json", "model_copy", "dict", "json", "copy", "__dict__"),
        *("has", "has_web", "has_pdf", "get_web", "get_pdf", "get_all_urls", "summary", "digest"),
        *("clear", "save"),
    }
)
# Those of them that hardly anything but a page cache has, and that show what has been captured.
_CACHE_READS = frozenset({"has", "has_web", "has_pdf", "get_web", "get_pdf", "get_all_urls"})
# What a script asks its client for; whatever else that has may tell what it has been asked.
_CLIENT_CALLS = frozenset({"async_response", "response"})
# With one of these in a script, any name may be read.
_NAME_READERS = frozenset({"locals", "vars", "globals", "eval", "exec", "dir", "inspect", "_getframe"})
_ONLY_READ = ast.Load()

Expression = TypeVar("Expression", bound=ast.expr)


@dataclass(frozen=True)
class HiddenNames:
    """Names in a script's module that the script itself does not use.

    Args:
        deferred: awaits a verification or defers it.
        read: returns what it is given once its results may be seen.
        settled: returns what it is given once there is nothing under way.
        in_program_order: a context manager in which nothing is deferred.
    """

    deferred: str
    read: str
    settled: str
    in_program_order: str

    @classmethod
    def unused_in(cls, source: str) -> HiddenNames:
        """Return names that occur nowhere in a script."""
        number = 0
        while (stem := f"__mind2web2_{number}_") in source:
            number += 1
        # Ending in underscores, so that they are the same inside of classes.
        return cls(*(f"{stem}{name}__" for name in ("deferred", "read", "settled", "in_program_order")))


def defer_verifications(tree: ast.Module, names: HiddenNames) -> bool:
    """Change a script's tree and return ``True``, or leave it as it is where that would not be safe."""
    if needs_program_order(tree):
        return False
    rewriter = _Rewriter(names, _readers(tree), _names_never_read(tree))
    for node in ast.walk(tree):
        # Nested ones are found first by none: each changes its own statements only.
        if isinstance(node, ast.AsyncFunctionDef):
            node.body = [rewriter.statement(statement) for statement in node.body]
    ast.fix_missing_locations(tree)
    return True


def _is_verifying(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in VERIFYING


def _readers(tree: ast.Module) -> frozenset[str]:
    """Return the names of a script's own synchronous functions that read results, themselves or by others."""
    bodies: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            bodies.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    bodies.setdefault(target.id, []).append(node.value)
    known: frozenset[str] = frozenset()
    while True:
        found = frozenset(
            name for name, nodes in bodies.items() if any(_reads_results(node, known) for node in nodes)
        )
        if found == known:
            return known
        known = found


def _reads_results(node: ast.AST, readers: frozenset[str]) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and (
            part.attr in _RESULTS
            or part.attr in _CACHE_READS
            or part.attr in readers
            or part.attr == "__dict__"
            or _shows_requests(part)
        ):
            return True
        if isinstance(part, ast.Name) and (part.id in readers or part.id == "vars"):
            return True
        if isinstance(part, ast.Call) and _is_getting_result(part):
            return True
    return False


def _shows_requests(node: ast.Attribute) -> bool:
    """Tell whether something of the client is looked at, which may count its requests."""
    return _is_name(node.value, {"client"}) and node.attr not in _CLIENT_CALLS


def _is_getting_result(call: ast.Call) -> bool:
    """Tell whether this is ``getattr`` with a result's name."""
    return (
        _is_name(call.func, {"getattr"})
        and len(call.args) > 1
        and isinstance(call.args[1], ast.Constant)
        and call.args[1].value in _RESULTS | _COMMON
    )


def _is_name(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _names_never_read(tree: ast.Module) -> set[str]:
    """Return names that a script assigns to and looks at nowhere, whatever function they belong to."""
    assigned: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (assigned if isinstance(node.ctx, ast.Store) else read).add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read.add(node.target.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            read.update(node.names)
        elif isinstance(node, ast.Attribute):
            read.add(node.attr)  # a class's names are its attributes, and modules have some of those above
        elif isinstance(node, ast.alias):
            read.update((node.name.partition(".")[0], node.asname or node.name))
    return set() if read & _NAME_READERS else assigned - read


class _Rewriter(ast.NodeTransformer):
    """Changes the statements of one ``async def``; what runs apart from them is left alone."""

    def __init__(self, names: HiddenNames, readers: frozenset[str], never_read: set[str]) -> None:
        self._names = names
        self._readers = readers
        self._never_read = never_read

    def statement(self, statement: ast.stmt) -> ast.stmt:
        """Return a statement with its reads and verifications changed."""
        changed: ast.stmt = self.visit(statement)
        return changed

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Defer a verification that stands by itself."""
        self.generic_visit(node)
        self._defer(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Defer a verification whose verdict goes to a name that nobody reads."""
        self.generic_visit(node)
        if all(_is_name(target, self._never_read) for target in node.targets):
            self._defer(node.value)
        return node

    def _defer(self, value: ast.expr) -> None:
        call = value.value if isinstance(value, ast.Await) else None
        if isinstance(call, ast.Call) and _is_verifying(call.func):
            call.args.insert(0, call.func)
            call.func = self._hidden(self._names.deferred, call.func)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Wait before a result is read or replaced."""
        self.generic_visit(node)
        if node.attr in _RESULTS or node.attr in _COMMON:
            node.value = self._awaited(self._names.read, node.value)
        elif _shows_requests(node):
            node.value = self._awaited(self._names.settled, node.value)
        elif node.attr == "gather":
            # Whatever the script runs at the same time begins when all before it is decided.
            node.value = self._awaited(self._names.settled, node.value)
        elif node.attr in self._readers and isinstance(node.ctx, ast.Load):
            return self._awaited(self._names.settled, node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Wait before a function that reads results is called or passed on."""
        waits = node.id in self._readers or node.id in ("gather", "vars")
        return self._awaited(self._names.settled, node) if waits and isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Wait before a result is looked up by its name."""
        self.generic_visit(node)
        if _is_getting_result(node):
            node.args[0] = self._awaited(self._names.read, node.args[0])
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Wait before a function that reads results is made: usually it is called at once."""
        return self._awaited(self._names.settled, node) if _reads_results(node, self._readers) else node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """Wait before its first source is looked at, which happens outside of it."""
        reads = _reads_results(node, self._readers)
        node.generators[0].iter = self.visit(node.generators[0].iter)
        if reads:
            node.generators[0].iter = self._awaited(self._names.settled, node.generators[0].iter)
        return node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        """Finish before the script holds on to something, and defer nothing while it does."""
        self.generic_visit(node)
        first = node.items[0].context_expr
        call = ast.Call(func=self._hidden(self._names.in_program_order, first), args=[], keywords=[])
        node.items.insert(0, ast.withitem(context_expr=ast.copy_location(call, first)))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave the annotation alone: it may hold no ``await``."""
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
            if _is_name(node.target, self._never_read):
                self._defer(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave the pattern alone, likewise."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = [self.statement(statement) for statement in node.body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave it alone: there is no waiting in there."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Leave it alone, likewise."""
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Leave it alone: it has its own turn."""
        return node

    def _awaited(self, name: str, value: ast.expr) -> ast.expr:
        call = ast.Call(func=self._hidden(name, value), args=[value], keywords=[])
        return ast.copy_location(ast.Await(value=ast.copy_location(call, value)), value)

    def _hidden(self, name: str, place: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Name(id=name, ctx=_ONLY_READ), place)
