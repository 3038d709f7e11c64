"""Agreement beyond chance, against figures of published implementations."""

import pytest

from mind2web2.statistics.paired import UNKNOWN, Pair, agreement_share, cohen_kappa, gwet_ac1, share

Z = 1.959963984540054
# Counts of yes/yes, yes/no, no/yes and no/no. Kappa and its standard error by statsmodels 0.15.0
# (cohens_kappa), AC1 and its standard error by irrCAC 0.4.4 (CAC(...).gwet()).
REFERENCES = [
    ((45, 15, 25, 15), 0.13043478260869554, 0.0986615376234396, 0.26605505, 0.10392143),
    ((118, 5, 2, 0), -0.02339181286549608, 0.012286756672845256, 0.94077634, 0.02305696),
    ((60, 7, 9, 24), 0.6325218190169958, 0.08324481001474748, 0.71671388, 0.06972591),
]


def pairs(counts):
    """Return pairs of labels with these counts."""
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    return [Pair(*kind) for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]


@pytest.mark.parametrize(("counts", "kappa", "kappa_error", "ac1", "ac1_error"), REFERENCES)
def test_kappa_and_ac1_are_those_of_published_implementations(counts, kappa, kappa_error, ac1, ac1_error):
    """Values and standard errors, which the normal intervals follow from."""
    found, other = cohen_kappa(pairs(counts)), gwet_ac1(pairs(counts))
    assert found.value == pytest.approx(kappa)
    assert found.low == pytest.approx(max(-1, kappa - Z * kappa_error))
    assert other.value == pytest.approx(ac1)
    assert other.high == pytest.approx(min(1, ac1 + Z * ac1_error))


def test_nothing_is_made_up_without_data():
    """A rater who gives one label throughout leaves kappa undetermined, not 0."""
    assert cohen_kappa([]) == gwet_ac1([]) == share([]) == UNKNOWN
    assert cohen_kappa([Pair(True, True)] * 9) == UNKNOWN
    assert cohen_kappa(pairs((4, 0, 1, 0))) == cohen_kappa(pairs((0, 0, 1, 4))) == UNKNOWN
    assert gwet_ac1([Pair(True, True)] * 9).value == 1


def test_share_has_wilsons_interval():
    """Figures of R's prop.test(8, 10, correct = FALSE) and binom::binom.wilson(0, 20)."""
    found = share([True] * 8 + [False] * 2)
    assert (found.low, found.high) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert share([False] * 20).high == pytest.approx(0.1611252, abs=1e-6)


def test_weights_undo_the_oversampling_of_a_stratum():
    """A leaf that stands for three counts as three leaves; the interval is wider than theirs."""
    sampled = [Pair(True, True, 3.0)] * 20 + [Pair(True, False)] * 10 + [Pair(False, False)] * 15
    whole = [Pair(True, True)] * 60 + [Pair(True, False)] * 10 + [Pair(False, False)] * 15
    for figure in (agreement_share, cohen_kappa, gwet_ac1):
        found, expected = figure(sampled), figure(whole)
        assert found.value == pytest.approx(expected.value)
        assert found.high - found.low > expected.high - expected.low
