"""A receiver of OpenTelemetry's protocol, OTLP over HTTP with protobuf bodies.

with OtlpReceiver() as receiver:
    ... receiver.url ... receiver.spans
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from servers.local_http import Answer, LocalHttp, Request


@dataclass(frozen=True)
class Received:
    """A span.

    Args:
        parent: the id of the span that it belongs to.
        events: the name and the attributes of each.
    """

    name: str
    attributes: Mapping[str, Any]
    service: str
    trace: str
    span: str
    parent: str
    is_error: bool
    events: tuple[tuple[str, Mapping[str, Any]], ...]


class OtlpReceiver(LocalHttp):
    """Keeps the spans that are sent to it, in their order."""

    def __init__(self) -> None:
        super().__init__(self._received)
        self.spans: list[Received] = []

    def _received(self, request: Request) -> Answer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["content-type"] == "application/x-protobuf"
        body = request.body
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        assert request.path == "/v1/traces"
        self._add_spans(ExportTraceServiceRequest.FromString(body))
        headers = {"Content-Type": "application/x-protobuf"}
        return Answer(ExportTraceServiceResponse().SerializeToString(), headers=headers)

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
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    tuple((one.name, _attributes(one.attributes)) for one in span.events),
                )
                self.spans.append(received)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
