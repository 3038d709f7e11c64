"""A judge's mean score, corrected by labels of single leaves; pure.

The leaves are divided into strata by the judge's verdict, and the labelled ones of a stratum are a simple
random sample of it, whatever number of labels was given. A wrong verdict counts by one over its chance to
have a label (Horvitz and Thompson 1952). What several wrong verdicts of one answer change beyond their parts
counts by one over the chance of the whole set. Verdicts are strata, so that the judge has its best weight:
within a stratum its verdict is a constant, and explains no more.

The interval combines the score intervals of the strata's error rates (Wilson 1927; mid-p where labels show no
error) by the square root of their summed squares (Zou and Donner 2008). So it is open to errors of which no
label shows one, and to sets of wrong verdicts of which the sample has none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from mind2web2.statistics.correction import CorrectedMean, Z
from mind2web2.statistics.uncertainty import none_seen, wilson

StratumName = Hashable


@dataclass(frozen=True, slots=True)
class LabelledLeaf:
    """A leaf with a label.

    Args:
        name: the leaf's identity.
        effect: the change of the task's mean score if the verdict is wrong: at most 0 for a leaf that passed,
            at least 0 for one that did not.
        change: the change by the label alone; 0 where the verdict is right.
        wrong: how far the verdict is wrong, from 0 to 1, whether or not that changes anything.
    """

    name: Hashable
    task: str
    stratum: StratumName
    effect: float
    change: float
    wrong: float = 0.0


@dataclass(frozen=True, slots=True)
class JointChange:
    """What several wrong verdicts of one answer change together, beyond what their parts change.

    Args:
        answer: the answer's identity.
        leaves: names of labelled leaves; none for a change that is certain.
    """

    task: str
    answer: Hashable
    leaves: frozenset[Hashable]
    change: float


@dataclass(frozen=True, slots=True)
class PossiblePair:
    """What a wrong verdict and another of its answer change together, beyond their parts, if both are wrong.

    Args:
        leaf: the name of the labelled leaf that is wrong.
        stratum: of the other leaf, with or without a label.
    """

    leaf: Hashable
    stratum: StratumName
    change: float


def corrected_by_leaves(
    raw: Mapping[str, float],
    sizes: Mapping[StratumName, Mapping[str, int]],
    labelled: Sequence[LabelledLeaf],
    joint: Sequence[JointChange] = (),
    possible: Sequence[PossiblePair] = (),
    unlabelled: tuple[float, float] = (0.0, 0.0),
) -> CorrectedMean:
    """Correct the mean over tasks by labels of single leaves.

    Args:
        raw: the mean score of each task by the judge.
        sizes: the number of leaves of each stratum, by task.
        labelled: with effects and changes of the task's mean score.
        possible: the pairs of each wrong verdict with the others of its answer.
        unlabelled: how far strata without labels could lower and raise the mean.
    """
    of_stratum: dict[StratumName, list[LabelledLeaf]] = defaultdict(list)
    for leaf in labelled:
        of_stratum[leaf.stratum].append(leaf)
    tasks = len(raw)
    by_task = dict(raw)
    totals = {name: sum(found.values()) for name, found in sizes.items()}
    squared = 0.0
    below = 0.0
    above = 0.0
    drawn: dict[StratumName, tuple[int, int]] = {}
    for name, leaves in of_stratum.items():
        total = totals[name]
        drawn[name] = (len(leaves), total)
        changes = [leaf.change for leaf in leaves]
        mean = fmean(changes)
        for task, count in sizes[name].items():
            by_task[task] += mean * count
        # Each labelled leaf stands for so many leaves of its stratum.
        scale = total / len(leaves)
        for leaf in leaves:
            by_task[leaf.task] += scale * (leaf.change - mean)
        squared += _squared_error(changes, total) / tasks**2
        low, high = _reach(leaves, total)
        below += (low / tasks) ** 2
        above += (high / tasks) ** 2
    chances = _Chances(labelled, drawn)
    for one in joint:
        by_task[one.task] += one.change / chances.of(one.leaves)
    together = _squared_error_together(labelled, joint, chances) / tasks**2
    squared = _with_joint(squared, together)
    lower, higher = _expected_together(labelled, possible, chances)
    margin = Z**2 * together
    unseen_below = (_UNSEEN * lower / tasks) ** 2
    unseen_above = (_UNSEEN * higher / tasks) ** 2
    below = _with_joint(below, margin, unseen_below)
    above = _with_joint(above, margin, unseen_above)
    return CorrectedMean(
        raw_by_task=raw,
        by_task=by_task,
        below=math.sqrt(below) + unlabelled[0],
        above=math.sqrt(above) + unlabelled[1],
        standard_error=math.sqrt(squared),
        labels=len(labelled),
        population=sum(totals.values()),
        labelled_tasks=len({leaf.task for leaf in labelled}),
    )


def _squared_error(changes: Sequence[float], total: int) -> float:
    """Return the squared standard error of a stratum's total, scaled up from a simple random sample."""
    drawn = len(changes)
    if drawn < 2 or drawn == total:
        return 0.0
    unsampled = 1 - drawn / total
    return total**2 * unsampled * variance(changes) / drawn


def _reach(leaves: Sequence[LabelledLeaf], total: int) -> tuple[float, float]:
    """Return how far the true change of a stratum may lie below and above the one that the sample gives.

    As if each wrong verdict changed as much as wrong ones do on average, weighted by what they change: their
    share then has the variance of the mean change.
    """
    drawn = len(leaves)
    unsampled = 1 - drawn / total
    effects = sum(abs(leaf.effect) for leaf in leaves)
    if not effects or not unsampled:
        return 0.0, 0.0
    change = sum(abs(leaf.change) for leaf in leaves)
    if change:
        size = sum(leaf.change**2 for leaf in leaves) / change
    else:
        size = sum(leaf.effect**2 for leaf in leaves) / effects
    rate = change / drawn / size
    # The population is finite: a sample of a large part of it determines more.
    effective = drawn / unsampled
    low, high = wilson(rate, effective)
    if not change:
        high = min(high, none_seen(effective))
    less = total * size * (rate - low)
    more = total * size * (high - rate)
    is_lowered = any(leaf.effect < 0 for leaf in leaves)
    return (more, less) if is_lowered else (less, more)


class _Chances:
    """The chance of a set of leaves to have labels, drawn without replacement in each stratum.

    Args:
        drawn: the labels and the leaves of each stratum.
    """

    def __init__(
        self,
        labelled: Sequence[LabelledLeaf],
        drawn: Mapping[StratumName, tuple[int, int]],
    ) -> None:
        self._stratum_of = {leaf.name: leaf.stratum for leaf in labelled}
        self._drawn = drawn

    def of(self, leaves: frozenset[Hashable]) -> float:
        """Return the chance of all of them together."""
        chance = 1.0
        before: dict[StratumName, int] = defaultdict(int)
        for leaf in leaves:
            name = self._stratum_of[leaf]
            count, total = self._drawn[name]
            labels_left = count - before[name]
            leaves_left = total - before[name]
            chance *= labels_left / leaves_left
            before[name] += 1
        return chance


# Larger sets are rare, and each doubles the pairs of sets.
_MOST_IN_SET = 3
# Errors of one answer are more often together than if they were independent.
_UNSEEN = 1.5


def _with_joint(squared: float, joint: float, unseen: float = 0.0) -> float:
    """Add the squared error of joint changes, or what the sample may lack of them where that is more.

    It is less than 0 where many are seen, and make up for single changes. Then it is badly known, so that
    half of it counts, and takes away half of the sum at most.
    """
    if joint < 0:
        removed = max(joint, -squared)
        return squared + removed / 2
    return squared + max(joint, unseen)


def _expected_together(
    labelled: Sequence[LabelledLeaf],
    possible: Sequence[PossiblePair],
    chances: _Chances,
) -> tuple[float, float]:
    """Return how far pairs of wrong verdicts lower and raise the sum, if errors were independent.

    A sample that has few pairs may show no wrong one, and the estimate then lacks them all.
    """
    wrong: dict[StratumName, list[float]] = defaultdict(list)
    for leaf in labelled:
        wrong[leaf.stratum].append(leaf.wrong)
    rates = {name: fmean(found) for name, found in wrong.items()}
    lower = 0.0
    higher = 0.0
    for pair in possible:
        # Both leaves of a pair count it where both are wrong.
        chance = 2 * chances.of(frozenset([pair.leaf]))
        rate = rates.get(pair.stratum, 0.0)
        expected = rate * pair.change / chance
        lower += max(0.0, -expected)
        higher += max(0.0, expected)
    return lower, higher


def _squared_error_together(
    labelled: Sequence[LabelledLeaf], joint: Sequence[JointChange], chances: _Chances
) -> float:
    """Return the part of the squared error that joint changes add, with what they share with single ones.

    The estimate of Horvitz and Thompson (1952) for the variance of their estimator, within answers.
    """
    single = {leaf.name: leaf.change for leaf in labelled if leaf.change}
    of_answer: dict[Hashable, dict[frozenset[Hashable], float]] = defaultdict(dict)
    for one in joint:
        if not 0 < len(one.leaves) <= _MOST_IN_SET:
            continue
        changes = of_answer[one.answer]
        changes[one.leaves] = one.change
        for leaf in one.leaves & single.keys():
            changes[frozenset([leaf])] = single[leaf]
    squared = 0.0
    for sets in of_answer.values():
        chance = {leaves: chances.of(leaves) for leaves in sets}
        for one_set, change in sets.items():
            for other, other_change in sets.items():
                # Single changes vary with their strata, which the caller knows.
                if len(one_set) == 1 and len(other) == 1:
                    continue
                if_independent = chance[one_set] * chance[other]
                of_both = chances.of(one_set | other)
                scale = 1 / if_independent - 1 / of_both
                squared += change * other_change * scale
    return squared
