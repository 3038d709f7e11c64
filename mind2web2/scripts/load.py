"""Eval scripts: read from disk, rewritten, compiled and imported under a name of their own.

The rewriting lets verifications be deferred. Only ``async def`` functions are changed: a verification whose
result is unused is called through ``scheduler.deferred``, and visible reads of results first wait for them.
Reads that the syntax does not show refuse the attempt while the script runs (``scheduling.scheduler``).
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import warnings
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from mind2web2.errors import EvalScriptError
from mind2web2.scheduling import scheduler
from mind2web2.scheduling.scheduler import EvaluateAnswer
from mind2web2.utils.text import parsed

VERIFYING = frozenset({"verify", "batch_verify", "simple_verify", "verify_by_url", "verify_by_urls"})

# Attributes that show verdicts or pages; objects of other kinds may have them too.
_VERDICTS = frozenset(
    {"score", "status", "evidence", "verdict", "aggregated_score", "compute_score", "get_summary"}
)
_SHOWING = _VERDICTS | frozenset(
    {
        *("has_blocking_leaf", "blocked_as", "ledger", "__dict__", "digest", "clear", "save"),
        *("model_dump", "model_dump_json", "dict", "json", "copy"),
        *("has", "has_web", "has_pdf", "get_web", "get_pdf", "get_all_urls", "summary"),
    }
)
# With one of these in a script, any name may be read.
_NAME_READERS = frozenset({"locals", "vars", "globals", "eval", "exec", "dir", "inspect", "_getframe"})
# Arguments of a script that another attempt receives as well.
_RECEIVED = frozenset({"client", "cache", "semaphore"})
_CONCURRENT = frozenset({"threading", "_thread", "concurrent", "multiprocessing"})
# Functions of asyncio that start no task.
_WITHOUT_TASKS = frozenset({"sleep", "Semaphore", "BoundedSemaphore", "Lock", "Event"})


@dataclass(frozen=True)
class HiddenNames:
    """Names in a script's module that the script itself does not use, for functions of ``scheduler``."""

    deferred: str
    read: str
    settled: str
    sequentially: str

    @classmethod
    def unused_in(cls, source: str) -> HiddenNames:
        """Return names that occur nowhere in a script."""
        number = 0
        while (stem := f"__mind2web2_{number}_") in source:
            number += 1
        # Names that end in underscores are not mangled inside of classes.
        return cls(*(f"{stem}{name}__" for name in ("deferred", "read", "settled", "sequentially")))


def defer_verifications(tree: ast.Module, names: HiddenNames) -> None:
    """Rewrite a script's syntax tree, unless the script has to run sequentially from its start."""
    if must_be_sequential(tree):
        return
    rewriter = _Rewriter(names, _names_never_read(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef):
            node.body = [rewriter.statement(statement) for statement in node.body]
    ast.fix_missing_locations(tree)


def _names_never_read(tree: ast.Module) -> set[str]:
    """Return names that a script assigns and never reads, in any of its functions."""
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
            read.add(node.attr)  # names of a class are its attributes
        elif isinstance(node, ast.alias):
            read.update((node.name.partition(".")[0], node.asname or node.name))
    return set() if read & _NAME_READERS else assigned - read


def _is_name(node: ast.AST, names: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _shows_verdicts(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in _VERDICTS for part in ast.walk(node))


class _Rewriter(ast.NodeTransformer):
    """Changes the statements of one ``async def``, without the functions and classes in it."""

    def __init__(self, names: HiddenNames, never_read: set[str]) -> None:
        self._names = names
        self._never_read = never_read

    def statement(self, statement: ast.stmt) -> ast.stmt:
        """Return a statement with its reads and verifications rewritten."""
        changed: ast.stmt = self.visit(statement)
        return changed

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Defer a verification that is a statement of its own."""
        self.generic_visit(node)
        self._defer(node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Defer a verification whose verdict is assigned to a name that is never read."""
        self.generic_visit(node)
        if all(_is_name(target, self._never_read) for target in node.targets):
            self._defer(node.value)
        return node

    def _defer(self, value: ast.expr) -> None:
        call = value.value if isinstance(value, ast.Await) else None
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr in VERIFYING
        ):
            call.args.insert(0, call.func)
            call.func = self._hidden(self._names.deferred, call.func)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Wait before a result is read or replaced, and before the script starts tasks."""
        self.generic_visit(node)
        if node.attr in _SHOWING:
            node.value = self._awaited(self._names.read, node.value)
        elif _is_name(node.value, {"asyncio"}) and node.attr not in _WITHOUT_TASKS:
            node.value = self._awaited(self._names.settled, node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Wait before the script starts tasks."""
        starts = node.id == "gather" and isinstance(node.ctx, ast.Load)
        return self._awaited(self._names.settled, node) if starts else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Wait before a function that reads results is made: usually it is called at once."""
        return self._awaited(self._names.settled, node) if _shows_verdicts(node) else node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """Wait before its first source is evaluated, which happens outside of it."""
        reads = _shows_verdicts(node)
        source = self.visit(node.generators[0].iter)
        node.generators[0].iter = self._awaited(self._names.settled, source) if reads else source
        return node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        """Defer nothing while the script holds a resource, which a verification may need."""
        self.generic_visit(node)
        first = node.items[0].context_expr
        call = ast.Call(func=self._hidden(self._names.sequentially, first), args=[], keywords=[])
        node.items.insert(0, ast.withitem(context_expr=ast.copy_location(call, first)))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave the annotation unchanged: it may hold no ``await``."""
        node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self.visit(node.value)
            if _is_name(node.target, self._never_read):
                self._defer(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave the pattern unchanged, likewise."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = [self.statement(statement) for statement in node.body]
        return node

    def _unchanged(self, node: ast.AST) -> ast.AST:
        return node

    # Their bodies cannot wait; an inner ``async def`` is rewritten by itself.
    visit_FunctionDef = visit_ClassDef = visit_AsyncFunctionDef = _unchanged  # noqa: N815

    def _awaited(self, name: str, value: ast.expr) -> ast.expr:
        call = ast.Call(func=self._hidden(name, value), args=[value], keywords=[])
        return ast.copy_location(ast.Await(value=ast.copy_location(call, value)), value)

    def _hidden(self, name: str, place: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Name(id=name, ctx=ast.Load()), place)


def must_be_sequential(tree: ast.Module) -> bool:
    """Tell whether a script may use threads, or changes modules or objects that outlive an attempt."""
    modules: set[str] = set()
    lasting = set(_RECEIVED)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").partition(".")[0])
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.Import | ast.ImportFrom):
            lasting.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    changed = (part for node in ast.walk(tree) for part in _changed_parts(node))
    return bool(modules & _CONCURRENT) or any(_root_name(part) in lasting for part in changed)


def _changed_parts(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        # None of those received has items: it is a mapping of the script's own.
        if not (isinstance(node, ast.Subscript) and _is_name(node.value, _RECEIVED)):
            yield node
    elif isinstance(node, ast.Call) and _is_name(node.func, {"setattr", "delattr"}):
        yield from node.args[:1]


def _root_name(node: ast.expr) -> str | None:
    """Return the name that a chain of attributes and items begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


REQUIRED_PARAMETERS = ("client", "answer", "agent_name", "answer_name", "cache", "semaphore", "logger")

MODULE_PREFIX = "mind2web2_eval_script_"

_load_numbers = itertools.count(1)


def load_eval_script(path: str | Path) -> EvaluateAnswer:
    """Import a script under a unique module name and return its ``evaluate_answer``.

    The module stays in ``sys.modules``: pydantic and dataclasses look types up there while the script runs.

    Raises:
        FileNotFoundError: no such file.
        AttributeError: the script defines no ``evaluate_answer``.
        TypeError: ``evaluate_answer`` is not ``async def`` or lacks a parameter of the contract.
        EvalScriptError: the script ends the program (``sys.exit``) while it is imported.
        Exception: any other exception of the script's module code, syntax errors included.
    """
    script_path = Path(path)
    code, names = _deferring_code(read_script(script_path), script_path)
    module, modules_before = new_module(script_path), sys.modules.keys() | set()
    sys.modules[module.__name__] = module
    for function in ("deferred", "read", "settled", "sequentially"):
        setattr(module, getattr(names, function), getattr(scheduler, function))
    try:
        execute_script(code, module, script_path)
        return scheduler.deferring(find_evaluate_answer(module, script_path), modules_before)
    except BaseException:
        sys.modules.pop(module.__name__, None)  # the script may have removed itself
        raise


@lru_cache(maxsize=64)
def _deferring_code(source: bytes, path: Path) -> tuple[CodeType, HiddenNames]:
    """Return a script's code with verifications deferred; each answer to a task runs the same."""
    # The names are plain ASCII, so that the script's encoding does not matter here.
    names = HiddenNames.unused_in(source.decode("latin-1"))
    return compile_script(deferring_tree(source, path, names), path), names


def unload_eval_script(evaluate_answer: EvaluateAnswer) -> None:
    """Let go of a script's module once its evaluation is over; a long run loads thousands."""
    if evaluate_answer.__module__.startswith(MODULE_PREFIX):  # a decorator may come from elsewhere
        sys.modules.pop(evaluate_answer.__module__, None)


def read_script(path: Path) -> bytes:
    """Return a script's bytes; its encoding is for the parser to find, as a coding line may name it."""
    if not path.is_file():
        raise FileNotFoundError(f"no eval script {path}: check the task id and the eval scripts folder")
    return path.read_bytes()


def parse_script(source: bytes, path: Path) -> ast.Module:
    """Return the script's syntax tree; a ``SyntaxError`` names the script's path and line."""
    if b"\0" in source:
        # Python 3.11 raises a ValueError here that names no file.
        line = source[: source.index(b"\0")].count(b"\n") + 1
        raise SyntaxError("source code contains a null byte", (str(path), line, 1, None))
    with warnings.catch_warnings():
        # Published scripts stay as they are: an odd escape in one is not the user's to mend.
        warnings.simplefilter("ignore")
        return parsed(source, str(path))


def deferring_tree(source: bytes, path: Path, names: HiddenNames) -> ast.Module:
    """Return a script's syntax tree with verifications deferred."""
    tree = parse_script(source, path)
    try:
        defer_verifications(tree, names)
    except RecursionError:
        # A script with expressions nested so deeply runs as it is.
        return parse_script(source, path)
    return tree


def compile_script(tree: ast.Module, path: Path) -> CodeType:
    """Compile a syntax tree, so that tracebacks show the script's path."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The script's own __future__ imports count, not this module's.
        return compile(tree, str(path), "exec", dont_inherit=True)


def new_module(path: Path) -> ModuleType:
    """Return an empty module for a script; no two loads share a name, be it the same file."""
    identifier = re.sub(r"\W", "_", path.stem)
    name = f"{MODULE_PREFIX}{next(_load_numbers)}_{identifier}"
    spec = spec_from_file_location(name, path, loader=SourceFileLoader(name, str(path)))
    if spec is None:
        raise EvalScriptError(f"eval script {path} cannot be imported: its path gives no module")
    return module_from_spec(spec)


def execute_script(code: CodeType, module: ModuleType, path: Path) -> None:
    """Run a script's module code; only its attempt to end the whole run is turned into an error of ours."""
    try:
        exec(code, module.__dict__)
    except SystemExit as exit_request:
        raise EvalScriptError(
            f"eval script {path} ends the program when imported (exit status {exit_request.code!r}): "
            "remove its call of sys.exit"
        ) from exit_request


def find_evaluate_answer(module: ModuleType, path: Path) -> EvaluateAnswer:
    """Return the module's ``evaluate_answer`` if it is what the contract asks for."""
    if not hasattr(module, "evaluate_answer"):
        raise AttributeError(
            f"eval script {path} has no evaluate_answer: add 'async def evaluate_answer(...)'"
        )
    function: EvaluateAnswer = module.evaluate_answer
    if not inspect.iscoroutinefunction(function):
        raise TypeError(
            f"evaluate_answer of eval script {path} is no coroutine function: make it 'async def'"
        )
    missing = [name for name in REQUIRED_PARAMETERS if name not in _keyword_parameters(function)]
    if missing:
        raise TypeError(f"evaluate_answer of eval script {path} lacks parameters: add {', '.join(missing)}")
    return function


def _keyword_parameters(function: EvaluateAnswer) -> set[str]:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind in by_name}
