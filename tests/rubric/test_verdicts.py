"""Outcomes of nodes, majorities of votes, evidence and its contradictions, on plain values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import (
    Evidence,
    Outcome,
    PageCheck,
    PageShown,
    Vote,
    aggregate,
    end_sequence,
    gate_then_average,
    implied_verdict,
)
from mind2web2.rubric.vote_rule import checked_trials, most_votes, outcome, trials_needed

PASSED, FAILED = Outcome(1.0, "passed"), Outcome(0.0, "failed")
SKIPPED, OPEN = Outcome(0.0, "skipped"), Outcome(0.0, "initialized")
HALF = Outcome(0.5, "partial")
OUTCOMES = st.lists(st.sampled_from([PASSED, FAILED, SKIPPED, OPEN, HALF]), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([PASSED, PASSED], [PASSED, PASSED]),
        ([PASSED, FAILED, PASSED, HALF], [PASSED, FAILED, SKIPPED, SKIPPED]),
        ([HALF, PASSED], [HALF, SKIPPED]),
        ([OPEN, PASSED, FAILED], [OPEN, SKIPPED, SKIPPED]),
        ([PASSED, FAILED], [PASSED, FAILED]),
        ([], []),
    ],
)
def test_the_first_shortfall_ends_a_sequence(children, expected):
    """The child that falls short keeps its outcome; all behind it are skipped."""
    assert end_sequence(children) == expected


@pytest.mark.parametrize(
    ("children", "critical", "expected"),
    [
        ([PASSED, FAILED], "nn", Outcome(0.5, "partial")),
        ([PASSED, HALF], "nn", Outcome(0.75, "partial")),
        ([PASSED, PASSED], "nn", PASSED),
        ([PASSED, PASSED], "cc", PASSED),
        ([PASSED], "c", PASSED),
        ([PASSED, FAILED], "cn", FAILED),
        ([PASSED, SKIPPED], "cn", SKIPPED),
        ([FAILED, PASSED], "cn", FAILED),
        ([HALF, PASSED], "cn", SKIPPED),
        ([OPEN, PASSED], "cn", SKIPPED),
        ([PASSED, HALF, FAILED, PASSED], "cnnc", Outcome(0.25, "partial")),
        ([SKIPPED, FAILED], "nn", FAILED),
        ([OPEN, OPEN], "nn", SKIPPED),
        ([SKIPPED, SKIPPED], "nn", SKIPPED),
    ],
)
def test_critical_children_gate_and_the_others_are_averaged(children, critical, expected):
    """Critical children never enter the average; any of them below 1.0 closes the gate."""
    assert gate_then_average(children, [letter == "c" for letter in critical]) == expected


@given(OUTCOMES, st.data())
def test_a_better_child_never_lowers_the_score(children, data):
    """Raising one child to passed raises the parent's score or leaves it, under both strategies."""
    critical = data.draw(st.lists(st.booleans(), min_size=len(children), max_size=len(children)))
    place = data.draw(st.integers(0, len(children) - 1))
    better = [*children[:place], PASSED, *children[place + 1 :]]
    for ordered in (list, end_sequence):
        before = gate_then_average(ordered(children), critical).score
        assert before <= gate_then_average(ordered(better), critical).score


def test_a_critical_child_behind_the_shortfall_closes_the_gate():
    """The gate looks at scores after the sequence was ended (scoring.md)."""
    leaves = [(0.5, "partial", False), (1.0, "passed", True)]
    children = [
        VerificationNode(id=f"n{place}", desc="", score=score, status=status, critical=critical)
        for place, (score, status, critical) in enumerate(leaves)
    ]
    root = VerificationNode(id="root", desc="", strategy="sequential", children=children)
    assert aggregate(root)[id(root)] == SKIPPED
    root.strategy = "parallel"
    assert aggregate(root)[id(root)] == Outcome(0.5, "partial")


@pytest.mark.parametrize("critical", [[], [False], [True], [False] * 3])
def test_every_child_is_critical_or_not(critical):
    """A flag too few or too many is an error, never a score of some of the children."""
    with pytest.raises(ValueError, match="argument 2"):
        gate_then_average([PASSED, FAILED], critical)


def test_aggregating_writes_nothing():
    """Outcomes are handed back by node; the nodes stay as they are."""
    leaf = VerificationNode(id="leaf", desc="", score=1.0, status="passed")
    root = VerificationNode(id="root", desc="", children=[leaf])
    assert aggregate(root) == {id(root): PASSED, id(leaf): PASSED}
    assert (root.score, root.status) == (0.0, "initialized")


@pytest.mark.parametrize(
    ("outcome", "blocks"),
    [(FAILED, True), (SKIPPED, True), (PASSED, False), (OPEN, False)],
)
def test_failed_and_skipped_leaves_block(outcome, blocks):
    assert outcome.blocks is blocks


ODD = st.integers(0, 6).map(lambda half: 2 * half + 1)


def vote(opinions, num_trials):
    """Return outcome, trials and rounds, for the judge's opinions in order."""
    votes, rounds = [], 0
    while (decided := outcome(votes, num_trials)) is None:
        votes += opinions[len(votes) : len(votes) + trials_needed(votes, num_trials)]
        rounds += 1
    return decided, len(votes), rounds


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
    """Two first trials that agree settle it, or an absolute majority.

    Five do not stop at a first opinion.
    """
    assert vote([letter == "y" for letter in opinions], num_trials)[:2] == (
        expected,
        trials,
    )


@given(st.lists(st.booleans(), min_size=13, max_size=13), ODD)
def test_the_vote_keeps_its_promises(opinions, num_trials):
    decided, trials, rounds = vote(opinions, num_trials)
    assert min(2, num_trials) <= trials <= num_trials
    assert decided is (sum(opinions[:trials]) * 2 > trials)
    assert rounds <= max(1, num_trials)


@given(st.lists(st.booleans(), min_size=2, max_size=13), ODD)
def test_trials_asked_together_are_all_needed(votes, num_trials):
    """With one trial less, agreeing or not, nothing would be settled."""
    if outcome(votes, num_trials) is not None:
        return
    needed = trials_needed(votes, num_trials)
    assert needed > 0
    for fewer in range(needed):
        assert outcome([*votes, *[True] * fewer], num_trials) is None
        assert outcome([*votes, *[False] * fewer], num_trials) is None


@pytest.mark.parametrize("num_trials", [0, 2, 4, -1, -3, True, 3.0, 2.5, "3", None])
def test_trials_must_be_an_odd_number(num_trials):
    """Anything else is a ValueError that shows it."""
    with pytest.raises(ValueError, match=repr(num_trials)):
        checked_trials(num_trials)


@pytest.mark.parametrize("num_trials", [1, 3, 5, 99])
def test_odd_numbers_will_do(num_trials):
    assert checked_trials(num_trials) == num_trials


PASSED, FAILED, SKIPPED = (
    Outcome(1.0, "passed"),
    Outcome(0.0, "failed"),
    Outcome(0.0, "skipped"),
)
SHOWN = PageShown(kind="web", sha256="ab", text_chars=1, text_chars_stored=1, images=0)


def cast(votes, first=1):
    """Return votes from letters: yes, no, declined, and (wrongly) declined in favour."""
    return tuple(
        Vote(
            trial=trial,
            supported=vote in "yY",
            reasoning="",
            declined="no" if vote in "dY" else None,
        )
        for trial, vote in enumerate(votes, start=first)
    )


def check(outcome, votes="", *, url="https://a.example", page=SHOWN, first=1):
    """Return the check of a page."""
    shown = None if outcome == "unavailable" else page
    return PageCheck(url=url, outcome=outcome, page=shown, votes=cast(votes, first))


def judged(*pages, votes="", num_trials=3):
    """Return what a judge has left."""
    return Evidence(decided_by="judge", votes=cast(votes), pages=pages, num_trials=num_trials)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (judged(votes="yy"), PASSED),
        (judged(votes="nyy"), PASSED),
        (judged(votes="yd"), FAILED),
        (judged(check("not_supported", "nn"), check("supported", "yny")), PASSED),
        (judged(check("unavailable"), check("not_supported", "nn")), FAILED),
        (Evidence(decided_by="prerequisite"), SKIPPED),
        (Evidence(decided_by="page", pages=(check("unavailable"),)), FAILED),
        (Evidence(decided_by="error"), FAILED),
        (Evidence(decided_by="script"), None),
    ],
)
def test_evidence_implies_a_verdict(evidence, verdict):
    """The majority of the votes on one page, whatever the page is said to be."""
    assert implied_verdict(evidence) == verdict
    relabelled = [page.model_copy(update={"outcome": "supported"}) for page in evidence.pages]
    assert implied_verdict(evidence.model_copy(update={"pages": tuple(relabelled)})) == verdict


@pytest.mark.parametrize(("votes", "asked", "most"), [(3, 3, 3), (3, 5, 5), (1, 3, 1), (1, 5, 5)])
def test_the_runs_number_replaces_the_scripts_default_number_alone(votes, asked, most):
    assert most_votes(asked, votes) == most
