"""The questions of a script's process to its run.

A pass has known replies and stand-ins for them; otherwise the process waits for the replies.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn

from mind2web2.errors import CaptureError, PageBugError
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

# How far a script goes on with stand-ins for replies that are not known yet: it may pass them on,
# it may look into them, or it goes on as if every claim held.
Ahead = Literal["nothing", "values", "gates"]
# With ``gates``, a claim is asked behind so many undecided leaves: each may fail, and more would
# ask too much for nothing (benchmarks/chain.py).
MAX_OPEN_GATES = 3
# By the clock of a pass, which costs no time: what a script does beside its questions goes on
# meanwhile.
_REPLY_S = 0.01
# A pass asks for no more stand-ins than this: it may loop until a reply comes.
MAX_STAND_INS = 2_000
# Errors that a question about one page may have; any other costs the answer its result.
PAGE_ERRORS = (CaptureError.__name__, PageBugError.__name__)


class UnknownReply:
    """Says that there is no reply yet."""


UNKNOWN = UnknownReply()


class WaitingQuestions:
    """Asks the run and waits for each reply, in program order."""

    def __init__(self, client: RpcClient) -> None:
        self._client = client
        self._counts: Counter[str] = Counter()
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
        question, _ = asked(name, arguments, template, self._counts)
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

    Attributes:
        ends_at_stand_ins: the script would look at an object in the place of a verdict or a
            template.
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
        self.is_open = False
        self.ends_at_stand_ins = False
        self._client = client
        self._known = known
        self._check = check
        self._waits = waits
        self._counts: Counter[str] = Counter()
        self._missing: dict[str, Question] = {}
        self._stand_ins = 0
        self._first_open: str | None = None

    async def reply(
        self, name: str, kind: Any, arguments: dict[str, Any], template: int | None
    ) -> Any:
        """Return the reply to a question, ``UNKNOWN`` where there is none yet."""
        question, text = asked(name, arguments, template, self._counts)
        if self._waits:
            return await self._replied(question, kind)
        content = self._known.get(question.key)
        if content is None:
            self._note_missing(question, text)
        await asyncio.sleep(_REPLY_S)
        if content is None:
            return self.open()
        reply: Reply = validate(Reply, json.loads(content))
        if reply.failure is not None and reply.failure.name not in PAGE_ERRORS:
            return self._fail_question(question.key, reply)
        self.used.append(question.key)
        if reply.failure is not None:
            raise reply.failure.of_run()
        return validate(kind, reply.value)

    def _note_missing(self, question: Question, text: str) -> None:
        self._first_open = self._first_open or question.key
        if not (self.is_open and has_mark(text)):
            self._missing.setdefault(question.key, question)
        self.is_open = True

    async def _replied(self, question: Question, kind: Any) -> Any:
        """Return a reply that the run has at hand; questions beside this one are sent meanwhile."""
        number = self._client.send_question("reply", question=question)
        await asyncio.sleep(_REPLY_S)
        try:
            return self._client.awaited_now(number, kind)
        finally:
            self.used.append(question.key)

    def open(self) -> UnknownReply:
        """Note that the script gets a stand-in."""
        self.is_open = True
        self._stand_ins += 1
        if self._stand_ins > MAX_STAND_INS:
            self.end()
        return UNKNOWN

    def _fail_question(self, key: str, reply: Reply) -> UnknownReply:
        # Behind stand-ins the question may not count, except where nobody has looked into them.
        is_certain = not self.is_open or self.ahead == "nothing"
        if is_certain:
            self.used.append(key)
            notes = self._client.held or []
            self._end_with(Done(failure=reply.failure, used=self.used, notes=notes))
        return self.open()

    def end(self) -> NoReturn:
        """End the pass where it stands."""
        self._end_with(self.open_end())

    def open_end(self) -> Done:
        """Return the end of a pass with stand-ins."""
        missing = list(self._missing.values())
        return Done(used=self.used, is_open=True, first_open=self._first_open, missing=missing)

    def stuck(self) -> NoReturn:
        """End the pass, since nothing in it can go on."""
        if self.is_open:
            self.end()
        self.leave_to_program_order("waits for what does not come")

    def leave_to_program_order(self, reason: str) -> NoReturn:
        """End the pass, since the script must not be run again and again."""
        self._end_with(Done(program_order=reason, missing=list(self._missing.values())))

    def _end_with(self, done: Done) -> NoReturn:
        self._client.send(Message("done", done))
        # The script's templates check the replies to the questions of this pass.
        self._client.answer_until_closed(self._check)


def asked(
    name: str, arguments: dict[str, Any], template: int | None, counts: Counter[str]
) -> tuple[Question, str]:
    """Return a question, and its text.

    Args:
        counts: how often each request of the script's own was made; each time it is another
            question.
    """
    text = encode_value(arguments)
    if name == "chat":
        counts[text] += 1
        arguments = {**arguments, "trial": counts[text]}
        text = encode_value(arguments)
    key = hashlib.sha256(f"{name} {text}".encode(errors="surrogatepass")).hexdigest()
    return Question(key[:32], name, arguments, template), text
