"""The forms of requests that a model accepts, learned from what its server refuses."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import partial
from typing import cast

from mind2web2.llm_client.chat import ChatRequest, CheckedMessage
from mind2web2.llm_client.failures import BODY_TOO_LARGE, RequestFailedError
from mind2web2.llm_client.messages import (
    image_urls,
    in_turns,
    with_content_as_text,
    with_fewer_images,
    with_text_at_end,
)
from mind2web2.llm_client.structured_output import TemplateSchema, schema_text
from mind2web2.llm_client.transport import (
    OutputMode,
    WireRequest,
)

log = logging.getLogger(__name__)

# o1, o3, o4-mini, gpt-5 and later; gpt-5-chat is an ordinary model, and gpt-35 is Azure's name for
# 3.5.
_REASONING = re.compile(r"(?:o\d+|gpt-[5-9](?!\d)(?!\S*-chat))(?![a-z0-9])")

# Words of refusals, for each output mode.
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

# A number on its own, not one in a name, a path or an index.
_NUMBER = re.compile(r"(?<![\w.\-\[])\d+(?![\w\-\]]|\.\d)")
_STRINGS = "content as a list"
_TURNS = "system role"

# The schema is part of the messages, as no parameter holds it.
_NO_PARAMETER = (OutputMode.JSON, OutputMode.PLAIN)

# Words of refusals that concern one schema only.
_ONE_SCHEMA_WORDS = ("invalid schema", "schema contains", "grammar")


def is_reasoning_model(model: str) -> bool:
    """Tell whether this is a model that takes no temperature."""
    return _REASONING.match(model.lower().rsplit("/", 1)[-1]) is not None


class Capabilities:
    """Chooses the form of each request by the refusals of earlier ones.

    Args:
        modes: the provider's ways to fill a template, the best first.
    """

    def __init__(self, modes: Sequence[OutputMode]) -> None:
        self._modes = modes
        self._most_images: dict[str, int] = {}
        self._refused: set[tuple[str, str]] = set()
        # The models that read a template's schema in the text of a request.
        self._read_schemas: set[str] = set()

    def wire(
        self,
        request: ChatRequest,
        messages: Sequence[CheckedMessage],
        schema: TemplateSchema | None,
    ) -> WireRequest:
        """Return the request in the best form that was not refused before."""
        temperature = 0.0 if request.temperature is None else request.temperature
        model = request.model
        if model in self._most_images:
            shown = with_fewer_images(messages, self._most_images[model])
            messages = cast("list[CheckedMessage]", shown)
        if not self._takes(model, _STRINGS):
            messages = with_content_as_text(messages)
        if not self._takes(model, _TURNS):
            messages = in_turns(messages)
        mode = self._mode(model, schema)
        if schema is not None and (mode in _NO_PARAMETER or model in self._read_schemas):
            messages = with_text_at_end(messages, schema_text(schema))
        takes_temperature = not is_reasoning_model(model) and self._takes(model, "temperature")
        return WireRequest(
            model=model,
            messages=messages,
            mode=mode,
            schema=schema,
            temperature=temperature if takes_temperature else None,
            reasoning_effort=request.reasoning_effort,
            marks_cache=self._takes(model, "cache_control"),
            extra=request.extra,
            name=request.name,
        )

    def show_schema(self, model: str) -> None:
        """Show schemas to a model from now on, whose reply did not fit one."""
        self._read_schemas.add(model)

    def learn(self, wire: WireRequest, failure: RequestFailedError) -> bool:
        """Remember the reason of a refusal; return whether another form of the request remains."""
        if failure.wants_strings:
            self._refused.add((wire.model, _STRINGS))
        if self._learn_images(wire, failure):
            return True
        refused = None
        if failure.is_too_long:
            return False
        if failure.wants_turns and in_turns(wire.messages) != wire.messages:
            refused = _TURNS
        elif failure.is_refused_request:
            refused = self._feature_to_blame(wire, failure)
        if refused is None:
            return False
        if (wire.model, refused) not in self._refused:
            name = refused.partition(" ")[0]
            log.warning(
                "judge refuses a parameter, left out from now on model=%s parameter=%s",
                wire.model,
                name,
            )
        self._refused.add((wire.model, refused))
        return True

    def _learn_images(self, wire: WireRequest, failure: RequestFailedError) -> bool:
        """Remember how many images a refusal allows; return whether fewer remain to be tried."""
        count = len(image_urls(wire.messages))
        most = _most_images(failure, count) if count else None
        if most is None:
            return False
        # A request that was in flight when the limit became known tells nothing about fewer images.
        if count <= self._most_images.get(wire.model, count):
            self._most_images[wire.model] = most
            log.warning(
                "judge refuses images, fewer are shown from now on model=%s at_most=%d reason=%s",
                wire.model,
                most,
                failure,
            )
        return True

    def _takes(self, model: str, feature: str) -> bool:
        return (model, feature) not in self._refused

    def _mode(self, model: str, schema: TemplateSchema | None) -> OutputMode:
        if schema is None:
            return OutputMode.PLAIN
        return next(filter(partial(self._can_fill, model, schema), self._modes))

    def _can_fill(self, model: str, schema: TemplateSchema, mode: OutputMode) -> bool:
        if mode is OutputMode.PLAIN:
            return True
        if not schema.is_object or (mode is OutputMode.STRICT_SCHEMA and schema.strict is None):
            return False
        return self._takes(model, mode.value) and self._takes(model, _one_schema(mode, schema))

    def _feature_to_blame(self, wire: WireRequest, failure: RequestFailedError) -> str | None:
        """Return the feature in the request that the refusal names and that can be left out."""
        if wire.temperature is not None and "temperature" in failure.words:
            # a value out of range is the user's error
            return "temperature" if 0 <= wire.temperature <= 1 else None
        if wire.marks_cache and "cache_control" in failure.words:
            return "cache_control"
        if failure.wants_strings and any(
            not isinstance(message["content"], str) for message in wire.messages
        ):
            return _STRINGS
        if wire.schema is None or not any(word in failure.words for word in _MODE_WORDS[wire.mode]):
            return None
        is_this_schema_only = any(word in failure.words for word in _ONE_SCHEMA_WORDS)
        return _one_schema(wire.mode, wire.schema) if is_this_schema_only else wire.mode.value


def _most_images(failure: RequestFailedError, count: int) -> int | None:
    """Return how many of the images that were sent a refusal allows.

    ``None`` if it is not about images.
    """
    if failure.image_fault == "too many":
        return _fewer(failure, count)
    return 0 if failure.image_fault or failure.wants_strings else None


def _fewer(failure: RequestFailedError, count: int) -> int:
    """Return the number of images that a refusal allows, or half of those sent."""
    if count > 1 and re.search(r"\b(?:one|single) image", failure.words):
        return 1
    # The largest: "too many images and documents: 120 + 0 > 100". A size in bytes is not a number
    # of images.
    named = [] if failure.status == BODY_TOO_LARGE else map(int, _NUMBER.findall(failure.words))
    return max((number for number in named if number < count), default=count // 2)


def _one_schema(mode: OutputMode, schema: TemplateSchema) -> str:
    return f"{mode.value} {schema.text}"
