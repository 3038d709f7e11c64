"""Deferred verifications: judged in the background, done before the script can see a result.

What a deferred verification depends on is noted when the script asks: prerequisites that are decided count
as they are, pending ones are waited for, and those asked for later do not exist for it. So the tree comes out
as in program order. A script may be deferred as long as nothing that it does could tell the difference; where
something could, the attempt is refused as a whole, and the answer is evaluated again in program order
(``AttemptRefusedError``).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from types import MethodType
from typing import Any, NoReturn, TypeVar

from mind2web2.errors import AttemptRefusedError
from mind2web2.rubric.aggregation import Status
from mind2web2.rubric.evidence import Evidence
from mind2web2.rubric.node import VerificationNode
from mind2web2.scheduling.guard import STOPPED, ProgramOrderNeeded, cut_off, stop_script, watched_attempt
from mind2web2.scheduling.options import Pace, current_pace
from mind2web2.scheduling.pending import NotedPrerequisites, PendingVerdict, noted_prerequisites
from mind2web2.utils.aio import loop_turn

log = logging.getLogger(__name__)

# Far more than any rubric has; a script that asks for more loops without end.
MOST_VERIFICATIONS = 10_000

# Scripts are not ours: their result is checked elsewhere.
EvaluateAnswer = Callable[..., Awaitable[Any]]
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Request:
    """A verification, or several at the same time, that a script asks for.

    Args:
        leaves: where the verdicts go, one for each coroutine.
        start: notes what each depends on and returns the rest of the work, ``None`` for one whose
            arguments make no sense where others do not suffer from that.
    """

    leaves: Sequence[VerificationNode | None]
    start: Callable[[], Sequence[Coroutine[Any, Any, bool] | None]]

    def fits(self) -> bool:
        """Tell whether every verdict goes to a leaf of its own that has none yet."""
        nodes = [leaf for leaf in self.leaves if leaf is not None]
        if len({id(node) for node in nodes}) < len(nodes):
            return False
        return all(
            type(node) is VerificationNode  # no subclass of a script's own
            and not node.children
            and not node.is_pending
            and node.verdict.status == "initialized"
            for node in nodes
        )


# From a method that asks for verifications to what notes the request; it returns None where that is not
# to be done apart from the method, as a subclass has its own.
Noting = Callable[..., Request | None]
_noting: dict[object, Noting] = {}


def deferrable(method: Callable[..., Awaitable[Any]], noting: Noting) -> None:
    """Let statements that await a method be deferred; ``noting`` takes the same arguments."""
    _noting[method] = noting


class Deferral:
    """One run of a script's ``evaluate_answer``, with the verifications that are pending.

    Args:
        pace: ``sequential`` defers nothing.
        logger: the script's, whose handlers do not count verdicts as long as they are those of now.
    """

    def __init__(self, pace: Pace, logger: object = None) -> None:
        self.pace = pace
        self._keeps_order = pace.sequential
        self._verifications = 0
        self._listeners = (_listeners(log) or set()) | (_listeners(logger) or set())
        self._loggers: list[logging.Logger] = []
        self.refusal: str | None = None
        self._program = asyncio.current_task()
        self._tasks: set[asyncio.Task[None]] = set()
        self._verdicts: dict[int, PendingVerdict] = {}  # by the id of the leaf
        self.failure: Exception | None = None  # of a verification that nobody waited for
        self._one_finished = asyncio.Event()
        self._held = 0
        self._beside = 0

    # What the script asks for

    async def run(self, method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any) -> None:
        """Call a method whose result is not used: deferred where that can be done."""
        request = self._request(method, arguments, keywords)
        if request is None or not request.fits():
            await method(*arguments, **keywords)
            return
        while len(self._tasks) + len(request.leaves) > self.pace.most_under_way and self._tasks:
            self._one_finished.clear()
            with self._cut_off_noted():
                await self._one_finished.wait()
        if self.failure is not None:
            raise self.failure
        # All of them look before the first one is under way: they do not wait for one another.
        coroutines = request.start()
        for leaf, coroutine in zip(request.leaves, coroutines, strict=True):
            if coroutine is not None:
                self._put_under_way(leaf, coroutine)
        # So that the first requests are on their way while the script asks for the last.
        await loop_turn()

    def _request(
        self, method: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Request | None:
        self._check_refusal()
        may_defer = not (self._keeps_order or self._held or self._beside) and self.is_program()
        if not may_defer or not isinstance(method, MethodType):
            return None
        noting = _noting.get(method.__func__)
        try:
            return None if noting is None else noting(method.__self__, *arguments, **keywords)
        except (TypeError, ValueError):
            # The method itself will say what is wrong with its arguments.
            return None

    def _put_under_way(self, leaf: VerificationNode | None, coroutine: Coroutine[Any, Any, bool]) -> None:
        verdict = PendingVerdict(leaf)
        if leaf is not None:
            leaf.mark_pending(self)
            self._verdicts[id(leaf)] = verdict
        context = copy_context()
        context.run(_is_deferred.set, True)
        task = asyncio.create_task(self._carried_out(coroutine, verdict), context=context)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finish(done, verdict, coroutine))

    async def _carried_out(self, coroutine: Coroutine[Any, Any, bool], verdict: PendingVerdict) -> None:
        try:
            await coroutine
        except Exception as error:
            # Kept for whoever waits: settle() raises it.
            self.failure = self.failure or error
            verdict.finished.set()

    def _finish(
        self, task: asyncio.Task[None], verdict: PendingVerdict, coroutine: Coroutine[Any, Any, bool]
    ) -> None:
        self._tasks.discard(task)
        coroutine.close()  # a task that is cancelled before its first step never comes to it
        if verdict.leaf is not None and self._verdicts.get(id(verdict.leaf)) is verdict:
            del self._verdicts[id(verdict.leaf)]
            verdict.leaf.clear_pending()
        verdict.finished.set()
        self._one_finished.set()
        self._check_listeners()

    # What a verification depends on

    def prerequisites(
        self, node: VerificationNode | None, extra: Sequence[VerificationNode]
    ) -> NotedPrerequisites:
        """Return what blocks a verification or may come to, as it stands now."""
        self._check_refusal()
        if self._tasks and not self.is_program():
            self.refuse("a verification in a task of the script's own, beside")
        return noted_prerequisites(node, extra, self._verdicts)

    async def decided(self, node: VerificationNode | None) -> None:
        """Wait for a verdict on this very node that is under way."""
        verdict = self._verdicts.get(id(node))
        if verdict is not None:
            with self._cut_off_noted():
                await verdict.finished.wait()

    def decide(self, node: VerificationNode, score: float, status: Status, evidence: Evidence) -> None:
        """Write a verdict that may have been under way."""
        verdict = self._verdicts.pop(id(node), None)
        node.take_verdict(score, status, evidence)
        if verdict is not None:
            verdict.status = status
            verdict.finished.set()

    # What only program order gets right

    @property
    def has_work_under_way(self) -> bool:
        """Tell whether a verification has been asked for and is not done."""
        return bool(self._tasks)

    def refuse(self, what: str) -> NoReturn:
        """Give this attempt up: ``what`` needs verdicts that are under way, and cannot wait."""
        self.refusal = self.refusal or what
        raise ProgramOrderNeeded(self.refusal)

    def keep_order(self, why: str) -> None:
        """Defer nothing from now on: another attempt would not begin as this one did."""
        if not self._keeps_order:
            log.info("script keeps program order from now on reason=%s", why)
        self._keeps_order = True

    def check_asking(self) -> None:
        """Raise where the attempt is given up, and this is no work that was deferred before."""
        if not _is_deferred.get():
            self._check_refusal()

    def count_verification(self) -> None:
        """Stop a script that verifies without end."""
        self._verifications += 1
        if self._verifications > MOST_VERIFICATIONS:
            stop_script(f"it asked for more than {MOST_VERIFICATIONS:,} verifications")

    def is_heard(self, logger: object) -> bool:
        """Tell whether a handler or filter that the script has added may see what a verification logs."""
        listeners = _listeners(logger)
        if listeners is None or not isinstance(logger, logging.Logger):
            return True
        is_known = listeners <= self._listeners
        if is_known and logger not in self._loggers:
            self._loggers.append(logger)
        return not is_known

    def _check_listeners(self) -> None:
        if any(map(self.is_heard, self._loggers)):
            self.refusal = self.refusal or "a log handler that the script has added"

    @contextmanager
    def _cut_off_noted(self) -> Iterator[None]:
        """Count it as a failure where the script's own time limit ends a wait for verdicts."""
        try:
            yield
        except asyncio.CancelledError as error:
            if STOPPED not in error.args:
                self._note_cut_off()
            raise

    def _note_cut_off(self) -> None:
        self.failure = self.failure or cut_off("verdicts on earlier claims")

    def note_change(self) -> None:
        """Let nobody but the program and its own verifications change a tree while verdicts are under way."""
        if not self.is_program():
            self.refuse("a change of the tree by a task of the script's own, beside")

    def _check_refusal(self) -> None:
        if self.refusal is not None:
            raise ProgramOrderNeeded(self.refusal)

    def is_program(self) -> bool:
        """Tell whether this is the script itself, or what it awaits, and no task that runs beside it."""
        try:
            return asyncio.current_task() is self._program
        except RuntimeError:  # another thread
            return False

    @contextmanager
    def beside(self) -> Iterator[None]:
        """While a task of the script's own verifies, the program defers nothing."""
        if self.is_program():
            yield
            return
        self._beside += 1
        try:
            yield
        finally:
            self._beside -= 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the script holds something that a verification may need, nothing is deferred."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    # Waiting for all of it

    async def settle(self) -> None:
        """Wait for all that is under way.

        Raises:
            JudgeError: the judge failed meanwhile.
        """
        self._check_refusal()
        if self._tasks and not self.is_program():
            self.refuse("a look at the tree by a task of the script's own, beside")
        task = asyncio.current_task()
        if task is not None and task.cancelling() and self._tasks:
            # A script that cleans up while it is stopped has no use for verdicts.
            self._note_cut_off()
            await self.stop()
        with self._cut_off_noted():
            await self.drain()
        self._check_listeners()
        self._check_refusal()
        self._loggers.clear()
        if self.failure is not None:
            raise self.failure

    async def drain(self) -> None:
        """Wait for all that is under way, whatever comes of it."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Cancel all that is under way and wait for its end."""
        for task in self._tasks:
            task.cancel(STOPPED)
        await self.drain()


def _listeners(logger: object) -> set[int] | None:
    """Return what may see a record of a logger, ``None`` where that is not known."""
    if logger is None:
        return set()
    if type(logger) not in (logging.Logger, logging.RootLogger):
        return None
    found = {id(logging.getLogRecordFactory())}
    each: logging.Logger | None = logger  # type: ignore[assignment]  # checked above
    while each is not None:
        found.update(map(id, (*each.handlers, *each.filters)))
        found.update(id(part) for handler in each.handlers for part in handler.filters)
        found.update(id(value) for value in vars(each).values() if callable(value))
        each = each.parent if each.propagate else None
    return found


_current: ContextVar[Deferral | None] = ContextVar("mind2web2_deferral", default=None)
_is_deferred: ContextVar[bool] = ContextVar("mind2web2_is_deferred", default=False)


def current_deferral() -> Deferral | None:
    """Return the run of a script that this code is part of."""
    return _current.get()


def prerequisites_now(node: VerificationNode | None, extra: Sequence[VerificationNode]) -> NotedPrerequisites:
    """Return what blocks a verification or may come to, within a script's run or outside of any."""
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


def deferring(function: EvaluateAnswer, *, may_defer: bool, imports_own: bool) -> EvaluateAnswer:
    """Return a script's function such that all it has deferred is done when it returns.

    Its call raises ``AttemptRefusedError`` where the answer is to be evaluated again in program order.

    Args:
        may_defer: the syntax of its module defers verifications.
        imports_own: it may import modules from outside the installation, which keep their state for another
            attempt in the same process.
    """

    @functools.wraps(function)
    async def evaluate_answer(*arguments: Any, **keywords: Any) -> Any:
        around, pace = current_deferral(), current_pace()
        if around is not None:
            # One script's evaluation within another's: what is pending is that one's.
            result = await function(*arguments, **keywords)
            if around.is_program():
                await around.settle()
            return result
        deferral = Deferral(pace, keywords.get("logger"))
        if not may_defer or (imports_own and not pace.in_own_process):
            deferral.keep_order("its syntax, or the modules that it imports")
        token = _current.set(deferral)
        try:
            with watched_attempt(deferral):
                return await _evaluated(deferral, function(*arguments, **keywords))
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
            # Pending requests are paid for: their replies are stored for the next attempt.
            await deferral.drain()
            if deferral.refusal is None:
                if deferral.failure in (None, error):
                    raise
                # In program order the judge's failure would have come first.
                raise deferral.failure from error
        else:
            return result
        raise AttemptRefusedError(f"the script needs program order: {deferral.refusal}")
    finally:
        await deferral.stop()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


# What a script's changed syntax calls

# What evaluators, page caches and judges have.
_SHOWING = ("get_summary", "get_web", "ledger")


async def deferred(method: Callable[..., Awaitable[Any]], /, *arguments: Any, **keywords: Any) -> None:
    """Call a method whose result is not used, and wait for it unless it may be deferred."""
    deferral = current_deferral()
    if deferral is None:
        await method(*arguments, **keywords)
    else:
        await deferral.run(method, *arguments, **keywords)


async def read(thing: Thing) -> Thing:
    """Return a thing; one that shows verdicts, or what they have led to, once they are all there."""
    # Of the class, since a look at the object itself may be what has to wait.
    kind = thing if isinstance(thing, type) else type(thing)
    shows = issubclass(kind, VerificationNode) or any(hasattr(kind, name) for name in _SHOWING)
    return await settled(thing) if shows else thing


async def settled(thing: Thing) -> Thing:
    """Return a thing once all verdicts are there."""
    deferral = current_deferral()
    if deferral is not None:
        await deferral.settle()
    return thing


@asynccontextmanager
async def in_program_order() -> AsyncIterator[None]:
    """Finish what is pending, and let each verification inside of the block be waited for."""
    deferral = current_deferral()
    if deferral is None:
        yield
        return
    await deferral.settle()
    with deferral.held():
        yield
