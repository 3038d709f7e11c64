"""Eval scripts: read from disk, rewritten, compiled and imported under a name of their own.

The rewriting lets verifications be deferred. Only ``async def`` functions are changed: a verification whose
result is unused is called through ``scheduling.deferred``, and visible reads of results first wait for them.
Reads that the syntax does not show refuse the attempt while the script runs (``scheduling``).
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from mind2web2 import scheduling
from mind2web2.errors import EvalScriptError
from mind2web2.scheduling import EvaluateAnswer
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX, RubricFileError, parsed_rubric
from mind2web2.scripts.rubric_script import script_of
from mind2web2.utils.api_misuse import syntax_tree
from mind2web2.utils.files import read_regular_file

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


# Names in a script's module for functions of ``scheduling``; ending in underscores, they are not mangled in
# classes.
_HELPERS = {
    "deferred": "__mind2web2_deferred__",
    "read": "__mind2web2_read__",
    "settled": "__mind2web2_settled__",
    "sequentially": "__mind2web2_sequentially__",
}


def defer_verifications(tree: ast.Module) -> None:
    """Rewrite a script's syntax tree, unless the script has to run sequentially from its start."""
    nodes = list(ast.walk(tree))
    if must_be_sequential(nodes):
        return
    rewriter = _Rewriter(_names_never_read(nodes))
    for node in nodes:
        if isinstance(node, ast.AsyncFunctionDef):
            node.body = [rewriter.statement(statement) for statement in node.body]
    ast.fix_missing_locations(tree)


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


def _shows_verdicts(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in _VERDICTS for part in ast.walk(node))


class _Rewriter(ast.NodeTransformer):
    """Changes the statements of one ``async def``, without the functions and classes in it."""

    def __init__(self, never_read: set[str]) -> None:
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
            call.func = self._helper("deferred", call.func)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Wait before a result is read or replaced, and before the script starts tasks."""
        self.generic_visit(node)
        if node.attr in _SHOWING:
            node.value = self._awaited("read", node.value)
        elif _is_name(node.value, {"asyncio"}) and node.attr not in _WITHOUT_TASKS:
            node.value = self._awaited("settled", node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Wait before the script starts tasks."""
        starts = node.id == "gather" and isinstance(node.ctx, ast.Load)
        return self._awaited("settled", node) if starts else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Wait before a function that reads results is made: usually it is called at once."""
        return self._awaited("settled", node) if _shows_verdicts(node) else node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """Wait before its first source is evaluated, which happens outside of it."""
        reads = _shows_verdicts(node)
        source = self.visit(node.generators[0].iter)
        node.generators[0].iter = self._awaited("settled", source) if reads else source
        return node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        """Defer nothing while the script holds a resource, which a verification may need."""
        self.generic_visit(node)
        first = node.items[0].context_expr
        call = ast.Call(func=self._helper("sequentially", first), args=[], keywords=[])
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

    def _awaited(self, helper: str, value: ast.expr) -> ast.expr:
        call = ast.Call(func=self._helper(helper, value), args=[value], keywords=[])
        return ast.copy_location(ast.Await(value=ast.copy_location(call, value)), value)

    def _helper(self, helper: str, place: ast.expr) -> ast.expr:
        return ast.copy_location(ast.Name(id=_HELPERS[helper], ctx=ast.Load()), place)


def must_be_sequential(nodes: Sequence[ast.AST]) -> bool:
    """Tell whether a script may use threads, or changes modules or objects that outlive an attempt."""
    modules: set[str] = set()
    lasting = set(_RECEIVED)
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").partition(".")[0])
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        if isinstance(node, ast.Import | ast.ImportFrom):
            lasting.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    changed = (part for node in nodes for part in _changed_parts(node))
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
_ENTRY = "evaluate_answer"

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
    if not script_path.is_file():
        raise FileNotFoundError(f"no eval script {path}: check the task id and the eval scripts folder")
    code = _deferring_code(script_path.read_bytes(), script_path)
    module, modules_before = _new_module(script_path), sys.modules.keys() | set()
    sys.modules[module.__name__] = module
    for function, name in _HELPERS.items():
        setattr(module, name, getattr(scheduling, function))
    try:
        exec(code, module.__dict__)
        return scheduling.deferring(_evaluate_answer_of(module, script_path), modules_before)
    except BaseException as error:
        sys.modules.pop(module.__name__, None)  # the script may have removed itself
        if isinstance(error, SystemExit):
            raise EvalScriptError(
                f"eval script {path} ends the program when imported (exit status {error.code!r}): "
                "remove its call of sys.exit"
            ) from error
        raise


@lru_cache(maxsize=64)
def _deferring_code(source: bytes, path: Path) -> CodeType:
    """Return a script's code with verifications deferred; tracebacks show the script's path."""
    with warnings.catch_warnings():
        # Published scripts stay as they are: an odd escape in one is not the user's to mend.
        warnings.simplefilter("ignore")
        tree = parsed_script(source, path)
        try:
            defer_verifications(tree)
        except RecursionError:
            # A script with expressions nested so deeply runs as it is.
            tree = parsed_script(source, path)
        # The script's own __future__ imports count, not this module's.
        return compile(tree, str(path), "exec", dont_inherit=True)


def script_problem(path: Path) -> str | None:
    """Return why a script cannot run, as far as its text shows, with file and line; ``None`` if it can."""
    try:
        tree = parsed_script(read_regular_file(path), path)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    except SyntaxError as error:
        return f"{path} has a syntax error{_in_line(error)}: {error.msg}"
    except RubricFileError as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"{path} cannot be parsed: {error}"
    if _ENTRY not in set(_bound_names(tree)) and not any(_imports_all(node) for node in tree.body):
        return f"{path} has no {_ENTRY}: add 'async def {_ENTRY}(...)'"
    return None


def _in_line(error: SyntaxError) -> str:
    return f" in line {error.lineno}" if error.lineno else ""


def _bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def _imports_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)


def parsed_script(source: bytes, path: Path) -> ast.Module:
    """Return the syntax tree of a script, or of the script that is equal to a rubric file.

    Raises:
        SyntaxError, ValueError, RecursionError: the script has none.
        RubricFileError: the rubric file is wrong.
    """
    if path.suffix == RUBRIC_SUFFIX:
        source = script_of(parsed_rubric(source, path).rubric).encode()
    if b"\0" in source:
        # Python 3.11 raises a ValueError here that names no file.
        line = source[: source.index(b"\0")].count(b"\n") + 1
        raise SyntaxError("source code contains a null byte", (str(path), line, 1, None))
    return syntax_tree(source, str(path))


def unload_eval_script(evaluate_answer: EvaluateAnswer) -> None:
    """Let go of a script's module once its evaluation is over; a long run loads thousands."""
    if evaluate_answer.__module__.startswith(MODULE_PREFIX):  # a decorator may come from elsewhere
        sys.modules.pop(evaluate_answer.__module__, None)


def _new_module(path: Path) -> ModuleType:
    """Return an empty module for a script; no two loads share a name, be it the same file."""
    identifier = re.sub(r"\W", "_", path.stem)
    name = f"{MODULE_PREFIX}{next(_load_numbers)}_{identifier}"
    spec = spec_from_file_location(name, path, loader=SourceFileLoader(name, str(path)))
    if spec is None:
        raise EvalScriptError(f"eval script {path} cannot be imported: its path gives no module")
    return module_from_spec(spec)


def _evaluate_answer_of(module: ModuleType, path: Path) -> EvaluateAnswer:
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
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters
    taken = {name for name, parameter in parameters.items() if parameter.kind in by_name}
    missing = [name for name in REQUIRED_PARAMETERS if name not in taken]
    if missing:
        raise TypeError(f"evaluate_answer of eval script {path} lacks parameters: add {', '.join(missing)}")
    return function
