"""Majority over trials: who wins, when it is settled, and how many trials that takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.rubric.verdicts import check_trials, outcome, trials_needed

ODD = st.integers(0, 6).map(lambda half: 2 * half + 1)


def vote(opinions, num_trials):
    """Return outcome, trials made and rounds of asking, with the judge's opinions given in order."""
    votes, rounds = [], 0
    while needed := trials_needed(votes, num_trials):
        votes += opinions[len(votes) : len(votes) + needed]
        rounds += 1
    return outcome(votes, num_trials), len(votes), rounds


@pytest.mark.parametrize(
    ("opinions", "num_trials", "expected", "trials"),
    [
        ("yyy", 3, True, 2),
        ("nny", 3, False, 2),
        ("yny", 3, True, 3),
        ("ynn", 3, False, 3),
        ("nyy", 3, True, 3),
        ("y", 1, True, 1),
        ("n", 1, False, 1),
        ("yynnn", 5, True, 2),
        ("nnyyy", 5, False, 2),
        ("ynyyn", 5, True, 4),
        ("ynnyy", 5, True, 5),
        ("nynyn", 5, False, 5),
        ("ynyny", 5, True, 5),
    ],
)
def test_votes_end_when_they_are_settled(opinions, num_trials, expected, trials):
    """Two first trials that agree settle it, or an absolute majority; five do not stop at a first opinion."""
    assert vote([letter == "y" for letter in opinions], num_trials)[:2] == (expected, trials)


@given(st.lists(st.booleans(), min_size=13, max_size=13), ODD)
def test_the_vote_keeps_its_promises(opinions, num_trials):
    """At least two trials, never more than allowed, and the side with more votes wins."""
    decided, trials, rounds = vote(opinions, num_trials)
    assert min(2, num_trials) <= trials <= num_trials
    assert decided is (sum(opinions[:trials]) * 2 > trials)
    assert rounds <= max(1, num_trials)


@given(st.lists(st.booleans(), min_size=2, max_size=13), ODD)
def test_trials_asked_together_are_all_needed(votes, num_trials):
    """With any fewer of them, agreeing or not, nothing would be settled."""
    needed = trials_needed(votes, num_trials)
    assert (needed == 0) is (outcome(votes, num_trials) is not None)
    for fewer in range(needed):
        assert outcome([*votes, *[True] * fewer], num_trials) is None
        assert outcome([*votes, *[False] * fewer], num_trials) is None


@pytest.mark.parametrize("num_trials", [0, 2, 4, -1, -3, True, 3.0, 2.5, "3", None])
def test_trials_must_be_an_odd_number(num_trials):
    """Anything else is a ValueError that shows it."""
    with pytest.raises(ValueError, match=repr(num_trials)):
        check_trials(num_trials)


@pytest.mark.parametrize("num_trials", [1, 3, 5, 99])
def test_odd_numbers_will_do(num_trials):
    """One request, or a vote of any odd size."""
    assert check_trials(num_trials) is None
