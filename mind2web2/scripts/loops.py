"""Loops of a script whose end rests on replies: a pass goes round them only with certain replies.

A stand-in holds in every round, so that a loop until a claim fails, or over a number that is not
known yet, would ask questions without end. The syntax tree of a script is changed for that: in a
pass, such a loop ends the pass before its next round if the script has got a stand-in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from mind2web2.verification.stand_ins import has_mark

# Without the last two underscores, a name would be the class's own within a class.
_ROUNDS, _ROUND = "__mind2web2_rounds__", "__mind2web2_round__"
_ENDLESS, _SIZES = "__mind2web2_endless__", "__mind2web2_sizes__"
# Calls whose results say how often a loop goes round, or which items there are.
_OF_SIZES = frozenset({"len", "range", "min", "max", "islice", "list"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While)


class StandIns:
    """The pass that the script of this process is in.

    Attributes:
        are_met: tells whether the script has got a stand-in; in program order, there are none.
        end: ends the pass.
    """

    are_met: Callable[[], bool] = staticmethod(lambda: False)
    end: Callable[[], object]


def _rounds(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        yield item
        if StandIns.are_met():
            StandIns.end()


def only_known(*arguments: Any) -> tuple[Any, ...]:
    """Return the arguments; end the pass if a list or a number among them is a stand-in."""
    told = [each for each in arguments if isinstance(each, list | int | float)]
    if told and StandIns.are_met() and has_mark(repr(told)):
        StandIns.end()
    return arguments


# The names that a changed script uses.
NAMES = {_ROUNDS: _rounds, _ENDLESS: repeat(None), _SIZES: only_known}


class WatchedLoops(ast.NodeTransformer):
    """Watches the loops of a script, and what says how often they go round."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Look at the arguments of a call that tells a size."""
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        if name in _OF_SIZES and node.args:
            node.args = [ast.copy_location(ast.Starred(_call(_SIZES, node.args), ast.Load()), node)]
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        """Watch a loop over items that may end before the last one."""
        self.generic_visit(node)
        ends = _has(node, ast.Return) or _has(node, ast.Break, besides=_LOOPS)
        if ends and _has(node, ast.Await):
            node.iter = _call(_ROUNDS, [node.iter])
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        """Watch a loop that asks."""
        self.generic_visit(node)
        if node.orelse or not _has(node, ast.Await):
            return node
        stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        rounds = _call(_ROUNDS, [ast.Name(_ENDLESS, ast.Load())])
        body = [ast.copy_location(stop, node.test), *node.body]
        return ast.copy_location(ast.For(ast.Name(_ROUND, ast.Store()), rounds, body, []), node)


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _has(loop: ast.AST, kind: type[ast.AST], besides: tuple[type[ast.AST], ...] = ()) -> bool:
    """Tell whether a loop has such a node of its own, not of functions or of these in it."""
    return any(
        isinstance(node, kind)
        or (not isinstance(node, (*_SCOPES, *besides)) and _has(node, kind, besides))
        for node in ast.iter_child_nodes(loop)
    )


def watch_loops(tree: ast.Module) -> None:
    """Change a script's tree so that a loop may end the pass before it goes round again."""
    ast.fix_missing_locations(WatchedLoops().visit(tree))
