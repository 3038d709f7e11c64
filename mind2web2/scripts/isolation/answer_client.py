"""The client that a script receives in its process: the run has judge and pages, and is asked for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from mind2web2.errors import (
    CaptureError,
    ContextTooLongError,
    EvalScriptError,
    ImagesRefusedError,
    JudgmentMissingError,
    Mind2Web2Error,
    PageBugError,
)
from mind2web2.judge.protocol import Failure, JudgeLedger, Noted, QuestionContext
from mind2web2.judge.session import FailureLatch, cut_off_noted, unexpected
from mind2web2.judge.settings import JudgeSettings
from mind2web2.llm_client.async_calls import AsyncCalls
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, Limit
from mind2web2.llm_client.structured_output import InvalidOutputError, read_template
from mind2web2.llm_client.transport import Completion
from mind2web2.rubric.verdicts import Evidence, ExtractionRecord
from mind2web2.scheduling.deferral import guard_access, guarded, toolkit_at_work
from mind2web2.scripts.isolation import rpc
from mind2web2.scripts.isolation.rpc import RpcClient
from mind2web2.utils.api_misuse import script_api
from mind2web2.verification.messages import OWN_TEMPLATES
from mind2web2.verification.run_questions import AskedClaim, AskedForm, Given


@dataclass(frozen=True)
class SentTemplate:
    """A template of the script's, by the number under which its process checks replies.

    Args:
        number: ``None`` for one of the toolkit's own.
    """

    number: int | None
    name: str
    form: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SentRequest:
    """A request of a script, with its template by number; ``ChatRequest`` says what the fields are."""

    model: str
    messages: list[dict[str, Any]]
    template: SentTemplate | None
    temperature: float | None
    reasoning_effort: str | None
    extra: dict[str, Any]


# Numbers of judgments, by model and backend.
Served = list[tuple[str | None, str | None, int]]


@dataclass(frozen=True)
class SentLedger:
    """A ledger, with the keys of what was served beside their counts, since JSON has only names as keys."""

    rest: JudgeLedger
    served: Served
    first_served: Served

    @classmethod
    def of(cls, ledger: JudgeLedger) -> SentLedger:
        """Return a ledger as it travels."""
        rest = replace(ledger, served=Counter(), first_served=Counter())
        counts = (ledger.served, ledger.first_served)
        served, first = ([(*key, each[key]) for key in each] for each in counts)
        return cls(rest, served, first)

    def ledger(self) -> JudgeLedger:
        """Return the ledger."""
        counts = (self.served, self.first_served)
        served, first = (
            Counter({(model, system): count for model, system, count in each})
            for each in counts
        )
        return replace(self.rest, served=served, first_served=first)


# A verdict with its evidence.
Judged = tuple[bool, Evidence]
# The JSON that fills a template, ``None`` where there is nothing to fill it from, and the record.
Filled = tuple[str | None, ExtractionRecord]
# A page's images, as data URLs, and its text.
PageInfo = tuple[list[str], str]
# What the run replies to a script.
REPLIES = (ChatReply, Filled, ImageLimit, Judged, PageInfo, SentLedger, str | None)


@guarded
@script_api
class AnswerClient(AsyncCalls):
    """The client that one answer's script receives: the run's judge, whatever model the script names.

    Args:
        decides: of two judges, the one that decides; this is then the first.
    """

    def __init__(
        self,
        run: RpcClient,
        settings: JudgeSettings,
        endpoint: str,
        decides: AnswerClient | None = None,
    ) -> None:
        self._run = run
        self._settings = settings
        # Scripts see the endpoint of the judge that decides.
        self._endpoint = endpoint
        self._is_first = decides is not None
        self._latch = FailureLatch()
        self._templates: list[type[BaseModel]] = []
        self._sent_templates: list[SentTemplate] = []
        self.image_limit = ImageLimit(max_images=settings.max_images)
        self._first: AnswerClient | None = None
        if decides is not None:
            self._latch = decides._latch
            self._templates = decides._templates
            self._sent_templates = decides._sent_templates
        if settings.first is not None:
            self._first = AnswerClient(run, settings.first, endpoint, self)

    @property
    def first(self) -> AnswerClient | None:
        """Return the judge that is asked about claims before this one, as this answer sees it."""
        return self._first

    @property
    def failure(self) -> Mind2Web2Error | None:
        """Return the first permanent failure."""
        guard_access()
        return self._latch.failure

    @property
    def ledger(self) -> JudgeLedger:
        """Return usage and notes."""
        guard_access()
        sent: SentLedger = self._run.ask_now("ledger", SentLedger)
        return sent.ledger()

    @property
    def recorded_limits(self) -> Sequence[ImageLimit]:
        """Return the image limits that the recorded run met."""
        return self._settings.image_limits

    @property
    def endpoint(self) -> str:
        """Return the name of the judge's server."""
        return self._endpoint

    def model_for(self, requested: str) -> str:  # noqa: ARG002 (one run has one judge, options.md)
        """Return the run's model."""
        return self._settings.model

    def response(self, **_keywords: Any) -> Any:
        """Refuse: this client is asynchronous (eval-scripts.md)."""
        raise ValueError(
            "this client is asynchronous: use await client.async_response(...)"
        )

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
            try:
                reply = await self._asked(
                    "chat", ChatReply, request=self._sent(request)
                )
            except Mind2Web2Error as error:
                raise self.fail(error) from error.__cause__
        return self._with_value(reply, request, "a request of its own")

    async def ask(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        limit: Limit | None,  # noqa: ARG002 (the run's own is entered)
    ) -> ChatReply:
        """Answer a question, as ``Judge.ask`` promises."""
        try:
            reply = await self._question("ask", request, subject)
        except ImagesRefusedError:
            self.image_limit = await self._asked(
                "image_limit", ImageLimit, is_first=self._is_first
            )
            raise
        except (ContextTooLongError, JudgmentMissingError):
            raise
        except Mind2Web2Error as error:
            raise self.fail(error) from error.__cause__
        return self._with_value(reply, request, subject.node)

    async def ask_ahead(
        self, request: ChatRequest, subject: QuestionContext
    ) -> ChatReply:
        """Answer a question without any note of it; once cancelled, send nothing more."""
        reply = await self._question("ask_ahead", request, subject)
        return self._with_value(reply, request, subject.node)

    async def _question(
        self, name: str, request: ChatRequest, subject: QuestionContext
    ) -> ChatReply:
        reply: ChatReply = await self._asked(
            name,
            ChatReply,
            request=self._sent(request),
            subject=subject,
            is_first=self._is_first,
        )
        return reply

    async def judged(self, claim: AskedClaim, given: Given) -> Judged:
        """Return what ``ClaimJudging.judged`` returns."""
        found: Judged = await self._of_run("judged", Judged, claim=claim, given=given)
        return found

    async def judged_ahead(self, claim: AskedClaim, given: Given) -> None:
        """Ask the questions of a claim without any note of them."""
        await self._asked("judged_ahead", type(None), claim=claim, given=given)

    async def filled(
        self, form: AskedForm, template: type[BaseModel], given: Given
    ) -> tuple[BaseModel | None, ExtractionRecord]:
        """Return the filled template, ``None`` where there is nothing to fill it from, and the record."""
        sent = self._sent_template(template)
        text, record = await self._of_run(
            "filled", Filled, form=form, template=sent, given=given
        )
        if text is None:
            return None, record
        try:
            return _read(text, template, form.name), record
        except JudgmentMissingError as error:
            raise self.fail(error) from error.__cause__

    async def page_info(self, url: str, given: Given) -> PageInfo:
        """Return a page's images as data URLs and its text. Raises CaptureError: it is unavailable."""
        found: PageInfo = await self._of_run(
            "page_info", PageInfo, url=url, given=given
        )
        return found

    async def record_skip_decision(
        self, subject: QuestionContext, skip_reason: str | None
    ) -> str | None:
        """Record or recall whether a verification is skipped, as ``Judge.record_skip_decision`` promises."""
        reason: str | None = await self._of_run(
            "record_skip_decision",
            str | None,
            subject=subject,
            skip_reason=skip_reason,
        )
        return reason

    def check(self, template: int, text: str) -> str | None:
        """Return why a judge's reply does not fill the script's own template, which only this process has."""
        try:
            read_template(Completion(text=text), self._templates[template])
        except InvalidOutputError as problem:
            return str(problem)
        return None

    async def _of_run(self, name: str, kind: Any, **arguments: Any) -> Any:
        """Return a reply of the run; its failures are permanent, but for those of one page."""
        try:
            return await self._asked(name, kind, **arguments)
        except (CaptureError, PageBugError):
            raise
        except Mind2Web2Error as error:
            raise self.fail(error) from error.__cause__

    async def _asked(self, name: str, kind: Any, **arguments: Any) -> Any:
        self._latch.check()
        try:
            with toolkit_at_work():
                return await self._run.ask(name, kind, **arguments)
        except (TypeError, ValueError, RecursionError) as error:
            # What the script gives cannot be sent.
            raise self.fail(unexpected(error)) from error

    def _sent(self, request: ChatRequest) -> SentRequest:
        template = request.template
        return SentRequest(
            request.model,
            list(request.messages),  # type: ignore[arg-type]  # as scripts give them
            None if template is None else self._sent_template(template),
            request.temperature,
            request.reasoning_effort,
            dict(request.extra),
        )

    def _sent_template(self, template: type[BaseModel]) -> SentTemplate:
        if template in OWN_TEMPLATES.values():
            return SentTemplate(None, template.__name__)
        if template not in self._templates:
            number = len(self._templates)
            form = template.model_json_schema()
            self._sent_templates.append(SentTemplate(number, template.__name__, form))
            self._templates.append(template)
        return self._sent_templates[self._templates.index(template)]

    def _with_value(
        self, reply: ChatReply, request: ChatRequest, name: str | None
    ) -> ChatReply:
        """Return a reply with the template that it fills."""
        if request.template is None or reply.declined is not None:
            return reply
        return replace(reply, value=_read(reply.text, request.template, name))


def _read(text: str, template: type[BaseModel], name: str | None) -> BaseModel:
    try:
        return template.model_validate_json(text)
    except ValidationError as error:
        raise JudgmentMissingError(
            f"stored judgment on {name!r} does not fill {template.__name__}; "
            "run with --overwrite to request it again"
        ) from error
