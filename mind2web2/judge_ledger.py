"""What the questions of one answer came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mind2web2.api_tools.service_requests import ServiceAnswer
from mind2web2.llm_client.chat import TokenUsage


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question whose content the judge declined twice (contract.md, "Failures are never verdicts")."""

    node: str | None
    page: str | None
    reason: str


@dataclass(slots=True)
class JudgeLedger:
    """What the questions of one answer came to.

    Args:
        requests: HTTP requests, retries, repairs and second questions included.
        served: how many judgments came from which model and backend, as reported.
        first_created: when the earliest judgment was made, UTC, ISO 8601; ``last_created`` the latest.
        doubts: what might have come out otherwise on another machine or day; such a result is not reused.
        refused_downloads: by the script itself, from private addresses that it may not visit.
        ignored_arguments: names of arguments in the script that have no effect.
        services: what map and paper services answered it.
    """

    judgments: int = 0
    requests: int = 0
    served: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    first_created: str | None = None
    last_created: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float | None = 0.0
    rejections: list[Rejection] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    refused_downloads: list[str] = field(default_factory=list)
    ignored_arguments: list[str] = field(default_factory=list)
    services: list[ServiceAnswer] = field(default_factory=list)

    def note_created(self, moment: str | None) -> None:
        """Note when a judgment was made."""
        if moment is not None:
            self.first_created = min(self.first_created or moment, moment)
            self.last_created = max(self.last_created or moment, moment)
