"""One run of a script with its pending calls, and the guards of what these may change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token, copy_context
from dataclasses import dataclass
from types import MethodType
from typing import Any, NamedTuple, NoReturn, TypeVar

from mind2web2.errors import EvalScriptError
from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Evidence, Status
from mind2web2.scheduling.listeners import listeners_of
from mind2web2.scheduling.options import ExecutionOptions
from mind2web2.scheduling.own_work import OwnWork
from mind2web2.scheduling.prerequisites import (
    NotedPrerequisites,
    PendingCall,
    noted_prerequisites,
)
from mind2web2.scheduling.stopping import (
    MOST_VERIFICATIONS,
    STOPPED,
    ScriptBlockedError,
)
from mind2web2.scheduling.waiting import CannotWaitError, wait_now
from mind2web2.utils.loop_turns import loop_turn

log = logging.getLogger("mind2web2")

Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Request:
    """One verification or extraction, or several verifications at the same time, that a script asks for.

    Args:
        leaves: where the verdicts are written, one for each coroutine; ``None`` for an extraction.
        start: records the prerequisites and returns the coroutines that ask; ``None`` in the place of one
            with invalid arguments.
    """

    leaves: Sequence[VerificationNode | None]
    start: Callable[[], Sequence[Coroutine[Any, Any, Any] | None]]

    def fits(self) -> bool:
        """Tell whether every verdict has a leaf of its own that is not decided yet."""
        nodes = [leaf for leaf in self.leaves if leaf is not None]
        if len({id(node) for node in nodes}) < len(nodes):
            return False
        return all(
            type(node) is VerificationNode  # a subclass may do anything with a verdict
            and not node.children
            and not node.is_pending
            and node.verdict.status == "initialized"
            for node in nodes
        )


# Takes a method's arguments and returns its request, ``None`` where it must not be deferred.
Noting = Callable[..., Request | None]
_noting: dict[object, Noting] = {}


def deferrable(method: Callable[..., Awaitable[Any]], noting: Noting) -> None:
    """Let statements that await a method be deferred; ``noting`` takes the same arguments."""
    _noting[method] = noting


class Deferral:
    """One run of a script's ``evaluate_answer``, with its pending verifications.

    Args:
        options: ``sequential`` defers nothing.
        logger: the script's; a handler or filter that it has later is the script's own.

    Attributes:
        is_sequential: nothing is deferred from now on.
        failure: of a deferred verification.
        stopped: why the script was stopped, whatever it makes of that.
        work: tasks and callbacks of the script's own; while there are any, nothing is deferred.
    """

    def __init__(self, options: ExecutionOptions, logger: object = None) -> None:
        self.is_sequential = options.sequential
        self.failure: Exception | None = None
        self.stopped: str | None = None
        self.work = OwnWork()
        self._is_stopped = False
        self._most_pending = options.most_pending
        self._verifications = 0
        self._program = asyncio.current_task()
        self._tasks: set[asyncio.Task[None]] = set()
        self._verdicts: dict[int, PendingCall] = {}  # by the id of the leaf
        self._known_listeners = {
            **(listeners_of(log) or {}),
            **(listeners_of(logger) or {}),
        }
        self._loggers: list[logging.Logger] = []

    # Requests of the script

    async def run(
        self, method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any
    ) -> None:
        """Call a method whose result is not used: deferred where possible."""
        request = self._request(method, arguments, keywords)
        if request is None or not request.fits():
            await method(*arguments, **keywords)
            return
        await self._defer(request)

    async def value(
        self, method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any
    ) -> Any:
        """Call a method whose result is read later: return it, or the call that is pending."""
        request = self._request(method, arguments, keywords)
        if request is None:
            return await method(*arguments, **keywords)
        [pending] = await self._defer(request)
        return pending

    async def _defer(self, request: Request) -> list[PendingCall]:
        most_before = self._most_pending - len(request.leaves)
        while self._tasks and len(self._tasks) > most_before:
            with toolkit_at_work():
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if self.failure is not None:
            raise self.failure
        # All calls of a request record their prerequisites before the first one starts.
        coroutines = request.start()
        started = [
            self._start(leaf, coroutine)
            for leaf, coroutine in zip(request.leaves, coroutines, strict=True)
            if coroutine is not None
        ]
        # Send the first requests before the script asks for the last.
        with toolkit_at_work():
            await loop_turn()
        return started

    def _request(
        self,
        method: Callable[..., Awaitable[Any]],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Request | None:
        if not self.may_defer or not isinstance(method, MethodType):
            return None
        noting = _noting.get(method.__func__)
        try:
            return (
                None
                if noting is None
                else noting(method.__self__, *arguments, **keywords)
            )
        except (TypeError, ValueError):
            # The method itself reports its invalid arguments.
            return None

    @property
    def may_defer(self) -> bool:
        """Tell whether the script's own task runs, and nothing else of the script's is at work."""
        return not self.is_sequential and self.work.is_done and self._is_program()

    def _start(
        self, leaf: VerificationNode | None, coroutine: Coroutine[Any, Any, Any]
    ) -> PendingCall:
        call = PendingCall(leaf)
        if leaf is not None:
            leaf.mark_pending(self)
            self._verdicts[id(leaf)] = call
        context = copy_context()
        context.run(_set_toolkit_at_work)
        # Not within its context: the task is none of the script's.
        with toolkit_at_work():
            task = asyncio.create_task(self._run_call(coroutine, call), context=context)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finish(done, call, coroutine))
        return call

    async def _run_call(
        self, coroutine: Coroutine[Any, Any, Any], call: PendingCall
    ) -> None:
        try:
            call.value = await coroutine
        except Exception as error:
            # settle() raises it.
            self.failure = self.failure or error
            call.failure = error
            call.finish()

    def _finish(
        self,
        task: asyncio.Task[None],
        call: PendingCall,
        coroutine: Coroutine[Any, Any, Any],
    ) -> None:
        self._tasks.discard(task)
        coroutine.close()  # a task that is cancelled before its first step never starts it
        if call.leaf is not None and self._verdicts.get(id(call.leaf)) is call:
            del self._verdicts[id(call.leaf)]
            call.leaf.clear_pending()
        call.finish()
        if any(map(self.is_heard, self._loggers)):
            self.failure = self.failure or _unguarded(
                "a log handler of the script's own"
            )

    # Prerequisites and verdicts

    def prerequisites(
        self, node: VerificationNode | None, extra: Sequence[VerificationNode]
    ) -> NotedPrerequisites:
        """Return the leaves that block a verification, or may block it."""
        return noted_prerequisites(node, extra, self._verdicts)

    async def decided(self, nodes: Iterable[VerificationNode | None]) -> None:
        """Wait for the pending verdicts of these nodes."""
        for node in nodes:
            verdict = self._verdicts.get(id(node))
            if verdict is not None:
                await verdict.finished.wait()

    def reach(self, node: VerificationNode | None) -> None:
        """Note that the prerequisites of a verification are decided."""
        verdict = self._verdicts.get(id(node))
        if verdict is not None:
            verdict.reached.set()

    def decide(
        self, node: VerificationNode, score: float, status: Status, evidence: Evidence
    ) -> None:
        """Write a verdict that may be pending."""
        verdict = self._verdicts.pop(id(node), None)
        node.take_verdict(score, status, evidence)
        if verdict is not None:
            verdict.status = status
            verdict.finish()

    def count_verification(self) -> None:
        """Stop a script that verifies without end."""
        self._verifications += 1
        if self._verifications > MOST_VERIFICATIONS:
            stop_script(f"it asked for more than {MOST_VERIFICATIONS:,} verifications")

    def _is_program(self) -> bool:
        """Tell whether the script's main task runs, rather than a task that it has started."""
        try:
            return asyncio.current_task() is self._program
        except RuntimeError:  # another thread
            return False

    def is_heard(self, logger: object) -> bool:
        """Tell whether the script may see a verification's log records, by a handler or filter of its own."""
        listeners = listeners_of(logger)
        if listeners is None or not isinstance(logger, logging.Logger):
            return True
        if listeners.keys() <= self._known_listeners.keys():
            if logger not in self._loggers:
                self._loggers.append(logger)
            return False
        return True

    # Waiting

    def settle_now(self) -> None:
        """Wait for all pending verifications in a plain function.

        Raises:
            JudgeError: the judge failed.
            EvalScriptError: the function cannot wait, since the script's own task does not run it.
        """
        if not self._tasks or _code.get().is_toolkit:
            return
        try:
            wait_now(self.settle())
        except CannotWaitError:
            self.failure = self.failure or _unguarded("a callback of the script's own")
            raise self.failure from None

    async def settle(self) -> None:
        """Wait for all pending verifications. Raises JudgeError: the judge failed."""
        if self._is_stopped:
            # A script that cleans up after its cancellation does not need the verdicts.
            await self.stop()
        await self.drain()
        if self.failure is not None:
            raise self.failure

    def note_error(self, error: BaseException) -> None:
        """Note that the run stops the script."""
        if isinstance(error, asyncio.CancelledError) and STOPPED in error.args:
            self._is_stopped = True

    async def drain(self) -> None:
        """Wait until no verification is pending, whatever their outcomes."""
        with toolkit_at_work():
            while self._tasks:
                await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Cancel all pending verifications and wait for their end."""
        with toolkit_at_work():
            for task in self._tasks:
                task.cancel(STOPPED)
        await self.drain()


def _unguarded(reader: str) -> EvalScriptError:
    return EvalScriptError(
        f"{reader} depends on verdicts that are pending, and cannot wait for them: run with --sequential"
    )


class _Code(NamedTuple):
    """The code that runs: of which script, and whether it is the toolkit's rather than the script's own."""

    deferral: Deferral | None = None
    is_toolkit: bool = False


_OUTSIDE_OF_SCRIPTS = _Code()
# A context variable, since a script calls the toolkit from any of its tasks, which name no scheduler.
_code: ContextVar[_Code] = ContextVar("mind2web2_code", default=_OUTSIDE_OF_SCRIPTS)


def current_deferral() -> Deferral | None:
    """Return the scheduler of the script that this code belongs to."""
    return _code.get().deferral


@contextmanager
def deferral_of_script(deferral: Deferral) -> Iterator[None]:
    """Make a scheduler the current one in the ``with`` block and in all tasks that it starts."""
    token = _code.set(_code.get()._replace(deferral=deferral))
    try:
        yield
    finally:
        _code.reset(token)


@contextmanager
def toolkit_at_work() -> Iterator[None]:
    """Mark the ``with`` block as code of the toolkit: its tasks, timers and reads are not the script's."""
    token = _set_toolkit_at_work()
    try:
        yield
    finally:
        _code.reset(token)


def _set_toolkit_at_work() -> Token[_Code]:
    return _code.set(_code.get()._replace(is_toolkit=True))


def stop_script(reason: str) -> NoReturn:
    """Stop the script that this code belongs to."""
    deferral = current_deferral()
    if deferral is not None:
        deferral.stopped = deferral.stopped or reason
    raise ScriptBlockedError(reason)


def work_of_script() -> OwnWork | None:
    """Wait for pending verdicts and return where to count work of the script; ``None`` for other code."""
    deferral = current_deferral()
    if deferral is None or _code.get().is_toolkit:
        return None
    deferral.settle_now()
    return deferral.work


# Guards: what pending verifications may change is read and changed after them


_guarded: set[type] = set()


def guarded(kind: Kind) -> Kind:
    """Mark a class whose objects guard every read and change themselves; subclasses are not marked."""
    _guarded.add(kind)
    return kind


def is_guarded(thing: object) -> bool:
    """Tell whether an object guards every read and change itself."""
    return type(thing) in _guarded


def guard_access() -> None:
    """Wait for pending verdicts before the script reads or changes what they may change, on the loop."""
    if is_on_the_loop():
        guard_side_effect()


def guard_side_effect() -> None:
    """Wait for pending verdicts before the script changes something outside, such as a file."""
    deferral = current_deferral()
    if deferral is not None:
        deferral.settle_now()


def defer_no_more() -> None:
    """Go on in program order, since the script starts what runs beside it: a thread, a process."""
    deferral = current_deferral()
    if deferral is not None and not _code.get().is_toolkit:
        deferral.settle_now()
        deferral.is_sequential = True


def is_on_the_loop() -> bool:
    """Tell whether this code runs on an event loop, as scripts do, rather than in a worker thread of ours."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# Verifications within a script's run, or outside of any


async def decided(nodes: Iterable[VerificationNode | None]) -> None:
    """Wait for the pending verdicts of these nodes."""
    deferral = current_deferral()
    if deferral is not None:
        await deferral.decided(nodes)


def prerequisites_now(
    node: VerificationNode | None, extra: Sequence[VerificationNode]
) -> NotedPrerequisites:
    """Return the leaves that block a verification, or may."""
    deferral = current_deferral()
    return (
        noted_prerequisites(node, extra, {})
        if deferral is None
        else deferral.prerequisites(node, extra)
    )


def reach(node: VerificationNode | None) -> None:
    """Note that the prerequisites of a verification are decided."""
    deferral = current_deferral()
    if deferral is not None:
        deferral.reach(node)


def decide(
    node: VerificationNode, score: float, status: Status, evidence: Evidence
) -> None:
    """Write a verdict into a node."""
    deferral = current_deferral()
    if deferral is None:
        node.decide(score, status, evidence)
    else:
        deferral.decide(node, score, status, evidence)
