"""One judge reply with what a reader wants to know about it, and the key that it is kept under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.llm_client.chat import ChatRequest, Message
from mind2web2.prompts import HashedText


class Judgment(BaseModel):
    """One judge reply with what a reader wants to know about it.

    Args:
        key: hash of everything that determines the reply (``judgment_key``).
        endpoint: which server answered.
        temperature: as asked for; ``None`` is the default rule of the client.
        max_images: shown with one question at most, as the run's user has set it; ``None`` for any number.
        outcome: ``reply`` (``text`` holds it), ``declined`` (``text`` says why), ``too_long`` (the request
            did not fit the judge's context), ``fewer_images`` (``text`` holds the judge's ``ImageLimit``); of
            a gate ``skipped`` (``text`` says why) or ``asked``.
        purpose: ``verify``, ``extract``, ``script`` (a request of the script's own) , ``gate`` (whether a
            verification beside others was skipped, which depends on what was decided by then) or ``service``
            (what a map or paper service answered a script, as JSON).
        node: id of the leaf, or the name of the extraction.
        batch: set where it came in a batch job, at a lower price.
        cost_usd: the dollars of all its requests, each at its own price; ``None`` in older files, where the
            price is that of the tokens, and for a model whose price is not known.
        seconds: from the first request to the reply, retries included.
        created: UTC, ISO 8601.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    outcome: Literal["reply", "declined", "too_long", "fewer_images", "skipped", "asked"]
    text: str
    served_model: str | None = None
    system_fingerprint: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    attempts: int = 1
    batch: bool | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    created: str
    task_id: str | None = None
    answer_name: str | None = None
    purpose: str
    node: str | None = None
    claim: str | None = None
    page: str | None = None
    trial: int = 1


class JudgeIdentity(BaseModel):
    """A model with the parameters that it was asked with, and the server that answered."""

    model_config = ConfigDict(frozen=True)

    model: str
    endpoint: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None

    def in_words(self) -> list[str]:
        """Return the model, the parameters that are set as ``name=value``, and the server."""
        parameters = self.model_dump(exclude={"model", "endpoint"}, exclude_none=True)
        return [self.model, *(f"{name}={value}" for name, value in parameters.items()), f"at {self.endpoint}"]


class JudgmentSource(BaseModel):
    """The file of judgments that a replay answers from.

    Args:
        path: relative to the working directory where the file lies below it.
        sha256: of an exported file's bytes; ``None`` for a store, whose bytes change without its judgments.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    sha256: str | None = None


def judgment_key(request: ChatRequest, trial: int) -> str:
    """Return the hash of all that determines a reply: model, parameters, messages, schema, trial.

    Texts and images enter by their own hashes, which long ones keep (``HashedText``).
    """
    asked = {
        "model": request.model,
        "temperature": request.temperature,
        "reasoning_effort": request.reasoning_effort,
        "extra": dict(request.extra),
        "messages": [_message_hashes(message) for message in request.messages],
        "schema": None if request.template is None else _schema(request.template),
        "trial": trial,
    }
    canonical = json.dumps(asked, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def gate_key(
    judge: tuple[object, ...],
    task_id: str,
    answer_name: str,
    node: str | None,
    claim: str | None,
    ordinal: int,
) -> str:
    """Return the hash that tells one verification of an answer from all others.

    Args:
        judge: model and settings; what one judge skips, another may be asked.
    """
    named = json.dumps(["gate", *judge, task_id, answer_name, node, claim, ordinal])
    return hashlib.sha256(named.encode()).hexdigest()


@lru_cache(maxsize=512)
def _schema(template: type[BaseModel]) -> str:
    return json.dumps(template.model_json_schema(), sort_keys=True)


def _message_hashes(message: Message) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {**message, "content": [_part_hashes(part) for part in content or ()]}


def _part_hashes(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value_hashes(value) for name, value in part.items()}


def _value_hashes(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _part_hashes(value)
    if isinstance(value, str):
        return (value if isinstance(value, HashedText) else HashedText(value)).sha256
    return value


def problem_of(error: ValidationError) -> str:
    """Return the first thing that is wrong with what should have been a judgment."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'line'}: {first['msg']}"
