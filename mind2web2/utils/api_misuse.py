"""API misuse by a script: names and calls that the toolkit does not have.

Scripts often wrap their calls in ``try/except Exception``. An attribute that our objects lack, or a
call that fits no signature, would become a failed check there, and so a wrong score. Each is
reported at once, with the script's line, to the evaluation that the script belongs to; the answer
then has no result.

Names that a script looks up by ``hasattr`` or ``getattr`` do not count: it may ask whether they
exist. Imports are checked when a script is loaded (``scripts/imports.py``).
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import update_wrapper, wraps
from opcode import opname
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from mind2web2.errors import EvalScriptError
from mind2web2.utils.callers import is_script, script_frame
from mind2web2.utils.names import nearest_name

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = "mind2web2"
# The instructions for a name after a dot; ``hasattr`` and ``getattr`` are calls.
_AFTER_DOT = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# Those of ``getattr`` with a default, as its call has them.
_ARGUMENTS_WITH_DEFAULT = 3


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
        raise _report(script_frame(sys._getframe(1)), problem)


def note_ignored_argument(name: str, where: str, known: Sequence[str]) -> None:
    """Report an argument that has no effect.

    Args:
        where: the call or node that the script gives it to.
        known: the names that have an effect there.
    """
    reports = _reports.get()
    if reports is not None:
        reports.ignore(name)
        place = _place(script_frame(sys._getframe(1)), reports)
        reports.find_fault(
            f"{place}: unknown keyword {name!r} of {where} is ignored{_hint(name, known)}"
        )


def note_added(node_id: str, *, is_inner: bool) -> None:
    """Note the script's line that adds a node."""
    reports = _reports.get()
    if reports is not None:
        reports.added[node_id] = AddedNode(
            _place(script_frame(sys._getframe(1)), reports), is_inner
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
        except TypeError:
            try:
                inspect.signature(function).bind(*arguments, **keywords)
            except TypeError as error:
                _refuse_call(function, keywords, str(error))
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
    if reports is not None and is_script(frame):
        problem = f"calls {name}{_in_line(frame)} without await: write await before it"
        reports.coroutines.append((coroutine, _error(frame, problem)))


def _refuse_call(function: Callable[..., Any], keywords: Iterable[str], problem: str) -> NoReturn:
    called = function.__qualname__
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    for unknown in keywords:
        if f"keyword argument {unknown!r}" in problem:
            problem = f"unknown keyword {unknown!r}{_hint(unknown, known)}"
    frame = script_frame(sys._getframe(1))
    _report(
        frame,
        f"calls {called}{_in_line(frame)} with arguments that it does not take: {problem}",
    )
    raise TypeError(f"{called}() takes other arguments: {problem}")


def report_missing(owner: Any, name: str, *, is_set: bool = False) -> None:
    """Report a name that one of our objects lacks, where a script uses it.

    The ``__getattr__`` or ``__setattr__`` that the script's code has called calls this.

    Args:
        is_set: the script gives the name a value.
    """
    kind = owner if isinstance(owner, type) else type(owner)
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_passed_on(frame):
        frame = frame.f_back
    is_used = is_script(frame) and (is_set or _is_after_dot(frame))
    if not is_used or not _is_ours(kind.__module__):
        return
    if any(name in vars(each) for each in getattr(kind, "__mro__", ())):
        return  # there is such a property, and it has raised this itself
    label = owner.__qualname__ if isinstance(owner, _CoroutineFunction) else kind.__name__
    _report(
        frame,
        f"uses {label}.{name}{_in_line(frame)}, which the toolkit does not have"
        f"{_hint(name, [known for known in dir(owner) if not known.startswith('_')])}",
    )


def _is_passed_on(frame: FrameType) -> bool:
    """Tell whether a wrapper of the script's takes all its names from one of our objects.

    One that asks whether ours has the name, by ``hasattr`` or with a default, has another way.
    """
    code = frame.f_code
    has_default = code.co_code[frame.f_lasti + 1] == _ARGUMENTS_WITH_DEFAULT
    return code.co_name == "__getattr__" and "hasattr" not in code.co_names and not has_default


def _is_after_dot(frame: FrameType) -> bool:
    return opname[frame.f_code.co_code[frame.f_lasti]] in _AFTER_DOT


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


def _is_ours(module_name: str) -> bool:
    return module_name.partition(".")[0] == _PACKAGE
