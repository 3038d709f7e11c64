"""A judge's reply as it is stored, the key of its question, and the judge that gave it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.llm_client.chat import ChatRequest, Message, OwnPrice, Usage
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.prompts import HashedText

# The share of the list price, at OpenAI and at Azure.
FLEX_PRICE_SHARE = 0.5


class Judgment(BaseModel):
    """One judge reply with its question's context.

    Args:
        key: hash of everything that determines the reply (``judgment_key``).
        max_images: the run's ``--max_images``; ``None`` for any number.
        extra_body: the part of the run's ``--judge_extra_body`` that can change replies.
        outcome: ``reply`` (``text`` holds it), ``declined`` (``text`` gives the reason) or
            ``too_long`` (the request exceeds the judge's context). Runs read no others, which files
            of earlier versions have.
        purpose: ``verify``, ``extract``, ``script`` (a request of the script's own) or ``service``
            (the JSON reply of a map or paper service); ``gate`` in files of earlier versions.
        node: id of the leaf, or the name of the extraction.
        images: how many were shown; ``None`` in files of earlier versions.
        batch: set for replies at half the list price: of the flex tier, or of a batch job.
        cost_usd: dollars of all its requests; ``None`` in older files and for unknown prices.
        reused_from: the agent whose run asked, where another agent's run reuses the judgment.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    extra_body: str | None = None
    outcome: Literal["reply", "declined", "too_long", "fewer_images", "skipped", "asked"]
    text: str
    served_model: str | None = None
    system_fingerprint: str | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    attempts: int = 1
    images: int | None = None
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
    reused_from: str | None = None

    @property
    def tokens(self) -> Usage:
        """Return the tokens of its requests."""
        return Usage(
            self.input_tokens,
            self.cached_tokens,
            self.output_tokens,
            self.cache_write_tokens,
        )

    def usage(self, price: OwnPrice | None) -> Usage:
        """Return its usage at the time of its request, with dollars where known.

        Args:
            price: of the judge's model, for a judgment without dollars.
        """
        tokens, cost_usd = self.tokens, self.cost_usd
        if cost_usd is None:
            share = FLEX_PRICE_SHARE if self.batch else 1.0
            cost_usd = total_price_usd([tokens], self.model, share=share, own=price)
        return replace(tokens, judgments=1, requests=self.attempts, cost_usd=cost_usd)


def judgment_key(request: ChatRequest, trial: int) -> str:
    """Return the hash of model, parameters, messages, schema and trial, which determine a reply."""
    asked = {
        "model": request.model,
        "temperature": request.temperature,
        "reasoning_effort": request.reasoning_effort,
        "extra": dict(request.extra),
        "messages": list(map(_message_hashes, request.messages)),
        "schema": None if request.template is None else _schema(request.template),
        "trial": trial,
    }
    canonical = json.dumps(asked, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


@lru_cache(maxsize=512)
def _schema(template: type[BaseModel]) -> str:
    return json.dumps(template.model_json_schema(), sort_keys=True)


def _message_hashes(message: Message) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {**message, "content": list(map(_hashes, content or ()))}


def _hashes(value: Any) -> Any:
    """Return a value with the hash of each text in its place."""
    if isinstance(value, HashedText):
        return value.sha256
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()
    if isinstance(value, Mapping):
        return {name: _hashes(each) for name, each in value.items()}
    return value


def problem_of(error: ValidationError) -> str:
    """Return the first problem of an invalid judgment."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'line'}: {first['msg']}"
