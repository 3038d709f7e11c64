"""Decision models over HTTP: a request has a text and many questions about it, each answer is a probability.

Two protocols: OpenAI's Decisions, and ``/systemone``, which several vendors and local servers speak.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from mind2web2.llm_client.chat import ImagePart, Parameters, TextPart, Usage
from mind2web2.llm_client.failures import (
    allowances_in,
    one_line,
    reply_without_secrets,
    start_of,
)
from mind2web2.llm_client.openai_protocol import OpenAITransport, openai_connection
from mind2web2.llm_client.settings import OPENAI_DECISIONS
from mind2web2.llm_client.structured_output import InvalidOutputError, unambiguous_json
from mind2web2.llm_client.transport import Completion, ReplyPart, TokenCount
from mind2web2.utils.json_fields import JsonObject


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What one HTTP request asks.

    Args:
        rules: how the questions are to be answered.
        state: what they are about.
        questions: each is answered by yes or no.
        extra: parameters that go to the provider as they are.
    """

    model: str
    rules: str
    state: Sequence[TextPart | ImagePart]
    questions: Sequence[str]
    extra: Parameters

    def named_questions(self) -> dict[str, str]:
        """Return the questions by the names that they are sent with."""
        return {
            f"question_{number}": question
            for number, question in enumerate(self.questions, start=1)
        }


class _CachedTokens(ReplyPart):
    cached_tokens: TokenCount | None = None
    cache_write_tokens: TokenCount | None = None


class _Usage(ReplyPart):
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    input_tokens_details: _CachedTokens | None = None

    def counted(self) -> Usage:
        """Return the numbers, zero where the server reports none."""
        details = self.input_tokens_details or _CachedTokens()
        return Usage(
            self.input_tokens or 0,
            details.cached_tokens or 0,
            self.output_tokens or 0,
            details.cache_write_tokens or 0,
        )


# No text and no boolean passes for a number.
_Probability = Annotated[float, Field(ge=0, le=1, strict=True)]


class _Predicate(ReplyPart):
    type: Literal["predicate"]
    name: str | None = None
    probability: _Probability


class _Refusal(ReplyPart):
    type: Literal["refusal"]
    name: str | None = None


class _OpenAIBody(ReplyPart):
    answers: list[Annotated[_Predicate | _Refusal, Field(discriminator="type")]]
    model: str | None = None
    usage: _Usage | None = None


class _Noul(ReplyPart):
    type: Literal["noul"] = "noul"
    noul: _Probability


class _SystemOneBody(ReplyPart):
    answers: dict[str, _Noul | None]
    model: str | None = None
    usage: _Usage | None = None


class _UsageAlone(ReplyPart):
    usage: _Usage | None = None


class DecisionTransport(OpenAITransport):
    """Sends questions to a decision model, and reads their probabilities.

    Args:
        provider: one of ``DECISION_PROVIDERS``.
        base_url: default: from the provider's environment variable.

    Raises:
        UsageError: the key is missing, or the address is invalid.

    Attributes:
        most_questions: that one request may have.
    """

    def __init__(self, provider: str, base_url: str | None = None) -> None:
        super().__init__(openai_connection(base_url, provider=provider))
        is_openai = provider == OPENAI_DECISIONS
        self._path = "/decisions" if is_openai else "/systemone"
        self._body: _Body = _openai_body if is_openai else _system_one_body
        self._read: _Read = _answers_of_openai if is_openai else _answers_of_system_one
        # OpenAI's limit; servers of the other protocol have their own, most of them higher than this.
        self.most_questions = 400 if is_openai else 64

    async def decide(self, request: DecisionRequest) -> Completion:
        """Make one HTTP request; the text of its completion is the reply's body, to be read by ``answers``.

        Raises:
            RequestFailedError: there is no reply.
        """
        # Images make megabytes of it.
        encoded = await asyncio.to_thread(json.dumps, self._body(request))
        reply = await self._pools.here().post_json(self._path, encoded.encode())
        content = reply_without_secrets(reply.content, self.service.secrets)
        return replace(_unread(content), allowances=allowances_in(reply.headers))

    def answers(
        self, request: DecisionRequest, completion: Completion
    ) -> tuple[list[float | None], str | None]:
        """Return the probability of each question, and the model that the server names.

        A question that the model refused or did not answer has ``None``.

        Raises:
            InvalidOutputError: the reply is none to this request.
        """
        try:
            by_name, served = self._read(completion.text, request)
            # Of two numbers for one question, neither decides.
            unambiguous_json(completion.text)
        except ValidationError as error:
            # What is wrong comes first: a long text is cut where it is shown.
            problem = one_line(_first_problem(error), self.service.secrets)
            start = start_of(completion.text, self.service.secrets)[:80]
            raise InvalidOutputError(
                f"{problem}; the reply begins with {start!r}"
            ) from None
        names = request.named_questions()
        if unknown := by_name.keys() - names.keys():
            raise InvalidOutputError(
                f"an answer to {sorted(unknown)[0]!r}, which was not asked"
            )
        return [by_name.get(name) for name in names], served


_Body = Callable[[DecisionRequest], JsonObject]
_Read = Callable[[str, DecisionRequest], tuple[Mapping[str, float | None], str | None]]


def _first_problem(error: ValidationError) -> str:
    """Return the first problem of a reply: where it is, what is expected and what is there."""
    first, *others = error.errors(include_url=False)
    place = ".".join(map(str, first["loc"])) or "reply"
    more = f" (and {len(others)} more)" if others else ""
    if not first["loc"] or isinstance(first["input"], dict | list):
        return f"{place}: {first['msg']}{more}"
    return f"{place}: {first['msg']}, not {repr(first['input'])[:40]}{more}"


def _unread(content: bytes) -> Completion:
    text = content.decode(errors="replace")
    try:
        usage = _UsageAlone.model_validate_json(content).usage
    except ValidationError:
        usage = None
    return Completion(text=text, usage=usage.counted() if usage else Usage())


def _openai_body(request: DecisionRequest) -> JsonObject:
    questions = [
        {"type": "predicate", "name": name, "instructions": question}
        for name, question in request.named_questions().items()
    ]
    state = [_input_part(part) for part in request.state]
    return {
        **request.extra,
        "model": request.model,
        "input": [
            {"role": "developer", "content": request.rules},
            {"role": "user", "content": state},
        ],
        "questions": questions,
    }


def _input_part(part: TextPart | ImagePart) -> JsonObject:
    if part["type"] == "text":
        return {"type": "input_text", "text": str(part["text"])}
    image = part["image_url"]
    detail = image.get("detail", "auto")
    return {"type": "input_image", "image_url": str(image["url"]), "detail": detail}


def _answers_of_openai(
    text: str, request: DecisionRequest
) -> tuple[Mapping[str, float | None], str | None]:
    body = _OpenAIBody.model_validate_json(text)
    names = list(request.named_questions())
    # Answers come in the order of the questions; a server may leave the names out.
    if all(answer.name is None for answer in body.answers):
        if len(body.answers) != len(names):
            raise InvalidOutputError(
                f"{len(body.answers)} answers without names to {len(names)} questions"
            )
        return dict(zip(names, map(_probability, body.answers), strict=True)), (
            body.model
        )
    by_name = {str(answer.name): _probability(answer) for answer in body.answers}
    if len(by_name) < len(body.answers):
        raise InvalidOutputError("two answers to one question")
    return by_name, body.model


def _probability(answer: _Predicate | _Refusal) -> float | None:
    return answer.probability if isinstance(answer, _Predicate) else None


def _system_one_body(request: DecisionRequest) -> JsonObject:
    # Text alone: the protocol has no images.
    texts = [str(part["text"]) for part in request.state if part["type"] == "text"]
    questions = {
        name: {"type": "noul", "instructions": question}
        for name, question in request.named_questions().items()
    }
    return {
        **request.extra,
        "model": request.model,
        "state": "\n".join([request.rules, *texts]),
        "questions": questions,
    }


def _answers_of_system_one(
    text: str,
    request: DecisionRequest,  # noqa: ARG001 (as ``_answers_of_openai``)
) -> tuple[Mapping[str, float | None], str | None]:
    body = _SystemOneBody.model_validate_json(text)
    answers = {
        name: None if answer is None else answer.noul
        for name, answer in body.answers.items()
    }
    return answers, body.model
