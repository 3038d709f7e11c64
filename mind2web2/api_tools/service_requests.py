"""Requests of scripts to map and paper services, and who answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class ServiceRequest:
    """One question to a service; arguments and answer are JSON."""

    service: Literal["google_maps", "arxiv"]
    name: Literal["geocode", "distance_matrix", "by_id", "by_title"]
    arguments: Sequence[Any]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def in_words(self) -> str:
        """Return the request for readers."""
        given = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.keywords.items())]
        return f"{self.service} {self.name}({', '.join(given)})"


AskService = Callable[[], Awaitable[Any]]
# Answers a request, perhaps by asking the service.
AnswerRequest = Callable[[ServiceRequest, AskService], Awaitable[Any]]

# Tools are made by scripts, which cannot hand over what they do not know.
_answering: ContextVar[AnswerRequest | None] = ContextVar("who answers requests to services", default=None)


@contextmanager
def services_answered_by(answer: AnswerRequest) -> Iterator[None]:
    """Let requests in this block, and in tasks started in it, be answered by this function."""
    token = _answering.set(answer)
    try:
        yield
    finally:
        _answering.reset(token)


async def service_answer(request: ServiceRequest, ask: AskService) -> Any:
    """Return the answer to a request; outside of an evaluation, the service is asked."""
    answer = _answering.get()
    return await (ask() if answer is None else answer(request, ask))


class ServiceAnswer(BaseModel):
    """What a map or paper service answered a script.

    Args:
        request: service, kind of request and its arguments, for readers.
        key: under which the answer is stored.
        sha256: of the answer.
    """

    model_config = ConfigDict(frozen=True)

    request: str
    key: str
    sha256: str
