"""A script's request to a map or paper service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mind2web2.llm_client.chat import Parameters


@dataclass(frozen=True)
class ServiceRequest:
    """One request to a service; arguments and reply are JSON."""

    service: Literal["google_maps", "arxiv"]
    name: Literal["geocode", "distance_matrix", "by_id", "by_title"]
    arguments: Sequence[Any]
    keywords: Parameters = field(default_factory=dict)

    def in_words(self) -> str:
        """Return the request for readers."""
        given = [
            *map(repr, self.arguments),
            *(f"{name}={value!r}" for name, value in self.keywords.items()),
        ]
        return f"{self.service} {self.name}({', '.join(given)})"


AskService = Callable[[], Awaitable[Any]]
# Answers a request, from the store or by the service.
AnswerRequest = Callable[[ServiceRequest, AskService], Awaitable[Any]]
