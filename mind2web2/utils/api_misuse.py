"""API misuse by a script: names and calls that the toolkit does not have; and whose code runs.

Scripts often wrap their calls in ``try/except Exception``. An attribute that our objects lack, or a
call that fits no signature, would become a failed check there, and so a wrong score. Each is
reported at once, with the script's line, to the evaluation that the script belongs to; the answer
then has no result.

Only a direct use in a script's code counts: ``hasattr`` and ``getattr`` with a default are
legitimate. Imports are checked when a script is loaded (``scripts/toolkit_names.py``).
"""

from __future__ import annotations

import ast
import asyncio
import dis
import inspect
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, update_wrapper, wraps
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar, cast

from mind2web2.errors import EvalScriptError
from mind2web2.utils.near_names import nearest_name

_PACKAGE_FOLDER = str(Path(__file__).parents[1])
# Tools that scripts call: they read for the script.
_TOOLS = os.path.join(_PACKAGE_FOLDER, "api_tools")  # noqa: PTH118 (compared as text, thousands of times)
_SYSTEM = (
    "/dev",
    "/proc",
    "/sys",
    "/etc",
    "/run",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/share",
)
_PYTHON = ("stdlib", "platstdlib", "purelib", "platlib")
_SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})

Caller = Literal["own", "script", "other"]


def caller_of(frame: FrameType | None, ignored: Set[str] = frozenset()) -> Caller:
    """Return for whom a frame's code runs: our own code, a script, or ("other") neither of them.

    A library runs for its caller.

    Args:
        ignored: top-level packages whose callers do not count: they count as our own.
    """
    has_left_task = False
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_globals.get("__name__", "").partition(".")[0] in ignored:
            return "own"
        has_left_task = has_left_task or name == _EVENT_LOOP
        # Names in angle brackets are of code without a file, such as what dataclasses generate.
        if not name.startswith("<"):
            if is_own(name):
                return "own"
            if not has_left_task and not is_installed(name) and not name.startswith(_TOOLS):
                return "script"
        frame = frame.f_back
    return "other"


@lru_cache(maxsize=4096)
def is_own(path: str) -> bool:
    """Tell whether a file is of this package, apart from the tools that scripts call."""
    return _is_under(path, _PACKAGE_FOLDER) and not _is_under(path, _TOOLS)


@lru_cache(maxsize=4096)
def is_installed(path: str) -> bool:
    """Tell whether a file is of Python, of a package (this one too) or of the system."""
    if any(_is_under(path, folder) for folder in (*_python_folders(), _PACKAGE_FOLDER, *_SYSTEM)):
        return True
    return not _SITE_FOLDERS.isdisjoint(Path(path).parts)


@lru_cache(maxsize=1)
def _python_folders() -> tuple[str, ...]:
    folders = [sysconfig.get_path(name) for name in _PYTHON]
    return tuple({*folders, *(str(Path(folder).resolve()) for folder in folders)})


def _is_under(path: str, folder: str) -> bool:
    return path.startswith(folder) and path[len(folder) : len(folder) + 1] in (
        "",
        os.sep,
    )


Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = "mind2web2"
_USES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"})
_UNKNOWN_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
# A script below it on the stack runs the event loop: it has not called the code of the loop's task.
_EVENT_LOOP = asyncio.events.__file__


class AddedNode(NamedTuple):
    """Where a script adds a node, and whether the node is meant to have children."""

    place: str
    is_inner: bool


@dataclass(frozen=True)
class ScriptReports:
    """Where an evaluation learns how its script uses the toolkit.

    Args:
        script: the name of its file.
        fail: the script misuses the toolkit: there is no result.
        ignore: the name of an argument that has no effect.
        find_fault: takes a mistake that may cost the answer points, with the script's line.
        added: where the script has added its nodes, by id.
        coroutines: those that the script creates, with the report on each that it never awaits.
    """

    script: str
    fail: Callable[[EvalScriptError], object]
    ignore: Callable[[str], object]
    find_fault: Callable[[str], object]
    added: dict[str, AddedNode] = field(default_factory=dict)
    coroutines: list[tuple[Coroutine[Any, Any, Any], EvalScriptError]] = field(default_factory=list)

    def find_undecided(self, node_ids: Iterable[str]) -> None:
        """Report the nodes without children that the script has added and left undecided."""
        for node_id in node_ids:
            added = self.added.get(node_id)
            place = self.script if added is None else added.place
            problem = f"leaf {node_id!r} is never judged"
            if node_id == "root":
                problem = "the rubric tree has no leaf"
            elif added is not None and added.is_inner:
                problem = f"node {node_id!r} has no leaf"
            self.find_fault(f"{place}: {problem}, and counts 0")

    def forgotten(self) -> list[tuple[Coroutine[Any, Any, Any], EvalScriptError]]:
        """Return the coroutines that never started, and that no task will start."""
        if not self.coroutines:
            return []
        begun = {id(task.get_coro()) for task in asyncio.all_tasks()}
        return [
            (coroutine, error)
            for coroutine, error in self.coroutines
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
            and id(coroutine) not in begun
        ]


_reports: ContextVar[ScriptReports | None] = ContextVar("mind2web2_script_reports", default=None)


@contextmanager
def script_reports(reports: ScriptReports) -> Iterator[None]:
    """Report what a script does in the ``with`` block, and in all tasks that it starts."""
    token = _reports.set(reports)
    try:
        yield
        for _, error in reports.forgotten():
            reports.fail(error)
    finally:
        _reports.reset(token)
        for coroutine, _ in reports.forgotten():
            coroutine.close()


def report_misuse(problem: str) -> None:
    """Raise ``EvalScriptError`` where a script of a run misuses the toolkit for certain.

    Else do nothing.
    """
    if _reports.get() is not None:
        raise _report(_script_frame(sys._getframe(1)), problem)


def note_ignored_argument(name: str, where: str, known: Sequence[str]) -> None:
    """Report an argument that has no effect.

    Args:
        where: the call or node that the script gives it to.
        known: the names that have an effect there.
    """
    reports = _reports.get()
    if reports is not None:
        reports.ignore(name)
        place = _place(_script_frame(sys._getframe(1)), reports)
        reports.find_fault(
            f"{place}: unknown keyword {name!r} of {where} is ignored{_hint(name, known)}"
        )


def note_added(node_id: str, *, is_inner: bool) -> None:
    """Note the script's line that adds a node."""
    reports = _reports.get()
    if reports is not None:
        reports.added[node_id] = AddedNode(
            _place(_script_frame(sys._getframe(1)), reports), is_inner
        )


def _place(frame: FrameType | None, reports: ScriptReports) -> str:
    """Return file and line of a script's frame."""
    if frame is None:
        return reports.script
    # As text: rubrics add thousands of nodes.
    name = frame.f_code.co_filename.rpartition("/")[2]
    return f"{name}, line {frame.f_lineno}"


def script_api(kind: Kind) -> Kind:
    """Report attributes that a class's objects lack, and calls its public methods do not take."""
    usual = getattr(kind, "__getattr__", None)

    def attribute(self: Any, name: str) -> Any:
        if usual is not None:
            try:
                return usual(self, name)
            except AttributeError:
                report_missing(self, name)
                raise
        report_missing(self, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}",
            name=name,
            obj=self,
        )

    setattr(kind, "__getattr__", attribute)  # noqa: B010 - mypy knows it of no class in general
    return checked_methods(kind)


def checked_methods(kind: Kind) -> Kind:
    """Report calls that a class's public methods do not take."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, FunctionType):
            setattr(kind, name, checked_call(value))
        elif isinstance(value, staticmethod):
            setattr(kind, name, staticmethod(checked_call(value.__func__)))
    return kind


def checked_call(function: Function) -> Function:
    """Report calls that a function does not take.

    For an unknown keyword, name the nearest known one.
    """

    @wraps(function)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            # The call itself raised it rather than something that the function does.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                _refuse_call(function, error)
            raise

    if inspect.iscoroutinefunction(function):
        return cast("Function", _CoroutineFunction(function, checked))
    return cast("Function", checked)


class _CoroutineFunction:
    """A checked coroutine function.

    To ``inspect`` it is a coroutine function, yet arguments are checked when it is called.
    """

    __code__: CodeType
    __defaults__: tuple[object, ...] | None
    __kwdefaults__: dict[str, object] | None

    def __init__(self, function: Callable[..., Any], checked: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(self, name, getattr(function, name))
        self._checked = checked

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        coroutine = self._checked(*arguments, **keywords)
        _note_coroutine(coroutine, self.__qualname__)
        return coroutine

    def __getattr__(self, name: str) -> Any:
        # Its bound methods count as well: client.chat.completions.
        report_missing(self, name)
        raise AttributeError(f"{self.__qualname__} has no attribute {name!r}", name=name, obj=self)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)


def _note_coroutine(coroutine: Coroutine[Any, Any, Any], name: str) -> None:
    """Note a coroutine that a script creates: it may forget to await it."""
    reports, frame = _reports.get(), sys._getframe(2)
    if reports is not None and _is_script(frame):
        problem = f"calls {name}{_in_line(frame)} without await: write await before it"
        reports.coroutines.append((coroutine, _error(frame, problem)))


def _refuse_call(function: Callable[..., Any], error: TypeError) -> NoReturn:
    called = function.__qualname__
    unknown = _UNKNOWN_KEYWORD.search(str(error))
    problem = str(error).partition("() ")[2] or str(error)
    if unknown is not None:
        known = [name for name in inspect.signature(function).parameters if name != "self"]
        problem = f"unknown keyword {unknown[1]!r}{_hint(unknown[1], known)}"
    frame = _script_frame(sys._getframe(1))
    _report(
        frame,
        f"calls {called}{_in_line(frame)} with arguments that it does not take: {problem}",
    )
    raise TypeError(f"{called}() takes other arguments: {problem}") from error


def report_missing(owner: Any, name: str) -> None:
    """Report a name that one of our objects lacks, where a script uses it directly.

    The ``__getattr__`` or ``__setattr__`` that the script's code has called calls this.
    """
    frame = sys._getframe(2)
    kind = owner if isinstance(owner, type | ModuleType) else type(owner)
    module = kind.__name__ if isinstance(kind, ModuleType) else kind.__module__
    if (
        _reports.get() is None
        or name.startswith("__")
        or not _is_ours(module)
        or not _is_use(frame)
    ):
        return
    if any(name in vars(each) for each in getattr(kind, "__mro__", ())):
        return  # there is such a property, and it has raised this itself
    label = owner.__qualname__ if isinstance(owner, _CoroutineFunction) else kind.__name__
    _report(
        frame,
        f"uses {label}.{name}{_in_line(frame)}, which the toolkit does not have"
        f"{_hint(name, [known for known in dir(owner) if not known.startswith('_')])}",
    )


def _report(frame: FrameType | None, problem: str) -> EvalScriptError:
    error, reports = _error(frame, problem), _reports.get()
    if reports is not None:
        reports.fail(error)
    return error


def _error(frame: FrameType | None, problem: str) -> EvalScriptError:
    reports = _reports.get()
    # A verification in the background has no frame of the script.
    name = (
        Path(frame.f_code.co_filename).name
        if frame is not None
        else reports.script
        if reports
        else ""
    )
    return EvalScriptError(f"script {name} {problem}")


def _hint(name: str, known: Sequence[str]) -> str:
    nearest = nearest_name(name, known)
    return "" if nearest is None else f": did you mean {nearest!r}?"


def _in_line(frame: FrameType | None) -> str:
    return "" if frame is None else f" in line {frame.f_lineno}"


# Code of a script, and its operations


def _script_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_script(frame):
        # Code that started the event loop is not a script.
        frame = None if frame.f_code.co_filename == _EVENT_LOOP else frame.f_back
    return frame


def _is_script(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not name.startswith("<") and not is_installed(name)


def _is_use(frame: FrameType | None) -> bool:
    """Tell whether a script's frame just uses a name, rather than asks whether there is one."""
    if frame is None or not _is_script(frame):
        return False
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in _USES


# Python 3.11 counts the depth of a tree for all threads together: one that parses while another
# does raises SystemError ("AST constructor recursion depth mismatch").
_ONE_AT_A_TIME = threading.Lock()


def syntax_tree(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source, in any thread."""
    with _ONE_AT_A_TIME:
        try:
            return ast.parse(source, filename=filename)
        except SystemError:
            # Another package parses in a thread of its own, without our lock.
            return ast.parse(source, filename=filename)


def _is_ours(module_name: str) -> bool:
    return module_name.partition(".")[0] == _PACKAGE
