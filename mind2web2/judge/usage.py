"""What the questions of one answer came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mind2web2.judge.records import Judgment
from mind2web2.judge.services import ServiceAnswer
from mind2web2.llm_client.chat import TokenUsage
from mind2web2.llm_client.prices import total_price_usd


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question whose content the judge declined twice (scoring.md, "Verdicts")."""

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


@dataclass(slots=True)
class Usage:
    """What some judgments have taken.

    Args:
        requests: HTTP requests sent, retries and repairs included.
        cost_usd: ``None`` where the price of one is not known.
        untold_requests: those of the requests that may be billed although the server told no tokens: given
            up while it thought, or too slow.
    """

    judgments: int = 0
    requests: int = 0
    tokens: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float | None = 0.0
    untold_requests: int = 0

    def add(
        self,
        tokens: TokenUsage,
        requests: int,
        cost_usd: float | None,
        judgments: int = 1,
        untold_requests: int = 0,
    ) -> None:
        """Count more judgments."""
        self.judgments += judgments
        self.requests += requests
        self.tokens += tokens
        self.cost_usd = sum_usd(self.cost_usd, cost_usd)
        self.untold_requests += untold_requests

    def as_json(self) -> dict[str, Any]:
        """Return what a file says of it."""
        return {
            "judgments": self.judgments,
            "requests": self.requests,
            "untold_requests": self.untold_requests,
            "input_tokens": self.tokens.input_tokens,
            "cached_tokens": self.tokens.cached_tokens,
            "output_tokens": self.tokens.output_tokens,
            "cost_usd": None if self.cost_usd is None else round(self.cost_usd, 6),
        }


@dataclass(slots=True)
class TaskUsage:
    """What the judgments about one task's answers have taken, or about several tasks'.

    Args:
        asked: in this run.
        reused: when they were asked, in an earlier run or earlier in this one; nothing was paid again.
    """

    asked: Usage = field(default_factory=Usage)
    reused: Usage = field(default_factory=Usage)

    def as_json(self) -> dict[str, Any]:
        """Return what a file says of it."""
        return {"asked": self.asked.as_json(), "reused": self.reused.as_json()}


class RunUsage:
    """What a run has asked and reused, by task."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskUsage] = {}

    def of(self, task_id: str) -> TaskUsage:
        """Return the account of a task."""
        return self.tasks.setdefault(task_id, TaskUsage())

    def total(self) -> TaskUsage:
        """Return the account of all tasks together."""
        return TaskUsage(
            _sum(task.asked for task in self.tasks.values()),
            _sum(task.reused for task in self.tasks.values()),
        )


def _sum(usages: Iterable[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total.add(usage.tokens, usage.requests, usage.cost_usd, usage.judgments, usage.untold_requests)
    return total


def sum_usd(one: float | None, other: float | None) -> float | None:
    """Return the dollars of both; unknown where one of them is."""
    return None if one is None or other is None else one + other


def usage_of(judgment: Judgment) -> TokenUsage:
    """Return the tokens that a stored judgment took."""
    return TokenUsage(
        judgment.input_tokens,
        judgment.cached_tokens,
        judgment.output_tokens,
        judgment.cache_write_tokens,
    )


def cost_of(judgment: Judgment) -> float | None:
    """Return what a judgment cost when it was asked, as far as that is known."""
    if judgment.cost_usd is not None:
        return judgment.cost_usd
    return total_price_usd([usage_of(judgment)], judgment.model, in_batch=bool(judgment.batch))
