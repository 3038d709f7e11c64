"""A judge as the toolkit asks it: one question at a time, refusals listed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from mind2web2.deferral import STOPPED, cut_off
from mind2web2.errors import Mind2Web2Error
from mind2web2.failure_latch import Failure
from mind2web2.judge_ledger import JudgeLedger, Rejection
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit

Purpose = Literal["verify", "extract", "script"]
Noted = Literal["doubts", "refused_downloads", "ignored_arguments"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about, for records and messages.

    Args:
        node: id of the leaf to verify, or the name of the extraction.
        trial: number of the vote, from 1; trials of one claim are independent requests.
    """

    purpose: Purpose
    node: str | None = None
    claim: str | None = None
    page: str | None = None
    trial: int = 1


def note_doubt(judge: Judge, what: str) -> None:
    """Note what might have come out otherwise on another machine or day."""
    judge.note("doubts", what)


def note_refused_download(judge: Judge, url: str) -> None:
    """Note what a script could not download because its address is private."""
    judge.note("refused_downloads", url)


@contextmanager
def cut_off_noted(judge: Judge, what: str) -> Iterator[None]:
    """Count it as a failure of the judge where the script cancels the work in the ``with`` block."""
    try:
        yield
    except asyncio.CancelledError as error:
        if STOPPED not in error.args:
            judge.fail(cut_off(what))
        raise


def note_ignored_argument(judge: Judge, name: str) -> None:
    """Note an argument in the script that has no effect."""
    judge.note("ignored_arguments", name)


class Judge(Protocol):
    """Whom the extractor and the verifier ask."""

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good; from then on nothing is asked."""

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far; it is for scripts and reports to look at."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    @property
    def async_response(self) -> Callable[..., Awaitable[Any]]:
        """Answer a request of a script's own (``AsyncCalls.async_response``)."""

    async def ask(self, request: ChatRequest, subject: Subject, limit: Limit | None) -> ChatReply:
        """Answer a question; ``declined`` is set where the content was declined twice.

        Raises:
            ContextTooLongError: the request must be shorter; no failure yet.
            JudgmentMissingError: a replay lacks the judgment; no failure yet, since another may decide.
            JudgeError: the judge failed for good, now or earlier.
        """

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good and return it, to be raised."""

    def note(self, kind: Noted, what: str) -> None:
        """List something in the ledger."""

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Return why a verification that runs beside others is skipped, ``None`` if it is not.

        That depends on what happens to be decided at the time, so a run records it and a replay follows
        the record instead of ``skip_reason``.
        """


class ChatCall(Protocol):
    """Sends a request to a model."""

    async def __call__(self, request: ChatRequest, limit: Limit) -> ChatReply:
        """Return the reply."""


async def ask_twice_if_declined(chat: ChatCall, request: ChatRequest, limit: Limit) -> ChatReply:
    """Ask, and once more where the judge declined: it may have been a whim of the filter."""
    first = await chat(request, limit)
    if first.declined is None:
        return first
    second = await chat(request, limit)
    return replace(second, usage=first.usage + second.usage, attempts=first.attempts + second.attempts)


def note_rejection(ledger: JudgeLedger, reply: ChatReply, subject: Subject) -> None:
    """List a declined question."""
    if reply.declined is not None:
        ledger.rejections.append(Rejection(subject.node, subject.page, reply.declined))
