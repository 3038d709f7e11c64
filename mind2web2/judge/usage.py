"""The cost of judgments: requests, tokens and dollars by task and run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypedDict

from mind2web2.judge.judgment import Judgment
from mind2web2.llm_client.chat import OwnPrice, Retries, Slowdown, Usage
from mind2web2.llm_client.prices import total_price_usd


class UsageEntry(TypedDict):
    """A usage in ``usage.json``."""

    judgments: int
    requests: int
    untold_requests: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float | None


class TaskUsageEntry(TypedDict):
    """The usage of a task, or of the whole run, in ``usage.json``."""

    asked: UsageEntry
    reused: UsageEntry


@dataclass(slots=True)
class TaskUsage:
    """Usage of the judgments on one task's answers.

    They were requested in this run, or reused at no cost.
    """

    asked: Usage = field(default_factory=Usage)
    reused: Usage = field(default_factory=Usage)

    def __add__(self, other: TaskUsage) -> TaskUsage:
        """Return the sum of both."""
        return TaskUsage(self.asked + other.asked, self.reused + other.reused)

    def as_json(self) -> TaskUsageEntry:
        """Return the entry of ``usage.json``."""
        return {"asked": _as_json(self.asked), "reused": _as_json(self.reused)}


@dataclass(slots=True)
class RunUsage:
    """Usage of a run by task, with the delays by rate limits and the retries."""

    tasks: dict[str, TaskUsage] = field(default_factory=dict)
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)

    def of(self, task_id: str) -> TaskUsage:
        """Return the usage of a task."""
        return self.tasks.setdefault(task_id, TaskUsage())

    def total(self) -> TaskUsage:
        """Return the usage of all tasks together."""
        return sum(self.tasks.values(), TaskUsage())


def _as_json(usage: Usage) -> UsageEntry:
    return {
        "judgments": usage.judgments,
        "requests": usage.requests,
        "untold_requests": usage.unreported_requests,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.rounded_usd,
    }


def tokens_of(judgment: Judgment) -> Usage:
    """Return the tokens of a stored judgment."""
    return Usage(
        judgment.input_tokens,
        judgment.cached_tokens,
        judgment.output_tokens,
        judgment.cache_write_tokens,
    )


def usage_of(judgment: Judgment, price: OwnPrice | None = None) -> Usage:
    """Return the usage of a stored judgment at the time of its request, with dollars where known.

    Args:
        price: of the judge's model, for a judgment without dollars.
    """
    tokens = tokens_of(judgment)
    cost_usd = judgment.cost_usd
    if cost_usd is None:
        cost_usd = total_price_usd([tokens], judgment.model, share=judgment.price_share, own=price)
    return replace(tokens, judgments=1, requests=judgment.attempts, cost_usd=cost_usd)
