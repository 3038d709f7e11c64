"""The questions of a script's process to its run.

A pass has known replies and stand-ins for them; otherwise the process waits for the replies.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from mind2web2.scripts.isolation.messages import PAGE_ERRORS, Ahead
from mind2web2.scripts.isolation.rpc import (
    Done,
    Message,
    Question,
    Reply,
    RpcClient,
    encode_value,
    validate,
)
from mind2web2.verification.stand_ins import has_mark

# With ``gates``, a claim is asked behind so many undecided leaves: each may fail, and more would
# ask too much for nothing (benchmarks/chain.py).
MAX_OPEN_GATES = 3
# By the clock of a pass, which costs no time: what a script does beside its questions goes on
# meanwhile.
_REPLY_S = 2.0
# A pass asks for no more stand-ins than this, or than a few for each reply that it has: it may loop
# until a reply comes.
_FIRST_STAND_INS = 50
_STAND_INS_A_REPLY = 3
# Counts what the script has stored in its cache: from then on a question is another one.
WRITES = "writes"


class UnknownReply:
    """Says that there is no reply yet."""


UNKNOWN = UnknownReply()


class WaitingQuestions:
    """Asks the run and waits for each reply, in program order."""

    def __init__(self, client: RpcClient) -> None:
        self._client = client
        self.counts: Counter[str] = Counter()
        self.used: list[str] = []

    async def reply(
        self, name: str, kind: Any, arguments: dict[str, Any], template: int | None
    ) -> Any:
        """Return the reply to a question as an object of ``kind``.

        Args:
            template: the number of the script's class that a judge's reply is to fill.

        Raises:
            Exception: the error that the run replied with.
            TypeError, ValueError, RecursionError: the arguments cannot be sent.
        """
        question = asked(name, arguments, template, self.counts)
        try:
            return await self._client.ask("reply", kind, question=question)
        finally:
            self.used.append(question.key)


class PassQuestions:
    """Gives a script the replies that are known, and notes the questions that have none.

    Args:
        known: the replies by key, as JSON.
        check: tells why a judge's reply does not fill a template of the script.
        waits: the run has all replies at hand: there are no stand-ins.
    """

    def __init__(
        self,
        client: RpcClient,
        known: Mapping[str, str],
        ahead: Ahead,
        check: Callable[[int, str], str | None],
        *,
        waits: bool = False,
    ) -> None:
        self.ahead = ahead
        self.used: list[str] = []
        self.certain: list[str] = []
        self.is_open = False
        self._client = client
        self._known = known
        self._check = check
        self._waits = waits
        self.counts: Counter[str] = Counter()
        self._missing: dict[str, Question] = {}
        self._stand_ins = 0
        self._certain_given: set[str] = set()
        self._first_open: str | None = None

    async def reply(
        self, name: str, kind: Any, arguments: dict[str, Any], template: int | None
    ) -> Any:
        """Return the reply to a question, ``UNKNOWN`` where there is none yet."""
        question = asked(name, arguments, template, self.counts)
        given = encode_value(arguments.get("given"))
        if not self.is_open:
            self._certain_given.add(given)
        if self._waits:
            return await self._replied(question, kind)
        content = self._known.get(question.key)
        if content is None:
            self._note_missing(question, given)
        await self._reply_time()
        if content is None:
            return self.open()
        reply: Reply = validate(Reply, json.loads(content))
        if reply.failure is not None and reply.failure.name not in PAGE_ERRORS:
            return self._fail_question(question.key, reply)
        self._note_used(question.key)
        if reply.failure is not None:
            raise reply.failure.of_run()
        return validate(kind, reply.value)

    async def _reply_time(self) -> None:
        """Take the time of a reply; whether a time limit of the script ends it, no pass can say."""
        try:
            await asyncio.sleep(_REPLY_S)
        except asyncio.CancelledError:
            self.leave_to_program_order("cancels a question")

    def _note_used(self, key: str) -> None:
        self.used.append(key)
        if not self.is_open:
            self.certain.append(key)

    def _note_missing(self, question: Question, given: str) -> None:
        self._first_open = self._first_open or question.key
        told = dict(question.arguments)
        if given in self._certain_given:
            # A task or an answer may have a text that looks like a stand-in.
            told.pop("given", None)
        if not (self.is_open and has_mark(encode_value(told))):
            self._missing.setdefault(question.key, question)
        self.is_open = True

    async def _replied(self, question: Question, kind: Any) -> Any:
        """Return a reply that the run has at hand; questions beside this one are sent meanwhile."""
        number = self._client.send_question("reply", question=question)
        await self._reply_time()
        try:
            return self._client.awaited_now(number, kind)
        finally:
            self.used.append(question.key)

    def open(self) -> UnknownReply:
        """Note that the script gets a stand-in."""
        self.is_open = True
        self._stand_ins += 1
        if self._stand_ins > _FIRST_STAND_INS + _STAND_INS_A_REPLY * len(self.used):
            self.end()
        return UNKNOWN

    def _fail_question(self, key: str, reply: Reply) -> UnknownReply:
        # Behind stand-ins the question may not count.
        if not self.is_open:
            self.used.append(key)
            notes = self._client.held or []
            self._end_with(Done(failure=reply.failure, used=self.used, notes=notes))
        return self.open()

    def end(self) -> NoReturn:
        """End the pass where it stands."""
        self._end_with(self.open_end())

    def end_if_open(self) -> None:
        """End the pass if the script has got a stand-in."""
        if self.is_open:
            self.end()

    def open_end(self) -> Done:
        """Return the end of a pass with stand-ins."""
        missing = list(self._missing.values())
        return Done(
            used=self.used,
            certain=self.certain,
            is_open=True,
            first_open=self._first_open,
            missing=missing,
        )

    def stuck(self) -> NoReturn:
        """End the pass, since nothing in it can go on."""
        self.end_if_open()
        self.leave_to_program_order("waits for what does not come")

    def leave_to_program_order(self, reason: str) -> NoReturn:
        """End the pass, since the script must not be run again and again."""
        self._end_with(replace(self.open_end(), program_order=reason))

    def _end_with(self, done: Done) -> NoReturn:
        self._client.send(Message("done", done))
        # The script's templates check the replies to the questions of this pass.
        self._client.answer_until_closed(self._check)


def asked(
    name: str, arguments: dict[str, Any], template: int | None, counts: Counter[str]
) -> Question:
    """Return a question.

    Args:
        counts: how often each request of the script's own was made, and what it has stored
            (``WRITES``); each time it is another question.
    """
    text = encode_value(arguments)
    if name == "chat":
        counts[text] += 1
        arguments = {**arguments, "trial": counts[text]}
        text = encode_value(arguments)
    # Two classes of a script may have one form, and other checks.
    asked_for = f"{name} {template} {text}{'+' * counts[WRITES]}"
    key = hashlib.sha256(asked_for.encode(errors="surrogatepass")).hexdigest()
    return Question(key[:32], name, arguments, template)
