"""What the questions of one answer came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from mind2web2.judge.records import Judgment
from mind2web2.judge.services import ServiceAnswer
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.llm_client.rate_limiter import Slowdown
from mind2web2.llm_client.retry import Retries


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
        usage: of all its questions, whether asked in this run or answered from stored judgments.
        served: how many judgments came from which model and backend, as reported.
        first_created: when the earliest judgment was made, UTC, ISO 8601; ``last_created`` the latest.
        doubts: what might have come out otherwise on another machine or day; such a result is not reused.
        refused_downloads: by the script itself, from private addresses that it may not visit.
        ignored_arguments: names of arguments in the script that have no effect.
        services: what map and paper services answered it.
    """

    usage: Usage = field(default_factory=Usage)
    served: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    first_created: str | None = None
    last_created: str | None = None
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
class TaskUsage:
    """What the judgments about one task's answers have taken, or about several tasks'.

    Args:
        asked: in this run.
        reused: when they were asked, in an earlier run or earlier in this one; nothing was paid again.
    """

    asked: Usage = field(default_factory=Usage)
    reused: Usage = field(default_factory=Usage)

    def __add__(self, other: TaskUsage) -> TaskUsage:
        """Return the sum of both."""
        return TaskUsage(self.asked + other.asked, self.reused + other.reused)

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``usage.json``."""
        return {"asked": _as_json(self.asked), "reused": _as_json(self.reused)}


@dataclass(slots=True)
class RunUsage:
    """What a run has asked and reused, by task.

    Args:
        slowdown: how much the judge's rate limits have delayed the run.
        retries: how often requests were tried again, and why.
    """

    tasks: dict[str, TaskUsage] = field(default_factory=dict)
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)

    def of(self, task_id: str) -> TaskUsage:
        """Return the account of a task."""
        return self.tasks.setdefault(task_id, TaskUsage())

    def total(self) -> TaskUsage:
        """Return the account of all tasks together."""
        return sum(self.tasks.values(), TaskUsage())


def _as_json(usage: Usage) -> dict[str, Any]:
    return {
        "judgments": usage.judgments,
        "requests": usage.requests,
        "untold_requests": usage.unreported_requests,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": rounded_usd(usage),
    }


def rounded_usd(usage: Usage) -> float | None:
    """Return the dollars as files have them, ``None`` where they are unknown."""
    return None if usage.cost_usd is None else round(usage.cost_usd, 6)


def tokens_of(judgment: Judgment) -> Usage:
    """Return the tokens of a stored judgment, as in the reply that it was made from."""
    return Usage(
        judgment.input_tokens,
        judgment.cached_tokens,
        judgment.output_tokens,
        judgment.cache_write_tokens,
    )


def usage_of(judgment: Judgment) -> Usage:
    """Return what a stored judgment took when it was asked, with dollars as far as they are known."""
    tokens = tokens_of(judgment)
    cost_usd = judgment.cost_usd
    if cost_usd is None:
        cost_usd = total_price_usd([tokens], judgment.model, in_batch=bool(judgment.batch))
    return replace(tokens, judgments=1, requests=judgment.attempts, cost_usd=cost_usd)
