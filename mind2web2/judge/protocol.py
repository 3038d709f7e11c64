"""The judge as the toolkit uses it: the interface that extractor and verifier ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.ledger import JudgeLedger, Noted
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.llm_client.image_limits import ImageLimit

Purpose = Literal["verify", "extract", "script"]
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


class Judge(Protocol):
    """The interface for extractor and verifier."""

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure; no request follows it."""

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes, for scripts and reports."""

    @property
    def image_limit(self) -> ImageLimit:
        """Return the known or configured limit of images in one question."""

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return, for a replay, the limits that the recorded run met, most images first."""

    def model_for(self, requested: str) -> str:
        """Return the model that answers where a script names ``requested``."""

    @property
    def async_response(self) -> Callable[..., Awaitable[Any]]:
        """Answer a request of a script's own (``AsyncCalls.async_response``)."""

    async def ask(
        self, request: ChatRequest, subject: QuestionContext, limit: Limit | None
    ) -> ChatReply:
        """Answer a question; ``declined`` is set where the judge declined it twice.

        Raises:
            ContextTooLongError: a shorter request may succeed; no permanent failure.
            ImagesRefusedError: a request within ``image_limit`` may succeed; no permanent failure.
            JudgmentMissingError: a replay lacks the judgment; no permanent failure.
            JudgeError: the judge failed permanently, now or earlier.
        """

    def fail(self, failure: Failure) -> Failure:
        """Record a permanent failure and return it, to be raised."""

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the ledger."""

    async def record_skip_decision(
        self, subject: QuestionContext, skip_reason: str | None
    ) -> str | None:
        """Return why a concurrent verification is skipped, ``None`` if it is not.

        The reason depends on the order of verdicts, so a run records it and a replay returns the record
        instead of ``skip_reason``.
        """
