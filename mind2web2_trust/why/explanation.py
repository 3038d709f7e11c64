"""The causes of a difference, as ``--json`` prints them: their shares, and the leaves behind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

from pydantic import BaseModel, ConfigDict

from mind2web2.plugin import (
    PairedTest,
    number,
)
from mind2web2_trust.why.evaluation import Corners, Evaluated
from mind2web2_trust.why.leaves import Leaf, Leaves, Matched
from mind2web2_trust.why.shares import CAUSES, NAMES, NOTHING, Bounds, Cause, shares
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
            return number(self.share, is_difference=True)
        return (
            f"{number(self.least, is_difference=True)} to {number(self.most, is_difference=True)}"
        )


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
        cause: of the other verdict; ``None`` where several are, or replies are missing.
        effect: what it adds to the difference of the means; ``None`` where replies are missing.
    """

    model_config = ConfigDict(frozen=True)

    task: str
    answer: str
    cause: Cause | None
    effect: float | None
    first: LeafOfSide
    second: LeafOfSide


class Explanation(BaseModel):
    """The causes that moved the score from the first side to the second.

    Args:
        first_mean: partial completion over the answers of both sides; ``None`` where replies are
            missing.
        difference: the sum of the shares.
        added: leaves that the second side alone has, as ``task/answer/path``.
        removed: those that the first side alone has.
        missing: how many replies are not stored, about: further votes, and the claims of another
            extraction, are only known with the replies.
        is_least: more are missing, since a script ended at one that nothing stands in for.
        missing_usd: what they would cost, ``None`` where a price is unknown.
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
    added: tuple[str, ...]
    removed: tuple[str, ...]
    missing: int
    is_least: bool
    missing_usd: float | None
    left_out: int
    gone: Mapping[str, int]
    rehearsals: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Explained:
    """One answer with its corners, and its weight in the mean."""

    pair: Pair
    corners: Corners
    weight: Fraction

    @property
    def first(self) -> Evaluated:
        """Return the answer as the first side scores it."""
        return self.corners.first

    @property
    def second(self) -> Evaluated:
        """Return the answer as the second side scores it."""
        return self.corners.second

    @cached_property
    def shares(self) -> Mapping[Cause, Bounds]:
        """Return the shares of the causes in the difference of this answer's scores."""
        scores = self.corners.scores
        parts = dict(shares(self.pair.causes, lambda corner: scores[corner].score))
        whole = self.second.score.minus(self.first.score)
        again = scores[frozenset(self.pair.causes)].score.minus(scores[frozenset()].score)
        rest = whole.minus(again)
        # The two results differ by more, or less, than their scripts do when they run again.
        if whole.known is not None and again.known is not None and rest.known:
            parts["other"] = parts.get("other", NOTHING) + rest
        return parts

    @cached_property
    def leaves(self) -> Leaves:
        """Return the leaves of both sides, none where a side has no tree."""
        if self.first.result is None or self.second.result is None:
            return Leaves()
        return Leaves.of(self.first.result, self.second.result)

    def places(self, leaves: Iterable[Leaf]) -> Iterator[str]:
        """Yield the places of leaves, as ``task/answer/path``."""
        task, answer = self.pair.place
        return (f"{task}/{answer.removesuffix('.md')}/{leaf.path}" for leaf in leaves)

    def cause_of(self, leaf: Matched) -> Cause | None:
        """Return what changed the verdict on a leaf, ``None`` where that is not known."""
        if len(self.shares) < 2:
            return next(iter(self.shares), None)
        passed = {
            corner: leaf.has_passed(each.result, by_second="rubric" in corner)
            for corner, each in self.corners.scores.items()
            if not each.missing
        }
        if None in passed.values() or len(passed) < len(self.corners.scores):
            return None
        parts = shares(self.pair.causes, lambda corner: Bounds.exact(bool(passed[corner])))
        largest, *others = sorted(parts, key=lambda cause: -abs(parts[cause].low))
        is_alone = all(abs(parts[cause].low) < abs(parts[largest].low) for cause in others)
        return largest if is_alone else None


def explain(
    sides: tuple[Side, Side],
    answers: Sequence[tuple[Pair, Corners]],
    left_out: int,
    rehearsals: Sequence[str],
) -> Explanation:
    """Return what moved the mean; each task counts alike, and each answer within its task."""
    sizes = Counter(pair.place[0] for pair, _ in answers)
    explained = [
        Explained(pair, own, Fraction(1, len(sizes) * sizes[pair.place[0]]))
        for pair, own in answers
    ]
    causes = [cause for cause in CAUSES if any(cause in each.shares for each in explained)]
    first = sum((each.first.score.times(each.weight) for each in explained), NOTHING)
    second = sum((each.second.score.times(each.weight) for each in explained), NOTHING)
    difference = second.minus(first)
    lacking = [own for each in explained for own in each.corners.scores.values() if own.missing]
    missing: dict[str, float | None] = {}
    for own in lacking:
        missing |= own.missing
    parts = tuple(_share(cause, explained, len(sizes)) for cause in causes)
    names = sides[0].name, sides[1].name
    return Explanation(
        first=names[0],
        second=names[1],
        tasks=len(sizes),
        answers=len(explained),
        first_mean=first.known,
        second_mean=second.known,
        difference=difference.known,
        shares=parts,
        leaves=tuple(islice(_shown(_moved(explained)), _LEAVES_SHOWN)),
        added=tuple(place for each in explained for place in each.places(each.leaves.added)),
        removed=tuple(place for each in explained for place in each.places(each.leaves.removed)),
        missing=len(missing),
        is_least=any(own.is_ended for own in lacking),
        missing_usd=None if None in missing.values() else sum(filter(None, missing.values())),
        left_out=left_out,
        gone=_reasons(explained),
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
    return f"{moved} {number(difference.known, is_difference=True)} ({first} to {second}): {named}."


def _share(cause: Cause, explained: Sequence[Explained], tasks: int) -> ShareOfCause:
    by_task: dict[str, Bounds] = defaultdict(lambda: NOTHING)
    for each in explained:
        by_task[each.pair.place[0]] += each.shares.get(cause, NOTHING).times(each.weight)
    share, interval = sum(by_task.values(), NOTHING), None
    if share.known is not None:
        # Means over tasks: the weights have the number of tasks already.
        of_tasks = [float(one.low) * tasks for one in by_task.values()]
        interval = PairedTest.of(of_tasks, _LIMITS).interval
    return ShareOfCause(
        cause=cause,
        name=NAMES[cause],
        share=share.known,
        least=float(share.low),
        most=float(share.high),
        low=interval and interval.low,
        high=interval and interval.high,
        answers=sum(cause in each.shares for each in explained),
    )


def _moved(explained: Sequence[Explained]) -> list[tuple[Explained, Matched, float]]:
    """Return the leaves with an effect on the mean, the largest first."""
    rows = [
        (each, leaf, float(leaf.effect * each.weight))
        for each in explained
        for leaf in each.leaves.both
        if leaf.effect
    ]
    return sorted(rows, key=lambda row: -abs(row[2]))


def _shown(rows: Iterable[tuple[Explained, Matched, float]]) -> Iterator[MovedLeaf]:
    """Yield leaves, without those that only another judge has still to judge: these are all."""
    for row in rows:
        leaf = _moved_leaf(*row)
        if leaf.effect is not None or leaf.cause != "judge":
            yield leaf


def _moved_leaf(each: Explained, leaf: Matched, effect: float) -> MovedLeaf:
    task, answer = each.pair.place
    first, second = _of_side(leaf.first, each.first), _of_side(leaf.second, each.second)
    is_judged = None not in (first.passed, second.passed)
    return MovedLeaf(
        task=task,
        answer=answer.removesuffix(".md"),
        cause=each.cause_of(leaf),
        effect=effect if is_judged else None,
        first=first,
        second=second,
    )


def _of_side(leaf: Leaf, side: Evaluated) -> LeafOfSide:
    judge = None if side.result is None else side.result.judge_model
    return LeafOfSide(
        path=leaf.path,
        passed=None if leaf.judgments & side.missing.keys() else leaf.node.is_passed,
        claim=leaf.claim,
        pages=tuple(leaf.pages),
        judge=judge or "no judge",
    )


def _reasons(explained: Sequence[Explained]) -> dict[str, int]:
    """Return why answers could not be evaluated again, with their number."""
    return Counter(
        reason
        for each in explained
        for reason in {own.reason for own in each.corners.scores.values()}
        if reason is not None
    )
