"""Rewritten eval scripts: calls whose results are not read yet do not hold up the next statement.

A verification whose verdict is unused is called through ``scheduling.script.deferred``. An extraction that
is assigned to a name is called through ``deferred_value``, and ``value_of`` puts the value in its place
before the first statement that mentions the name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from operator import itemgetter

_VERIFYING = frozenset(
    {"verify", "batch_verify", "simple_verify", "verify_by_url", "verify_by_urls"}
)
_EXTRACTING = frozenset({"extract"})

# With one of these in a script, any name may be read.
_NAME_READERS = frozenset(
    {"locals", "vars", "globals", "eval", "exec", "dir", "inspect", "_getframe"}
)
# The same for the names of a function alone.
_LOCAL_READERS = frozenset(
    {"locals", "eval", "exec", "inspect", "_getframe", "f_locals"}
)
# Names of functions of ``scheduling.script`` in a script's module; ending in underscores, they are not
# mangled in classes.
DEFERRED = "__mind2web2_deferred__"
DEFERRED_VALUE = "__mind2web2_deferred_value__"
VALUE_OF = "__mind2web2_value_of__"


def defer_verifications(tree: ast.Module) -> None:
    """Rewrite a script: a verification with an unused verdict is called through ``deferred``."""
    nodes = list(ast.walk(tree))
    never_read = _names_never_read(nodes)
    for node in nodes:
        call = _awaited_call(_unused_value(node, never_read), _VERIFYING)
        if call is not None:
            _call_through(call, DEFERRED)


def _awaited_call(value: ast.expr | None, names: Set[str]) -> ast.Call | None:
    """Return the call of a method with one of these names that an expression awaits."""
    call = value.value if isinstance(value, ast.Await) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call if call.func.attr in names else None


def _call_through(call: ast.Call, name: str) -> None:
    call.args.insert(0, call.func)
    call.func = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), call.func)


def _unused_value(node: ast.AST, never_read: Set[str]) -> ast.expr | None:
    """Return the value of a statement by itself, or one that is assigned to names that are never read."""
    if isinstance(node, ast.Expr):
        return node.value
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return None
    return (
        node.value if all(_is_name(target, never_read) for target in targets) else None
    )


def _names_never_read(nodes: Iterable[ast.AST]) -> set[str]:
    """Return names that a script assigns and never reads, in any of its functions."""
    assigned: set[str] = set()
    read: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            (assigned if isinstance(node.ctx, ast.Store) else read).add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read.add(node.target.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            read.update(node.names)
        elif isinstance(node, ast.Attribute):
            read.add(node.attr)  # names of a class are its attributes
        elif isinstance(node, ast.alias):
            read.update((node.name.partition(".")[0], node.asname or node.name))
    return set() if read & _NAME_READERS else assigned - read


def _is_name(node: ast.AST, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


# Extractions


def defer_extractions(tree: ast.Module) -> None:
    """Rewrite a script: an extraction that the next statement does not read is deferred until one does."""
    nodes = list(ast.walk(tree))
    if any(map(_may_read_any, nodes)):
        return
    for node in nodes:
        if isinstance(node, ast.AsyncFunctionDef):
            _defer_in_function(node)


def _may_read_any(node: ast.AST) -> bool:
    """Tell whether a node may read the names of a function in another way than by a mention."""
    if isinstance(node, ast.Call) and not node.args:
        return _is_name(node.func, {"vars"})
    if isinstance(node, ast.alias):
        return not _LOCAL_READERS.isdisjoint((node.name, node.asname))
    if isinstance(node, ast.Attribute):
        return node.attr in _LOCAL_READERS
    return _is_name(node, _LOCAL_READERS)


def _defer_in_function(function: ast.AsyncFunctionDef) -> None:
    """Defer the extractions of a function whose names are mentioned in one block of it only."""
    refused = _names_of_other_scopes(function)
    everywhere = _mentions(function)
    for block in _blocks(function):
        mentioned = [_mentions(statement) for statement in block]
        settled: list[tuple[int, ast.stmt]] = []
        for place, statement in enumerate(block):
            name, call = _extraction(statement)
            if call is None or name in refused:
                continue
            uses = [n for n, names in enumerate(mentioned) if name in names]
            is_in_block = sum(names.count(name) for names in mentioned) == (
                everywhere.count(name)
            )
            next_use = min((use for use in uses if use > place), default=None)
            if (
                is_in_block
                and _assigns_anew(block[uses[0]], name)
                and next_use != place + 1
            ):
                _call_through(call, DEFERRED_VALUE)
                if next_use is not None:
                    settled.append((next_use, _settlement(name, statement)))
        for place, each in sorted(settled, key=itemgetter(0), reverse=True):
            block.insert(place, each)


def _settlement(name: str, extraction: ast.stmt) -> ast.stmt:
    """Return the statement that puts a value in its place."""
    statement = ast.parse(f"{name} = await {VALUE_OF}({name})").body[0]
    for node in ast.walk(statement):
        ast.copy_location(node, extraction)  # an error is one of the extraction
    return statement


def _extraction(statement: ast.stmt) -> tuple[str, ast.Call | None]:
    """Return the name to which a statement assigns an extraction, and the call."""
    name = _assigned_name(statement)
    value = getattr(statement, "value", None)
    return name, _awaited_call(value, _EXTRACTING) if name else None


def _assigned_name(statement: ast.stmt) -> str:
    """Return the one name that a statement assigns a value to, and else nothing."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target = statement.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _assigns_anew(statement: ast.stmt, name: str) -> bool:
    """Tell whether a statement gives a name its value, whatever value it had, such as in a loop before."""
    is_target = _assigned_name(statement) == name
    return is_target and _mentions(statement).count(name) == 1


def _blocks(function: ast.AsyncFunctionDef) -> Iterator[list[ast.stmt]]:
    """Return the lists of statements of a function, without those of functions in it."""
    for node in _own_nodes(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.GeneratorExp,
)


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Return a function and its parts, without the parts of scopes in it that may run later."""
    yield function
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, _SCOPES):
            yield from _own_nodes(child)


def _mentions(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def _names_of_other_scopes(function: ast.AsyncFunctionDef) -> set[str]:
    """Return names that are shared with another scope, or bound by other means than a mention."""
    names: set[str] = set()
    for node in ast.walk(function):
        if node is not function and isinstance(node, _SCOPES):
            names.update(_mentions(node), [getattr(node, "name", "")])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            names.update(node.names)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names.add(node.name or "")
        elif isinstance(node, ast.MatchMapping):
            names.add(node.rest or "")
    return names
