"""An agent's partial completion, corrected by labels of its judged leaves."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import TypedDict

from mind2web2.rubric.verdicts import Outcome, aggregate
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.audited import AuditedAnswer, JudgedLeaf, Stratum, labelled_strata
from mind2web2.runs.labels import LeafName, Verdicts
from mind2web2.runs.score_bounds import blocked, unblocked
from mind2web2.statistics.correction import CorrectedMean
from mind2web2.statistics.sampled_leaves import (
    JointChange,
    LabelledLeaf,
    PossiblePair,
    StratumName,
    corrected_by_leaves,
)
from mind2web2.statistics.uncertainty import Interval

# Of one answer, each doubling the scores to compute; further ones count without what they change together.
_MOST_TOGETHER = 8
_PASSED = Outcome(1.0, "passed")
_FAILED = Outcome(0.0, "failed")
# Changes of scores below this are noise of sums.
_NOISE = 1e-12


class CorrectedScoreJson(TypedDict):
    """``CorrectedScore`` as ``--json`` prints it."""

    raw: float
    raw_tasks_at_large: dict[str, float] | None
    corrected: float | None
    estimate: float
    these_tasks: dict[str, float] | None
    tasks_at_large: dict[str, float] | None
    labels: int
    leaves: int
    answers: int
    if_undecidable: list[float] | None
    wanted_behind_gates: list[str]


@dataclass(frozen=True, slots=True)
class CorrectedScore:
    """An agent's partial completion by the judge, and as labels correct it.

    Args:
        mean: with leaves that no label decides, behind gates that the judge failed wrongly, as failed.
        highest: the same with these leaves as passed.
        if_undecidable: the estimates with each undecidable leaf as not supported, and as supported; ``None``
            where there is none.
        answers: how many have labels.
        behind: names of the leaves that no label decides behind gates that the judge failed wrongly.
        unseen: how many judged leaves have no label, not even as undecidable.
    """

    mean: CorrectedMean
    highest: CorrectedMean
    if_undecidable: tuple[float, float] | None
    answers: int
    behind: tuple[LeafName, ...]
    unseen: int

    @property
    def value(self) -> float | None:
        """Return the corrected score; ``None`` where labels do not determine one better than the raw one."""
        return None if self.behind else self.mean.value

    @property
    def these_tasks(self) -> Interval | None:
        """Return the interval of the score that labels of all leaves of these answers would give."""
        return spanned(self.mean.these_tasks, self.highest.these_tasks)

    @property
    def tasks_at_large(self) -> Interval | None:
        """Return the interval of that score over all tasks of the kind."""
        return spanned(self.mean.tasks_at_large, self.highest.tasks_at_large)

    def summary(self) -> CorrectedScoreJson:
        """Return it as ``--json`` prints it."""
        corrected = self.value
        if corrected is not None:
            corrected = round(corrected, 6)
        possible = None
        if self.if_undecidable is not None:
            possible = [round(estimate, 6) for estimate in self.if_undecidable]
        return {
            "raw": round(self.mean.raw, 6),
            "raw_tasks_at_large": interval_summary(self.mean.raw_at_large),
            "corrected": corrected,
            "estimate": round(self.mean.estimate, 6),
            "these_tasks": interval_summary(self.these_tasks),
            "tasks_at_large": interval_summary(self.tasks_at_large),
            "labels": self.mean.labels,
            "leaves": self.mean.population,
            "answers": self.answers,
            "if_undecidable": possible,
            "wanted_behind_gates": ["/".join(name) for name in self.behind],
        }


def interval_summary(found: Interval | None) -> dict[str, float] | None:
    """Return an interval as ``--json`` prints it."""
    if found is None:
        return None
    low = round(found.low, 6)
    high = round(found.high, 6)
    return {"low": low, "high": high}


def spanned(low: Interval | None, high: Interval | None) -> Interval | None:
    """Return the interval from the low end of one to the high end of the other."""
    if low is None or high is None:
        return None
    return Interval(low.low, high.high)


def corrected_score(
    answers: Sequence[AuditedAnswer], verdicts: Verdicts
) -> CorrectedScore | None:
    """Return the mean over tasks, corrected by labels; ``None`` without an answer or a label."""
    labelled = [answer for answer in answers if _has_label(answer, verdicts)]
    if not labelled:
        return None
    low = _mean(answers, verdicts, behind=False)
    behind: list[LeafName] = []
    for answer in answers:
        behind += behind_wrong_gates(answer, verdicts)
    high = _mean(answers, verdicts, behind=True) if behind else low
    extremes = None
    if verdicts.undecidable:
        as_failed = _all_decided(verdicts, 0.0)
        as_passed = _all_decided(verdicts, 1.0)
        all_failed = _mean(answers, as_failed, behind=False)
        all_passed = _mean(answers, as_passed, behind=True)
        extremes = (all_failed.estimate, all_passed.estimate)
    seen = verdicts.passes.keys() | verdicts.undecidable
    unseen = 0
    for answer in answers:
        unseen += sum(leaf.name not in seen for leaf in answer.leaves)
    return CorrectedScore(low, high, extremes, len(labelled), tuple(behind), unseen)


def _has_label(answer: AuditedAnswer, verdicts: Verdicts) -> bool:
    return any(leaf.name in verdicts.passes for leaf in answer.leaves)


def _all_decided(verdicts: Verdicts, passes: float) -> Verdicts:
    decided = dict.fromkeys(verdicts.undecidable, passes)
    return Verdicts({**verdicts.passes, **decided}, frozenset())


def behind_wrong_gates(answer: AuditedAnswer, verdicts: Verdicts) -> list[LeafName]:
    """Return the skipped leaves without a label, where labels pass the leaf for which they were skipped."""
    wrong = set()
    for leaf in answer.leaves:
        label = verdicts.passes.get(leaf.name, 0.0)
        if not leaf.passed and label > 0:
            wrong.add(leaf.name.leaf)
    if answer.root is None or not wrong or not answer.skipped:
        return []
    leaves = [node for node in answer.root.walk() if not node.children]
    gates = {id(node) for node in leaves if node.id in wrong}
    opened = unblocked(leaves, gates)
    opened_names = {node.id for node in leaves if id(node) in opened}
    undecided = []
    for leaf in answer.skipped:
        is_opened = leaf.name.leaf in opened_names
        if is_opened and leaf.name not in verdicts.passes:
            undecided.append(leaf.name)
    return undecided


def _mean(
    answers: Sequence[AuditedAnswer], verdicts: Verdicts, *, behind: bool
) -> CorrectedMean:
    leaves = [leaf for answer in answers for leaf in answer.leaves]
    stratum_of = labelled_strata(leaves, verdicts)
    sizes: dict[Stratum, Counter[str]] = defaultdict(Counter)
    drawn: Counter[Stratum] = Counter()
    for leaf in leaves:
        stratum = stratum_of(leaf)
        sizes[stratum][leaf.name.task] += 1
        if leaf.name in verdicts.passes:
            drawn[stratum] += 1
    complete = set()
    for name, found in sizes.items():
        if drawn[name] == found.total():
            complete.add(name)
    answers_of_task = Counter(answer.task for answer in answers)
    scores: dict[str, list[float]] = defaultdict(list)
    labelled: list[LabelledLeaf] = []
    joint: list[JointChange] = []
    possible: list[PossiblePair] = []
    below = 0.0
    above = 0.0
    for answer in answers:
        scores[answer.task].append(answer.score)
        share = 1 / answers_of_task[answer.task]
        changes = _Changes(answer, verdicts, stratum_of, frozenset(complete), behind)
        for single in changes.single():
            effect = single.effect * share
            change = single.change * share
            labelled.append(replace(single, effect=effect, change=change))
        for together in changes.joint():
            change = together.change * share
            joint.append(replace(together, change=change))
        for pair in changes.possible():
            change = pair.change * share
            possible.append(replace(pair, change=change))
        for leaf in answer.leaves:
            if drawn[stratum_of(leaf)]:
                continue
            effect = changes.effect(leaf) * share / len(answers_of_task)
            below -= min(0.0, effect)
            above += max(0.0, effect)
    raw = {task: fmean(own) for task, own in scores.items()}
    used: dict[StratumName, Counter[str]] = {}
    for name, found in sizes.items():
        if drawn[name]:
            used[name] = found
    unlabelled = (below, above)
    mean = corrected_by_leaves(raw, used, labelled, joint, possible, unlabelled)
    return replace(mean, population=len(leaves))


class _Changes:
    """What the labels of one answer change in its score.

    Leaves of strata that have labels throughout are certain. The others are a sample: what they change counts
    by one over its chance to be in it.
    """

    def __init__(
        self,
        answer: AuditedAnswer,
        verdicts: Verdicts,
        stratum_of: Callable[[JudgedLeaf], Stratum],
        complete: frozenset[Stratum],
        behind: bool,
    ) -> None:
        self._answer = answer
        self._place = (answer.task, answer.answer)
        self._stratum_of = stratum_of
        self._behind: dict[str, bool] = {}
        for leaf in answer.skipped:
            passes = verdicts.passes.get(leaf.name, 0.5)
            is_open = passes == 0.5
            self._behind[leaf.name.leaf] = behind if is_open else passes > 0.5
        self._labelled: list[JudgedLeaf] = []
        # How far each labelled verdict is wrong: by half where auditors are divided.
        self._wrong: dict[JudgedLeaf, float] = {}
        self._complete = complete
        self._certain: list[JudgedLeaf] = []
        for leaf in answer.leaves:
            if leaf.name not in verdicts.passes:
                continue
            self._labelled.append(leaf)
            degree = abs(verdicts.passes[leaf.name] - leaf.passed)
            if degree:
                self._wrong[leaf] = degree
            if degree == 1 and stratum_of(leaf) in complete:
                self._certain.append(leaf)
        self._scores: dict[frozenset[JudgedLeaf], float] = {}

    @cached_property
    def _tree(self) -> _Tree | None:
        if self._answer.root is None:
            return None
        return _Tree(self._answer.root)

    @cached_property
    def _as_judged(self) -> float:
        return 0.0 if self._tree is None else self._tree.score({}, {})

    def effect(self, leaf: JudgedLeaf) -> float:
        """Return the greatest change if the verdict on a leaf is wrong."""
        if self._tree is None:
            return 0.0
        opened = {skipped.name.leaf: True for skipped in self._answer.skipped}
        other = self._tree.score({leaf.name.leaf: not leaf.passed}, opened)
        return other - self._as_judged

    def single(self) -> Iterator[LabelledLeaf]:
        """Yield the labelled leaves with what each changes alone."""
        for leaf in self._labelled:
            change = 0.0
            is_uncertain = leaf in self._wrong and leaf not in self._certain
            if is_uncertain and self._tree is not None:
                with_leaf = self._score(frozenset([leaf]))
                without_leaf = self._score(frozenset())
                change = self._wrong[leaf] * (with_leaf - without_leaf)
            # In the direction of the verdict, whatever noise of sums.
            change = min(0.0, change) if leaf.passed else max(0.0, change)
            stratum = self._stratum_of(leaf)
            yield LabelledLeaf(
                leaf.name,
                self._answer.task,
                stratum,
                self.effect(leaf),
                change,
                self._wrong.get(leaf, 0.0),
            )

    def joint(self) -> Iterator[JointChange]:
        """Yield what wrong verdicts change together: the certain ones, and others beyond their parts."""
        if not self._wrong or self._tree is None:
            return
        if self._certain:
            change = self._score(frozenset()) - self._as_judged
            yield JointChange(self._answer.task, self._place, frozenset(), change)
        uncertain = [leaf for leaf in self._wrong if leaf not in self._certain]
        uncertain.sort(key=lambda leaf: -abs(self.effect(leaf)))
        beyond: dict[frozenset[JudgedLeaf], float] = {}
        largest = uncertain[:_MOST_TOGETHER]
        for size in range(len(largest) + 1):
            for leaves in combinations(largest, size):
                chosen = frozenset(leaves)
                # Inclusion and exclusion: the smaller sets' changes are counted already.
                parts = sum(own for part, own in beyond.items() if part < chosen)
                beyond[chosen] = self._score(chosen) - parts
                if size < 2 or abs(beyond[chosen]) <= _NOISE:
                    continue
                degree = math.prod(self._wrong[leaf] for leaf in chosen)
                names = frozenset(leaf.name for leaf in chosen)
                change = degree * beyond[chosen]
                yield JointChange(self._answer.task, self._place, names, change)

    def possible(self) -> Iterator[PossiblePair]:
        """Yield wrong verdicts with others of the answer that change more or less together than alone."""
        if not self._wrong or self._tree is None:
            return
        none = frozenset[JudgedLeaf]()
        uncertain = []
        for leaf in self._answer.leaves:
            if self._stratum_of(leaf) not in self._complete:
                uncertain.append(leaf)
        for leaf, degree in self._wrong.items():
            if leaf in self._certain:
                continue
            one = frozenset([leaf])
            for other in uncertain:
                if other == leaf:
                    continue
                parts = self._score(one) + self._score(frozenset([other]))
                both = self._score(one | {other}) + self._score(none)
                beyond = degree * (both - parts)
                if abs(beyond) > _NOISE:
                    yield PossiblePair(leaf.name, self._stratum_of(other), beyond)

    def _score(self, corrected: frozenset[JudgedLeaf]) -> float:
        """Return the score with the certain and these verdicts corrected."""
        if self._tree is None:
            return self._answer.score
        if corrected not in self._scores:
            flipped = {}
            for leaf in (*self._certain, *corrected):
                flipped[leaf.name.leaf] = not leaf.passed
            self._scores[corrected] = self._tree.score(flipped, self._behind)
        return self._scores[corrected]


class _Tree:
    """An answer's rubric tree, scored with other verdicts on some leaves."""

    def __init__(self, root: WrittenNode) -> None:
        self._root = root
        self._leaves = [node for node in root.walk() if not node.children]
        self._has_named = any(
            leaf.evidence is not None and leaf.evidence.prerequisites
            for leaf in self._leaves
        )
        # Without any that the right verdicts would open, there is nothing to look for.
        everything = {id(leaf) for leaf in self._leaves}
        self._has_skipped = bool(unblocked(self._leaves, everything))
        failing = {id(leaf) for leaf in self._leaves if leaf.verdict.blocks}
        # The score as it is counts what the judge decided, whether or not something should have skipped it.
        self._closed: set[int] = set()
        if self._has_named:
            self._closed = blocked(root, self._leaves, failing)

    def score(self, verdicts: Mapping[str, bool], behind: Mapping[str, bool]) -> float:
        """Return the score.

        Args:
            verdicts: by leaf, in place of the judge's.
            behind: verdicts on leaves that were skipped, where they are no longer.
        """
        given = {}
        passing = set()
        for leaf in self._leaves:
            if leaf.id in verdicts:
                given[id(leaf)] = verdicts[leaf.id]
                if verdicts[leaf.id]:
                    passing.add(id(leaf))
        opened = unblocked(self._leaves, passing) if self._has_skipped else set()
        for leaf in self._leaves:
            if id(leaf) in opened and leaf.id in behind:
                given[id(leaf)] = behind[leaf.id]
        outcomes = {}
        for place, passes in given.items():
            outcomes[place] = _PASSED if passes else _FAILED
        if self._has_named:
            failing = set()
            for leaf in self._leaves:
                outcome = outcomes.get(id(leaf), leaf.verdict)
                if outcome.blocks:
                    failing.add(id(leaf))
            closed = blocked(self._root, self._leaves, failing) - self._closed
            outcomes |= dict.fromkeys(closed, _FAILED)
        return aggregate(self._root, outcomes)[id(self._root)].score
