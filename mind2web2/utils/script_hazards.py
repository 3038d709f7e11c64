"""What in an eval script's syntax leaves no choice but program order, from its first line on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

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


def _is_name(node: ast.AST, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names
