"""The judge that one answer's script is given: the run's, with what this answer has asked and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from pydantic import ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    EvalScriptError,
    JudgeError,
    JudgmentMissingError,
    Mind2Web2Error,
)
from mind2web2.judge.caching import JudgeSettings
from mind2web2.judge.direct import unexpected
from mind2web2.judge.protocol import (
    CheckedLimit,
    Failure,
    FailureLatch,
    Noted,
    Subject,
    ask_within_limits,
    cut_off_noted,
    note_rejection,
)
from mind2web2.judge.records import Judgment, judgment_key
from mind2web2.judge.services import ServiceAnswer
from mind2web2.judge.usage import JudgeLedger, tokens_of, usage_of
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit, Usage
from mind2web2.llm_client.provider import AsyncCalls
from mind2web2.scheduling.guard import check_asking, check_look, watching
from mind2web2.utils.api_misuse import script_api


class RunJudging(Protocol):
    """What the judge of one answer asks of the run's: ``RecordedJudge``, or what stands for it elsewhere."""

    @property
    def settings(self) -> JudgeSettings:
        """Return model and parameters."""

    @property
    def endpoint(self) -> str:
        """Return what tells this judge's server from others."""

    async def judgment(
        self, request: ChatRequest, subject: Subject, source: tuple[str, str], limit: Limit
    ) -> Judgment:
        """Return a judgment, as ``RecordedJudge.judgment`` promises."""

    async def gate(
        self, subject: Subject, source: tuple[str, str], ordinal: int, skip_reason: str | None
    ) -> str | None:
        """Return why a verification is skipped, as ``RecordedJudge.gate`` promises."""


@watching
@script_api
class AnswerJudge(AsyncCalls):
    """The client that one answer's script is given: the run's judge, whatever model the script names.

    Args:
        run: the run's judge.
        limit: entered around each HTTP request. It is the run's own: a script that holds the semaphore it
            was given never waits for itself.
    """

    def __init__(self, run: RunJudging, task_id: str, answer_name: str, limit: Limit | None = None) -> None:
        self._run = run
        self._source = (task_id, answer_name)
        self._limit = limit
        self._own_requests: dict[str, int] = {}
        self._gates: dict[tuple[str | None, str | None], int] = {}
        self._latch = FailureLatch()
        self._ledger = JudgeLedger()
        self.image_limit = ImageLimit(max_images=run.settings.max_images)

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return the limits that were met while a replay was recorded."""
        return self._run.settings.image_limits

    @property
    def ledger(self) -> JudgeLedger:
        """Return what has been asked so far."""
        check_look("what the judge has been asked")
        return self._ledger

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first failure for good."""
        check_look("whether the judge has failed")
        return self._latch.failure

    @property
    def endpoint(self) -> str:
        """Return what tells this judge's server from others."""
        return self._run.endpoint

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, options.md)
        """Return the run's model."""
        return self._run.settings.model

    def response(self, **_keywords: Any) -> Any:
        """Refuse: this client is asynchronous (eval-scripts.md)."""
        raise ValueError("this client is asynchronous: use await client.async_response(...)")

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own; the same one again is another trial."""
        trial = self._own_requests[judgment_key(request, 0)] = (
            self._own_requests.get(judgment_key(request, 0), 0) + 1
        )
        with cut_off_noted(self, "a request of its own"):
            return await ask_within_limits(self, request, Subject("script", trial=trial), None)

    async def ask(
        self,
        request: ChatRequest,
        subject: Subject,
        limit: Limit | None,  # noqa: ARG002 (the run's own is entered)
    ) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        check_asking()
        self._latch.check()
        settings = self._run.settings
        request = replace(
            request,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
        )
        try:
            latched = CheckedLimit(self._limit, self._latch.check)
            judgment = await self._run.judgment(request, subject, self._source, latched)
            reply = _as_reply(judgment, request)
        except JudgmentMissingError:
            raise
        except JudgeError as error:
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        if judgment.outcome == "fewer_images":
            self._ledger.usage += Usage(requests=judgment.attempts)
            self.image_limit = self.image_limit.merged(ImageLimit.model_validate_json(judgment.text))
            raise self.image_limit.refusal(f"judge {judgment.model} takes {self.image_limit.in_words()}")
        self._note(judgment, reply, subject)
        if judgment.outcome == "too_long":
            raise ContextTooLongError(judgment.text)
        return reply

    def fail(self, failure: Failure) -> Failure:
        """Count this as a failure for good."""
        return self._latch.fail(failure)

    def note(self, kind: Noted, what: str) -> None:
        """List something in the ledger."""
        getattr(self._ledger, kind).append(what)

    def note_service(self, answer: ServiceAnswer) -> None:
        """List what a map or paper service answered."""
        self._ledger.services.append(answer)

    def end(self) -> None:
        """Ask no more, as the evaluation is over: that is for tasks that the script has left behind."""
        self._latch.fail(EvalScriptError("the evaluation is over"))

    async def gate(self, subject: Subject, skip_reason: str | None) -> str | None:
        """Record or recall whether a verification is skipped, as ``Judge.gate`` promises."""
        same = (subject.node, subject.claim)
        self._gates[same] = self._gates.get(same, 0) + 1
        try:
            return await self._run.gate(subject, self._source, self._gates[same], skip_reason)
        except JudgeError as error:
            raise self.fail(error) from error.__cause__

    def _note(self, judgment: Judgment, reply: ChatReply, subject: Subject) -> None:
        ledger = self._ledger
        ledger.usage += usage_of(judgment)
        ledger.served[reply.served_model, reply.system_fingerprint] += 1
        ledger.note_created(judgment.created)
        note_rejection(ledger, reply, subject)


def _as_reply(judgment: Judgment, request: ChatRequest) -> ChatReply:
    value = None
    if judgment.outcome == "reply" and request.template is not None:
        try:
            value = request.template.model_validate_json(judgment.text)
        except ValidationError as error:
            raise JudgmentMissingError(
                f"stored judgment on {judgment.node!r} does not fill {request.template.__name__}; "
                "run with --overwrite to ask anew"
            ) from error
    return ChatReply(
        text=judgment.text,
        value=value,
        declined=judgment.text if judgment.outcome == "declined" else None,
        usage=tokens_of(judgment),
        served_model=judgment.served_model,
        system_fingerprint=judgment.system_fingerprint,
        attempts=judgment.attempts,
        judgment=judgment.key,
    )
