"""Passes run a script as plain Python from known replies, again and again, until none is missing.

A pass notes the questions that have no reply yet; the run begins to answer them at once, and the
script goes on with stand-ins. The pass that has met no stand-in is the result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mind2web2.errors import JudgeAccessError, JudgeError
from mind2web2.judge.permit import Turn
from mind2web2.judge.protocol import STOPPED
from mind2web2.llm_client.chat import ReplyCheck
from mind2web2.scripts.isolation.messages import PAGE_ERRORS, Ahead
from mind2web2.scripts.isolation.rpc import Done, Question, Reply
from mind2web2.scripts.isolation.service import RunAnswers
from mind2web2.utils.aio import end_all

# An early pass has to be so much shorter than the time since the last one.
_SHARE_OF_PASSES = 20
# Scripts that are run in passes now; they share the processors.
_running: list[ScriptPasses] = []


# Returns how a pass ended, ``None`` where its process ended without a word. It goes on as far as
# the second argument says, in program order with ``None``.
RunPass = Callable[["ScriptPasses", Ahead | None], Awaitable[Done | None]]


@dataclass
class ScriptPasses:
    """One script on one answer.

    Args:
        ahead: how far the script goes on with stand-ins.

    Attributes:
        known: the replies by the keys of their questions.
        count: of passes.
        failed: the question whose failure costs the script its result.
        program_order: why the script runs in program order.
    """

    answers: RunAnswers
    run_pass: RunPass
    ahead: Ahead | None
    known: dict[str, Reply] = field(default_factory=dict)
    count: int = 0
    failed: str | None = None
    program_order: str | None = None
    _open: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _is_new: asyncio.Event = field(default_factory=asyncio.Event)
    _failure: str | None = None
    _awaited: str | None = None
    _certain: list[str] = field(default_factory=list)

    async def done(self) -> Done | None:
        """Return how the pass ended that is the result.

        ``None`` where its process ended without a word.
        """
        _running.append(self)
        try:
            if self.ahead is not None:
                done = await self._passes(self.ahead)
                if isinstance(done, Done):
                    return done
                self.program_order = done
                await self._forget_what_is_uncertain()
            return await self._next(None)
        finally:
            _running.remove(self)
            await end_all(self._open.values(), STOPPED)

    async def _passes(self, ahead: Ahead) -> Done | str:
        """Return how the last pass ended, or why the script has to run in program order."""
        while True:
            began_s, known_before = time.monotonic(), len(self.known)
            has_reply = self._awaited in self.known
            ended = Done(program_order="ends its process", certain=self._certain)
            done = await self._next(ahead) or ended
            self._certain = done.certain
            if done.program_order is not None:
                return done.program_order
            if not done.is_open:
                return done
            # The same script meets the same question first, until it has its reply.
            if self._awaited not in (done.used if has_reply else (done.first_open, None)):
                return "asks something else each time"
            self._awaited = done.first_open
            await self._until_worthwhile(time.monotonic() - began_s)
            if self._is_for_any_question(self._failure):
                self.failed = self._failure
                return done
            if not self._open and len(self.known) == known_before:
                return "has no further reply"

    async def _next(self, ahead: Ahead | None) -> Done | None:
        self.count += 1
        self._is_new.clear()
        return await self.run_pass(self, ahead)

    def first_asked(self, done: Done) -> asyncio.Future[bool] | None:
        """Return what tells whether the question is asked that a script waits for.

        ``None`` if it is in work already.
        """
        begun = self._open.keys() | self.known.keys()
        is_begun_now = done.first_open in {each.key for each in done.missing} - begun
        return asyncio.get_running_loop().create_future() if is_begun_now else None

    def begin(
        self, question: Question, check: ReplyCheck | None, turn: Turn | None = None
    ) -> asyncio.Task[None] | None:
        """Begin to answer a question; return the work on it, ``None`` if the reply is known."""
        key = question.key
        if key not in self._open and key not in self.known:
            self._open[key] = asyncio.create_task(self._answer(question, check, turn))
        return self._open.get(key)

    async def reply(self, question: Question, check: ReplyCheck | None) -> Reply:
        """Return the reply to a question of a script in program order."""
        work = self.begin(question, check)
        if work is not None:
            await asyncio.shield(work)
        reply = self.known.get(question.key)
        if reply is not None and _is_failed(question, reply):
            self._note_failure(question)
        if self.failed is None:
            self.failed = self._failure
        if reply is None:
            raise JudgeError("nothing more is asked after a failure")
        return reply

    async def _answer(
        self, question: Question, check: ReplyCheck | None, turn: Turn | None
    ) -> None:
        try:
            reply = await self.answers.reply(question, check, turn)
        finally:
            del self._open[question.key]
            self._is_new.set()
            if turn is not None:
                turn.end(is_asked=False)
        if reply is None:
            return
        if _is_failed(question, reply):
            self._note_failure(question)
            if question.template is not None and question.key != self._awaited:
                # The script's own check may let another reply pass after the ones before it.
                return
        self.known[question.key] = reply

    def _note_failure(self, question: Question) -> None:
        self._failure = self._failure or question.key
        self.answers.stop()

    def _is_for_any_question(self, key: str | None) -> bool:
        """Tell whether the judge refused its key, model or address.

        Another question meets the same refusal.
        """
        failure = None if key is None else self.answers.error_of(key)
        return isinstance(failure, JudgeAccessError)

    async def _until_worthwhile(self, cost_s: float) -> None:
        """Wait for the replies to all questions, or for one of them and long enough."""
        pause_s = _SHARE_OF_PASSES * cost_s * len(_running)
        until_s = time.monotonic() + pause_s
        if self._open:
            await self._is_new.wait()
        left_s = max(until_s - time.monotonic(), 0.0)
        if self._open and left_s:
            await asyncio.wait(self._open.values(), timeout=left_s)

    async def _forget_what_is_uncertain(self) -> None:
        """Wait for the questions that were asked behind stand-ins, and forget their replies.

        They count only if the questions are asked again: the script may store other pages first.
        """
        await self._all_replies()
        self.known = {key: self.known[key] for key in self._certain}
        self._failure = None
        self.answers.go_on()

    async def _all_replies(self) -> None:
        if self._open:
            await asyncio.wait(self._open.values())


def _is_failed(question: Question, reply: Reply) -> bool:
    """Tell whether a reply costs the answer its result."""
    # A question that the script has put together itself may be put otherwise
    # (``AnswerClient.ask``).
    if question.name == "ask" or reply.failure is None:
        return False
    return reply.failure.name not in PAGE_ERRORS
