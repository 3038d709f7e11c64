"""Scores corrected by whole answers, in simulations with known truth: bias and coverage."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from measuring import title

from mind2web2.analysis.audited import AuditedAnswer, JudgedLeaf
from mind2web2.analysis.labelled_answers import score_by_labels, wanted_leaves
from mind2web2.analysis.labels import LeafName, Verdicts
from mind2web2.rubric.verdicts import Evidence, Outcome, aggregate
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.statistics.sampled_answers import (
    JudgedTwice,
    correct_by_answers,
    sampling_order,
)
from mind2web2.statistics.uncertainty import Interval

SIMULATIONS = 200
_NOISE = 1e-9
_OUTCOMES = {True: Outcome(1.0, "passed"), False: Outcome(0.0, "failed")}
_JUDGED = Evidence(decided_by="judge", claim="c")


def _leaf(name: str, *, critical: bool = False) -> WrittenNode:
    return WrittenNode(id=name, critical=critical, evidence=_JUDGED)


def _flat(leaves: int) -> WrittenNode:
    """Return a gate and other leaves beside it."""
    nodes = [_leaf(f"leaf_{n}", critical=n == 0) for n in range(leaves)]
    return WrittenNode(id="root", children=tuple(nodes))


def _deep() -> WrittenNode:
    """Return 60 leaves: four parts, each with a gate of its own and two parts behind it."""
    parts = []
    for part in range(4):
        inner = []
        for place in range(2):
            name = f"{part}_{place}"
            leaves = [_leaf(f"{name}_{n}", critical=n == 0) for n in range(7)]
            inner.append(WrittenNode(id=name, children=tuple(leaves)))
        gate = _leaf(f"{part}_gate", critical=True)
        parts.append(WrittenNode(id=f"{part}", children=(gate, *inner)))
    return WrittenNode(id="root", children=tuple(parts))


FLAT, DEEP = _flat(8), _deep()


@dataclass(frozen=True)
class Design:
    """A benchmark, a judge, and a sample of its answers.

    Args:
        sampled: the answers that a person labels.
        quality: the share of true leaves of a task, between these.
        wrong: the judge's errors on true and on false claims.
        gate_failures: its wrong failures of gates, in place of those of other leaves.
        clustered: all errors are in this share of the tasks.
        undecidable: the share of the judge's wrong verdicts that nobody can decide.
        mistakes: the share of the labels that are wrong.
    """

    name: str
    sampled: int
    tasks: int = 130
    runs: int = 1
    tree: WrittenNode = FLAT
    quality: tuple[float, float] = (0.0, 1.0)
    wrong: tuple[float, float] = (0.05, 0.2)
    gate_failures: float | None = None
    clustered: float = 1.0
    undecidable: float = 0.0
    mistakes: float = 0.0


_DEEP = Design("", 9, tree=DEEP, quality=(0.7, 1.0), wrong=(0.05, 0.1), tasks=30)
DESIGNS = (
    Design("130 x 1, 25 answers", 25),
    Design("130 x 1, 40 answers", 40),
    Design("130 x 3, 40 answers", 40, runs=3),
    Design("30 x 1, 8 answers", 8, tasks=30),
    Design("30 x 1, 15 answers", 15, tasks=30),
    Design("20 x 3, 20 answers", 20, tasks=20, runs=3),
    Design("6 x 3, 9 answers", 9, tasks=6, runs=3),
    Design("errors in a fifth of 130 tasks, 40", 40, clustered=0.2),
    Design("judge only passes too much, 30", 30, wrong=(0.0, 0.4)),
    Design("gates fail wrongly, 30", 30, wrong=(0.0, 0.0), gate_failures=0.15),
    Design("all errors and gates, 30", 30, gate_failures=0.15),
    Design("judge errs 1%, 20", 20, wrong=(0.01, 0.01)),
    Design("30% of wrong verdicts undecidable, 30", 30, undecidable=0.3),
    Design("5% of labels wrong, 30", 30, mistakes=0.05),
    replace(_DEEP, name="deep, 30 x 1, 9 answers"),
    replace(_DEEP, name="deep, 30 x 1, 18 answers", sampled=18),
    replace(_DEEP, name="deep, errs 2 and 5%, 9 answers", wrong=(0.02, 0.05)),
    replace(_DEEP, name="deep, errors in a third, 9 answers", clustered=1 / 3),
    replace(_DEEP, name="deep, 130 x 3, 9 answers", tasks=130, runs=3),
    replace(_DEEP, name="deep, 130 x 3, 36 answers", tasks=130, runs=3, sampled=36),
)


@dataclass(frozen=True)
class Found:
    """One simulated audit; ``labels`` is how many leaves of the sample had to be labelled."""

    raw: float
    estimate: float
    these: Interval | None
    large: Interval | None
    truth: float
    labels: int


class _World:
    """Answers with true and judged leaves."""

    def __init__(self, design: Design, seed: int) -> None:
        self._design = design
        self._draws = random.Random(seed)
        self.answers: list[AuditedAnswer] = []
        self.truth: dict[tuple[str, str], dict[str, bool]] = {}
        self.true_scores: list[float] = []
        for task in range(design.tasks):
            quality = self._draws.uniform(*design.quality)
            # The same number of errors, in fewer tasks.
            errs = 1 / design.clustered
            if self._draws.random() >= design.clustered:
                errs = 0.0
            for run in range(design.runs):
                self._add(f"task_{task}", f"answer_{run}", quality, errs)

    def _add(self, task: str, answer: str, quality: float, errs: float) -> None:
        design, tree = self._design, self._design.tree
        true: dict[str, bool] = {}
        judged: dict[str, bool] = {}
        for leaf in tree.leaves():
            is_true = self._draws.random() < quality
            rate = design.wrong[0] if is_true else design.wrong[1]
            if is_true and leaf.critical and design.gate_failures is not None:
                rate = design.gate_failures
            true[leaf.id] = is_true
            judged[leaf.id] = is_true != (self._draws.random() < errs * rate)
        leaves = [
            JudgedLeaf(LeafName(task, answer, name), passed, False, "")
            for name, passed in judged.items()
        ]
        score = _score(tree, judged)
        self.answers.append(AuditedAnswer(task, answer, score, None, tree, tuple(leaves)))
        self.truth[task, answer] = true
        self.true_scores.append(_score(tree, true))

    def labels(self, answer: AuditedAnswer) -> Verdicts:
        """Return a person's labels of an answer, one leaf after the other."""
        passes: dict[LeafName, float] = {}
        undecidable: set[LeafName] = set()
        while wanted := wanted_leaves(answer, Verdicts(passes, frozenset(undecidable))):
            leaf = wanted[0]
            true = self.truth[answer.name][leaf.name.leaf]
            is_hard = leaf.passed is not true
            if is_hard and self._draws.random() < self._design.undecidable:
                undecidable.add(leaf.name)
                continue
            is_mistake = self._draws.random() < self._design.mistakes
            passes[leaf.name] = float(true != is_mistake)
        return Verdicts(passes, frozenset(undecidable))


def _score(tree: WrittenNode, verdicts: dict[str, bool]) -> float:
    outcomes = {id(leaf): _OUTCOMES[verdicts[leaf.id]] for leaf in tree.leaves()}
    return aggregate(tree, outcomes)[id(tree)].score


def audited(design: Design, seed: int) -> Found | None:
    """Return one audit, ``None`` where its answers are too few for any statement."""
    world = _World(design, seed)
    by_name = {one.name: one for one in world.answers}
    # With the world's own seed the sample would depend on the errors.
    order = sampling_order([*by_name], seed + 10**6)[: design.sampled]
    scores = {}
    labels = 0
    for name in order:
        verdicts = world.labels(by_name[name])
        labels += len(verdicts.passes) + len(verdicts.undecidable)
        score = score_by_labels(by_name[name], verdicts)
        assert score is not None, "the answer is labelled"
        scores[name] = score
    middle, low, high = (
        correct_by_answers(
            [
                JudgedTwice(
                    one.task,
                    one.score,
                    getattr(scores[one.name], end) if one.name in scores else None,
                )
                for one in world.answers
            ]
        )[0]
        for end in ("middle", "low", "high")
    )
    if not middle.is_enough:
        return None
    return Found(
        raw=middle.raw,
        estimate=middle.estimate,
        these=_spanned(low.these_tasks, high.these_tasks),
        large=_spanned(low.tasks_at_large, high.tasks_at_large),
        truth=fmean(world.true_scores),
        labels=labels,
    )


def _spanned(low: Interval | None, high: Interval | None) -> Interval | None:
    return None if low is None or high is None else Interval(low.low, high.high)


def _covers(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low - _NOISE <= truth <= interval.high + _NOISE


def _half(found: Sequence[Found]) -> float:
    widths = [one.these.high - one.these.low for one in found if one.these is not None]
    return fmean(widths) / 2


def report(design: Design, simulations: int) -> list[Found]:
    """Simulate a design, print a line and return the audits."""
    every = [audited(design, seed) for seed in range(simulations)]
    found = [one for one in every if one is not None]
    at_large = fmean(one.truth for one in found)
    error = fmean((one.estimate - one.truth) ** 2 for one in found) ** 0.5
    sys.stdout.write(
        f"  {design.name:38} judge {fmean(one.raw - one.truth for one in found):+.3f}, corrected "
        f"{fmean(one.estimate - one.truth for one in found):+.4f}, error {error:.3f}, these tasks "
        f"{fmean(_covers(one.these, one.truth) for one in found):.1%} +-{_half(found):.3f}, at "
        "large "
        f"{fmean(_covers(one.large, at_large) for one in found):.1%}, "
        f"{fmean(one.labels for one in found):.0f} labels\n"
    )
    sys.stdout.flush()
    return found


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--designs", default="", help="only those with this text")
    asked = parser.parse_args()
    title(f"{asked.simulations} audits a design; the judge errs 5 and 20%")
    every: list[Found] = []
    for design in DESIGNS:
        if asked.designs in design.name:
            every += report(design, asked.simulations)
    covered = fmean(_covers(one.these, one.truth) for one in every)
    sys.stdout.write(f"  all: these tasks {covered:.1%}\n")


if __name__ == "__main__":
    main()
