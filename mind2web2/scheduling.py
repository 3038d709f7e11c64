"""Deferred verifications: judged in the background, and decided before the script sees a result.

A deferred verification records its prerequisites when the script calls it: decided ones count as they are,
pending ones are awaited, and later ones do not exist for it. So the tree is that of sequential execution.
Where the script reads something that depends on pending verdicts and cannot wait, the attempt is refused as a
whole (``AttemptRefusedError``), and the answer is evaluated again sequentially, with replies from the store.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, NoReturn, TypeVar

from mind2web2.errors import AttemptRefusedError, JudgeError
from mind2web2.rubric.node import VerificationNode, possible_blocks
from mind2web2.rubric.verdicts import Evidence, Status, skip_reason
from mind2web2.utils.api_misuse import is_installed
from mind2web2.utils.loop_turns import loop_turn

log = logging.getLogger(__name__)

# More than any provider accepts at once; bounds the pending verifications of one script.
MOST_PENDING = 256
# Far more than any rubric has; a script that asks for more loops without end.
MOST_VERIFICATIONS = 10_000
# The message of a cancellation by the run: no time limit of the script has expired.
STOPPED = "stopped by the run"

# The script's own function; its result is checked elsewhere.
EvaluateAnswer = Callable[..., Awaitable[Any]]
Thing = TypeVar("Thing")
Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How many judge requests of one answer may run at the same time; no setting changes a verdict.

    Args:
        sequential: one verification, and one source page, after another.
        most_pending: deferred verifications of one script; the next one waits.
    """

    sequential: bool = False
    most_pending: int = MOST_PENDING


_DEFAULT_OPTIONS = ExecutionOptions()
_options: ContextVar[ExecutionOptions] = ContextVar("mind2web2_execution_options", default=_DEFAULT_OPTIONS)


def current_options() -> ExecutionOptions:
    """Return the options of the running evaluation; the default outside of any run."""
    return _options.get()


@contextmanager
def execution_options(options: ExecutionOptions) -> Iterator[None]:
    """Set the options for the ``with`` block and all tasks that it starts."""
    token = _options.set(options)
    try:
        yield
    finally:
        _options.reset(token)


# Exceptions that stop a script


class MustRunSequentially(BaseException):
    """Raised in a script whose attempt is refused.

    Not an ``Exception``, so that the script's own handlers do not catch it.
    """


class ScriptBlockedError(BaseException):
    """Raised in a script that would never end; no ``Exception`` for the same reason."""


# Why the script of this context was stopped: the script may catch the error.
blocks_noted: ContextVar[list[str] | None] = ContextVar("blocks_noted", default=None)


def stop_script(reason: str) -> NoReturn:
    """Stop the script that runs in this context."""
    noted = blocks_noted.get()
    if noted is not None:
        noted.append(reason)
    raise ScriptBlockedError(reason)


# Objects that check each access by the script, such as its page cache and its client

_watching: set[type] = set()


def watching(kind: Kind) -> Kind:
    """Mark a class whose objects check every read and change themselves; subclasses are not marked."""
    _watching.add(kind)
    return kind


def is_watching(thing: object) -> bool:
    """Tell whether an object checks every read and change itself."""
    return type(thing) in _watching


def check_look(fields: str) -> None:
    """Refuse the attempt if its script reads ``fields``, which pending verifications may change."""
    deferral = _current.get()
    if deferral is not None and deferral.has_pending and is_on_the_loop():
        deferral.refuse(f"a look at {fields}")


def check_change(state: str) -> None:
    """Note that the script changes ``state``, which another attempt would find changed.

    With pending verifications the attempt is refused before the change; otherwise it continues sequentially.
    """
    if is_on_the_loop():
        check_lasting_effect(f"a change of {state}")


def check_lasting_effect(effect: str) -> None:
    """Act as ``check_change``, in worker threads as well."""
    deferral = _current.get()
    if deferral is not None:
        if deferral.has_pending:
            deferral.refuse(effect)
        deferral.is_sequential = True


def check_asking() -> None:
    """Raise if the attempt is refused; deferred verifications still finish, as they are paid for."""
    deferral = _current.get()
    if deferral is not None and not _is_deferred.get():
        deferral.check_refusal()


def is_on_the_loop() -> bool:
    """Tell whether this code runs on an event loop, as scripts do, rather than in a worker thread of ours."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# Pending verdicts


@dataclass(eq=False)
class PendingVerdict:
    """A deferred verification.

    Args:
        leaf: where the verdict will be written, if anywhere.
        status: the verdict; ``None`` before there is one, and after a failure.
    """

    leaf: VerificationNode | None
    status: Status | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    async def outcome(self) -> Status:
        """Wait for the verdict and return it. Raises JudgeError: the verification failed."""
        await self.finished.wait()
        if self.status is None:
            name = None if self.leaf is None else self.leaf.id
            raise JudgeError(f"no verdict on '{name}', which was to come first")
        return self.status


@dataclass(frozen=True, slots=True)
class NotedPrerequisites:
    """The leaves that may block a verification, as they were when the script asked.

    Args:
        decided: the reason to skip it, unless one of ``pending`` blocks as well.
        pending: in the order in which they are checked.
    """

    decided: str | None
    pending: tuple[PendingVerdict, ...] = ()

    async def skip_reason(self) -> str | None:
        """Return why the verification is skipped, ``None`` if it is not."""
        for each in self.pending:
            status = await each.outcome()
            if status in ("failed", "skipped") and each.leaf is not None:
                return skip_reason(each.leaf.id, status)
        return self.decided


def noted_prerequisites(
    node: VerificationNode | None, extra: Sequence[VerificationNode], verdicts: Mapping[int, PendingVerdict]
) -> NotedPrerequisites:
    """Return the leaves that block a verification, or may block it.

    Args:
        verdicts: the pending ones, by the ``id`` of the leaf.
    """
    pending: list[PendingVerdict] = []
    for leaf in possible_blocks(node, extra):
        verdict = verdicts.get(id(leaf))
        if verdict is None:
            return NotedPrerequisites(skip_reason(leaf.id, leaf.verdict.status), tuple(pending))
        pending.append(verdict)
    return NotedPrerequisites(None, tuple(pending))


@dataclass(frozen=True)
class Request:
    """One verification, or several at the same time, that a script asks for.

    Args:
        leaves: where the verdicts are written, one for each coroutine.
        start: records the prerequisites and returns the coroutines that judge; ``None`` in the place of one
            with invalid arguments.
    """

    leaves: Sequence[VerificationNode | None]
    start: Callable[[], Sequence[Coroutine[Any, Any, bool] | None]]

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
        blocks_held: ``async with`` blocks of the script, in which nothing is deferred.
        failure: of a deferred verification.
    """

    def __init__(self, options: ExecutionOptions, logger: object = None) -> None:
        self.is_sequential = options.sequential
        self.blocks_held = 0
        self.failure: Exception | None = None
        self.refusal: str | None = None
        self._most_pending = options.most_pending
        self._verifications = 0
        self._program = asyncio.current_task()
        self._tasks: set[asyncio.Task[None]] = set()
        self._verdicts: dict[int, PendingVerdict] = {}  # by the id of the leaf
        self._one_finished = asyncio.Event()
        self._tasks_beside = 0
        self._known_listeners = {**(_listeners(log) or {}), **(_listeners(logger) or {})}
        self._loggers: list[logging.Logger] = []

    # Requests of the script

    async def run(self, method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any) -> None:
        """Call a method whose result is not used: deferred where possible."""
        request = self._request(method, arguments, keywords)
        if request is None or not request.fits():
            await method(*arguments, **keywords)
            return
        while len(self._tasks) + len(request.leaves) > self._most_pending and self._tasks:
            self._one_finished.clear()
            with self._cut_off_noted():
                await self._one_finished.wait()
        if self.failure is not None:
            raise self.failure
        # All verifications of a request record their prerequisites before the first one starts.
        coroutines = request.start()
        for leaf, coroutine in zip(request.leaves, coroutines, strict=True):
            if coroutine is not None:
                self._start(leaf, coroutine)
        # Send the first requests before the script asks for the last.
        await loop_turn()

    def _request(
        self, method: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Request | None:
        self.check_refusal()
        must_wait = self.is_sequential or self.blocks_held or self._tasks_beside or not self.is_program()
        if must_wait or not isinstance(method, MethodType):
            return None
        noting = _noting.get(method.__func__)
        try:
            return None if noting is None else noting(method.__self__, *arguments, **keywords)
        except (TypeError, ValueError):
            # The method itself reports its invalid arguments.
            return None

    def _start(self, leaf: VerificationNode | None, coroutine: Coroutine[Any, Any, bool]) -> None:
        verdict = PendingVerdict(leaf)
        if leaf is not None:
            leaf.mark_pending(self)
            self._verdicts[id(leaf)] = verdict
        context = copy_context()
        context.run(_is_deferred.set, True)
        task = asyncio.create_task(self._judged(coroutine, verdict), context=context)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finish(done, verdict, coroutine))

    async def _judged(self, coroutine: Coroutine[Any, Any, bool], verdict: PendingVerdict) -> None:
        try:
            await coroutine
        except Exception as error:
            # settle() raises it.
            self.failure = self.failure or error
            verdict.finished.set()

    def _finish(
        self, task: asyncio.Task[None], verdict: PendingVerdict, coroutine: Coroutine[Any, Any, bool]
    ) -> None:
        self._tasks.discard(task)
        coroutine.close()  # a task that is cancelled before its first step never starts it
        if verdict.leaf is not None and self._verdicts.get(id(verdict.leaf)) is verdict:
            del self._verdicts[id(verdict.leaf)]
            verdict.leaf.clear_pending()
        verdict.finished.set()
        self._one_finished.set()
        if any(map(self.is_heard, self._loggers)):
            self.refusal = self.refusal or "a log handler of the script's own"

    # Prerequisites and verdicts

    def prerequisites(
        self, node: VerificationNode | None, extra: Sequence[VerificationNode]
    ) -> NotedPrerequisites:
        """Return the leaves that block a verification, or may block it."""
        self.check_refusal()
        if self._tasks and not self.is_program():
            self.refuse("a verification in a task of the script's own, beside")
        return noted_prerequisites(node, extra, self._verdicts)

    async def _decided(self, node: VerificationNode | None) -> None:
        verdict = self._verdicts.get(id(node))
        if verdict is not None:
            with self._cut_off_noted():
                await verdict.finished.wait()

    def decide(self, node: VerificationNode, score: float, status: Status, evidence: Evidence) -> None:
        """Write a verdict that may be pending."""
        verdict = self._verdicts.pop(id(node), None)
        node.take_verdict(score, status, evidence)
        if verdict is not None:
            verdict.status = status
            verdict.finished.set()

    def count_verification(self) -> None:
        """Stop a script that verifies without end."""
        self._verifications += 1
        if self._verifications > MOST_VERIFICATIONS:
            stop_script(f"it asked for more than {MOST_VERIFICATIONS:,} verifications")

    # Refused attempts

    @property
    def has_pending(self) -> bool:
        """Tell whether a verification is pending."""
        return bool(self._tasks)

    def refuse(self, reason: str) -> NoReturn:
        """Refuse this attempt: ``reason`` needs pending verdicts and cannot wait."""
        self.refusal = self.refusal or reason
        raise MustRunSequentially(self.refusal)

    def check_refusal(self) -> None:
        """Raise if the attempt is refused."""
        if self.refusal is not None:
            raise MustRunSequentially(self.refusal)

    def note_change(self) -> None:
        """Let only the script's main task change a tree while verdicts are pending."""
        if not self.is_program():
            self.refuse("a change of the tree by a task of the script's own, beside")

    def is_program(self) -> bool:
        """Tell whether the script's main task runs, rather than a task that it has started."""
        try:
            return asyncio.current_task() is self._program
        except RuntimeError:  # another thread
            return False

    @asynccontextmanager
    async def verifying(self, nodes: Iterable[VerificationNode | None]) -> AsyncIterator[None]:
        """Wait for these nodes' pending verdicts; defer nothing while a task of the script's own verifies."""
        for node in nodes:
            await self._decided(node)
        is_beside = not self.is_program()
        self._tasks_beside += is_beside
        try:
            yield
        finally:
            self._tasks_beside -= is_beside

    def is_heard(self, logger: object) -> bool:
        """Tell whether the script may see a verification's log records, by a handler or filter of its own."""
        listeners = _listeners(logger)
        if listeners is None or not isinstance(logger, logging.Logger):
            return True
        if listeners.keys() <= self._known_listeners.keys():
            if logger not in self._loggers:
                self._loggers.append(logger)
            return False
        return True

    # Waiting

    async def settle(self) -> None:
        """Wait for all pending verifications. Raises JudgeError: the judge failed."""
        self.check_refusal()
        if self._tasks and not self.is_program():
            self.refuse("a look at the tree by a task of the script's own, beside")
        task = asyncio.current_task()
        if task is not None and task.cancelling() and self._tasks:
            # A script that cleans up after its cancellation does not need the verdicts.
            self._note_cut_off()
            await self.stop()
        with self._cut_off_noted():
            await self.drain()
        self.check_refusal()
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def _cut_off_noted(self) -> Iterator[None]:
        """Note a failure where a time limit of the script's own ends a wait for verdicts."""
        try:
            yield
        except asyncio.CancelledError as error:
            if STOPPED not in error.args:
                self._note_cut_off()
            raise

    def _note_cut_off(self) -> None:
        self.failure = self.failure or cut_off("verdicts on earlier claims")

    async def drain(self) -> None:
        """Wait until no verification is pending, whatever their outcomes."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Cancel all pending verifications and wait for their end."""
        for task in self._tasks:
            task.cancel(STOPPED)
        await self.drain()


def cut_off(name: str) -> JudgeError:
    """Return why there is no result where a time limit of the script's own expired."""
    return JudgeError(
        f"the script stopped waiting for the judge on {name!r} (a time limit of its own, such as "
        "asyncio.timeout or wait_for): raise that limit, or run with --sequential"
    )


def _listeners(logger: object) -> dict[int, object] | None:
    """Return the objects that may see a logger's records, by ``id``; ``None`` where they are not known."""
    if logger is None:
        return {}
    if type(logger) not in (logging.Logger, logging.RootLogger):
        return None
    found: list[object] = [logging.getLogRecordFactory()]
    each: logging.Logger | None = logger  # type: ignore[assignment]  # checked above
    while each is not None:
        replaced_methods = filter(callable, vars(each).values())
        found += [*each.handlers, *each.filters, *replaced_methods]
        found += [part for handler in each.handlers for part in handler.filters]
        each = each.parent if each.propagate else None
    return {id(listener): listener for listener in found}


_current: ContextVar[Deferral | None] = ContextVar("mind2web2_deferral", default=None)
_is_deferred: ContextVar[bool] = ContextVar("mind2web2_is_deferred", default=False)


def current_deferral() -> Deferral | None:
    """Return the scheduler of the script that this code belongs to."""
    return _current.get()


def verifying(nodes: Iterable[VerificationNode | None]) -> AbstractAsyncContextManager[None]:
    """Return the block in which these nodes are verified, within a script's run or outside of any."""
    deferral = _current.get()
    return nullcontext() if deferral is None else deferral.verifying(nodes)


def prerequisites_now(node: VerificationNode | None, extra: Sequence[VerificationNode]) -> NotedPrerequisites:
    """Return the leaves that block a verification, or may; within a script's run or outside of any."""
    deferral = _current.get()
    return noted_prerequisites(node, extra, {}) if deferral is None else deferral.prerequisites(node, extra)


def decide(node: VerificationNode, score: float, status: Status, evidence: Evidence) -> None:
    """Write a verdict into a node, within a script's run or outside of any."""
    deferral = _current.get()
    if deferral is None:
        node.decide(score, status, evidence)
    else:
        deferral.decide(node, score, status, evidence)


# A whole script


def deferring(function: EvaluateAnswer, modules_before: Set[str]) -> EvaluateAnswer:
    """Return a script's function such that nothing is pending when it returns.

    Its call raises ``AttemptRefusedError`` where the answer is to be evaluated again sequentially.

    Args:
        modules_before: names of the modules that were loaded before the script; a refused attempt unloads the
            script's own helper modules, which may keep state.
    """

    @functools.wraps(function)
    async def evaluate_answer(*arguments: Any, **keywords: Any) -> Any:
        around = current_deferral()
        if around is not None:
            # One script evaluates another: the outer one has the scheduler.
            result = await function(*arguments, **keywords)
            if around.is_program():
                await around.settle()
            return result
        token = _current.set(deferral := Deferral(current_options(), keywords.get("logger")))
        try:
            return await _evaluated(deferral, function(*arguments, **keywords))
        except AttemptRefusedError:
            _unload_helpers(modules_before)
            raise
        finally:
            _current.reset(token)

    return evaluate_answer


async def _evaluated(deferral: Deferral, evaluation: Awaitable[Any]) -> Any:
    try:
        try:
            result = await evaluation
            await deferral.settle()
        except BaseException as error:
            # The script may have caught a refusal; a cancellation of the whole is none.
            if _is_being_cancelled() or not (deferral.refusal or isinstance(error, Exception)):
                raise
            # Pending requests are paid for: the store keeps their replies for the next attempt.
            await deferral.drain()
            if deferral.refusal is None:
                if deferral.failure in (None, error):
                    raise
                # In sequential execution the judge's failure would have come first.
                raise deferral.failure from error
        else:
            return result
        raise AttemptRefusedError(f"the script must run sequentially: {deferral.refusal}")
    finally:
        await deferral.stop()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _unload_helpers(modules_before: Set[str]) -> None:
    for name in sys.modules.keys() - modules_before:
        path = getattr(sys.modules[name], "__file__", None)
        if isinstance(path, str) and not is_installed(path):
            del sys.modules[name]


# Functions that a rewritten script calls

# Attributes of evaluators, page caches and judges.
_SHOWING = ("get_summary", "get_web", "ledger")


async def deferred(method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any) -> None:
    """Call a method whose result is not used: deferred where possible, else awaited."""
    deferral = current_deferral()
    if deferral is None:
        await method(*arguments, **keywords)
    else:
        await deferral.run(method, *arguments, **keywords)


async def read(thing: Thing) -> Thing:
    """Return a thing; first wait for pending verdicts where it shows them or their effects."""
    # Of the class, since access to the object itself may refuse the attempt.
    kind = thing if isinstance(thing, type) else type(thing)
    shows = issubclass(kind, VerificationNode) or any(hasattr(kind, name) for name in _SHOWING)
    return await settled(thing) if shows else thing


async def settled(thing: Thing) -> Thing:
    """Return a thing after all pending verdicts."""
    deferral = current_deferral()
    if deferral is not None:
        await deferral.settle()
    return thing


@asynccontextmanager
async def sequentially() -> AsyncIterator[None]:
    """Wait for pending verdicts, and defer nothing in the ``async with`` block."""
    deferral = current_deferral()
    if deferral is None:
        yield
        return
    await deferral.settle()
    deferral.blocks_held += 1
    try:
        yield
    finally:
        deferral.blocks_held -= 1
