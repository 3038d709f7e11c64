"""The run's judge as one answer asks it, whatever model its script names."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from pydantic import ValidationError

from mind2web2.errors import (
    ContextTooLongError,
    EvalScriptError,
    JudgeAccessError,
    JudgeError,
    JudgmentMissingError,
)
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.permit import AnswerLimits, NotAskedError, Turn
from mind2web2.judge.protocol import JudgeSession, QuestionContext, unexpected
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit, Usage
from mind2web2.rubric.verdicts import ServiceAnswer


@dataclass(slots=True)
class Stop:
    """Tells the judges of all questions of an answer to send no further request."""

    is_on: bool = False


class AnswerJudge(JudgeSession):
    """The run's judge as one answer, or one question of it, asks it.

    Args:
        limit: entered around each HTTP request. A script that holds the semaphore it received does
            not block itself: this is the run's own.
        turn: as ``AnswerLimits`` has it.

    Attributes:
        asked: the judgments that were requested rather than found in the store.
    """

    def __init__(
        self,
        run: CachingJudge,
        task_id: str,
        answer_name: str,
        limit: Limit | None = None,
        turn: Turn | None = None,
    ) -> None:
        super().__init__(Usage())
        self.shows_images = run.shows_images
        self._run = run
        self._source = (task_id, answer_name)
        self.stop = Stop()
        self.asked: list[Judgment] = []
        self._places = limit or nullcontext()
        self._turn = turn

    def for_question(self, turn: Turn | None) -> AnswerJudge:
        """Return the judge of one question, with a failure and a ledger of its own."""
        judge = AnswerJudge(self._run, *self._source, self._places, turn)
        judge.stop = self.stop
        return judge

    def check(self) -> None:
        """Raise ``JudgeError`` if nothing more is to be asked."""
        if self.stop.is_on:
            raise NotAskedError("nothing more is asked after a failure")
        super().check()

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, options.md)
        """Return the run's model."""
        return self._run.settings.model

    async def ask(self, request: ChatRequest, subject: QuestionContext) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        self.check()
        limits = AnswerLimits(self._places, self.check, self._turn, self.asked)
        try:
            judgment = await self._run.judgment(request, subject, self._source, limits)
            reply = _as_reply(judgment, request)
        except (JudgmentMissingError, NotAskedError):
            raise
        except (JudgeError, EvalScriptError) as error:
            # Where the judge refuses its key, model or address, the answer's other questions would
            # fail alike. The script's process fails where it checks replies by its own template.
            self.stop.is_on |= isinstance(error, JudgeAccessError)
            raise self.fail(error) from error.__cause__
        except Exception as error:
            raise self.fail(unexpected(error)) from error
        self.ledger.usage += judgment.usage(self._run.price)
        self.ledger.served.append((reply.served_model, reply.system_fingerprint))
        self.ledger.note_created(judgment.created)
        self._note_rejection(reply, subject)
        if judgment.outcome == "too_long":
            raise ContextTooLongError(judgment.text)
        return reply

    def note_service(self, answer: ServiceAnswer) -> None:
        """Add the reply of a map or paper service to the ledger."""
        self.ledger.services.append(answer)


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
        usage=judgment.tokens,
        served_model=judgment.served_model,
        system_fingerprint=judgment.system_fingerprint,
        attempts=judgment.attempts,
        images=judgment.images,
        judgment=judgment.key,
    )
