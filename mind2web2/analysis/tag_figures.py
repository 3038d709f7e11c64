"""Figures beside the score: by tag of leaves, and by domain of tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from mind2web2.results.agent_summary import TaskFigures
from mind2web2.results.result_file import ResultFile


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True)


class TagFigure(_Figures):
    """The leaves of a tag.

    Args:
        passed: the share of an answer's leaves that passed, averaged over a task's answers, then
            over tasks.
        leaves: in all answers together.
    """

    tag: str
    passed: float
    leaves: int
    answers: int
    tasks: int


class TagShares:
    """The leaves of each tag, counted one result after another.

    A node's tags hold for all leaves below it; skipped leaves count as not passed.
    """

    def __init__(self) -> None:
        self._shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._leaves: dict[str, int] = defaultdict(int)

    def add(self, task_id: str, result: ResultFile) -> None:
        """Count the leaves of a result."""
        for tag, passed in _leaves_by_tag(result).items():
            self._shares[tag][task_id].append(fmean(passed))
            self._leaves[tag] += len(passed)

    def figures(self) -> list[TagFigure]:
        """Return the figures of all tags by name."""
        return [
            TagFigure(
                tag=tag,
                passed=fmean(map(fmean, tasks.values())),
                leaves=self._leaves[tag],
                answers=sum(map(len, tasks.values())),
                tasks=len(tasks),
            )
            for tag, tasks in sorted(self._shares.items())
        ]


def _leaves_by_tag(result: ResultFile) -> dict[str, list[bool]]:
    by_tag: dict[str, list[bool]] = defaultdict(list)
    for tree in result.trees:
        for leaf, _, tags in tree.leaf_places():
            for tag in tags:
                by_tag[tag].append(leaf.status == "passed")
    return by_tag


class DomainFigure(_Figures):
    """The tasks of a domain: the mean of their scores, and the share that passed in any run."""

    domain: str
    avg_score: float
    pass_at_k: float
    tasks: int


def domain_figures(
    tasks: Mapping[str, TaskFigures], domains: Mapping[str, str]
) -> list[DomainFigure]:
    """Return the figures of all domains by name, over the tasks that have a score."""
    by_domain: dict[str, list[TaskFigures]] = defaultdict(list)
    for task_id, figures in tasks.items():
        if figures.avg_score is not None and domains.get(task_id):
            by_domain[domains[task_id]].append(figures)
    return [
        DomainFigure(
            domain=domain,
            avg_score=round(fmean(each.avg_score or 0.0 for each in figures_of_domain), 6),
            pass_at_k=round(fmean(each.is_passed for each in figures_of_domain), 4),
            tasks=len(figures_of_domain),
        )
        for domain, figures_of_domain in sorted(by_domain.items())
    ]
