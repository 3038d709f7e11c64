"""Means that labels or a better judge correct: against full enumeration of the samples, and by hand."""

import math
from itertools import combinations
from statistics import fmean, pvariance

import pytest

from mind2web2.statistics.correction import corrected_difference
from mind2web2.statistics.sampled_answers import (
    JudgedTwice,
    corrected_by_answers,
    sampling_order,
)
from mind2web2.statistics.sampled_leaves import (
    JointChange,
    LabelledLeaf,
    PossiblePair,
    corrected_by_leaves,
)

# Of each task: the judge's mean, and the effects of three leaves that it passed; those below 0.2 are wrong.
EFFECTS = [0.1, 0.3, 0.2, 0.05, 0.4, 0.15]
WRONG = [True, False, False, True, False, True]


def by_leaves(drawn):
    """Return the mean of six tasks with a leaf each, corrected by labels of the drawn ones."""
    labelled = [
        LabelledLeaf(
            n, f"task_{n}", "passed", -EFFECTS[n], -EFFECTS[n] if WRONG[n] else 0.0
        )
        for n in drawn
    ]
    sizes = {"passed": {f"task_{n}": 1 for n in range(6)}}
    return corrected_by_leaves({f"task_{n}": 0.8 for n in range(6)}, sizes, labelled)


def test_corrections_have_no_bias_and_know_their_error():
    """Over all samples of three of six leaves, of which each is as likely."""
    found = [by_leaves(drawn) for drawn in combinations(range(6), 3)]
    values = [fmean(one.by_task.values()) for one in found]
    truth = (
        0.8
        - sum(
            effect for effect, is_wrong in zip(EFFECTS, WRONG, strict=True) if is_wrong
        )
        / 6
    )
    assert fmean(values) == pytest.approx(truth)
    assert fmean(one.standard_error**2 for one in found) == pytest.approx(
        pvariance(values)
    )


def test_joint_changes_have_no_bias():
    """Of two wrong leaves of one answer, only both together change it."""
    sizes = {"failed": {"task": 5}}
    values = []
    for drawn in combinations(range(5), 3):
        labelled = [LabelledLeaf(n, "task", "failed", 0.0, 0.0) for n in drawn]
        joint = (
            [JointChange("task", "answer", frozenset([0, 1]), 0.5)]
            if {0, 1} <= set(drawn)
            else []
        )
        values.append(
            corrected_by_leaves({"task": 0.2}, sizes, labelled, joint).by_task["task"]
        )
    assert fmean(values) == pytest.approx(0.7)


def test_no_error_found_leaves_room_for_one():
    """In the direction in which leaves of the verdict err."""
    labelled = [LabelledLeaf(n, f"task_{n}", "passed", -0.2, 0.0) for n in range(10)]
    sizes = {"passed": {f"task_{n}": 10 for n in range(10)}}
    found = corrected_by_leaves({f"task_{n}": 0.5 for n in range(10)}, sizes, labelled)
    assert found.estimate == pytest.approx(0.5)
    assert found.these_tasks.low < 0.4
    assert found.these_tasks.high == pytest.approx(0.5)


def test_a_pair_of_wrong_verdicts_that_no_label_shows_is_left_room_for():
    """In its direction, as far as the share of wrong verdicts makes such pairs likely."""
    labelled = [
        LabelledLeaf(n, f"task_{n}", "passed", -0.2, -0.2 * (n < 2), float(n < 2))
        for n in range(10)
    ]
    sizes = {"passed": {f"task_{n}": 10 for n in range(10)}}
    raw = {f"task_{n}": 0.5 for n in range(10)}
    possible = [PossiblePair(n, "passed", 0.1) for n in range(2)]
    alone = corrected_by_leaves(raw, sizes, labelled)
    found = corrected_by_leaves(raw, sizes, labelled, possible=possible)
    assert (found.estimate, found.below) == (alone.estimate, alone.below)
    # Two wrong ones of ten stand for twenty, of which a fifth has a wrong partner, counted from both sides.
    expected = 20 * 0.2 * 0.1 / 2 / 10
    assert found.above == pytest.approx(math.hypot(alone.above, 1.5 * expected))


def answers(exact):
    """Return 12 answers to 6 tasks of which some have exact scores, by number."""
    cheap = [0.1, 0.5, 0.3, 0.7, 0.9, 0.4, 0.2, 0.8, 0.6, 0.0, 1.0, 0.5]
    return [
        JudgedTwice(f"task_{n // 2}", value, exact.get(n))
        for n, value in enumerate(cheap)
    ]


def test_a_judge_that_errs_alike_everywhere_is_corrected_by_the_difference():
    """Its weight is 1, and every sample gives the same."""
    whole = answers({})
    for drawn in ((0, 2, 4, 6, 8, 10), (1, 3, 5, 7, 9, 11), (0, 3, 4, 7, 9, 10)):
        found, weight = corrected_by_answers(
            answers({n: whole[n].cheap * 0.5 for n in drawn})
        )
        assert weight == pytest.approx(0.5)
        assert found.estimate == pytest.approx(found.raw * 0.5)
    assert (
        corrected_by_answers(answers({n: one.cheap for n, one in enumerate(whole)}))[
            0
        ].above
        == 0
    )


def test_scores_of_all_answers_by_the_better_judge_are_the_mean():
    """Exactly, whatever the cheap judge says."""
    exact = [0.3, 0.1, 0.9, 0.4, 0.6, 0.2, 0.8, 0.5, 0.5, 0.2, 0.7, 1.0]
    found, _ = corrected_by_answers(answers(dict(enumerate(exact))))
    assert (found.estimate, found.below) == (pytest.approx(fmean(exact)), 0)


def test_a_judge_of_no_use_has_no_weight():
    """The mean is that of the sample."""
    found, weight = corrected_by_answers(
        answers(dict.fromkeys((0, 4, 8), 0.2) | dict.fromkeys((3, 7, 11), 0.6))
    )
    assert weight < 0.6
    found, weight = corrected_by_answers(
        answers({0: 0.9, 3: 0.3, 4: 0.1, 7: 0.2, 9: 0.8, 11: 0.4})
    )
    assert weight == 0
    assert found.estimate == pytest.approx(fmean((0.9, 0.3, 0.1, 0.2, 0.8, 0.4)))


def test_a_sample_takes_tasks_in_turn():
    """Each round has one answer of each task, the same for one seed."""
    names = [(f"task_{n % 5}", f"answer_{n // 5}") for n in range(15)]
    order = sampling_order(names, seed=1)
    assert sorted(order) == sorted(names)
    assert all(
        len({task for task, _ in order[start : start + 5]}) == 5 for start in (0, 5, 10)
    )
    assert order == sampling_order(names[::-1], seed=1) != sampling_order(names, seed=2)


def test_more_labels_bring_the_interval_to_its_reach():
    """As many as are said."""
    found = by_leaves((0, 1, 2))
    assert found.more_wanted(1.0) == 0
    assert 0 < found.more_wanted(0.01) <= 3


def test_differences_are_paired_by_task():
    """Two agents with the same judge's error: it cancels."""
    first, second = by_leaves(range(6)), by_leaves(range(6))
    found = corrected_difference(first, second)
    assert (
        found.value,
        found.these_tasks.low,
        found.these_tasks.high,
    ) == pytest.approx((0, 0, 0))
    other = corrected_by_answers([JudgedTwice("other", 0.5, 0.5)])[0]
    with pytest.raises(ValueError, match="the tasks differ"):
        corrected_difference(first, other)
