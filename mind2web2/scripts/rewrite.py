"""Eval scripts' syntax trees: where a verification is not waited for, and where its verdict may be seen.

Only places inside of ``async def`` are changed, and only so far that they call the hidden functions of
``deferred_reads``: a verification that is a statement of its own goes through ``deferred``, and whatever
reads results is preceded by waiting for them. What no syntax shows is caught while the script runs.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass

from mind2web2.utils.installation import is_installed

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
        "ledger",
        "blocked_as",
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

# What of asyncio neither starts tasks nor limits their time; gather only where it is awaited at once.
_HARMLESS = frozenset(
    {
        *("gather", "sleep", "run", "iscoroutine", "iscoroutinefunction", "CancelledError", "TimeoutError"),
        *("Semaphore", "BoundedSemaphore", "Lock", "Event"),
    }
)
_CONCURRENT_MODULES = frozenset(
    {"threading", "concurrent", "multiprocessing", "anyio", "trio", "gevent", "greenlet", "_thread"}
)
# What changes a page cache: a verification asked for earlier must not see it.
_CACHE_WRITES = frozenset({"put_web", "put_pdf", "put_capture", "copy_page"})
# Methods of page caches, clients and browsers, and what passes for any method: a script's own may count.
_SERVICES = frozenset(
    {
        *("has", "get_web", "get_pdf", "async_response", "chat", "ask", "capture", "capture_page"),
        *("__getattr__", "__getattribute__"),
    }
)
# What a script is handed, which another attempt would be handed as the first one left it.
_HANDED_IN = frozenset({"client", "cache", "semaphore"})


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
        elif isinstance(node, ast.Assign) and any(
            isinstance(part, ast.Lambda) for part in ast.walk(node.value)
        ):
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


def _is_name(node: ast.AST, names: Set[str]) -> bool:
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
        if node.attr in self._readers and isinstance(node.ctx, ast.Load):
            # A property or method of the script's own, whatever else has such a name.
            node.value = self._awaited(self._names.settled, node.value)
        elif node.attr in _RESULTS or node.attr in _COMMON:
            node.value = self._awaited(self._names.read, node.value)
        elif _shows_requests(node):
            node.value = self._awaited(self._names.settled, node.value)
        elif node.attr == "gather":
            # Whatever the script runs at the same time begins when all before it is decided.
            node.value = self._awaited(self._names.settled, node.value)
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


# What leaves no choice but program order, from the first line on


def needs_program_order(tree: ast.Module) -> bool:
    """Tell whether nothing in a script may be deferred.

    It may start tasks or threads that go on beside what it awaits, store pages, bring a cache, a client or
    a browser of its own, or leave something behind where another attempt would find it.
    """
    lasting = _imported_names(tree) | _HANDED_IN
    return _runs_things_itself(tree) or any(
        _writes_pages(node) or _is_service(node) or _leaves_behind(node, lasting) for node in ast.walk(tree)
    )


def _writes_pages(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _CACHE_WRITES
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _CACHE_WRITES


def _is_service(node: ast.AST) -> bool:
    """Tell whether a class may stand for what a verification asks, with an eye on how often it is asked."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name in _SERVICES
        for part in node.body
    )


def _leaves_behind(node: ast.AST, lasting: frozenset[str]) -> bool:
    """Tell whether something is set that outlives the script's module."""
    if isinstance(node, ast.Subscript) and _is_name(node.value, _HANDED_IN):
        return False  # none of these has items: it is a mapping of the script's own
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _root_name(node) in lasting
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        return node.func.id in ("setattr", "delattr") and _root_name(node.args[0]) in lasting
    return False


def _root_name(node: ast.expr) -> str | None:
    """Return the name that a chain of attributes and items begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _imported_names(tree: ast.Module) -> frozenset[str]:
    def names() -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    yield (alias.asname or alias.name).partition(".")[0]

    return frozenset(names())


def _runs_things_itself(tree: ast.Module) -> bool:
    """Tell whether a script may start tasks or threads that go on beside what it awaits."""
    asyncio_names, gathers, awaited = {"asyncio"}, 0, 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = {alias.name.partition(".")[0] for alias in node.names}
            asyncio_names |= {alias.asname or alias.name for alias in node.names if alias.name == "asyncio"}
            if modules & _CONCURRENT_MODULES or any(
                alias.name.startswith("asyncio.") for alias in node.names
            ):
                return True
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] in _CONCURRENT_MODULES or module.startswith("asyncio."):
                return True
            if module == "asyncio" and any(
                alias.name not in _HARMLESS or alias.asname not in (None, alias.name) for alias in node.names
            ):
                return True
    bare = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_name(node.value, asyncio_names):
            bare -= 1
            gathers += node.attr == "gather"
            if node.attr not in _HARMLESS:
                return True
        elif _is_name(node, asyncio_names):
            bare += 1
        elif _is_name(node, {"gather"}):
            gathers += 1
        elif isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            awaited += _is_gather(node.value.func, asyncio_names)
    return bare != 0 or gathers != awaited


def _is_gather(function: ast.expr, asyncio_names: set[str]) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr == "gather" and _is_name(function.value, asyncio_names)
    return _is_name(function, {"gather"})


def imports_own_modules(tree: ast.Module) -> bool:
    """Tell whether a script may import modules from outside the installation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or "."}
        else:
            names = {"."} if _is_name(node, {"importlib", "__import__", "exec", "eval"}) else set()
        if any(not _is_installed_module(name.partition(".")[0]) for name in names):
            return True
    return False


def _is_installed_module(name: str) -> bool:
    if name in sys.stdlib_module_names or name == "mind2web2":
        return True
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    return any(place is not None and is_installed(place) for place in places)
