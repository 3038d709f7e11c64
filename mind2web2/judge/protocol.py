"""The judge that extractor and verifier ask: its interface, its notes and its failure.

A judge's failure leaves the answer without a result, and the judge is asked nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from mind2web2.errors import JudgeError, Mind2Web2Error
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Usage
from mind2web2.rubric.verdicts import Rejection, ServiceAnswer

if TYPE_CHECKING:
    from mind2web2.judge.judgment import Judgment
    from mind2web2.rubric.node import VerificationNode

log = logging.getLogger(__name__)

# The message of a cancellation by the run: no time limit of the script has expired.
STOPPED = "stopped by the run"

Purpose = Literal["verify", "extract", "script"]
Noted = Literal["doubts", "refused_downloads", "ignored_arguments", "script_faults"]
Failure = TypeVar("Failure", bound=Mind2Web2Error)


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """The context of a question, for records and messages.

    Args:
        node: id of the leaf to verify, or the name of the extraction.
        trial: number of the vote, from 1; trials of one claim are independent requests.
    """

    purpose: Purpose
    node: str | None = None
    claim: str | None = None
    page: str | None = None
    trial: int = 1


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question that was sent to the judge's server, for those who follow a run's requests.

    Args:
        source: task id and answer name.
        started_ns: when it was sent, in nanoseconds since the epoch.
        judgment: ``None`` where it failed.
    """

    request: ChatRequest
    subject: QuestionContext
    source: tuple[str, str]
    endpoint: str
    started_ns: int
    judgment: Judgment | None = None
    failure: BaseException | None = None


QuestionObserver = Callable[[AskedQuestion], None]


@dataclass(slots=True)
class JudgeLedger:
    """The usage of one answer's questions, and notes on them.

    Args:
        usage: of all questions, answered in this run or from stored judgments.
        served: the model and backend that the judge's server reported, for each judgment.
        created: when each judgment was made, UTC, ISO 8601.
        doubts: reasons why another machine or day may give another verdict; such a result is not
            reused.
        script_faults: mistakes of the script that may cost the answer points, with file and line.
    """

    usage: Usage = field(default_factory=Usage)
    served: list[tuple[str | None, str | None]] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    refused_downloads: list[str] = field(default_factory=list)
    ignored_arguments: list[str] = field(default_factory=list)
    script_faults: list[str] = field(default_factory=list)
    services: list[ServiceAnswer] = field(default_factory=list)

    def add(self, other: JudgeLedger) -> None:
        """Add the usage and the notes of a question."""
        self.usage += other.usage
        self.served += other.served
        self.created += other.created
        self.rejections += other.rejections
        self.doubts += other.doubts
        self.refused_downloads += other.refused_downloads
        self.ignored_arguments += other.ignored_arguments
        self.script_faults += other.script_faults
        self.services += other.services


class Judge(Protocol):
    """The interface for extractor and verifier."""

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure; no request follows it."""

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes, for scripts and reports."""

    @property
    def leaves_begun(self) -> dict[int, VerificationNode]:
        """Return the leaves whose verification has begun, by identity; verifiers add theirs."""

    @property
    def leaves_left_open(self) -> dict[int, VerificationNode]:
        """Return the leaves that were undecided in a summary, by identity."""

    @property
    def shows_images(self) -> bool:
        """Tell whether the judge is shown images."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    async def ask(self, request: ChatRequest, subject: QuestionContext) -> ChatReply:
        """Answer a question; ``declined`` is set where the judge declined it twice.

        Raises:
            ContextTooLongError: a shorter request may succeed; no permanent failure.
            JudgmentMissingError: a replay lacks the judgment; no permanent failure.
            JudgeError: the judge failed permanently, now or earlier.
        """

    def fail(self, failure: Failure) -> Failure:
        """Record a permanent failure and return it, to be raised."""

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""


class FailureLatch:
    """Remembers that a judge failed, so that an answer without a result sends no more requests.

    Attributes:
        failure: the first permanent one.
    """

    failure: Mind2Web2Error | None = None

    def check(self) -> None:
        """Raise ``JudgeError`` if the judge has failed."""
        if self.failure is not None:
            raise JudgeError(
                f"nothing more is asked after a failure: {self.failure}"
            ) from self.failure

    def fail(self, failure: Failure) -> Failure:
        """Remember the first failure and return this one, to be raised."""
        self.failure = self.failure or failure
        return failure


@dataclass(eq=False)
class JudgeSession(FailureLatch):
    """The part of a ``Judge`` that every implementation shares: failure and ledger.

    Attributes:
        ledger: usage and notes.
        leaves_begun: the leaves whose verification has begun, by identity.
        leaves_left_open: the leaves that were undecided in a summary.
    """

    ledger: JudgeLedger = field(default_factory=JudgeLedger, init=False)
    leaves_begun: dict[int, VerificationNode] = field(default_factory=dict, init=False)
    leaves_left_open: dict[int, VerificationNode] = field(default_factory=dict, init=False)

    @property
    def shows_images(self) -> bool:
        """Tell whether the judge is shown images."""
        return True

    def model_for(self, requested: str) -> str:
        """Return the requested model: most clients take any."""
        return requested

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""
        getattr(self.ledger, kind).append(text)

    def _note_rejection(self, reply: ChatReply, subject: QuestionContext) -> None:
        if reply.declined is not None:
            self.ledger.rejections.append(Rejection(subject.node, subject.page, reply.declined))


def unexpected(error: Exception) -> JudgeError:
    """Return the judge failure for an unforeseen error of its client; the log has the traceback."""
    log.info("the judge's client failed", exc_info=error)
    return JudgeError(f"the judge's client failed: {type(error).__name__}: {error}")


@contextmanager
def cut_off_noted(judge: Judge, name: str) -> Iterator[None]:
    """Record a failure of the judge if the script cancels the work in the ``with`` block."""
    try:
        yield
    except asyncio.CancelledError as error:
        if STOPPED not in error.args:
            judge.fail(_cut_off(name))
        raise


def _cut_off(name: str) -> JudgeError:
    """Return why there is no result where a time limit of the script's own expired."""
    return JudgeError(
        f"the script stopped waiting for the judge on {name!r} (a time limit of its own, such as "
        "asyncio.timeout or wait_for, a TaskGroup with a task that failed, or cancel()): let it wait"
    )
