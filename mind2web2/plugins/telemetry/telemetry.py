"""OpenTelemetry: spans of answers and of judge requests, and an event for each leaf and answer.

Nothing of it is imported unless the environment names an exporter; the extra ``otel`` has the
packages.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from mind2web2 import __version__
from mind2web2.bridges.tables import LeafRecord, leaf_records
from mind2web2.errors import UsageError
from mind2web2.judge.protocol import AskedQuestion
from mind2web2.plugin import Listener
from mind2web2.results.answers import AnswerJob
from mind2web2.runs.answer import AnswerOutcome

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

Signal = Literal["TRACES", "LOGS"]
Attributes = dict[str, str | bool | int | float]
SIGNALS: tuple[Signal, ...] = ("TRACES", "LOGS")
# The name of an answer's event; a leaf's has its own.
ANSWER_EVALUATION = "rubric_tree"
EVENT = "gen_ai.evaluation.result"
# Names that the conventions have for our providers.
_PROVIDERS = {
    "azure_openai": "azure.ai.openai",
    "bedrock_anthropic": "aws.bedrock",
    "gemini": "gcp.gemini",
}


def signals_of(environment: Mapping[str, str]) -> tuple[Signal, ...]:
    """Return what to export, by OpenTelemetry's environment variables.

    Raises:
        UsageError: it names an exporter that is not supported.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ()
    return tuple(signal for signal in SIGNALS if _is_wanted(signal, environment))


def wants_texts(environment: Mapping[str, str]) -> bool:
    """Tell by OpenTelemetry's variable whether events may have texts."""
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    return environment.get(name, "").lower() == "true"


def _is_wanted(signal: Signal, environment: Mapping[str, str]) -> bool:
    addresses = (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT",
    )
    has_address = any(environment.get(name) for name in addresses)
    name = f"OTEL_{signal}_EXPORTER"
    exporter = environment.get(name) or ("otlp" if has_address else "none")
    if exporter not in ("otlp", "none"):
        raise UsageError(f"{name}={exporter} is not supported: set otlp or none")
    return exporter == "otlp"


@asynccontextmanager
async def listener(
    print_line: Callable[[str], None],
) -> AsyncIterator[Telemetry | None]:
    """Open what the environment asks for, ``None`` if it asks for nothing.

    Raises:
        UsageError: it asks for an exporter that is not supported, or packages are missing.
    """
    signals = signals_of(os.environ)
    if not signals:
        yield None
        return
    with_texts = wants_texts(os.environ)
    async with exported(
        signals,
        with_texts=with_texts,
        warn=lambda text: print_line(f"Warning: {text}"),
    ) as telemetry:
        yield telemetry


@asynccontextmanager
async def exported(
    signals: tuple[Signal, ...], *, with_texts: bool, warn: Callable[[str], None]
) -> AsyncIterator[Telemetry]:
    """Export spans and events by OTLP over HTTP to the addresses that the environment names.

    Args:
        warn: is called once, at the end, if the receiver did not take everything.

    Raises:
        UsageError: the packages of the extra ``otel`` are missing.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise UsageError(
            "OpenTelemetry's packages are missing: run `pip install 'mind2web2[otel]'`, or set "
            "OTEL_SDK_DISABLED=true"
        ) from error
    resource = Resource.create({"service.name": "mind2web2", "service.version": __version__})
    # Our own, rather than the process's: a program that calls this one may have set up its own.
    traces = TracerProvider(resource=resource, shutdown_on_exit=False)
    logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
    if "TRACES" in signals:
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    if "LOGS" in signals:
        logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    with _one_warning(warn):
        try:
            yield Telemetry(
                traces.get_tracer("mind2web2", __version__),
                logs.get_logger("mind2web2", __version__),
                with_texts=with_texts,
            )
        finally:
            # They send what is left, which takes as long as the receiver does.
            await asyncio.gather(
                asyncio.to_thread(traces.shutdown), asyncio.to_thread(logs.shutdown)
            )


@contextmanager
def _one_warning(warn: Callable[[str], None]) -> Iterator[None]:
    """Pass on only the first warning of OpenTelemetry's packages."""
    first = _FirstWarning()
    packages = logging.getLogger("opentelemetry")
    was_passed_on, packages.propagate = packages.propagate, False
    packages.addHandler(first)
    try:
        yield
    finally:
        packages.removeHandler(first)
        packages.propagate = was_passed_on
        if first.text is not None:
            reason = first.text.partition(" encountered while exporting")[0]
            warn(
                f"not all telemetry was sent: {reason}; check the receiver that "
                "OTEL_EXPORTER_OTLP_ENDPOINT names"
            )


class _FirstWarning(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first text."""
        if self.text is None:
            self.text = " ".join(record.getMessage().split())


class Telemetry(Listener):
    """Makes spans and events of a run.

    Args:
        with_texts: events have claims and addresses of pages, and reasons why there is no score.
    """

    def __init__(self, tracer: Tracer, logger: Logger, *, with_texts: bool) -> None:
        self._tracer = tracer
        self._logger = logger
        self._with_texts = with_texts
        # By task and answer, while it is evaluated: questions are children of their answer's span.
        self._answers: dict[tuple[str, str], Span] = {}

    def question_asked(self, asked: AskedQuestion) -> None:
        """Add the span of a question to the judge."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        span = self._tracer.start_span(
            f"chat {asked.request.model}",
            context=self._context(asked.source),
            kind=SpanKind.CLIENT,
            attributes=_question_attributes(asked),
            start_time=asked.started_ns,
        )
        if asked.failure is not None:
            kind = type(asked.failure).__name__
            span.set_attribute("error.type", kind)
            reason = str(asked.failure) if self._with_texts else kind
            span.set_status(Status(StatusCode.ERROR, reason))
        span.end()

    def answer_begins(self, job: AnswerJob) -> None:
        """Begin the answer's span."""
        self._answers[job.task_id, job.answer.name] = self._tracer.start_span(
            "evaluate_answer", attributes=_answer_attributes(job)
        )

    def answer_ends(self, job: AnswerJob, outcome: AnswerOutcome | None) -> None:
        """End the answer's span, and add its events, unless an earlier result was taken."""
        # A span that is not ended is not exported: nothing was judged here.
        if outcome is not None and not outcome.reused:
            self._end(self._answers[job.task_id, job.answer.name], job, outcome)
        del self._answers[job.task_id, job.answer.name]

    def _end(self, span: Span, job: AnswerJob, outcome: AnswerOutcome) -> None:
        from opentelemetry.trace import Status, StatusCode

        attributes = _answer_attributes(job)
        context = self._context((job.task_id, job.answer.name))
        if outcome.result is None or outcome.score is None:
            # Reasons quote replies of judges and texts of exceptions.
            reason = (outcome.reason if self._with_texts else None) or "no result"
            failed: Attributes = {
                "error.type": "no_score",
                "gen_ai.evaluation.explanation": reason,
            }
            self._emit(ANSWER_EVALUATION, attributes | failed, context)
            span.set_status(Status(StatusCode.ERROR, reason))
        else:
            scored: Attributes = {"gen_ai.evaluation.score.value": outcome.score}
            self._emit(ANSWER_EVALUATION, attributes | scored, context)
            span.set_attribute("mind2web2.score", outcome.score)
            leaves = leaf_records(job.agent_name, job.task_id, job.answer.name, outcome.result)
            for leaf in leaves:
                about = _leaf_attributes(leaf) | self._texts(leaf)
                self._emit(leaf.leaf, attributes | about, context)
        span.end()

    def _texts(self, leaf: LeafRecord) -> Attributes:
        if not self._with_texts:
            return {}
        return _known_values({"mind2web2.claim": leaf.claim, "mind2web2.page": leaf.page})

    def _emit(self, name: str, attributes: Attributes, context: Context | None) -> None:
        self._logger.emit(
            event_name=EVENT,
            context=context,
            attributes={"gen_ai.evaluation.name": name} | attributes,
        )

    def _context(self, source: tuple[str, str]) -> Context | None:
        from opentelemetry.trace import set_span_in_context

        span = self._answers.get(source)
        return None if span is None else set_span_in_context(span)


def _answer_attributes(job: AnswerJob) -> Attributes:
    return {
        "gen_ai.agent.name": job.agent_name,
        "mind2web2.task": job.task_id,
        "mind2web2.answer": job.answer.name,
    }


def _leaf_attributes(leaf: LeafRecord) -> Attributes:
    found: dict[str, str | bool | int | float | None] = {
        "gen_ai.evaluation.score.value": float(leaf.verdict == "passed"),
        "gen_ai.evaluation.score.label": leaf.verdict,
        "gen_ai.evaluation.explanation": _explanation(leaf),
        "mind2web2.leaf": leaf.path,
        "mind2web2.critical": leaf.critical,
        "mind2web2.decided_by": leaf.decided_by,
        "mind2web2.votes_for": leaf.votes_for,
        "mind2web2.votes_against": leaf.votes_against,
        "mind2web2.quotation": leaf.quotation,
        "mind2web2.weak": leaf.weak,
        "mind2web2.judge": leaf.judge,
    }
    return _known_values(found)


def _explanation(leaf: LeafRecord) -> str:
    parts = [f"decided by {leaf.decided_by or 'nothing'}"]
    if leaf.votes_for or leaf.votes_against:
        parts.append(f"votes: {leaf.votes_for} for, {leaf.votes_against} against")
    if leaf.quotation is not None:
        parts.append(f"quotation {leaf.quotation.replace('_', ' ')}")
    return "; ".join(parts) + ("; weak" if leaf.weak else "")


def _question_attributes(asked: AskedQuestion) -> Attributes:
    request, subject, judgment = asked.request, asked.subject, asked.judgment
    provider, _, address = asked.endpoint.partition(" ")
    at = urlsplit(address)
    task_id, answer_name = asked.source
    found: dict[str, str | bool | int | float | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": request.model,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.output.type": "text" if request.template is None else "json",
        "server.address": at.hostname,
        "server.port": at.port,
        "mind2web2.task": task_id,
        "mind2web2.answer": answer_name,
        "mind2web2.purpose": subject.purpose,
        "mind2web2.node": subject.node,
        "mind2web2.trial": subject.trial,
    }
    if judgment is not None:
        found |= {
            "gen_ai.response.model": judgment.served_model,
            "gen_ai.usage.input_tokens": judgment.input_tokens,
            "gen_ai.usage.output_tokens": judgment.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": judgment.cached_tokens,
            "gen_ai.usage.cache_creation.input_tokens": judgment.cache_write_tokens,
            "mind2web2.outcome": judgment.outcome,
            "mind2web2.requests": judgment.attempts,
            "mind2web2.judgment": judgment.key,
            "mind2web2.cost_usd": judgment.cost_usd,
        }
    return _known_values(found)


def _known_values(values: Mapping[str, str | bool | int | float | None]) -> Attributes:
    return {name: value for name, value in values.items() if value is not None}
