"""What moved a score, as ``--json`` prints it: shares of causes, and the leaves behind them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from pydantic import BaseModel, ConfigDict

from mind2web2.plugin import bootstrap_intervals, number, with_sign
from mind2web2_trust.why.evaluation import Evaluated
from mind2web2_trust.why.leaves import Leaf, Matched, matched
from mind2web2_trust.why.shares import CAUSES, NAMES, NOTHING, Bounds, Cause, Corner, shares
from mind2web2_trust.why.sides import Pair, Side

_LEAVES_SHOWN = 10
_LIMITS = (-1.0, 1.0)


class ShareOfCause(BaseModel):
    """A cause's share of the difference of the means.

    Args:
        share: ``None`` where replies are missing; it is then from ``least`` to ``most``.
        low: the 95% interval over tasks, ``None`` where there is none, like ``high``.
        answers: how many differ in this.
    """

    model_config = ConfigDict(frozen=True)

    cause: Cause
    name: str
    share: float | None
    least: float
    most: float
    low: float | None
    high: float | None
    answers: int

    @property
    def amount(self) -> str:
        """Return the share in words, or its bounds."""
        if self.share is not None:
            return with_sign(self.share)
        return f"{with_sign(self.least)} to {with_sign(self.most)}"


class LeafOfSide(BaseModel):
    """A leaf as one side has it.

    Args:
        passed: ``None`` where a reply is missing.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    passed: bool | None
    claim: str | None
    pages: tuple[str, ...]
    judge: str


class MovedLeaf(BaseModel):
    """A leaf that moved the score of one answer.

    Args:
        cause: of the other verdict; ``None`` where replies are missing, and for a leaf on one side.
        effect: what it adds to the difference of the means; ``None`` where replies are missing.
        first: ``None`` for a leaf that the second side added, ``second`` for one that it removed.
    """

    model_config = ConfigDict(frozen=True)

    task: str
    answer: str
    cause: Cause | None
    effect: float | None
    first: LeafOfSide | None
    second: LeafOfSide | None


class Explanation(BaseModel):
    """What moved the score from the first side to the second.

    Args:
        first_mean: partial completion over the answers of both sides; ``None`` where replies are
            missing.
        difference: the sum of the shares.
        one_sided: leaves that only one side has.
        missing: how many replies are not stored.
        missing_usd: what they cost at the price of the replies so far, ``None`` where unknown.
        left_out: answers that only one side has.
        gone: why answers could not be evaluated again, with their number.
        rehearsals: folders of cases of the rubrics that differ.
        sentence: all of it, to copy.
    """

    model_config = ConfigDict(frozen=True)

    first: str
    second: str
    tasks: int
    answers: int
    first_mean: float | None
    second_mean: float | None
    difference: float | None
    shares: tuple[ShareOfCause, ...]
    leaves: tuple[MovedLeaf, ...]
    one_sided: tuple[MovedLeaf, ...]
    missing: int
    missing_usd: float | None
    left_out: int
    gone: Mapping[str, int]
    rehearsals: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Explained:
    """One answer with its corners."""

    pair: Pair
    corners: Mapping[Corner, Evaluated]

    @property
    def first(self) -> Evaluated:
        """Return the answer as the first side scores it."""
        return self.corners[frozenset()]

    @property
    def second(self) -> Evaluated:
        """Return the answer as the second side scores it."""
        return self.corners[frozenset(self.pair.causes)]

    @cached_property
    def shares(self) -> Mapping[Cause, Bounds]:
        """Return the shares of the causes in the difference of this answer's scores."""
        return shares(self.pair.causes, lambda corner: self.corners[corner].score)

    def leaves(self) -> Iterator[Matched]:
        """Yield the leaves of both sides."""
        if self.first.result is not None and self.second.result is not None:
            yield from matched(self.first.result, self.second.result)

    def cause_of(self, leaf: Matched) -> Cause | None:
        """Return what changed the verdict on a leaf, ``None`` where that is not known."""
        if len(self.shares) < 2:
            return next(iter(self.shares), None)
        passed = {
            corner: leaf.has_passed(each.result, by_second="rubric" in corner)
            for corner, each in self.corners.items()
            if not each.missing
        }
        if None in passed.values() or len(passed) < len(self.corners):
            return None
        parts = shares(self.pair.causes, lambda corner: Bounds.exact(bool(passed[corner])))
        return max(parts, key=lambda cause: abs(parts[cause].low))


def explain(
    sides: tuple[Side, Side], found: Sequence[Explained], left_out: int, rehearsals: Sequence[str]
) -> Explanation:
    """Return what moved the mean; each task counts alike, and each answer within its task."""
    by_task: dict[str, list[Explained]] = defaultdict(list)
    for each in found:
        by_task[each.pair.place[0]].append(each)
    weights = {task: Fraction(1, len(by_task) * len(own)) for task, own in by_task.items()}
    causes = [cause for cause in CAUSES if any(cause in each.shares for each in found)]
    first, second = (
        sum((side.score.times(weights[each.pair.place[0]]) for each, side in own), NOTHING)
        for own in ([(e, e.first) for e in found], [(e, e.second) for e in found])
    )
    difference = second + first.times(Fraction(-1))
    both, one_sided = _moved(found, weights)
    missing = {key for each in found for own in each.corners.values() for key in own.missing}
    parts = tuple(_share(cause, by_task, weights) for cause in causes)
    names = sides[0].name, sides[1].name
    return Explanation(
        first=names[0],
        second=names[1],
        tasks=len(by_task),
        answers=len(found),
        first_mean=first.known,
        second_mean=second.known,
        difference=difference.known,
        shares=parts,
        leaves=tuple(_moved_leaf(*row) for row in both[:_LEAVES_SHOWN]),
        one_sided=tuple(_moved_leaf(*row) for row in one_sided),
        missing=len(missing),
        missing_usd=_price(found, len(missing)),
        left_out=left_out,
        gone=_reasons(found),
        rehearsals=tuple(rehearsals),
        sentence=_sentence(names, (first, second), difference, parts),
    )


def _sentence(
    names: tuple[str, str],
    means: tuple[Bounds, Bounds],
    difference: Bounds,
    parts: Sequence[ShareOfCause],
) -> str:
    if not parts:
        return f"{names[1]} scores as {names[0]}: nothing that moves a score differs."
    moved = f"From {names[0]} to {names[1]}, partial completion moved by"
    named = ", ".join(f"{part.name} {part.amount}" for part in parts)
    if difference.known is None:
        return f"{moved} {named}."
    first, second = (number(mean.known) for mean in means)
    return f"{moved} {with_sign(difference.known)} ({first} to {second}): {named}."


def _share(
    cause: Cause, by_task: Mapping[str, Sequence[Explained]], weights: Mapping[str, Fraction]
) -> ShareOfCause:
    of_tasks = [
        sum(
            (each.shares.get(cause, NOTHING).times(weights[task]) for each in own),
            NOTHING,
        )
        for task, own in by_task.items()
    ]
    share = sum(of_tasks, NOTHING)
    interval = None
    if share.known is not None:
        # Means over tasks: the weights have the number of tasks already.
        rows = [(float(one.low) * len(of_tasks), 1.0) for one in of_tasks]
        (interval,) = bootstrap_intervals(rows, [(_mean, _LIMITS)])
    return ShareOfCause(
        cause=cause,
        name=NAMES[cause],
        share=share.known,
        least=float(share.low),
        most=float(share.high),
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        answers=sum(cause in each.shares for own in by_task.values() for each in own),
    )


def _mean(sums: Sequence[float]) -> float:
    return sums[0] / sums[1]


_Row = tuple[Explained, Matched, float]


def _moved(
    found: Sequence[Explained], weights: Mapping[str, Fraction]
) -> tuple[list[_Row], list[_Row]]:
    """Return the leaves with an effect on the mean, the largest first, and those of one side."""
    rows = [
        (each, leaf, float(leaf.effect * weights[each.pair.place[0]]))
        for each in found
        for leaf in each.leaves()
    ]
    both = sorted((row for row in rows if row[2]), key=lambda row: -abs(row[2]))
    return both, [row for row in rows if row[1].first is None or row[1].second is None]


def _moved_leaf(each: Explained, leaf: Matched, effect: float) -> MovedLeaf:
    task, answer = each.pair.place
    first, second = _of_side(leaf.first, each.first), _of_side(leaf.second, each.second)
    is_judged = None not in [side.passed for side in (first, second) if side is not None]
    return MovedLeaf(
        task=task,
        answer=answer.removesuffix(".md"),
        cause=each.cause_of(leaf) if effect else None,
        effect=effect if is_judged else None,
        first=first,
        second=second,
    )


def _of_side(leaf: Leaf | None, side: Evaluated) -> LeafOfSide | None:
    if leaf is None:
        return None
    return LeafOfSide(
        path=leaf.path,
        passed=None if leaf.judgments & side.missing else leaf.node.is_passed,
        claim=leaf.claim,
        pages=tuple(leaf.pages),
        judge="" if side.result is None else side.result.judge_model or "",
    )


def _price(found: Sequence[Explained], missing: int) -> float | None:
    """Return the price of missing replies, at that of the replies of both sides."""
    usages = [
        side.result.judge_usage
        for each in found
        for side in (each.first, each.second)
        if side.result is not None and side.result.judge_usage is not None
    ]
    judgments = sum(usage.judgments for usage in usages if usage.cost_usd is not None)
    if not judgments:
        return None
    return missing * sum(usage.cost_usd or 0.0 for usage in usages) / judgments


def _reasons(found: Sequence[Explained]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for each in found:
        for reason in {own.reason for own in each.corners.values() if own.reason is not None}:
            counts[reason] += 1
    return dict(counts)
