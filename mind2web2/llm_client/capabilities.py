"""What a model and its server take: known by name, or learned from a refusal and remembered."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence

from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.transport import OutputMode, TemplateSchema, WireRequest

log = logging.getLogger(__name__)

# o1, o3, o4-mini, gpt-5 and later; gpt-5-chat is an ordinary model, and gpt-35 is Azure's name of 3.5.
_REASONING = re.compile(r"(?:o\d+|gpt-[5-9](?!\d)(?!\S*-chat))(?![a-z0-9])")

# How servers name what they refuse, for each output mode.
_MODE_WORDS = {
    OutputMode.STRICT_SCHEMA: (
        "response_format",
        "json_schema",
        "json schema",
        "structured output",
        "grammar",
    ),
    OutputMode.TOOL: ("tool",),
    OutputMode.JSON: ("response_format", "json_object", "json mode", "json object"),
    OutputMode.PLAIN: (),
}

# The server has the mode, but cannot take this one schema.
_ONE_SCHEMA_WORDS = ("invalid schema", "schema contains", "grammar")


def is_reasoning_model(model: str) -> bool:
    """Tell whether the name is one of a model that takes no temperature."""
    return _REASONING.match(model.lower().rsplit("/", 1)[-1]) is not None


class Capabilities:
    """Decides what each request may contain, from what earlier ones were refused for.

    Args:
        modes: the provider's ways to fill a template, the best first.
    """

    def __init__(self, modes: Sequence[OutputMode]) -> None:
        self._modes = modes
        self._refused: set[tuple[str, str]] = set()

    def wire(
        self, request: ChatRequest, messages: Sequence[dict[str, object]], schema: TemplateSchema | None
    ) -> WireRequest:
        """Return the request in the best form that is not known to be refused."""
        temperature = 0.0 if request.temperature is None else request.temperature
        model = request.model
        takes_temperature = not is_reasoning_model(model) and self._takes(model, "temperature")
        return WireRequest(
            model=model,
            messages=messages,
            mode=self._mode(model, schema),
            schema=schema,
            temperature=temperature if takes_temperature else None,
            reasoning_effort=request.reasoning_effort,
            marks_cache=self._takes(model, "cache_control"),
            extra=request.extra,
            name=request.name,
        )

    def learn(self, wire: WireRequest, failure: RequestFailedError) -> bool:
        """Remember what the refusal is about; return whether the request can be put otherwise."""
        refused = self._blamed(wire, failure) if failure.is_refused_request else None
        if refused is None:
            return False
        if (wire.model, refused) not in self._refused:
            name = refused.partition(" ")[0]
            log.warning(
                "judge refuses a parameter, left out from now on model=%s parameter=%s", wire.model, name
            )
        self._refused.add((wire.model, refused))
        return True

    def _takes(self, model: str, feature: str) -> bool:
        return (model, feature) not in self._refused

    def _mode(self, model: str, schema: TemplateSchema | None) -> OutputMode:
        if schema is None:
            return OutputMode.PLAIN
        return next(mode for mode in self._modes if self._can_fill(model, mode, schema))

    def _can_fill(self, model: str, mode: OutputMode, schema: TemplateSchema) -> bool:
        if mode is OutputMode.PLAIN:
            return True
        if not schema.is_object or (mode is OutputMode.STRICT_SCHEMA and schema.strict is None):
            return False
        if not self._refused:
            return True  # the usual case, for which naming the schema would cost too much
        return self._takes(model, mode.value) and self._takes(model, _one_schema(mode, schema))

    def _blamed(self, wire: WireRequest, failure: RequestFailedError) -> str | None:
        """Find what the refusal names among what was sent and can be left out."""
        if wire.temperature is not None and "temperature" in failure.words:
            # a value that no provider takes is the user's to correct; the parameter itself is not
            return "temperature" if 0 <= wire.temperature <= 1 else None
        if wire.marks_cache and "cache_control" in failure.words:
            return "cache_control"
        if wire.schema is None or not any(word in failure.words for word in _MODE_WORDS[wire.mode]):
            return None
        is_this_schema_only = any(word in failure.words for word in _ONE_SCHEMA_WORDS)
        return _one_schema(wire.mode, wire.schema) if is_this_schema_only else wire.mode.value


def _one_schema(mode: OutputMode, schema: TemplateSchema) -> str:
    return f"{mode.value} {json.dumps(schema.full, sort_keys=True)}"
