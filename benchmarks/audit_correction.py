"""Corrected scores, by labels and by a strong judge, in simulations with known truth: bias and coverage."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean

from measuring import title

from mind2web2.rubric.verdicts import Evidence, Outcome, skip_reason
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.audited import AuditedAnswer, JudgedLeaf, judged_cells, sample
from mind2web2.runs.corrected import behind_wrong_gates, corrected_score
from mind2web2.runs.labels import LeafName, Verdicts
from mind2web2.statistics.agreement import share_by_task
from mind2web2.statistics.sampled_answers import (
    JudgedTwice,
    corrected_by_answers,
    sampling_order,
)
from mind2web2.statistics.uncertainty import Interval

SIMULATIONS = 120
# Of the agreement's intervals, which take less time.
AGREEMENTS = 5
CHEAP_PRICE = 0.1
_NOISE = 1e-9
_PASSED, _FAILED, _SKIPPED = (
    Outcome(1.0, "passed"),
    Outcome(0.0, "failed"),
    Outcome(0.0, "skipped"),
)

_BEHIND_GATE = Evidence(
    decided_by="prerequisite", reason=skip_reason("leaf_0", "failed")
)


@dataclass(frozen=True)
class Design:
    """A benchmark, a judge and an audit.

    Args:
        quality: the share of true leaves of each task; ``None`` draws it uniformly.
        wrong_failures: the judge's errors on true claims, and ``wrong_passes`` on false ones.
        gate_failures: its wrong failures of gates, in place of ``wrong_failures``.
        skips: leaves behind a gate that fails are skipped.
        is_clustered: all errors are in a fifth of the tasks, five times as frequent.
        labels: the size of the sample.
        given: labels until the auditor stops; ``None`` for all.
        seeds: of the sample, one an auditor; their labels count together.
        undecidable: shares of the wrong and of the right verdicts that the auditor cannot decide.
    """

    name: str
    tasks: int = 130
    runs: int = 3
    leaves: int = 8
    quality: float | None = None
    wrong_failures: float = 0.05
    wrong_passes: float = 0.2
    gate_failures: float | None = None
    skips: bool = False
    is_clustered: bool = False
    labels: int = 200
    given: int | None = None
    seeds: tuple[int, ...] = (0,)
    undecidable: tuple[float, float] = (0.0, 0.0)


AUDITS = (
    Design("130 x 1", runs=1),
    Design("130 x 3"),
    Design("160 x 3, 600 labels", tasks=160, labels=600),
    Design("errors in a fifth of the tasks", is_clustered=True),
    Design("errors in a fifth of 40 tasks", tasks=40, is_clustered=True),
    Design(
        "gates fail wrongly, none skipped",
        gate_failures=0.15,
        wrong_failures=0.0,
        wrong_passes=0.0,
    ),
    Design(
        "the same, skipped",
        gate_failures=0.15,
        wrong_failures=0.0,
        wrong_passes=0.0,
        skips=True,
    ),
    Design("all errors, skipped", gate_failures=0.15, skips=True),
    Design("24 leaves, 1,500 labels", leaves=24, runs=1, labels=1500),
    Design("24 leaves, all labelled", leaves=24, runs=1, tasks=30, labels=10**6),
    Design(
        "judge errs 1%, 60 labels", wrong_failures=0.01, wrong_passes=0.01, labels=60
    ),
    Design(
        "judge errs 3 and 10%, 60 labels",
        wrong_failures=0.03,
        wrong_passes=0.1,
        labels=60,
    ),
    Design("12 labels", labels=12),
    Design("stopped at 100 of 200", given=100),
    Design("stopped at 200 of 600", labels=600, given=200),
    Design("stopped at 260 of all", labels=10**6, given=260),
    Design("30 tasks, stopped at 60 of 200", tasks=30, runs=1, given=60),
    Design("two auditors, two seeds, 100 each", labels=100, seeds=(0, 1)),
    Design(
        "good agent, 30% passed wrongly",
        runs=1,
        quality=0.8,
        wrong_failures=0.0,
        wrong_passes=0.3,
    ),
    Design("judge biased by .2", wrong_failures=0.0, wrong_passes=0.4),
    Design("20 x 3", tasks=20),
    Design("20 x 3, all errors skipped", tasks=20, gate_failures=0.15, skips=True),
    Design("wrong verdicts undecidable, 30%", undecidable=(0.3, 0.05)),
)


@dataclass(frozen=True)
class Found:
    """One simulated audit.

    Args:
        truth: the score of these answers, without errors.
        population: the score over all tasks of the kind.
        alone: how far the interval of these tasks reaches by the strong judge's sample alone.
        strong_on_all: how far that of tasks at large reaches by the strong judge on all answers.
        share: of the answers, what the strong judge judged.
    """

    raw: float
    estimate: float
    is_shown: bool
    these: Interval | None
    large: Interval | None
    truth: float
    population: float
    alone: float | None = None
    strong_on_all: float | None = None
    extremes: tuple[float, float] | None = None
    share: float = 0.0


@cache
def _node(place: int, outcome: Outcome) -> WrittenNode:
    """Return a leaf; made once, as there are millions."""
    return WrittenNode(
        id=f"leaf_{place}",
        critical=place == 0,
        score=outcome.score,
        status=outcome.status,
        evidence=_BEHIND_GATE if outcome == _SKIPPED else None,
    )


class _World:
    """Answers with true and judged leaves; the first leaf is a gate, and the score the mean of the others."""

    def __init__(self, design: Design, seed: int) -> None:
        self.draws = random.Random(seed)
        self.truth: dict[LeafName, bool] = {}
        self.answers: list[AuditedAnswer] = []
        self.true_scores: list[float] = []
        for task in range(design.tasks):
            quality = self.draws.random() if design.quality is None else design.quality
            factor = 1.0
            if design.is_clustered:
                factor = 5.0 if self.draws.random() < 0.2 else 0.0
            for run in range(design.runs):
                self._add(design, f"task_{task}", f"answer_{run + 1}", quality, factor)

    def _add(
        self, design: Design, task: str, answer: str, quality: float, factor: float
    ) -> None:
        real = [self.draws.random() < quality for _ in range(design.leaves)]
        judged = []
        for place, own in enumerate(real):
            rate = design.wrong_failures if own else design.wrong_passes
            if own and place == 0 and design.gate_failures is not None:
                rate = design.gate_failures
            judged.append(own != (self.draws.random() < factor * rate))
        names = [
            LeafName(task, answer, f"leaf_{place}") for place in range(design.leaves)
        ]
        self.truth |= dict(zip(names, real, strict=True))
        self.true_scores.append(_score(real))
        is_skipped = design.skips and not judged[0]
        nodes, leaves = [], []
        for place, (name, passed) in enumerate(zip(names, judged, strict=True)):
            skipped = is_skipped and place > 0
            nodes.append(
                _node(place, _SKIPPED if skipped else _PASSED if passed else _FAILED)
            )
            leaves.append(
                JudgedLeaf(name, passed and not skipped, False, place == 0, skipped, "")
            )
        root = WrittenNode(id="root", status="failed", children=tuple(nodes))
        self.answers.append(
            AuditedAnswer(
                task,
                answer,
                0.0 if is_skipped else _score(judged),
                None,
                root,
                tuple(leaf for leaf in leaves if not leaf.is_skipped),
                tuple(leaf for leaf in leaves if leaf.is_skipped),
            )
        )

    def labels(self, design: Design) -> Verdicts:
        """Return the auditors' labels of their samples, and of the leaves behind gates that they pass."""
        judged = [leaf for answer in self.answers for leaf in answer.leaves]
        passes: dict[LeafName, float] = {}
        undecidable = set()
        for seed in design.seeds:
            for leaf in sample(
                judged, design.labels, seed=self.draws.randrange(10**9) + seed
            )[: design.given]:
                is_wrong = leaf.passed is not self.truth[leaf.name]
                if self.draws.random() < design.undecidable[0 if is_wrong else 1]:
                    undecidable.add(leaf.name)
                else:
                    passes[leaf.name] = float(self.truth[leaf.name])
        found = Verdicts(passes, frozenset(undecidable))
        for answer in self.answers if design.skips else ():
            for name in behind_wrong_gates(answer, found):
                passes[name] = float(self.truth[name])
        return found


def _score(verdicts: Sequence[bool]) -> float:
    return fmean(verdicts[1:]) if verdicts[0] else 0.0


def audited(design: Design, seed: int) -> Found | None:
    """Return one audit, ``None`` where its labels are too few for any statement."""
    world = _World(design, seed)
    labels = world.labels(design)
    found = corrected_score(world.answers, labels)
    if found is None or not found.mean.is_enough:
        return None
    quality = design.quality
    return Found(
        raw=found.mean.raw,
        estimate=found.mean.estimate,
        is_shown=found.value is not None,
        these=found.these_tasks,
        large=found.tasks_at_large,
        truth=fmean(world.true_scores),
        population=1 / 3 if quality is None else quality**2,
        extremes=found.if_undecidable,
    )


@dataclass(frozen=True)
class Rejudged:
    """A run by a cheap judge, and a share of its answers by a strong one.

    Args:
        quality: the share of true leaves of each task; ``None`` draws it uniformly.
        until: the target of ``auto``, which takes the place of the share.
    """

    name: str
    share: float
    tasks: int = 130
    runs: int = 3
    wrong: tuple[float, float] = (0.05, 0.05)
    strong_wrong: float = 0.01
    is_clustered: bool = False
    until: float | None = None
    leaves: int = 8
    quality: float | None = None

    @property
    def population(self) -> float:
        """Return the strong judge's score over all tasks of the kind."""
        # At a task with a share q of true leaves it passes s + r q of them, and the score is its square.
        slope = 1 - 2 * self.strong_wrong
        if self.quality is not None:
            return (self.strong_wrong + slope * self.quality) ** 2
        return self.strong_wrong**2 + self.strong_wrong * slope + slope**2 / 3


# A gate and one leaf, so that scores are 0 or 1. The cheap judge passes every answer, of which the strong one
# fails 5 or 10%; or both pass few.
_ALL_PASSED = Rejudged("", 0.1, strong_wrong=0.0, leaves=2, wrong=(0.0, 1.0))
_5_PERCENT_WRONG = replace(_ALL_PASSED, quality=0.975)
_10_PERCENT_WRONG = replace(_ALL_PASSED, quality=0.95, tasks=40, runs=1)
_FEW_PASSED = replace(_ALL_PASSED, quality=0.22, wrong=(0.0, 0.12))


SAMPLES = (
    *(Rejudged(f"130 x 3, {share:.0%}", share) for share in (0.1, 0.25, 0.5)),
    *(Rejudged(f"130 x 1, {share:.0%}", share, runs=1) for share in (0.1, 0.25, 0.5)),
    Rejudged("20 x 3, 10%", 0.1, tasks=20),
    Rejudged("20 x 3, 30%", 0.3, tasks=20),
    Rejudged("20 x 1, 50%", 0.5, tasks=20, runs=1),
    Rejudged("60 x 1, 20%, judge of no use", 0.2, tasks=60, runs=1, wrong=(0.5, 0.5)),
    Rejudged("130 x 3, 10%, judge of no use", 0.1, wrong=(0.5, 0.5)),
    Rejudged("130 x 3, 25%, biased by .2", 0.25, wrong=(0.05, 0.5)),
    Rejudged("40 x 3, 10%, biased by .2", 0.1, tasks=40, wrong=(0.05, 0.5)),
    Rejudged(
        "130 x 3, 10%, errors in a fifth", 0.1, wrong=(0.05, 0.2), is_clustered=True
    ),
    Rejudged(
        "130 x 3, 25%, errors in a fifth", 0.25, wrong=(0.05, 0.2), is_clustered=True
    ),
    Rejudged("130 x 3, judge errs 1%, 10%", 0.1, wrong=(0.01, 0.01)),
    Rejudged("130 x 3, stopped at +-.03", 1.0, until=0.03),
    Rejudged("130 x 3, stopped at +-.02", 1.0, until=0.02),
    Rejudged("130 x 3, biased by .2, until +-.04", 1.0, wrong=(0.05, 0.5), until=0.04),
    Rejudged("40 x 1, stopped at +-.05", 1.0, tasks=40, runs=1, until=0.05),
    *(
        replace(_10_PERCENT_WRONG, name=f"40 x 1, 10% wrong, {size}", share=size / 40)
        for size in (6, 10, 20)
    ),
    *(
        replace(
            _5_PERCENT_WRONG,
            name=f"130 x 1, 5% wrong, {size}",
            runs=1,
            share=size / 130,
        )
        for size in (13, 26)
    ),
    replace(_5_PERCENT_WRONG, name="130 x 3, 5% wrong, until +-.02", until=0.02),
    replace(_FEW_PASSED, name="130 x 1, few pass, 30", runs=1, share=30 / 130),
    replace(_FEW_PASSED, name="130 x 3, few pass, 60", share=60 / 390),
    replace(_FEW_PASSED, name="130 x 3, few pass, until +-.02", until=0.02),
)


def rejudged(design: Rejudged, seed: int) -> Found | None:
    """Return one sample of answers by a strong judge, whose verdicts on all of them are the truth here."""
    own = Design(
        "",
        tasks=design.tasks,
        runs=design.runs,
        leaves=design.leaves,
        quality=design.quality,
        wrong_failures=design.wrong[0],
        wrong_passes=design.wrong[1],
        is_clustered=design.is_clustered,
    )
    world = _World(own, seed)
    exact = []
    for answer in world.answers:
        true = [world.truth[leaf.name] for leaf in answer.leaves]
        exact.append(
            _score(
                [one != (world.draws.random() < design.strong_wrong) for one in true]
            )
        )
    names = [(answer.task, answer.answer) for answer in world.answers]
    # With the world's own seed the sample would depend on the errors.
    order = sampling_order(names, world.draws.randrange(10**9))
    places = {
        (answer.task, answer.answer): number
        for number, answer in enumerate(world.answers)
    }
    found = None
    for size in _sizes(design, len(order)):
        drawn = {places[name] for name in order[:size]}
        found = [
            JudgedTwice(
                answer.task, answer.score, exact[number] if number in drawn else None
            )
            for number, answer in enumerate(world.answers)
        ]
        mean, _ = corrected_by_answers(found)
        if design.until is not None and mean.is_within(design.until):
            mean = replace(mean, least_reach=design.until)
            break
    if found is None or not mean.is_enough:
        return None
    labels_alone = corrected_by_answers([replace(one, cheap=0.5) for one in found])[0]
    everything = [
        replace(one, exact=value) for one, value in zip(found, exact, strict=True)
    ]
    strong_on_all = _half(corrected_by_answers(everything)[0].tasks_at_large)
    return Found(
        raw=mean.raw,
        estimate=mean.estimate,
        is_shown=True,
        these=mean.these_tasks,
        large=mean.tasks_at_large,
        truth=fmean(exact),
        population=design.population,
        alone=_half(labels_alone.these_tasks),
        strong_on_all=strong_on_all,
        share=mean.labels / mean.population,
    )


def _sizes(design: Rejudged, total: int) -> Sequence[int]:
    return (
        [round(design.share * total)]
        if design.until is None
        else range(30, total + 1, 10)
    )


def _covers(interval: Interval | None, truth: float) -> bool:
    return (
        interval is not None
        and interval.low - _NOISE <= truth <= interval.high + _NOISE
    )


def _half(interval: Interval | None) -> float:
    return 0.0 if interval is None else (interval.high - interval.low) / 2


def report(
    name: str, simulate: Callable[[int], Found | None], simulations: int
) -> None:
    """Simulate a design and print a line."""
    every = [simulate(seed) for seed in range(simulations)]
    found = [one for one in every if one is not None]
    if not found:
        sys.stdout.write(f"  {name:36} no statement\n")
        return
    error = fmean((one.estimate - one.truth) ** 2 for one in found) ** 0.5
    raw_error = fmean((one.raw - one.truth) ** 2 for one in found) ** 0.5
    words = [
        f"{name:36} judge {fmean(one.raw - one.truth for one in found):+.3f}",
        f"corrected {fmean(one.estimate - one.truth for one in found):+.4f}",
        f"error {raw_error:.3f} -> {error:.3f}",
        f"these tasks {fmean(_covers(one.these, one.truth) for one in found):.1%}",
        f"at large {fmean(_covers(one.large, one.population) for one in found):.1%}",
        f"+-{fmean(_half(one.these) for one in found):.3f}",
    ]
    widths = [one.alone for one in found if one.alone]
    if widths:
        words.append(
            f"of the sample alone {fmean(_half(one.these) for one in found) / fmean(widths):.0%}"
        )
        complete = fmean(one.strong_on_all or 0.0 for one in found)
        price = CHEAP_PRICE + fmean(one.share for one in found)
        words.append(
            f"at large {fmean(_half(one.large) for one in found) / complete:.0%} of strong on all "
            f"for {price:.0%} of its price"
        )
    else:
        words.append(f"value shown {fmean(one.is_shown for one in found):.0%}")
    if len(found) < len(every):
        words.append(f"none in {1 - len(found) / len(every):.0%}")
    if any(one.extremes for one in found):
        holds = fmean(
            one.extremes[0] - _half(one.these)
            <= one.truth
            <= one.extremes[1] + _half(one.these)
            for one in found
            if one.extremes
        )
        words.append(f"with both extremes {holds:.1%}")
    sys.stdout.write("  " + ", ".join(words) + "\n")
    sys.stdout.flush()


def agreement(design: Design, simulations: int) -> None:
    """Print how often the intervals of agreement and error rates hold them."""
    pooled = _rates(design)
    hits = dict.fromkeys(pooled, 0)
    for seed in range(simulations):
        world = _World(design, seed)
        leaves = [leaf for answer in world.answers for leaf in answer.leaves]
        cells, _ = judged_cells(leaves, world.labels(design))
        # As in ``figures_of``, without the coefficients, which take long.
        rows = [own.counts for own in cells.values()]
        found = {
            "agreement": [(row[0] + row[3], sum(row)) for row in rows],
            "wrong passes": [(row[1], row[0] + row[1]) for row in rows],
            "wrong failures": [(row[2], row[2] + row[3]) for row in rows],
        }
        for name, shares in found.items():
            own = share_by_task(shares)
            hits[name] += (
                own.low is None
                or own.high is None
                or own.low - _NOISE <= pooled[name] <= own.high + _NOISE
            )
    listed = ", ".join(
        f"{name} {count / simulations:.1%}" for name, count in hits.items()
    )
    sys.stdout.write(f"  {design.name:36} {listed}\n")


def _rates(design: Design) -> dict[str, float]:
    """Return what the judge does on average, where half of the leaves are true."""
    wrong_failures, wrong_passes = design.wrong_failures / 2, design.wrong_passes / 2
    passes = 0.5 - wrong_failures + wrong_passes
    return {
        "agreement": 1 - wrong_failures - wrong_passes,
        "wrong passes": wrong_passes / passes,
        "wrong failures": wrong_failures / (1 - passes),
    }


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--designs", default="", help="only those with this text")
    return parser.parse_args()


def main() -> None:
    """Simulate and print."""
    asked = _asked()
    count = asked.simulations
    title(
        f"{count} audits by people a design: 8 leaves, 200 labels, errors of 5 and 20% unless said"
    )
    for design in AUDITS:
        if asked.designs in design.name:
            report(design.name, partial(audited, design), count)
    title(
        f"{count} samples of answers by a strong judge that errs by 1%; the cheap one costs a tenth"
    )
    for sample_design in SAMPLES:
        if asked.designs in sample_design.name:
            report(sample_design.name, partial(rejudged, sample_design), count)
    title("Intervals of agreement and error rates at 40 tasks")
    for runs, is_clustered in ((1, False), (3, False), (3, True)):
        name = f"40 x {runs}{', errors in a fifth' if is_clustered else ''}"
        if asked.designs in name:
            own = Design(name, tasks=40, runs=runs, is_clustered=is_clustered)
            agreement(own, AGREEMENTS * count)


if __name__ == "__main__":
    main()
