"""Eval scripts: read from disk, compiled and imported under a name of their own."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import warnings
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from mind2web2.errors import EvalScriptError
from mind2web2.scheduling import scheduler
from mind2web2.scheduling.scheduler import EvaluateAnswer
from mind2web2.scripts.rewrite import HiddenNames, defer_verifications
from mind2web2.utils.text import parsed

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
