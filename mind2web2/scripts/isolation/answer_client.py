"""The client that a script receives in its process.

The run has the judge and the pages, and is asked for everything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError

from mind2web2.errors import (
    CaptureError,
    ContextTooLongError,
    EvalScriptError,
    JudgmentMissingError,
    Mind2Web2Error,
    PageBugError,
)
from mind2web2.judge.protocol import (
    Failure,
    FailureLatch,
    JudgeLedger,
    Noted,
    QuestionContext,
    cut_off_noted,
    unexpected,
)
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Completion, Limit
from mind2web2.llm_client.structured_output import InvalidOutputError, read_reply
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord, Undecided
from mind2web2.scripts.isolation import rpc
from mind2web2.scripts.isolation.messages import Filled, Judged, PageInfo, SentRequest, SentTemplate
from mind2web2.scripts.isolation.questions import (
    MAX_OPEN_GATES,
    UNKNOWN,
    PassQuestions,
    UnknownReply,
    WaitingQuestions,
)
from mind2web2.scripts.limits import MAX_QUESTIONS, ScriptStops
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.run_questions import BinaryEvalResult
from mind2web2.verification.stand_ins import marked_instance, marked_text

if TYPE_CHECKING:
    from mind2web2.judge.service_request import ServiceRequest
    from mind2web2.rubric.node import VerificationNode
    from mind2web2.scripts.isolation.messages import PassJob
    from mind2web2.scripts.isolation.rpc import RpcClient
    from mind2web2.verification.run_questions import AskedClaim, AskedForm, Given


class ScriptTemplates:
    """The templates of a script, by the numbers under which its process checks replies."""

    def __init__(self) -> None:
        self._forms: list[tuple[type[BaseModel], object]] = []
        self._sent: list[SentTemplate] = []
        # The last reply that was checked: a script's validators run once for it.
        self._checked: tuple[type[BaseModel], str, BaseModel | None] | None = None

    def sent(self, request: ChatRequest) -> SentRequest:
        """Return a request as it travels."""
        template = request.template
        return SentRequest(
            request.model,
            list(request.messages),  # type: ignore[arg-type]  # as scripts give them
            None if template is None else self.sent_template(template),
            request.temperature,
            request.reasoning_effort,
            dict(request.extra),
        )

    def sent_template(self, template: type[BaseModel]) -> SentTemplate:
        """Return a template as it travels."""
        number = self.number(template)
        return SentTemplate(template.__name__) if number is None else self._sent[number]

    def number(self, template: type[BaseModel] | None) -> int | None:
        """Return the number of a template as it is now, ``None`` for the toolkit's own."""
        if template is None or template is BinaryEvalResult:
            return None
        # A script may change a class and rebuild it.
        form = template, template.__pydantic_validator__
        if form not in self._forms:
            self._forms.append(form)
            schema = template.model_json_schema()
            self._sent.append(SentTemplate(template.__name__, schema))
        return self._forms.index(form)

    def problem(self, number: int, text: str) -> str | None:
        """Return why a judge's reply does not fill a template."""
        template, validator = self._forms[number]
        if template.__pydantic_validator__ is not validator:
            # The script has changed the class since; the next pass tells.
            return None
        try:
            json_text, value = read_reply(Completion(text=text), template)
        except InvalidOutputError as problem:
            return str(problem)
        self._checked = template, json_text, value
        return None

    def read(self, text: str, template: type[BaseModel], name: str | None) -> BaseModel:
        """Return a template that a reply fills. Raises JudgmentMissingError: it does not."""
        checked, self._checked = self._checked, None
        if checked is not None and checked[:2] == (template, text):
            return cast("BaseModel", checked[2])
        try:
            return template.model_validate_json(text)
        except ValidationError as error:
            raise JudgmentMissingError(
                f"stored judgment on {name!r} does not fill {template.__name__}; "
                "run with --overwrite to request it again"
            ) from error


@script_api
class AnswerClient(AsyncCalls):
    """The client that one answer's script receives.

    It has the run's judge, whatever model the script names.

    Attributes:
        shows_images: whether the judge is shown images.
        leaves_begun: the leaves whose verification has begun, by identity.
        leaves_left_open: the leaves that were undecided in a summary.
    """

    def __init__(self, run: RpcClient, job: PassJob, stops: ScriptStops) -> None:
        self.shows_images = job.shows_images
        self.leaves_begun: dict[int, VerificationNode] = {}
        self.leaves_left_open: dict[int, VerificationNode] = {}
        self._run = run
        self._model = job.call.model
        self._endpoint = job.endpoint
        self._answer = job.call.answer
        self._stops = stops
        self._count = 0
        self._latch = FailureLatch()
        self._templates = ScriptTemplates()
        self.questions: PassQuestions | WaitingQuestions = WaitingQuestions(run)

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure."""
        return self._latch.failure

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes."""
        if isinstance(self.questions, PassQuestions):
            self.questions.end_if_open()
        ledger: JudgeLedger = self._run.ask_now("ledger", JudgeLedger, used=self.questions.used)
        return ledger

    @property
    def endpoint(self) -> str:
        """Return the name of the judge's server."""
        return self._endpoint

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, options.md)
        """Return the run's model."""
        return self._model

    def response(self, **_keywords: Any) -> Any:
        """Refuse: this client is asynchronous (eval-scripts.md)."""
        raise ValueError("this client is asynchronous: use await client.async_response(...)")

    def fail(self, failure: Failure) -> Failure:
        """Record a permanent failure, after which the run asks nothing more for this answer."""
        if self._latch.failure is None:
            self._run.note("fail", failure=rpc.Failure.of(failure))
        return self._latch.fail(failure)

    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the answer's ledger."""
        self._run.note("note", kind=kind, text=text)

    def end(self) -> None:
        """Ask nothing more, for tasks that the script left running after its evaluation."""
        self._latch.fail(EvalScriptError("the evaluation is over"))

    async def chat(self, request: ChatRequest, limit: Limit | None = None) -> ChatReply:  # noqa: ARG002
        """Answer a request of the script's own; the same one again is another trial."""
        with cut_off_noted(self, "a request of its own"):
            reply = await self._reply(
                "chat",
                ChatReply,
                request.template,
                request=self._templates.sent(request),
            )
        if isinstance(reply, UnknownReply):
            template = request.template
            value = None if template is None else marked_instance(template)
            return ChatReply(marked_text("reply"), value)
        return self._with_value(reply, request, "a request of its own")

    async def ask(self, request: ChatRequest, subject: QuestionContext) -> ChatReply:
        """Answer a question about pages that only this process has, as ``Judge.ask`` promises."""
        self._in_program_order("has pages or a client of its own")
        try:
            reply = await self._ask_run(
                "ask",
                ChatReply,
                request.template,
                request=self._templates.sent(request),
                subject=subject,
            )
        except (ContextTooLongError, JudgmentMissingError):
            raise
        except Mind2Web2Error as error:
            raise self.fail(error) from error.__cause__
        return self._with_value(reply, request, subject.node)

    # The questions of ``RunQuestions``

    @property
    def most_open_gates(self) -> int:
        """Return behind how many undecided leaves a claim may be asked."""
        questions = self.questions
        is_ahead = isinstance(questions, PassQuestions) and questions.ahead == "gates"
        return MAX_OPEN_GATES if is_ahead else 0

    def left_open(self) -> tuple[bool, Undecided]:
        """Return the stand-in for a verdict whose prerequisites are not decided yet."""
        questions = self.questions
        assert isinstance(questions, PassQuestions), "stand-ins are for passes"
        questions.open()
        return True, Undecided()

    async def judged(self, claim: AskedClaim, given: Given) -> tuple[bool, Evidence | Undecided]:
        """Return what ``ClaimJudging.judged`` returns."""
        reply = await self._reply("judged", Judged, claim=claim, given=self._as_sent(given))
        if isinstance(reply, UnknownReply):
            return self.left_open()
        supported, evidence = reply
        return supported, evidence

    async def filled(
        self, form: AskedForm, template_class: type[BaseModel], given: Given
    ) -> tuple[BaseModel | None, ExtractionRecord | Undecided]:
        """Return the filled template and the record.

        The template is ``None`` where there is nothing to fill it from.
        """
        reply = await self._reply(
            "filled",
            Filled,
            template_class,
            form=form,
            template=self._templates.sent_template(template_class),
            given=self._as_sent(given),
        )
        if isinstance(reply, UnknownReply):
            return self._stand_in(template_class)
        text, record = reply
        if text is None:
            return None, record
        try:
            return self._templates.read(text, template_class, form.name), record
        except JudgmentMissingError as error:
            raise self.fail(error) from error.__cause__

    def _stand_in(self, template: type[BaseModel]) -> tuple[BaseModel, Undecided]:
        questions = self.questions
        assert isinstance(questions, PassQuestions), "stand-ins are for passes"
        try:
            return marked_instance(template), Undecided()
        except Exception:  # of the template's own code
            questions.end()

    async def page_info(self, url: str, given: Given) -> PageInfo:
        """Return a page's images as data URLs and its text.

        Raises CaptureError: it is unavailable.
        """
        reply = await self._reply("page_info", PageInfo, url=url, given=self._as_sent(given))
        if isinstance(reply, UnknownReply):
            return [], marked_text("page")
        images, text = reply
        return images, text

    async def service(self, request: ServiceRequest) -> Any:
        """Return the answer of a map or paper service."""
        reply = await self._reply("service", Any, request=request)
        if isinstance(self.questions, PassQuestions) and reply is UNKNOWN:
            self.questions.end()
        return reply

    def check(self, template: int, text: str) -> str | None:
        """Return why a judge's reply does not fill the script's own template.

        Only this process has the template.
        """
        return self._templates.problem(template, text)

    def _in_program_order(self, reason: str) -> None:
        if isinstance(self.questions, PassQuestions):
            self.questions.leave_to_program_order(reason)

    def _as_sent(self, given: Given) -> Given:
        """Return what the script gives, without the answer if it is the run's own."""
        if given.answer == self._answer:
            return replace(given, answer=None)
        return given

    async def _reply(
        self,
        question: str,
        kind: Any,
        template_class: type[BaseModel] | None = None,
        **arguments: Any,
    ) -> Any:
        """Return a reply of the run; its failures are permanent, but for those of one page."""
        try:
            return await self._ask_run(question, kind, template_class, **arguments)
        except (CaptureError, PageBugError):
            raise
        except Mind2Web2Error as error:
            raise self.fail(error) from error.__cause__

    async def _ask_run(
        self,
        question: str,
        kind: Any,
        template_class: type[BaseModel] | None,
        **arguments: Any,
    ) -> Any:
        self._latch.check()
        self._count += 1
        if self._count > MAX_QUESTIONS:
            self._stops.stop(f"it asked for more than {MAX_QUESTIONS:,} verifications")
        try:
            number = self._templates.number(template_class)
            return await self.questions.reply(question, kind, arguments, number)
        except (TypeError, ValueError, RecursionError) as error:
            # The script's values cannot be sent.
            raise self.fail(unexpected(error)) from error

    def _with_value(self, reply: ChatReply, request: ChatRequest, name: str | None) -> ChatReply:
        """Return a reply with the template that it fills."""
        if request.template is None or reply.declined is not None:
            return reply
        value = self._templates.read(reply.text, request.template, name)
        return replace(reply, value=value)
