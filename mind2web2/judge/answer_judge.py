"""The run's judge as one answer asks it, whatever model its script names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from pydantic import ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    EvalScriptError,
    JudgeError,
    JudgmentMissingError,
)
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.session import (
    JudgeSession,
    ask_within_limits,
    cut_off_noted,
    unexpected,
)
from mind2web2.judge.store import Judgment, ServiceAnswer, judgment_key
from mind2web2.judge.usage import tokens_of, usage_of
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit, Usage
from mind2web2.scheduling.deferral import guarded, toolkit_at_work
from mind2web2.utils.api_misuse import script_api


@guarded
@script_api
class AnswerJudge(JudgeSession, AsyncCalls):
    """The run's judge as one answer asks it.

    Args:
        limit: entered around each HTTP request. A script that holds the semaphore it received does not
            block itself: this is the run's own.
    """

    def __init__(
        self,
        run: CachingJudge,
        task_id: str,
        answer_name: str,
        limit: Limit | None = None,
    ) -> None:
        super().__init__(Usage(), ImageLimit(max_images=run.settings.max_images))
        self._run = run
        self._source = (task_id, answer_name)
        self._limits = AnswerLimits(limit or nullcontext(), self._latch.check)
        self._is_first = False
        self._first: AnswerJudge | None = None
        if run.first is not None:
            self._first = AnswerJudge(run.first, task_id, answer_name)
            self._first._is_first = True
            # One answer has one failure and one ledger, whichever judge is asked.
            self._first._latch = self._latch
            self._first._ledger = self._ledger
            self._first._limits = self._limits
        self._own_requests: Counter[str] = Counter()
        self._gates: Counter[tuple[str | None, str | None]] = Counter()

    @property
    def first(self) -> AnswerJudge | None:
        """Return the judge that is asked about claims before this one, as this answer sees it."""
        return self._first

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return the image limits that the recorded run met."""
        return self._run.settings.image_limits

    @property
    def endpoint(self) -> str:
        """Return the name of the judge's server."""
        return self._run.endpoint

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, options.md)
        """Return the run's model."""
        return self._run.settings.model

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own; the same one again is another trial."""
        key = judgment_key(request, 0)
        self._own_requests[key] += 1
        with cut_off_noted(self, "a request of its own"):
            subject = QuestionContext("script", trial=self._own_requests[key])
            return await ask_within_limits(self, request, subject, None)

    async def ask(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        limit: Limit | None,  # noqa: ARG002 (the run's own is entered)
    ) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        self._latch.check()
        request = self._of_run(request)
        try:
            # A connection that opens now stays for later requests: its callbacks are not the script's.
            with toolkit_at_work():
                judgment = await self._run.judgment(
                    request, subject, self._source, self._limits
                )
            reply = _as_reply(judgment, request)
        except JudgmentMissingError:
            raise
        except (JudgeError, EvalScriptError) as error:
            # The script's process fails where it checks replies by a template of its own.
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        ledger = self._ledger
        if judgment.outcome == "fewer_images":
            ledger.usage += Usage(requests=judgment.attempts)
            self.image_limit = self.image_limit.merged(
                ImageLimit.model_validate_json(judgment.text)
            )
            raise self.image_limit.refusal(
                f"judge {judgment.model} takes {self.image_limit.in_words()}"
            )
        ledger.usage += usage_of(judgment, self._run.price)
        served = ledger.first_served if self._is_first else ledger.served
        served[reply.served_model, reply.system_fingerprint] += 1
        ledger.note_created(judgment.created)
        self._note_rejection(reply, subject)
        if judgment.outcome == "too_long":
            raise ContextTooLongError(judgment.text)
        return reply

    def _of_run(self, request: ChatRequest) -> ChatRequest:
        """Return a request with the run's model and parameters."""
        settings = self._run.settings
        return replace(
            request,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
        )

    async def ask_ahead(
        self, request: ChatRequest, subject: QuestionContext
    ) -> ChatReply:
        """Answer a question without any note of it; once cancelled, send nothing more.

        Raises:
            ContextTooLongError: a shorter request may succeed.
            JudgeError: the judge failed, or the question cannot be asked ahead.
        """
        self._latch.check()
        request = self._of_run(request)
        judgment = await self._run.judgment_ahead(
            request, subject, self._source, self._limits
        )
        if judgment.outcome == "too_long":
            raise ContextTooLongError(judgment.text)
        if judgment.outcome == "fewer_images":
            raise JudgeError("the judge takes fewer images")
        return _as_reply(judgment, request)

    def note_service(self, answer: ServiceAnswer) -> None:
        """Add the reply of a map or paper service to the ledger."""
        self._ledger.services.append(answer)

    async def record_skip_decision(
        self, subject: QuestionContext, skip_reason: str | None
    ) -> str | None:
        """Record or recall whether a verification is skipped, as ``Judge.record_skip_decision`` promises."""
        same = (subject.node, subject.claim)
        self._gates[same] += 1
        try:
            return await self._run.record_skip_decision(
                subject, self._source, self._gates[same], skip_reason
            )
        except JudgeError as error:
            raise self.fail(error) from error.__cause__


def _as_reply(judgment: Judgment, request: ChatRequest) -> ChatReply:
    value = None
    if judgment.outcome == "reply" and request.template is not None:
        try:
            value = request.template.model_validate_json(judgment.text)
        except ValidationError as error:
            raise JudgmentMissingError(
                f"stored judgment on {judgment.node!r} does not fill {request.template.__name__}; "
                "run with --overwrite to request it again"
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
