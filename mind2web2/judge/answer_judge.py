"""The run's judge as one answer asks it, whatever model its script names."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field

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
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.rubric.verdicts import ServiceAnswer


@dataclass(slots=True)
class Stop:
    """Tells the judges of all questions of an answer to send no further request."""

    is_on: bool = False


@dataclass(eq=False)
class AnswerJudge(JudgeSession):
    """The run's judge as one answer, or one question of it, asks it.

    Args:
        places: entered around each HTTP request. A script that holds the semaphore it received does
            not block itself: this is the run's own.
        turn: as ``AnswerLimits`` has it.

    Attributes:
        asked: the judgments that were requested rather than found in the store.
    """

    run: CachingJudge
    source: tuple[str, str]
    places: Limit = field(default_factory=nullcontext)
    turn: Turn | None = None
    stop: Stop = field(default_factory=Stop)
    asked: list[Judgment] = field(default_factory=list, init=False)

    @property
    def shows_images(self) -> bool:
        """Tell whether the judge is shown images."""
        return self.run.shows_images

    def for_question(self, turn: Turn | None) -> AnswerJudge:
        """Return the judge of one question, with a failure and a ledger of its own."""
        return AnswerJudge(self.run, self.source, self.places, turn, self.stop)

    def check(self) -> None:
        """Raise ``JudgeError`` if nothing more is to be asked."""
        if self.stop.is_on:
            raise NotAskedError("nothing more is asked after a failure")
        super().check()

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, options.md)
        """Return the run's model."""
        return self.run.settings.model

    async def ask(self, request: ChatRequest, subject: QuestionContext) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        self.check()
        limits = AnswerLimits(self.places, self.check, self.turn, self.asked)
        try:
            judgment = await self.run.judgment(request, subject, self.source, limits)
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
        self.ledger.usage += judgment.usage(self.run.price)
        self.ledger.served.append((reply.served_model, reply.system_fingerprint))
        self.ledger.created.append(judgment.created)
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
