"""Eval scripts: read from disk, compiled and imported under a name of their own."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mind2web2.errors import EvalScriptError
from mind2web2.scripts.imports import missing_name
from mind2web2.scripts.limits import MODULE_PREFIX
from mind2web2.scripts.loops import NAMES, watch_loops
from mind2web2.utils.files import read_regular_file

# The script's own function; its result is checked elsewhere.
EvaluateAnswer = Callable[..., Awaitable[Any]]
REQUIRED_PARAMETERS = (
    "client",
    "answer",
    "agent_name",
    "answer_name",
    "cache",
    "semaphore",
    "logger",
)

# Modules whose ``script_source`` writes the script of another kind of file, by its suffix; loaded
# with the first one, as most tasks are scripts.
_SCRIPT_WRITERS = {".yaml": "mind2web2.scripts.rubric_script"}
_ENTRY = "evaluate_answer"
# A script's text without these defines no such function.
_ENTRY_OR_ALL = re.compile(rf"\b{_ENTRY}\b|import \*")

_load_numbers = itertools.count(1)


def load_eval_script(path: str | Path) -> EvaluateAnswer:
    """Import a script under a unique module name and return its ``evaluate_answer``.

    The module stays in ``sys.modules``: pydantic and dataclasses look types up there while the
    script runs.

    Raises:
        FileNotFoundError: no such file.
        AttributeError: the script defines no ``evaluate_answer``.
        TypeError: ``evaluate_answer`` is not ``async def`` or lacks a parameter of the contract.
        EvalScriptError: the script ends the program (``sys.exit``) while it is imported.
        Exception: any other exception of the script's module code, syntax errors included.
    """
    script_path = Path(path)
    if not script_path.is_file():
        raise FileNotFoundError(
            f"no eval script {path}: check the task id and the eval scripts folder"
        )
    code = _compiled(script_path.read_bytes(), script_path).code
    module = _new_module(script_path)
    sys.modules[module.__name__] = module
    try:
        exec(code, module.__dict__)
        return _evaluate_answer_of(module, script_path)
    except BaseException as error:
        sys.modules.pop(module.__name__, None)  # the script may have removed itself
        if isinstance(error, SystemExit):
            raise EvalScriptError(
                f"eval script {path} ends the program when imported (exit status {error.code!r}): "
                "remove its call of sys.exit"
            ) from error
        raise


@dataclass(frozen=True)
class _Compiled:
    """A script's code, with facts of its text.

    Args:
        code: tracebacks show the script's path.
        missing: what is wrong with a name that the script takes from the toolkit.
    """

    code: CodeType
    missing: str | None


@lru_cache(maxsize=64)
def _compiled(source: bytes, path: Path) -> _Compiled:
    """Return a script's code."""
    with warnings.catch_warnings():
        # Published scripts stay as they are: an odd escape in one is not the user's to mend.
        warnings.simplefilter("ignore")
        tree = parsed_script(source, path)
        watch_loops(tree)
        # The script's own __future__ imports count, not this module's.
        code = compile(tree, str(path), "exec", dont_inherit=True)
    return _Compiled(code, missing_name(tree))


def script_problem(path: Path) -> str | None:
    """Return why a script cannot run, as far as its text shows, with file and line.

    ``None`` if it can.
    """
    try:
        text = ast.unparse(parsed_script(read_regular_file(path), path))
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    except SyntaxError as error:
        return f"{path} has a syntax error{_in_line(error)}: {error.msg}"
    except EvalScriptError as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"{path} cannot be parsed: {error}"
    if not _ENTRY_OR_ALL.search(text):
        return f"{path} has no {_ENTRY}: add 'async def {_ENTRY}(...)'"
    return None


def check_toolkit_names(path: Path) -> None:
    """Check the names that a script imports from the toolkit.

    Raises:
        EvalScriptError: one does not exist.
    """
    if problem := _compiled(path.read_bytes(), path).missing:
        raise EvalScriptError(f"script {path.name} {problem}")


def _in_line(error: SyntaxError) -> str:
    return f" in line {error.lineno}" if error.lineno else ""


def parsed_script(source: bytes, path: Path) -> ast.Module:
    """Return the syntax tree of a script, or of the script that is equal to a rubric file.

    Raises:
        SyntaxError, ValueError, RecursionError: the script has none.
        YamlFileError: the rubric file is wrong.
    """
    if path.suffix in _SCRIPT_WRITERS:
        source = import_module(_SCRIPT_WRITERS[path.suffix]).script_source(source, path)
    if b"\0" in source:
        # Python 3.11 raises a ValueError here that names no file.
        line = source[: source.index(b"\0")].count(b"\n") + 1
        raise SyntaxError("source code contains a null byte", (str(path), line, 1, None))
    return ast.parse(source, str(path))


def unload_eval_script(evaluate_answer: EvaluateAnswer) -> None:
    """Let go of a script's module once its evaluation is over; a long run loads thousands."""
    if evaluate_answer.__module__.startswith(MODULE_PREFIX):  # a decorator may come from elsewhere
        sys.modules.pop(evaluate_answer.__module__, None)


def _new_module(path: Path) -> ModuleType:
    """Return an empty module for a script; no two loads share a name, be it the same file."""
    identifier = re.sub(r"\W", "_", path.stem)
    name = f"{MODULE_PREFIX}{next(_load_numbers)}_{identifier}"
    spec = spec_from_file_location(name, path, loader=SourceFileLoader(name, str(path)))
    assert spec is not None, "a loader is given"
    module = module_from_spec(spec)
    vars(module).update(NAMES)
    return module


def _evaluate_answer_of(module: ModuleType, path: Path) -> EvaluateAnswer:
    """Return the module's ``evaluate_answer`` if it is what the contract asks for."""
    if not hasattr(module, "evaluate_answer"):
        raise AttributeError(
            f"eval script {path} has no evaluate_answer: add 'async def evaluate_answer(...)'"
        )
    function: EvaluateAnswer = module.evaluate_answer
    if not inspect.iscoroutinefunction(function):
        raise TypeError(
            f"evaluate_answer of eval script {path} is not a coroutine function: make it 'async def'"
        )
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters
    taken = {name for name, parameter in parameters.items() if parameter.kind in by_name}
    missing = [name for name in REQUIRED_PARAMETERS if name not in taken]
    if missing:
        raise TypeError(
            f"evaluate_answer of eval script {path} lacks parameters: add {', '.join(missing)}"
        )
    return function
