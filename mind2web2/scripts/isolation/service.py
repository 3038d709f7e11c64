"""What a run does for the process of one script: verdicts, extractions, pages, services, logs."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, RootModel, ValidationError

from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
from mind2web2.errors import (
    CaptureError,
    EvalScriptError,
    JudgeError,
    MachineError,
    Mind2Web2Error,
    PageBugError,
)
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.protocol import Noted, QuestionContext
from mind2web2.judge.services import ServiceAnswers, ServiceRequest
from mind2web2.judge.store import problem_of
from mind2web2.llm_client.async_calls import REFUSED_PARAMETERS
from mind2web2.llm_client.chat import ChatReply, ChatRequest, ImageLimit, ReplyCheck
from mind2web2.llm_client.failures import one_line
from mind2web2.llm_client.messages import checked_messages
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.scripts.isolation.answer_client import (
    Filled,
    Judged,
    PageInfo,
    SentLedger,
    SentRequest,
    SentTemplate,
)
from mind2web2.scripts.isolation.log_records import SentRecord
from mind2web2.scripts.isolation.rpc import (
    MAX_REASON_CHARS,
    PACKAGE,
    Failure,
    RpcConnection,
    served,
)
from mind2web2.verification.claims import ClaimJudging
from mind2web2.verification.config import config_with
from mind2web2.verification.context import EvaluationContext
from mind2web2.verification.extraction import filled
from mind2web2.verification.lookahead import judge_ahead
from mind2web2.verification.messages import OWN_TEMPLATES
from mind2web2.verification.run_questions import AskedClaim, AskedForm, Given

# For a script's own template, which only its process has.
_CHECK_TIMEOUT_S = 60.0


class _SchemaProxy(RootModel[Any]):
    """Accepts any JSON; the script's own class validates it (``ChatRequest.check``)."""

    schema_text: ClassVar[str] = "{}"

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_keywords: Any) -> dict[str, Any]:
        """Return the schema of the script's class."""
        schema: dict[str, Any] = json.loads(cls.schema_text)
        return schema


def schema_proxy(name: str, schema: object) -> type[BaseModel]:
    """Return a class with the name and schema of a script's class, the same for the same arguments."""
    return _proxy(name, json.dumps(schema))


@lru_cache(maxsize=256)
def _proxy(name: str, schema_text: str) -> type[BaseModel]:
    return type(
        name, (_SchemaProxy,), {"schema_text": schema_text, "__module__": __name__}
    )


@dataclass(frozen=True)
class _RunContext(EvaluationContext):
    """An answer whose pages are the run's: an unforeseen error at one of them costs one leaf."""

    async def page_within(
        self, url: str, with_images: bool, limit: ImageLimit
    ) -> PreparedPage:
        """Return a page as ``EvaluationContext`` does. Raises PageBugError: an unforeseen error."""
        try:
            return await super().page_within(url, with_images, limit)
        except Mind2Web2Error:
            raise
        except Exception as error:
            self.logger.exception("page cannot be prepared url=%s", url)
            raise PageBugError(f"{type(error).__name__}: {error}") from error


@dataclass
class RunService:
    """Serves one answer's process: its ``served`` methods are the kinds of questions and notes.

    Args:
        judge: the run's, as this answer asks it.
        source: task id and answer name.
        cache: the answer's; it records which pages were looked up.
        logger: the answer's.
    """

    judge: AnswerJudge
    services: ServiceAnswers
    source: tuple[str, str]
    cache: AnswerCache
    logger: logging.Logger
    connection: RpcConnection
    _maps: GoogleMapsTool = field(default_factory=GoogleMapsTool)

    def failure_of(self, question: str, error: Exception) -> Mind2Web2Error:
        """Return the failure that an unforeseen error at a question is: it costs the answer its result.

        The answer's log has the traceback.
        """
        self.logger.error("the run failed at %r", question, exc_info=error)
        if isinstance(error, ValidationError):
            text = f"the script's process sent an invalid question {question!r}: {problem_of(error)}"
            return self.judge.fail(EvalScriptError(one_line(text)))
        text = f"the run failed at {question!r}: {type(error).__name__}: {error}"
        return self.judge.fail(MachineError(one_line(text)))

    @served
    def note(self, kind: Noted, text: str) -> None:
        """Add a note to the answer's ledger."""
        self.judge.note(kind, text[:MAX_REASON_CHARS])

    @served
    def fail(self, failure: Failure) -> None:
        """Ask nothing more for the answer, which has no result."""
        self.judge.fail(failure.of_script())

    @served
    def forget(self) -> None:
        """Drop the pages prepared from the cache."""
        self.cache.page_library.forget(self.cache.task_cache)

    @served
    def log(self, to: Literal["answer", "package"], record: SentRecord) -> None:
        """Log a record: the answer's by its logger, the package's by its own."""
        logger = self.logger
        if to == "package":
            # Each name that is asked for stays in ``logging``'s registry.
            is_known = record.name in logging.Logger.manager.loggerDict
            is_ours = is_known and record.name.partition(".")[0] == PACKAGE
            logger = logging.getLogger(record.name if is_ours else PACKAGE)
        if logger.isEnabledFor(record.level):
            logger.handle(record.record())

    @served
    async def judged(self, claim: AskedClaim, given: Given) -> Judged:
        """Judge a claim."""
        judging = ClaimJudging(self._context(given))
        return await judging.judged(claim.verification, claim.urls, claim.had_sources)

    @served
    async def judged_ahead(self, claim: AskedClaim, given: Given) -> None:
        """Ask the questions of a claim without any note of them."""
        verification, urls, had_sources = (
            claim.verification,
            claim.urls,
            claim.had_sources,
        )
        await judge_ahead(self._context(given), verification, urls, had_sources)

    @served
    async def filled(
        self, form: AskedForm, template: SentTemplate, given: Given
    ) -> Filled:
        """Fill a form from the answer or a page."""
        reply, record = await filled(
            self._context(given), form, _class_of(template), self._check(template)
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
    async def chat(self, request: SentRequest) -> ChatReply:
        """Answer a request of the script's own."""
        try:
            checked_messages(request.messages)
        except ValueError as error:
            failure = EvalScriptError(f"a request of the script's own: {error}")
            raise self.judge.fail(failure) from error
        reply = await self.judge.chat(self._request(request))
        return replace(reply, value=None)

    @served
    async def ask(
        self, request: SentRequest, subject: QuestionContext, is_first: bool
    ) -> ChatReply:
        """Answer a question about pages that only the script's process has."""
        judge = self._judge(is_first)
        reply = await judge.ask(self._request(request), subject, None)
        return replace(reply, value=None)

    @served
    async def ask_ahead(
        self, request: SentRequest, subject: QuestionContext, is_first: bool
    ) -> ChatReply:
        """Answer such a question without any note of it."""
        judge = self._judge(is_first)
        reply = await judge.ask_ahead(self._request(request), subject)
        return replace(reply, value=None)

    @served
    async def ledger(self) -> SentLedger:
        """Return usage and notes so far."""
        return SentLedger.of(self.judge.ledger)

    @served
    async def image_limit(self, is_first: bool) -> ImageLimit:
        """Return the judge's limit of images, as far as it is known by now."""
        return self._judge(is_first).image_limit

    @served
    async def record_skip_decision(
        self, subject: QuestionContext, skip_reason: str | None
    ) -> str | None:
        """Return what ``Judge.record_skip_decision`` returns."""
        if skip_reason is not None:
            skip_reason = skip_reason[:MAX_REASON_CHARS]
        return await self.judge.record_skip_decision(subject, skip_reason)

    @served
    async def service(self, request: ServiceRequest) -> Any:
        """Return the answer of a map or paper service."""

        async def ask() -> Any:
            if request.name in ("geocode", "distance_matrix"):
                return await self._maps.request(
                    request.name, *request.arguments, **request.keywords
                )
            papers = ArxivTool(int(request.keywords.get("page_size", 100)))
            if request.name == "by_id":
                return await papers.search_arxiv_by_id(*request.arguments)
            return await papers.search_arxiv_by_title(*request.arguments)

        try:
            answer, record = await self.services.answer(request, ask, self.source)
        except JudgeError as error:
            raise self.judge.fail(error) from error.__cause__
        self.judge.note_service(record)
        return answer

    def _judge(self, is_first: bool) -> AnswerJudge:
        first = self.judge.first
        return first if is_first and first is not None else self.judge

    def _context(self, given: Given) -> EvaluationContext:
        cache = self.cache
        return _RunContext(
            judge=self.judge,
            model=self.judge.model_for(""),
            task=given.task,
            answer=given.answer,
            cache=cache,
            library=cache.page_library,
            capture=cache.captures,
            llm_limit=nullcontext(),
            page_limit=cache.page_limit or nullcontext(),
            config=config_with(given.evaluator_config),
            logger=self.logger,
        )

    def _request(self, sent: SentRequest) -> ChatRequest:
        if refused := REFUSED_PARAMETERS & sent.extra.keys():
            text = f"not supported in a request: {', '.join(sorted(refused))}"
            raise self.judge.fail(EvalScriptError(text))
        template = sent.template
        return ChatRequest(
            model=sent.model,
            messages=sent.messages,
            template=None if template is None else _class_of(template),
            temperature=sent.temperature,
            reasoning_effort=sent.reasoning_effort,
            extra=sent.extra,
            check=None if template is None else self._check(template),
        )

    def _check(self, template: SentTemplate) -> ReplyCheck | None:
        """Return the check of a reply by the script's own class, which only its process has."""
        if template.number is None:
            return None

        async def check(text: str) -> str | None:
            try:
                async with asyncio.timeout(_CHECK_TIMEOUT_S):
                    problem: str | None = await self.connection.ask(
                        "check", str | None, template=template.number, text=text
                    )
            except TimeoutError as error:
                raise EvalScriptError(
                    f"the script's process did not answer within {_CHECK_TIMEOUT_S:g} s"
                ) from error
            except ValueError as error:
                raise EvalScriptError(
                    "the script's process sent no proper reply about its template"
                ) from error
            return None if problem is None else problem[:MAX_REASON_CHARS]

        return check


def _class_of(template: SentTemplate) -> type[BaseModel]:
    """Return the class that a reply is to fill: one of ours, or a stand-in for a script's class."""
    if template.number is None:
        return OWN_TEMPLATES[template.name]
    return schema_proxy(template.name, template.form)
