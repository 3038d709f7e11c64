"""The cost of judgments: requests, tokens and dollars by task and run."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TypedDict

from mind2web2.llm_client.chat import Retries, Slowdown, Usage
from mind2web2.utils.text import counted, dollars


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

    tasks: dict[str, TaskUsage] = field(default_factory=partial(defaultdict, TaskUsage))
    slowdown: Slowdown = field(default_factory=Slowdown)
    retries: Retries = field(default_factory=Retries)

    def add(self, other: RunUsage) -> None:
        """Add the usage of a part of the run that was judged elsewhere."""
        for task_id, own in other.tasks.items():
            self.tasks[task_id] += own
        self.slowdown.refusals += other.slowdown.refusals
        self.slowdown.waited_s += other.slowdown.waited_s
        self.retries.reasons = Counter(self.retries.reasons) + Counter(other.retries.reasons)

    def total(self) -> TaskUsage:
        """Return the usage of all tasks together."""
        return sum(self.tasks.values(), TaskUsage())

    def in_words(self) -> str:
        """Return the judge's use so far in one line."""
        asked, reused = self.total().asked, self.total().reused.judgments
        tokens = asked.input_tokens + asked.output_tokens
        counts = (
            f"{counted(asked.judgments, 'judgment')} asked, {reused:,} reused, {tokens:,} "
            f"tokens, {dollars(asked.cost_usd)}"
        )
        return "; ".join(filter(None, (counts, self.slowdown.in_words(), self.retries.in_words())))


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
