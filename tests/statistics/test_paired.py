"""Paired values against figures of published implementations: differences and agreement."""

import math
import random
from itertools import product

import pytest

from mind2web2.statistics.paired import (
    UNKNOWN,
    Estimate,
    Pair,
    PairedTest,
    cohen_kappa,
    detectable_difference,
    gwet_ac1,
    share_difference,
)

DIFFERENCES = [0.3, -0.1, 0.25, 0.0, 0.5, 0.125, -0.2, 0.4, 0.05, 0.15]
LIMITS = (-1.0, 1.0)


@pytest.mark.parametrize(
    ("differences", "p_value"),
    [(DIFFERENCES, 0.07421875), ([1, -0.5, 0.25, 0.75, 0.5, 0.125, 0.2], 0.140625)],
)
def test_the_p_value_is_that_of_scipy_with_ties_counted_half(differences, p_value):
    """Scipy 1.17.1: permutation_test(permutation_type="samples", n_resamples=inf) of the mean."""
    ties = sum(
        math.isclose(sum(map(math.prod, zip(differences, signs, strict=True))), sum(differences))
        for signs in product((1, -1), repeat=len(differences))
    )
    p_value -= ties / 2 ** len(differences)
    found = PairedTest.of(differences)
    assert (found.p_value, found.is_exact) == (pytest.approx(p_value), True)
    assert PairedTest.of([-value for value in differences]).p_value == pytest.approx(p_value)


@pytest.mark.parametrize(
    ("losses", "gains", "p_value"),
    [
        (1, 8, 0.021484375),
        (10, 25, 0.0113309844),
        (4, 4, 1.0),
        (0, 6, 0.015625),
        (0, 5, 0.03125),
    ],
)
def test_successes_of_single_runs_get_mcnemars_mid_p_test(losses, gains, p_value):
    """The p-values come from statsmodels 0.15.0.

    They are mcnemar([[50, losses], [gains, 47]], exact=True), less binom.pmf of scipy.
    """
    found = PairedTest.of([0.0] * 97 + [-1.0] * losses + [1.0] * gains, LIMITS)
    assert (found.p_value, found.is_exact) == (pytest.approx(p_value), True)


def test_many_tasks_agree_with_the_t_test():
    """Drawn patterns come close to the normal limit: the t interval and its p-value."""
    draws = random.Random(1)
    values = [draws.gauss(0.05, 0.3) for _ in range(130)]
    mean = sum(values) / 130
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / 129 / 130)
    found = PairedTest.of(values)
    assert not found.is_exact
    assert found.interval.low == pytest.approx(mean - 1.97852 * error, abs=0.004)
    assert found.interval.high == pytest.approx(mean + 1.97852 * error, abs=0.004)
    assert found.p_value == pytest.approx(math.erfc(mean / error / math.sqrt(2)), abs=0.02)


def test_the_interval_excludes_zero_where_the_test_rejects():
    """Intervals of shifted differences end where p crosses 5%."""
    interval = PairedTest.of(DIFFERENCES).interval
    for end, outwards in ((interval.low, -1), (interval.high, 1)):
        inside, outside = (
            PairedTest.of([value - end - outwards * step for value in DIFFERENCES]).p_value
            for step in (-1e-4, 1e-4)
        )
        # The p-value counts the observed pattern half.
        assert outside <= 0.05 < inside + 1 / 2**9


def test_too_few_or_equal_differences_have_no_interval():
    """Five tasks have too few sign patterns.

    Equal differences show no spread, but for an exact limit.
    """
    assert PairedTest.of([]).p_value is None
    assert PairedTest.of([0.1, 0.2, 0.3, 0.4, 0.5]).interval is None
    assert (
        PairedTest.of([0.1, 0.2, 0.3, 0.4, 0.5]).p_value
        == PairedTest.of([1.0] * 5).p_value
        == 2 / 2**5
    )
    assert PairedTest.of([0.0] * 5, LIMITS).interval is None
    assert PairedTest.of([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).interval is not None
    assert PairedTest.of([0.5] * 8, LIMITS).interval is None
    assert PairedTest.of([0.0] * 8, LIMITS).p_value == 1.0
    assert PairedTest.of([1.0] * 8, LIMITS).interval.low == pytest.approx(0.2612, abs=1e-4)


def test_holm_is_that_of_statsmodels():
    """Statsmodels 0.15.0: multipletests(method="holm")."""
    assert PairedTest.adjusted([0.01, 0.04, 0.03, 0.005, 0.2]) == pytest.approx(
        [0.04, 0.09, 0.09, 0.025, 0.2]
    )
    assert PairedTest.adjusted([]) == []


@pytest.mark.parametrize(("tasks", "effect"), [(10, 0.996), (30, 0.52924), (130, 0.24756)])
def test_the_detectable_difference_is_that_of_statsmodels(tasks, effect):
    """Statsmodels 0.15.0: TTestPower().solve_power(nobs=tasks, alpha=0.05, power=0.8)."""
    assert detectable_difference(tasks, 1.0) == pytest.approx(effect, rel=0.02)
    assert detectable_difference(1, 1.0) is None


Z = 1.959963984540054
# Counts of yes/yes, yes/no, no/yes and no/no. Kappa and its standard error by statsmodels 0.15.0
# (cohens_kappa), AC1 and its standard error by irrCAC 0.4.4 (CAC(...).gwet()).
REFERENCES = [
    ((45, 15, 25, 15), 0.13043478260869554, 0.0986615376234396, 0.26605505, 0.10392143),
    (
        (118, 5, 2, 0),
        -0.02339181286549608,
        0.012286756672845256,
        0.94077634,
        0.02305696,
    ),
    ((60, 7, 9, 24), 0.6325218190169958, 0.08324481001474748, 0.71671388, 0.06972591),
]


def pairs(counts):
    """Return pairs of labels with these counts."""
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    return [Pair(*kind) for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]


@pytest.mark.parametrize(("counts", "kappa", "kappa_error", "ac1", "ac1_error"), REFERENCES)
def test_kappa_and_ac1_are_those_of_published_implementations(
    counts, kappa, kappa_error, ac1, ac1_error
):
    """Values and standard errors, which the normal intervals follow from."""
    found, other = cohen_kappa(pairs(counts)), gwet_ac1(pairs(counts))
    assert found.value == pytest.approx(kappa)
    assert found.low == pytest.approx(max(-1, kappa - Z * kappa_error))
    assert other.value == pytest.approx(ac1)
    assert other.high == pytest.approx(min(1, ac1 + Z * ac1_error))


def test_nothing_is_made_up_without_data():
    """A rater who gives one label throughout leaves kappa undetermined, not 0."""
    assert cohen_kappa([]) == gwet_ac1([]) == Estimate.of_share(0, 0) == UNKNOWN
    assert cohen_kappa([Pair(True, True)] * 9) == UNKNOWN
    assert cohen_kappa(pairs((4, 0, 1, 0))) == cohen_kappa(pairs((0, 0, 1, 4))) == UNKNOWN
    assert gwet_ac1([Pair(True, True)] * 9).value == 1


def test_share_has_wilsons_interval():
    """Figures of R's prop.test(8, 10, correct = FALSE) and binom::binom.wilson(0, 20)."""
    found = Estimate.of_share(8, 10)
    assert (found.low, found.high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert Estimate.of_share(0, 20).high == pytest.approx(0.1611252, abs=1e-6)


def test_weights_undo_the_oversampling_of_a_stratum():
    """A leaf that stands for three counts as three leaves; the interval is wider than theirs."""
    sampled = [Pair(True, True, 3.0)] * 20 + [Pair(True, False)] * 10 + [Pair(False, False)] * 15
    whole = [Pair(True, True)] * 60 + [Pair(True, False)] * 10 + [Pair(False, False)] * 15
    for figure in (cohen_kappa, gwet_ac1):
        found, expected = figure(sampled), figure(whole)
        assert found.value == pytest.approx(expected.value)
        assert found.high - found.low > expected.high - expected.low


def test_a_difference_of_shares_has_newcombes_interval():
    """Each end is as far as the ends of both shares that lead there, at a right angle."""
    first, second = Estimate(0.5, 0.47, 0.54), Estimate(0.75, 0.72, 0.79)
    found = share_difference(first, second)
    assert (found.value, found.low, found.high) == pytest.approx((0.25, 0.2, 0.3))
    assert share_difference(Estimate(0.5), second) == Estimate(0.25)
    assert share_difference(UNKNOWN, second) == share_difference(first, UNKNOWN) == UNKNOWN
