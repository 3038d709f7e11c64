"""The notes on one answer's questions: usage, judgments by model, rejections and doubts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from mind2web2.judge.store import ServiceAnswer
from mind2web2.llm_client.chat import Usage

Noted = Literal["doubts", "refused_downloads", "ignored_arguments", "script_faults"]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A question that the judge declined twice (scoring.md, "Verdicts")."""

    node: str | None
    page: str | None
    reason: str


@dataclass(slots=True)
class JudgeLedger:
    """The usage of one answer's questions, and notes on them.

    Args:
        usage: of all questions, answered in this run or from stored judgments.
        served: number of judgments by the model and backend that the server reported.
        first_created: when the earliest judgment was made, UTC, ISO 8601; ``last_created`` the latest.
        doubts: reasons why another machine or day may give another verdict; such a result is not reused.
        script_faults: mistakes of the script that may cost the answer points, with file and line.
    """

    usage: Usage = field(default_factory=Usage)
    served: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    first_created: str | None = None
    last_created: str | None = None
    rejections: list[Rejection] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    refused_downloads: list[str] = field(default_factory=list)
    ignored_arguments: list[str] = field(default_factory=list)
    script_faults: list[str] = field(default_factory=list)
    services: list[ServiceAnswer] = field(default_factory=list)

    def note_created(self, moment: str) -> None:
        """Add the time of a judgment."""
        self.first_created = min(self.first_created or moment, moment)
        self.last_created = max(self.last_created or moment, moment)
