"""The lowest score that an agent keeps if its judge passes wrong claims.

The bound assumes that the judge passes as many of them as on changed pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from mind2web2.results.skipped_leaves import blocked_leaves
from mind2web2.rubric.verdicts import Outcome, aggregate
from mind2web2.utils.text import percent

if TYPE_CHECKING:
    from mind2web2.analysis.audited import AuditedAnswer
    from mind2web2.analysis.changed_pages import ChangedPages
    from mind2web2.rubric.written_tree import WrittenNode

_FAILED = Outcome(0.0, "failed")
# Scores are drawn so often in all, and at least so often for each answer.
_DRAWS = 2_000
_LEAST_DRAWS = 20


class FalsePassBound(BaseModel):
    """A bound of partial completion by a judge's false passes.

    Args:
        false_passes: the upper end of the interval: at most so many unsupported claims pass.
        wrong_passes: the share of passed leaves that are then wrong, if every true claim passes.
        raw: partial completion by the judge.
        low: partial completion if so many passed leaves fail, drawn at random.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    false_passes: float
    wrong_passes: float
    raw: float
    low: float

    def __str__(self) -> str:
        """Return the bound in a sentence."""
        most = percent(self.false_passes)
        return (
            f"If {self.judge} passes {most} of unsupported claims, which is the most that changed "
            f"pages allow, {percent(self.wrong_passes)} of the passed leaves are wrong, and "
            f"partial completion is {percent(self.low)} instead of {percent(self.raw)}."
        )


def false_pass_bound(
    answers: Sequence[AuditedAnswer], report: ChangedPages
) -> FalsePassBound | None:
    """Return the bound, ``None`` if the report has too few pages for an interval."""
    most = report.false_passes.high
    judged = [leaf for answer in answers for leaf in answer.leaves if not leaf.is_skipped]
    if most is None or not judged:
        return None
    passed = sum(leaf.passed for leaf in judged) / len(judged)
    wrong = wrong_passes(passed, most)
    draws = max(_LEAST_DRAWS, _DRAWS // len(answers))
    return FalsePassBound(
        judge=report.judge,
        false_passes=most,
        wrong_passes=wrong,
        raw=_mean((answer.task, answer.score) for answer in answers),
        low=_mean((answer.task, _expected_score(answer, wrong, draws)) for answer in answers),
    )


def wrong_passes(passed: float, false_passes: float) -> float:
    """Return the share of passes that are wrong, if all true claims pass and this share of others.

    With a share ``t`` of true claims, ``passed = t + (1 - t) * false_passes``.
    """
    if passed == 0.0 or false_passes >= passed:
        return float(passed > 0.0)
    untrue = (1 - passed) / (1 - false_passes)
    return untrue * false_passes / passed


def _mean(scores: Iterable[tuple[str, float]]) -> float:
    """Return the mean over tasks of the means of their answers."""
    by_task: dict[str, list[float]] = {}
    for task, score in scores:
        by_task.setdefault(task, []).append(score)
    return fmean(map(fmean, by_task.values()))


def _expected_score(answer: AuditedAnswer, wrong: float, draws: int) -> float:
    root = answer.root
    if root is None:
        return answer.score
    random = Random("/".join(answer.name))
    names = {leaf.name.leaf for leaf in answer.leaves if leaf.passed}
    leaves = list(root.leaves())
    passed = [leaf for leaf in leaves if leaf.id in names]
    return fmean(_score_of_draw(root, leaves, passed, wrong, random) for _ in range(draws))


def _score_of_draw(
    root: WrittenNode,
    leaves: Sequence[WrittenNode],
    passed: Sequence[WrittenNode],
    wrong: float,
    random: Random,
) -> float:
    drawn = {id(leaf) for leaf in passed if random.random() < wrong}
    failing = drawn | {id(leaf) for leaf in leaves if leaf.verdict.blocks}
    failed = blocked_leaves(root, leaves, failing)
    return aggregate(root, dict.fromkeys(failed, _FAILED))[id(root)].score
