"""Verifications that nobody waits for: judged in the background, done before anybody can see a result.

What a deferred verification depends on is noted when the script asks: prerequisites that are decided count
as they are, those asked for earlier and still under way are waited for, and later ones do not exist for it.
So the tree comes out as in program order. A script may be deferred as long as nothing that it does could
tell the difference; where something could, the attempt is refused as a whole (``ProgramOrderNeeded``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MethodType
from typing import Any, NoReturn

from mind2web2.awaiting_leaf import await_verdict, take_verdict
from mind2web2.evidence import Evidence
from mind2web2.pace import Pace
from mind2web2.pending_verdicts import (
    NotedPrerequisites,
    PendingVerdict,
    PendingVerdicts,
    decided_prerequisites,
)
from mind2web2.program_order import ProgramOrderNeeded, watched_attempt
from mind2web2.utils.loop_turns import loop_turn
from mind2web2.verification_tree import Status, VerificationNode


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
            type(node) is VerificationNode  # no subclass of a script's own; a leaf that awaits is none
            and not node.children
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
    """One run of a script's ``evaluate_answer``, with the verifications that are under way.

    Args:
        pace: ``sequential`` defers nothing.
    """

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.refusal: str | None = None
        self._program = asyncio.current_task()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending = PendingVerdicts()
        self.failure: Exception | None = None  # of a verification that nobody waited for
        self._one_finished = asyncio.Event()
        self._deciding = False
        self._held = 0
        self._beside = 0

    # What the script asks for

    async def run(self, method: Callable[..., Awaitable[Any]], *arguments: Any, **keywords: Any) -> None:
        """Call a method whose result nobody looks at: deferred where that can be done."""
        request = self._request(method, arguments, keywords)
        if request is None or not request.fits():
            await method(*arguments, **keywords)
            return
        while len(self._tasks) + len(request.leaves) > self.pace.most_under_way and self._tasks:
            self._one_finished.clear()
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
        may_defer = not (self.pace.sequential or self._held or self._beside) and self.is_program()
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
            verdict.fields = await_verdict(leaf, self)
            self._pending.add(leaf, verdict)
        task = asyncio.create_task(self._carried_out(coroutine, verdict))
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
        if verdict.leaf is not None and self._pending.verdict_on(verdict.leaf) is verdict:
            self._pending.remove(verdict.leaf)
            take_verdict(verdict.leaf, verdict.fields)
        verdict.finished.set()
        self._one_finished.set()

    # What a verification depends on

    def prerequisites(
        self, node: VerificationNode | None, extra: Sequence[VerificationNode]
    ) -> NotedPrerequisites:
        """Return what blocks a verification or may come to, as it stands now."""
        self._check_refusal()
        if self._tasks and not self.is_program():
            self.refuse("a verification in a task of the script's own, beside")
        return self._pending.prerequisites(node, extra)

    async def decided(self, node: VerificationNode | None) -> None:
        """Wait for a verdict on this very node that is under way."""
        verdict = self._pending.verdict_on(node)
        if verdict is not None and node is not None:
            await verdict.finished.wait()

    def decide(self, node: VerificationNode, score: float, status: Status, evidence: Evidence) -> None:
        """Write a verdict that may have been under way."""
        verdict = self._pending.verdict_on(node)
        if verdict is not None:
            self._pending.remove(node)
            take_verdict(node, verdict.fields)
        self._deciding = True
        try:
            node.decide(score, status, evidence)
        finally:
            self._deciding = False
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

    def note_change(self) -> None:
        """Let nobody but the program and its own verifications change a tree while verdicts are under way."""
        if not self._deciding and not self.is_program():
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
        if task is not None and task.cancelling():
            # A script that cleans up while it is stopped has no use for verdicts.
            await self.stop()
        await self.drain()
        if self.failure is not None:
            raise self.failure

    async def drain(self) -> None:
        """Wait for all that is under way, whatever comes of it."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self) -> None:
        """Cancel all that is under way and wait for its end."""
        for task in self._tasks:
            task.cancel()
        await self.drain()


_current: ContextVar[Deferral | None] = ContextVar("mind2web2_deferral", default=None)


def current_deferral() -> Deferral | None:
    """Return the run of a script that this code is part of."""
    return _current.get()


@contextmanager
def deferral_of(pace: Pace) -> Iterator[Deferral]:
    """Make what follows in this task, and what it starts, one run of a script."""
    deferral = Deferral(pace)
    token = _current.set(deferral)
    try:
        with watched_attempt(deferral):
            yield deferral
    finally:
        _current.reset(token)


def prerequisites_now(node: VerificationNode | None, extra: Sequence[VerificationNode]) -> NotedPrerequisites:
    """Return what blocks a verification or may come to, within a script's run or outside of any."""
    deferral = _current.get()
    return decided_prerequisites(node, extra) if deferral is None else deferral.prerequisites(node, extra)


def decide(node: VerificationNode, score: float, status: Status, evidence: Evidence) -> None:
    """Write a verdict into a node, within a script's run or outside of any."""
    deferral = _current.get()
    if deferral is None:
        node.decide(score, status, evidence)
    else:
        deferral.decide(node, score, status, evidence)
