"""Facts from an eval script's syntax, without running it: calls that build the tree, claims, extractions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

# Parameters by position, as scripts may give them (docs/eval-scripts.md).
PARAMETERS = {
    "initialize": ("task_id", "strategy", "agent_name", "answer_name"),
    "add_leaf": ("id", "desc", "parent", "critical", "score", "status"),
    "add_parallel": ("id", "desc", "parent", "critical"),
    "add_sequential": ("id", "desc", "parent", "critical"),
    "add_custom_node": ("result", "id", "desc", "parent", "critical"),
    "add_existence_node": ("result", "id", "desc", "parent", "critical"),
    "VerificationNode": (),
    "verify": ("claim", "node", "sources"),
    "simple_verify": ("claim", "node"),
    "verify_by_url": ("claim", "sources", "node"),
    "verify_by_urls": ("claim", "sources", "node"),
    "batch_verify": ("claims_and_sources",),
    "extract": ("prompt", "template_class", "extraction_name", "source"),
    "simple_extract": ("prompt", "template_class"),
    "extract_from_url": ("prompt", "source", "template_class"),
}
# Published names of the same parameter.
_ALIASES = {"extraction_prompt": "prompt", "url": "source", "urls": "sources"}
CUSTOM = frozenset({"add_custom_node", "add_existence_node"})
INNER = frozenset({"add_parallel", "add_sequential"})
NODES = CUSTOM | INNER | {"add_leaf", "VerificationNode"}
_VERIFYING = frozenset({"verify", "simple_verify", "verify_by_url", "verify_by_urls"})
_EXTRACTING = frozenset({"extract", "simple_extract", "extract_from_url"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Place:
    """Where a piece of syntax stands.

    Args:
        function: the innermost function around it.
        branches: the conditions around it, each with the branch that it is in and whether that branch ends
            the function or the loop.
    """

    function: Function | None = None
    branches: tuple[tuple[ast.If, bool, bool], ...] = ()

    def excludes(self, other: Place) -> bool:
        """Tell whether only one of both places is reached."""
        taken = {id(condition): branch for condition, branch, _ in self.branches}
        for condition, branch, _ in other.branches:
            if taken.get(id(condition), branch) != branch:
                return True
        return any(ends for *_, ends in (*self.branches, *other.branches))


@dataclass(frozen=True)
class CallSite:
    """A call of the toolkit's interface, with its arguments by the names of their parameters."""

    name: str
    call: ast.Call
    place: Place
    arguments: dict[str, ast.expr] = field(hash=False)

    @property
    def line(self) -> int:
        """Return the line on which the call begins."""
        return self.call.lineno

    @property
    def is_critical(self) -> bool | None:
        """Tell whether the node is critical; `None` where only a run can tell."""
        value = self.arguments.get("critical")
        if value is None:
            return self.name in CUSTOM
        if isinstance(value, ast.Constant):
            return bool(value.value)
        return None


@dataclass(frozen=True)
class ClaimSite:
    """A claim that the judge is asked, by itself or in a batch."""

    line: int
    place: Place
    claim: ast.expr | None
    sources: ast.expr | None
    instruction: ast.expr | None
    # Only a call that names them by its own name always opens a page.
    opens_page: bool = False


class ScriptFacts:
    """The facts of one script.

    Args:
        tree: its syntax tree.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.calls: list[CallSite] = []
        self.all_calls: list[tuple[ast.Call, Place]] = []
        self.assigned: dict[tuple[Function | None, str], list[ast.expr]] = {}
        self.bound_calls: dict[int, str] = {}
        self.statements: set[int] = set()
        self.loads: dict[tuple[Function | None, str], int] = {}
        self.functions: dict[str, Function] = {}
        self.tests: dict[Function | None, set[str]] = {}
        for node, place in _walk(tree):
            self._note(node, place)

    def _note(self, node: ast.AST, place: Place) -> None:
        if isinstance(node, ast.Call):
            self._note_call(node, place)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            self._note_assignment(node, place)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            key = (place.function, node.id)
            self.loads[key] = self.loads.get(key, 0) + 1
        elif isinstance(node, ast.Expr):
            self.statements.add(id(_unawaited(node.value)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions.setdefault(node.name, node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            self.tests.setdefault(place.function, set()).update(names_in(node.test))

    def _note_call(self, node: ast.Call, place: Place) -> None:
        self.all_calls.append((node, place))
        name = called_name(node)
        if name not in PARAMETERS:
            return
        given = dict(zip(PARAMETERS[name], node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg is not None:
                given[_ALIASES.get(keyword.arg, keyword.arg)] = keyword.value
        if name.endswith("_by_url") and "source" in given:
            given["sources"] = given["source"]
        self.calls.append(CallSite(name, node, place, given))

    def _note_assignment(self, node: ast.Assign | ast.AnnAssign, place: Place) -> None:
        if isinstance(node, ast.Assign):
            targets = node.targets
        else:
            targets = [node.target]
        if node.value is None:
            return
        for target in targets:
            if isinstance(target, ast.Name):
                variable = (place.function, target.id)
                self.assigned.setdefault(variable, []).append(node.value)
                self.bound_calls[id(_unawaited(node.value))] = target.id

    @cached_property
    def nodes(self) -> list[CallSite]:
        """The calls that add a node."""
        return [site for site in self.calls if site.name in NODES]

    @cached_property
    def extractions(self) -> list[CallSite]:
        """The calls that extract."""
        return [site for site in self.calls if site.name in _EXTRACTING]

    @cached_property
    def claims(self) -> list[ClaimSite]:
        """All claims, those of batches as far as they stand in the call."""
        found = []
        for site in self.calls:
            given = site.arguments
            if site.name in _VERIFYING:
                found.append(
                    ClaimSite(
                        site.line,
                        site.place,
                        given.get("claim"),
                        given.get("sources"),
                        given.get("additional_instruction"),
                        opens_page=site.name.startswith("verify_by"),
                    )
                )
            elif site.name == "batch_verify":
                found += self._batched(site)
        return found

    def _batched(self, site: CallSite) -> Iterator[ClaimSite]:
        for item in self.batch_items(site) or ():
            if isinstance(item, ast.Tuple) and len(item.elts) >= 2:
                claim, sources = item.elts[:2]
                instruction = item.elts[3] if len(item.elts) > 3 else None
                yield ClaimSite(item.lineno, site.place, claim, sources, instruction)

    def batch_items(self, site: CallSite) -> list[ast.expr] | None:
        """Return the items of a batch, appended ones as well; `None` where only a run can tell."""
        given = site.arguments.get("claims_and_sources")
        batch = self.resolved(given, site.place)
        if not isinstance(batch, ast.List | ast.Tuple):
            return None
        items = list(batch.elts)
        if isinstance(given, ast.Name):
            items += self._appended_to(given.id)
        return items or None

    def _appended_to(self, variable: str) -> Iterator[ast.expr]:
        for call, _ in self.all_calls:
            if not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr != "append" or not call.args:
                continue
            owner = call.func.value
            if isinstance(owner, ast.Name) and owner.id == variable:
                yield call.args[0]

    def resolved(self, expression: ast.expr | None, place: Place) -> ast.expr | None:
        """Return what a name stands for if it is assigned once, in its function or in the module."""
        for _ in range(4):
            if not isinstance(expression, ast.Name):
                return expression
            values = self.assigned.get((place.function, expression.id))
            values = values or self.assigned.get((None, expression.id))
            if values is None or len(values) != 1:
                return expression
            expression = values[0]
        return expression

    def text(self, expression: ast.expr | None, place: Place) -> str | None:
        """Return a literal text, with `{}` for each part that only a run can tell; `None` for others."""
        expression = self.resolved(expression, place)
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            return expression.value
        if isinstance(expression, ast.JoinedStr):
            parts = []
            for part in expression.values:
                if isinstance(part, ast.Constant):
                    parts.append(str(part.value))
                else:
                    parts.append("{}")
            return "".join(parts)
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
            left = self.text(expression.left, place)
            right = self.text(expression.right, place)
            if left is None and right is None:
                return None
            return (left or "{}") + (right or "{}")
        inner = _same_text(expression)
        return None if inner is None else self.text(inner, place)


def _same_text(expression: ast.expr | None) -> ast.expr | None:
    """Return the text that a call formats, strips or dedents."""
    if not isinstance(expression, ast.Call):
        return None
    name = called_name(expression)
    if name in {"dedent", "text_dedent"} and expression.args:
        return expression.args[0]
    method = expression.func
    if name in {"format", "strip"} and isinstance(method, ast.Attribute):
        return method.value
    return None


def called_name(call: ast.Call) -> str:
    """Return the last name of what is called, empty where it has none."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    if isinstance(call.func, ast.Name):
        return call.func.id
    return ""


def names_in(expression: ast.AST) -> set[str]:
    """Return the names and attributes in an expression."""
    names = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return names


def _unawaited(value: ast.expr) -> ast.expr:
    return value.value if isinstance(value, ast.Await) else value


def _walk(tree: ast.Module) -> Iterator[tuple[ast.AST, Place]]:
    """Yield each node with its place; without recursion, as scripts may be nested deeply."""
    waiting: list[tuple[ast.AST, Place]] = [(tree, Place())]
    while waiting:
        node, place = waiting.pop()
        yield node, place
        waiting.extend(_below(node, place))


def _below(node: ast.AST, place: Place) -> Iterator[tuple[ast.AST, Place]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        place = Place(node)
    if isinstance(node, ast.If):
        yield node.test, place
        for statements, branch in ((node.body, True), (node.orelse, False)):
            inside = (*place.branches, (node, branch, _ends(statements)))
            for statement in statements:
                yield statement, Place(place.function, inside)
        return
    for child in ast.iter_child_nodes(node):
        yield child, place


def _ends(statements: list[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    return isinstance(last, ast.Return | ast.Continue | ast.Raise | ast.Break)
