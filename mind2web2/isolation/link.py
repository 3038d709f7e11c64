"""The run's end of the channel to a script's process: questions answered side by side, in bounded memory."""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import suppress
from typing import Any

from mind2web2.errors import EvalScriptError, Mind2Web2Error
from mind2web2.isolation.channel import MAX_WAITING_BYTES
from mind2web2.isolation.host import ScriptHost
from mind2web2.isolation.log_relay import LogRelay
from mind2web2.isolation.messages import (
    LENGTH,
    MAX_FRAME_BYTES,
    Message,
    UnusableMessageError,
    checked_length,
    error_as_json,
    error_from,
    frame_of,
    message_in,
)

# Longer ones are read by a thread: the loop has others to serve.
_LONG_BYTES = 1024**2
# A process keeps to MAX_WAITING_BYTES, its last question aside, unless the script has tampered with it.
_MAX_QUESTION_BYTES = MAX_WAITING_BYTES + MAX_FRAME_BYTES
# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0

log = logging.getLogger(__name__)


class ScriptLink:
    """Serves one script's process.

    Args:
        reader: from the process.
        writer: to it.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: ScriptHost, relay: LogRelay
    ) -> None:
        self.messages = 0
        self._reader = reader
        self._writer = writer
        self._host = host
        self._relay = relay
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._questions: dict[int, asyncio.Task[None]] = {}
        self._question_bytes = 0
        self._is_heard = True

    def send(self, message: Message) -> None:
        """Send a message; it is on its way once the loop has its turn."""
        self._writer.write(frame_of(message))

    async def until_done(self) -> Message | None:
        """Serve until the process says what came of its script; ``None`` where it ends without a word.

        Raises:
            UnusableMessageError: it said something that nobody understands.
        """
        while True:
            try:
                length = checked_length(await self._reader.readexactly(LENGTH.size))
                content = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            message = (
                await asyncio.to_thread(message_in, content) if length > _LONG_BYTES else message_in(content)
            )
            self.messages += 1
            if message["kind"] == "done":
                return message
            try:
                self._take(message, length)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise UnusableMessageError(
                    f"sent a {message['kind'][:100]!r} that makes no sense: {type(error).__name__}"
                ) from error

    async def answer_rest(self) -> None:
        """Let the judge answer what a process that is gone has asked: it is paid for, and kept."""
        self._is_heard = False
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(None)
        await asyncio.gather(*self._questions.values(), return_exceptions=True)

    async def close(self) -> None:
        """Give up all that is asked."""
        tasks = list(self._questions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()

    def _take(self, message: Message, length: int) -> None:
        match message["kind"]:
            case "reply":
                self._take_reply(message)
            case "cancel":
                task = self._questions.get(message["question"])
                if task is not None:
                    task.cancel()
            case "log":
                self._relay.take(message)
            case "beat":
                pass
            case _ if "number" in message:
                self._begin(message, int(message["number"]), length)
            case _:
                self._host.note(message)

    def _begin(self, message: Message, number: int, length: int) -> None:
        if number in self._questions:
            raise ValueError(f"question {number} is under way already")
        self._question_bytes += length
        if self._question_bytes > _MAX_QUESTION_BYTES:
            raise UnusableMessageError(f"asked questions of {self._question_bytes} bytes at once")
        task = asyncio.create_task(self._answer(message, number))
        self._questions[number] = task
        task.add_done_callback(lambda _: self._end(number, length))

    def _end(self, number: int, length: int) -> None:
        self._question_bytes -= length
        del self._questions[number]

    async def _answer(self, message: Message, number: int) -> None:
        reply: Message = {"kind": "reply", "to": number}
        try:
            reply["value"] = await self._host.answered(message, self._ask)
            frame = frame_of(reply)
        except Mind2Web2Error as error:
            frame = frame_of({"kind": "reply", "to": number, "error": error_as_json(error)})
        except Exception as error:
            # It is the script's answer that suffers: its process is told, as a script in this one would be.
            log.debug("a question failed kind=%s", message["kind"], exc_info=error)
            frame = frame_of({"kind": "reply", "to": number, "error": error_as_json(error)})
        self._writer.write(frame)
        # A process that has ended needs no answer; that it has is noticed elsewhere.
        with suppress(ConnectionError):
            await self._writer.drain()

    async def _ask(self, kind: str, **content: Any) -> Any:
        if not self._is_heard:
            return None  # whoever finds that reply in the store looks at it anew
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.send({"kind": kind, "number": number, **content})
            async with asyncio.timeout(_CHECK_TIMEOUT_S):
                return await answer
        except TimeoutError as error:
            raise EvalScriptError(
                f"the script's process did not answer within {_CHECK_TIMEOUT_S:g} s"
            ) from error
        finally:
            del self._asked[number]

    def _take_reply(self, message: Message) -> None:
        answer = self._asked.get(message["to"])
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(error_from(message["error"]))
        else:
            answer.set_result(message["value"])
