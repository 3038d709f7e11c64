"""Expected amounts and their ranges: more evidence narrows them, guesses widen them."""

import math

import pytest

from mind2web2.estimates import (
    NOTHING,
    Amounts,
    Sample,
    TaskEstimate,
    blended_sample,
    guessed_sample,
    sample_of,
    shares_left,
    total_ranges,
)


def amounts(requests, cost_usd=1.0):
    """Return amounts that differ in requests and dollars only."""
    return Amounts(requests, 1000.0, 500.0, 100.0, cost_usd)


def task(sample, answers=1, *, shares=None, least=None, name="lake"):
    """Return a task's estimate."""
    shares = shares or (1.0,) * answers
    return TaskEstimate(name, len(shares), len(shares), shares, least or shares, sample)


def requests_range(*tasks):
    """Return the range of the requests."""
    return total_ranges(tasks)[0]


def width(found):
    """Return how wide a range is, as a share of the expected amount."""
    return (found.high - found.low) / found.expected


def of_task(*requests):
    """Return a sample of a task's own evaluations."""
    return sample_of([amounts(count) for count in requests], "here", is_of_task=True)


def test_the_mean_of_earlier_evaluations_is_expected():
    """For each answer once."""
    found = requests_range(task(of_task(10, 20, 30), 4))
    assert found.expected == pytest.approx(80)
    assert 0 < found.low < 80 < found.high


def test_equal_evaluations_leave_no_doubt():
    """What never varied has a range of one number."""
    assert requests_range(task(of_task(10, 10, 10), 3)) == pytest.approx((30, 30, 30))


def test_a_lone_evaluation_says_less_than_several():
    """And a guess says least."""
    several = requests_range(task(of_task(20, 22, 18, 20)))
    lone = requests_range(task(of_task(20)))
    guess = requests_range(task(guessed_sample(amounts(20), "guess")))
    assert width(several) < width(lone) < width(guess)
    assert guess.low > 0


def test_chance_evens_out_over_answers():
    """Unless they are all of one unknown task, or guessed."""
    elsewhere = Sample(amounts(20), amounts(5), 9, is_of_task=False, basis="elsewhere")
    guess = guessed_sample(amounts(20), "guess")
    own = Sample(amounts(20), amounts(5), 9, is_of_task=True, basis="here")
    assert width(requests_range(task(own, 9))) < width(requests_range(task(own)))
    assert width(requests_range(task(elsewhere, 9))) == pytest.approx(width(requests_range(task(elsewhere))))
    assert width(requests_range(task(guess, 9))) == pytest.approx(width(requests_range(task(guess))))
    tasks = [task(elsewhere, name=f"task_{number}") for number in range(9)]
    assert width(requests_range(*tasks)) < width(requests_range(task(elsewhere, 9)))


def test_what_is_stored_lowers_what_is_left():
    """A part of an evaluation is expected, or at best nothing."""
    sample = of_task(10, 10)
    assert requests_range(task(sample, shares=(0.5, 1.0))).expected == pytest.approx(15)
    assert requests_range(task(sample, shares=(1.0, 1.0), least=(0.0, 1.0))) == pytest.approx((10, 20, 20))


def test_few_evaluations_are_drawn_towards_a_guess():
    """The more there are, the less; the range stays wide."""
    guess = guessed_sample(amounts(20), "a guess")
    means = []
    for count in (1, 2, 4):
        blend = blended_sample(of_task(*[2] * count), guess)
        assert blend.basis == "here and a guess"
        means.append(blend.mean.requests)
        found = requests_range(task(blend, 8))
        assert width(found) > 0.5
    assert means == pytest.approx([16.4, 12.8, 5.6])
    enough = of_task(2, 2, 2, 2, 2)
    assert blended_sample(enough, guess) is enough


@pytest.mark.parametrize(
    ("kept", "expected", "shares"),
    [
        (5, 10, (0.5, 0.5)),
        (9, 10, (0.2, pytest.approx(0.1))),
        (10, 10, (0.2, 0.0)),
        (30, 10, (pytest.approx(0.6), 0.0)),
        (3, 1, (1.0, 0.0)),
        (1, 0, (0.0, 0.0)),
    ],
)
def test_something_is_left_of_a_stopped_evaluation(kept, expected, shares):
    """Also where more is kept than was expected; at best it is as good as over."""
    assert shares_left(kept, expected) == shares


def test_an_unknown_price_stays_unknown():
    """The other amounts are known all the same."""
    sample = sample_of([amounts(10, math.nan)], "here", is_of_task=True)
    found = total_ranges([task(sample)])
    assert math.isnan(found[-1].expected)
    assert found[0].expected == pytest.approx(10)


def test_nothing_to_evaluate_takes_nothing():
    """Whatever there was earlier."""
    assert [found.expected for found in total_ranges([task(None)])] == list(NOTHING)
    assert task(None).expected == NOTHING
