"""OpenTelemetry: a span for each answer with an event for each leaf, and one for each question.

The extra ``otel`` has the packages. Texts of answers, claims and pages are not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mind2web2 import __version__
from mind2web2.plugin import (
    Listener,
    UsageError,
    leaf_records,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from mind2web2.plugin import AnswerJob, AnswerOutcome, AskedQuestion

Attributes = Mapping[str, str | bool | int | float | None]
EVENT = "gen_ai.evaluation.result"
# Names that the conventions have for our providers.
_PROVIDERS = {
    "azure_openai": "azure.ai.openai",
    "bedrock_anthropic": "aws.bedrock",
    "gemini": "gcp.gemini",
}


@asynccontextmanager
async def exporter() -> AsyncIterator[Telemetry]:
    """Export spans by OTLP over HTTP to the address that the environment names.

    Raises:
        UsageError: the packages of the extra ``otel`` are missing.
    """
    with UsageError.naming_extra("telemetry (unless OTEL_SDK_DISABLED=true)", "otel"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": "mind2web2", "service.version": __version__})
    # Our own, rather than the process's: a program that calls this one may have set up its own.
    traces = TracerProvider(resource=resource, shutdown_on_exit=False)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield Telemetry(traces.get_tracer("mind2web2", __version__))
    finally:
        # It sends what is left, which takes as long as the receiver does.
        await asyncio.to_thread(traces.shutdown)


class Telemetry(Listener):
    """Makes the spans of a run."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        # By task and answer, while it is evaluated: questions are children of their answer's span.
        self._answers: dict[tuple[str, str], Span] = {}

    def question_asked(self, asked: AskedQuestion) -> None:
        """Add the span of a question to the judge."""
        from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

        answer = self._answers.get(asked.source)
        span = self._tracer.start_span(
            f"chat {asked.request.model}",
            context=None if answer is None else set_span_in_context(answer),
            kind=SpanKind.CLIENT,
            attributes=_known(_question_attributes(asked)),
            start_time=asked.started_ns,
        )
        if asked.failure is not None:
            span.set_attribute("error.type", type(asked.failure).__name__)
            span.set_status(StatusCode.ERROR)
        span.end()

    def answer_begins(self, job: AnswerJob) -> None:
        """Begin the answer's span."""
        attributes = {
            "gen_ai.agent.name": job.agent_name,
            "mind2web2.task": job.task_id,
            "mind2web2.answer": job.answer.name,
        }
        span = self._tracer.start_span("evaluate_answer", attributes=attributes)
        self._answers[job.task_id, job.answer.name] = span

    def answer_ends(self, job: AnswerJob, outcome: AnswerOutcome | None) -> None:
        """End the answer's span with its score and leaves, unless an earlier result was taken."""
        span = self._answers.pop((job.task_id, job.answer.name))
        # A span that is not ended is not exported: nothing was judged here.
        if outcome is None or outcome.reused:
            return
        if outcome.result is None or outcome.score is None:
            from opentelemetry.trace import StatusCode

            span.set_attribute("error.type", "no_score")
            span.set_status(StatusCode.ERROR)
        else:
            span.set_attribute("mind2web2.score", outcome.score)
            leaves = leaf_records(job.agent_name, job.task_id, job.answer.name, outcome.result)
            for leaf in leaves:
                attributes: Attributes = {
                    "gen_ai.evaluation.name": leaf.leaf,
                    "gen_ai.evaluation.score.value": float(leaf.verdict == "passed"),
                    "gen_ai.evaluation.score.label": leaf.verdict,
                    "mind2web2.leaf": leaf.path,
                    "mind2web2.critical": leaf.critical,
                    "mind2web2.decided_by": leaf.decided_by,
                    "mind2web2.votes_for": leaf.votes_for,
                    "mind2web2.votes_against": leaf.votes_against,
                    "mind2web2.weak": leaf.weak,
                }
                span.add_event(EVENT, _known(attributes))
        span.end()


def _question_attributes(asked: AskedQuestion) -> Attributes:
    subject, judgment = asked.subject, asked.judgment
    provider, _, address = asked.endpoint.partition(" ")
    task_id, answer_name = asked.source
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": asked.request.model,
        "server.address": urlsplit(address).hostname,
        "mind2web2.task": task_id,
        "mind2web2.answer": answer_name,
        "mind2web2.purpose": subject.purpose,
        "mind2web2.node": subject.node,
        "mind2web2.trial": subject.trial,
    }
    if judgment is None:
        return attributes
    return {
        **attributes,
        "gen_ai.response.model": judgment.served_model,
        "gen_ai.usage.input_tokens": judgment.input_tokens,
        "gen_ai.usage.output_tokens": judgment.output_tokens,
        "mind2web2.judgment": judgment.key,
        "mind2web2.cost_usd": judgment.cost_usd,
    }


def _known(values: Attributes) -> dict[str, str | bool | int | float]:
    return {name: value for name, value in values.items() if value is not None}
