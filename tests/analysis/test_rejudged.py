"""Answers that were judged again, by the same judge or another: hand-computed cases."""

import pytest

from mind2web2.analysis.judgings import (
    Judging,
    judge_agreement,
    repeatability,
)
from mind2web2.analysis.labels import LeafName


def judging(verdicts):
    """Return a judging of one answer a task; verdicts are ``+`` and ``-``, one a leaf."""
    scores = {(f"t{task}", "1"): own.count("+") / len(own) for task, own in enumerate(verdicts)}
    passed = {
        LeafName(f"t{task}", "1", f"l{place}"): verdict == "+"
        for task, own in enumerate(verdicts)
        for place, verdict in enumerate(own)
    }
    return Judging("judge", scores, passed)


def test_flips_between_judgments():
    """One of eight leaves in one of two judgments, with an interval over tasks."""
    found = repeatability([judging(["++", "+-"] * 4), judging(["++", "+-"] * 3 + ["++", "++"])])
    assert (found.answers, found.leaves, found.ever_flipped) == (8, 16, 1)
    assert found.flip_rate.value == pytest.approx(1 / 16)
    assert 0 <= found.flip_rate.low < 1 / 16 < found.flip_rate.high
    assert found.means == [0.75, 0.8125]
    steady = repeatability([judging(["+-"] * 8)] * 3)
    assert (steady.flip_rate.value, steady.flip_rate.low) == (0.0, 0.0)
    assert steady.flip_rate.high == pytest.approx(0.411, abs=1e-3)


def test_partial_completion_is_a_mean_over_tasks():
    """A task with three answers counts as much as one with a single answer."""
    scores = {("t0", "1"): 0.0, **{("t1", str(run)): 1.0 for run in range(3)}}
    one = Judging("judge", scores, {})
    assert repeatability([one, one]).means == [0.5, 0.5]
    assert judge_agreement(one, one).means == [0.5, 0.5]
    assert judge_agreement(one, Judging("other", {}, {})).means is None


def test_leaves_that_one_judge_did_not_decide_do_not_count():
    found = judge_agreement(judging(["+-"]), Judging("other", {}, {}))
    assert (found.leaves, found.agreement.value, found.kappa.value) == (0, None, None)


@pytest.mark.parametrize(
    ("verdicts", "other", "kappa", "ac1"),
    [
        ("+", "-", 0.0, -1.0),
        ("+", "+", 1.0, 1.0),
        ("-", "-", 1.0, 1.0),
        ("+-", "-+", -1.0, -1.0),
    ],
)
def test_coefficients_of_leaves_with_the_same_verdicts(verdicts, other, kappa, ac1):
    """Judges that differ at every leaf do not agree, even if each gives one verdict throughout."""
    found = judge_agreement(judging([verdicts] * 8), judging([other] * 8))
    assert (found.kappa.value, found.ac1.value) == (kappa, ac1)
