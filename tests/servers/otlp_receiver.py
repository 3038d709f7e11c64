"""A receiver of OpenTelemetry's protocol, OTLP over HTTP with protobuf bodies.

with OtlpReceiver() as receiver:
    ... receiver.url ... receiver.spans ... receiver.events
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from servers.local_http import Answer, LocalHttp, Request


@dataclass(frozen=True)
class Received:
    """A span or an event.

    Args:
        parent: the id of the span that it belongs to.
        seconds: of a span.
    """

    name: str
    attributes: Mapping[str, Any]
    service: str
    trace: str
    span: str
    parent: str = ""
    seconds: float = 0.0
    error: str = ""


class OtlpReceiver(LocalHttp):
    """Keeps the spans and events that are sent to it, in their order."""

    def __init__(self) -> None:
        super().__init__(self._received)
        self.spans: list[Received] = []
        self.events: list[Received] = []

    def _received(self, request: Request) -> Answer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["content-type"] == "application/x-protobuf"
        body = request.body
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if request.path == "/v1/traces":
            self._add_spans(ExportTraceServiceRequest.FromString(body))
            return _accepted(ExportTraceServiceResponse())
        assert request.path == "/v1/logs"
        self._add_events(ExportLogsServiceRequest.FromString(body))
        return _accepted(ExportLogsServiceResponse())

    def _add_spans(self, sent: ExportTraceServiceRequest) -> None:
        for resource in sent.resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            for span in [one for scope in resource.scope_spans for one in scope.spans]:
                received = Received(
                    span.name,
                    _attributes(span.attributes),
                    service,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    span.status.message,
                )
                self.spans.append(received)

    def _add_events(self, sent: ExportLogsServiceRequest) -> None:
        for resource in sent.resource_logs:
            service = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    received = Received(
                        record.event_name,
                        _attributes(record.attributes),
                        service,
                        record.trace_id.hex(),
                        "",
                        record.span_id.hex(),
                    )
                    self.events.append(received)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def _accepted(message: Any) -> Answer:
    headers = {"Content-Type": "application/x-protobuf"}
    return Answer(message.SerializeToString(), headers=headers)
