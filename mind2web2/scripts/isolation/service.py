"""Answers the questions of scripts in the run: verdicts, extractions, pages, services."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, RootModel, ValidationError

from mind2web2.errors import (
    CaptureError,
    ContextTooLongError,
    EvalScriptError,
    JudgmentMissingError,
    MachineError,
    Mind2Web2Error,
)
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import problem_of
from mind2web2.judge.permit import NotAskedError, Turn
from mind2web2.judge.protocol import JudgeLedger, QuestionContext
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.llm_client.chat import REFUSED_PARAMETERS, ChatReply, ChatRequest, ReplyCheck
from mind2web2.llm_client.messages import checked_messages, with_fewer_images
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.library import PageLibrary
from mind2web2.scripts.isolation.messages import (
    Ahead,
    Filled,
    Judged,
    PageInfo,
    ScriptCall,
    SentRequest,
    SentTemplate,
)
from mind2web2.scripts.isolation.rpc import (
    Failure,
    Question,
    Reply,
    served,
    served_method,
)
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.shown_text import one_line
from mind2web2.verification.claims import ClaimJudging
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.extraction import filled
from mind2web2.verification.run_questions import AskedClaim, AskedForm, BinaryEvalResult, Given

if TYPE_CHECKING:
    from mind2web2.pages.captures import SharedCaptures


class _SchemaProxy(RootModel[Any]):
    """Accepts any JSON; the script's own class validates it (``ChatRequest.check``)."""

    schema_text: ClassVar[str] = "{}"

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_keywords: Any) -> dict[str, Any]:
        """Return the schema of the script's class."""
        schema: dict[str, Any] = json.loads(cls.schema_text)
        return schema


def schema_proxy(name: str, schema: object) -> type[BaseModel]:
    """Return a class with the name and schema of a script's class.

    The class is the same for the same arguments.
    """
    return _proxy(name, json.dumps(schema))


@lru_cache(maxsize=256)
def _proxy(name: str, schema_text: str) -> type[BaseModel]:
    return type(name, (_SchemaProxy,), {"schema_text": schema_text, "__module__": __name__})


def unforeseen(question: str, error: Exception, logger: logging.Logger) -> Mind2Web2Error:
    """Return the failure that an unforeseen error at a question is: it costs the answer its result.

    The answer's log has the traceback.
    """
    logger.error("the run failed at %r", question, exc_info=error)
    if isinstance(error, ValidationError):
        text = f"the script's process sent an invalid question {question!r}: {problem_of(error)}"
        return EvalScriptError(one_line(text))
    text = f"the run failed at {question!r}: {type(error).__name__}: {error}"
    return MachineError(one_line(text))


@dataclass(frozen=True)
class RunSide:
    """One answer's evaluation: the call of its script, and the run's settings and parts for it.

    Args:
        cache: the answer's; afterwards it contains which pages were looked up.
        logger: the answer's.
        captures: for pages that are not stored; ``None`` where none are captured.
        ahead: how far scripts go on with stand-ins; ``None`` for program order.
        timeout_s: for the script; ``None`` for no limit.
        as_of: where the script's own clock stands still; ``None`` for the real time.
        zone: of the script's local time; ``None`` for that of the run.
    """

    call: ScriptCall
    task_id: str
    cache: AnswerCache
    logger: logging.Logger
    judge: CachingJudge
    library: PageLibrary
    captures: SharedCaptures | None
    limits: DualSemaphore
    ahead: Ahead | None
    timeout_s: float | None
    as_of: datetime | None
    zone: str | None

    @property
    def source(self) -> tuple[str, str]:
        """Return task id and answer name."""
        return self.task_id, self.call.answer_name


@dataclass
class RunService:
    """Answers one question of a script: its ``served`` methods are the kinds of questions.

    Args:
        judge: the run's, for this question.
        check: tells why a judge's reply does not fill the script's own template.

    Attributes:
        error: why there is no reply.
        looked_up: the pages asked for, as ``AnswerCache`` has them.
    """

    run: RunSide
    judge: AnswerJudge
    check: ReplyCheck | None = None
    error: Mind2Web2Error | None = None
    looked_up: dict[str, str | None] = field(default_factory=dict)

    async def reply(self, question: Question) -> Reply:
        """Return the reply to a question, or its failure."""
        try:
            method = served_method(self, question.name)
            return Reply(await method(**question.arguments))
        except Mind2Web2Error as error:
            self.error = error
        except Exception as error:
            self.error = unforeseen(question.name, error, self.run.logger)
        finally:
            # It holds the connection to the script's process, and that all questions.
            self.check = None
        return Reply(failure=Failure.of(self.error))

    @served
    async def judged(self, claim: AskedClaim, given: Given) -> Judged:
        """Judge a claim."""
        judging = ClaimJudging(self._context(given))
        return await judging.judged(claim.verification, claim.urls)

    @served
    async def filled(self, form: AskedForm, template: SentTemplate, given: Given) -> Filled:
        """Fill a form from the answer or a page."""
        reply, record = await filled(
            self._context(given), form, _class_of(template), self._check_of(template)
        )
        if reply is None or reply.value is None:
            text = None
        else:
            text = reply.text
        return text, record

    @served
    async def page_info(self, url: str, given: Given) -> PageInfo:
        """Return a page as the judge could be shown it."""
        try:
            return await self._context(given).page_info(url)
        except CaptureError as error:
            raise CaptureError(str(error)) from error

    @served
    async def chat(self, request: SentRequest, trial: int) -> ChatReply:
        """Answer a request of the script's own, which is another trial each time."""
        own = self._request(request)
        if not self.judge.shows_images:
            own = replace(own, messages=with_fewer_images(own.messages, 0))
        try:
            reply = await self.judge.ask(own, QuestionContext("script", trial=trial))
        except (JudgmentMissingError, ContextTooLongError) as error:
            raise self.judge.fail(error) from error.__cause__
        return replace(reply, value=None)

    @served
    async def ask(self, request: SentRequest, subject: QuestionContext) -> ChatReply:
        """Answer a question about pages that only the script's process has."""
        reply = await self.judge.ask(self._request(request), subject)
        return replace(reply, value=None)

    @served
    async def service(self, request: ServiceRequest) -> Any:
        """Return the answer of a map or paper service."""
        # Few scripts use the tools.
        services = import_module("mind2web2.api_tools.service_answers")
        answer, record = await services.stored_answer(self.run.judge, request, self.run.source)
        self.judge.note_service(record)
        return answer

    def _context(self, given: Given) -> EvaluationContext:
        run = self.run
        return EvaluationContext(
            judge=self.judge,
            model="",  # the run's takes its place
            task=given.task,
            answer=run.call.answer if given.answer is None else given.answer,
            cache=run.cache.task_cache,
            looked_up=self.looked_up,
            library=run.library,
            capture=run.captures,
            page_limit=run.limits.webpage,
            logger=run.logger,
            settings=given.evaluator_config,
            votes=run.judge.settings.votes,
        )

    def _request(self, sent: SentRequest) -> ChatRequest:
        if refused := REFUSED_PARAMETERS & sent.extra.keys():
            text = f"not supported in a request: {', '.join(sorted(refused))}"
            raise EvalScriptError(text)
        try:
            messages = checked_messages(sent.messages)
        except ValueError as error:
            raise EvalScriptError(f"a request of the script's own: {error}") from error
        template = sent.template
        return ChatRequest(
            model=sent.model,
            messages=messages,
            template=None if template is None else _class_of(template),
            temperature=sent.temperature,
            reasoning_effort=sent.reasoning_effort,
            extra=sent.extra,
            check=None if template is None else self._check_of(template),
        )

    def _check_of(self, template: SentTemplate) -> ReplyCheck | None:
        return None if template.form is None else self.check


class RunAnswers:
    """Answers all questions of one answer's script, and keeps account of each."""

    def __init__(self, run: RunSide) -> None:
        self.judge = AnswerJudge(run.judge, run.source, run.limits.llm)
        self._run = run
        self._asked: dict[str, RunService] = {}

    def stop(self) -> None:
        """Send no further request for the questions that wait for their turn."""
        self.judge.stop.is_on = True

    def go_on(self) -> None:
        """Take questions again after ``stop``."""
        self.judge.stop.is_on = False

    def fail(self, failure: Mind2Web2Error) -> None:
        """Ask nothing more for the answer, which has no result."""
        self.judge.fail(failure)
        self.stop()

    def forget_pages(self) -> None:
        """Drop the pages prepared from the cache."""
        self._run.library.forget(self._run.cache.task_cache)

    async def reply(
        self,
        question: Question,
        check: ReplyCheck | None,
        turn: Turn | None,
    ) -> Reply | None:
        """Return the reply to a question; ``None`` if it was not asked (``NotAskedError``)."""
        service = RunService(self._run, self.judge.for_question(turn), check)
        self._asked[question.key] = service
        reply = await service.reply(question)
        return None if isinstance(service.error, NotAskedError) else reply

    def ledger(self, used: Sequence[str]) -> JudgeLedger:
        """Return the usage of these questions, with the notes of the script's process."""
        ledger = JudgeLedger()
        ledger.add(self.judge.ledger)
        for key in used:
            ledger.add(self._asked[key].judge.ledger)
        return ledger

    def settle(self, used: Sequence[str]) -> None:
        """Note which pages these questions have looked up.

        Also note what was asked for nothing beside these questions.
        """
        self._run.cache.note_questions([self._asked[key].looked_up for key in used])
        for key in self._asked.keys() - set(used):
            for judgment in self._asked[key].judge.asked:
                run = self._run.judge
                run.spent_for_nothing += judgment.usage(run.price)

    def error_of(self, key: str) -> Mind2Web2Error | None:
        """Return why a question has no reply."""
        service = self._asked.get(key)
        return None if service is None else service.error


def _class_of(template: SentTemplate) -> type[BaseModel]:
    """Return the class that a reply is to fill: one of ours, or a stand-in for a script's class."""
    if template.form is None:
        return BinaryEvalResult
    return schema_proxy(template.name, template.form)
