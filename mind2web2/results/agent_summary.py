"""An agent's metrics as they stand in its ``summary.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.results.claim_facts import Reservation
from mind2web2.rubric.verdicts import QuoteMatch
from mind2web2.statistics.uncertainty import IntervalFigures
from mind2web2.statistics.variance import VarianceFigures
from mind2web2.utils.json_text import JsonObject

# The lower and the upper end of a range.
Ends = tuple[float, float]


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class RunFigures(_Figures):
    """The averages of one run over its tasks; ``None`` stands for an unknown value."""

    num_tasks: int
    avg_score: float | None
    success_rate: float | None
    avg_word_count: float | None


class ListedAnswer(_Figures):
    """A scored answer of a task."""

    answer_name: str
    score: float
    success: bool
    word_count: int | None


class TaskFigures(_Figures):
    """The scores of one task over its runs."""

    answers: tuple[ListedAnswer, ...]
    best_score: float | None
    avg_score: float | None
    is_passed: bool = Field(alias="pass")


class Intervals(_Figures):
    """The intervals of the metrics, by name, and how they were drawn."""

    level: float
    method: str
    resamples: int
    seed: int
    metrics: dict[str, IntervalFigures]


class ClaimCounts(_Figures):
    """How many verdicts on claims rest on something doubtful."""

    claims: int
    reservations: dict[Reservation, int]
    voted: int
    split: int
    quotes: dict[QuoteMatch, int]


class VerdictCounts(ClaimCounts):
    """Doubtful verdicts in all and by task, and doubtful answers as ``task/answer``."""

    tasks: dict[str, ClaimCounts]
    extractions: dict[Reservation, int]
    in_doubt: tuple[str, ...]
    flagged_answers: tuple[str, ...]
    treeless: tuple[str, ...]
    off_tree: tuple[str, ...]
    unexplained: tuple[str, ...]


class TaskMeans(_Figures):
    """The means of the means of tasks, as ``compare`` has them, with their intervals by name."""

    avg_score: float
    success_rate: float
    intervals: dict[str, IntervalFigures]


class TheseTasks(_Figures):
    """The interval of partial completion with other answers of the agent to the same tasks."""

    low: float
    high: float


class MissingBounds(_Figures):
    """The means over tasks with each missing score as 0 and as 1."""

    avg_score: Ends
    success_rate: Ends


class AgentSummary(_Figures):
    """An agent's metrics; ``None`` stands for an unknown value.

    Args:
        pass_at_k: written as ``pass_at_<num_runs>``.
        missing_counted_as_zero: missing answers count as 0; otherwise the averages leave them out.
        over_tasks: ``None`` where every run has all tasks.
        these_tasks: ``None`` where too few tasks have several answers.
        missing_bounds: ``None`` where no answer is missing.
    """

    agent_name: str
    num_tasks: int
    num_runs: int
    avg_score: float | None
    avg_score_std: float | None
    success_rate: float | None
    success_rate_std: float | None
    pass_at_k: float | None
    avg_answer_word_count: float | None
    avg_answer_word_count_std: float | None
    avg_time_seconds: float | None
    per_run: dict[str, RunFigures]
    tasks: dict[str, TaskFigures]
    judge_models: dict[str, int]
    missing: tuple[MissingAnswer, ...]
    missing_counted_as_zero: bool
    warnings: tuple[str, ...]
    intervals: Intervals
    verdicts: VerdictCounts
    over_tasks: TaskMeans | None
    these_tasks: TheseTasks | None
    missing_bounds: MissingBounds | None
    variation: VarianceFigures | None

    @property
    def pass_name(self) -> str:
        """Return the name under which pass@k is published."""
        return f"pass_at_{self.num_runs}"

    @property
    def shown_score(self) -> float | None:
        """Return the partial completion that is shown: the mean over tasks."""
        return self.avg_score if self.over_tasks is None else self.over_tasks.avg_score

    @property
    def shown_success_rate(self) -> float | None:
        """Return the success rate that is shown: the mean over tasks."""
        return self.success_rate if self.over_tasks is None else self.over_tasks.success_rate

    @property
    def shown_intervals(self) -> dict[str, IntervalFigures]:
        """Return the intervals of the figures that are shown, by the names of the figures."""
        by_task = {} if self.over_tasks is None else self.over_tasks.intervals
        of_passes = self.intervals.metrics[self.pass_name]
        return {**self.intervals.metrics, **by_task, "pass_at_k": of_passes}

    def as_json(self) -> JsonObject:
        """Return the content of ``summary.json``."""
        written: JsonObject = json.loads(json.dumps(self.model_dump(by_alias=True)))
        return {
            self.pass_name if name == "pass_at_k" else name: value
            for name, value in written.items()
        }


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """An answer without a score, or one that does not exist."""

    task_id: str
    answer_name: str
    reason: str
