"""Counts of doubtful verdicts."""

import pytest

from mind2web2.analysis.metrics import agent_metrics, verdict_counts
from mind2web2.results.claim_facts import ClaimFacts
from mind2web2.results.scored_answer import ResultFacts, ScoredAnswer

NOTHING = {
    "page_not_had": 0,
    "suspect_page": 0,
    "declined": 0,
    "flagged": 0,
    "error": 0,
}
FINE = ClaimFacts(frozenset(), is_voted=True, is_split=False, quotes=("found", "not_found"))
SPLIT = ClaimFacts(frozenset(), is_voted=True, is_split=True)
GONE = ClaimFacts(frozenset({"page_not_had"}), is_voted=False, is_split=False)
DOUBLE = ClaimFacts(frozenset({"suspect_page", "flagged"}), is_voted=True, is_split=False)


def answer(task, number, *claims, score=1.0, **facts):
    """Return an answer with these claims."""
    facts = {"is_explained": True, **facts}
    return ScoredAnswer(
        task, f"answer_{number}.md", score, facts=ResultFacts(claims=claims, **facts)
    )


def test_claims_are_counted_by_what_speaks_against_them():
    found = verdict_counts(
        [
            answer("lake", 1, FINE, SPLIT),
            answer("lake", 2, GONE),
            answer("wood", 1, DOUBLE),
        ]
    )
    assert found.tasks["lake"].model_dump() == {
        "claims": 3,
        "reservations": NOTHING | {"page_not_had": 1},
        "voted": 2,
        "split": 1,
        "quotes": {"found": 1, "approximate": 0, "not_found": 1},
    }
    assert found.tasks["wood"].reservations == NOTHING | {
        "suspect_page": 1,
        "flagged": 1,
    }
    assert (found.claims, found.voted, found.split) == (4, 3, 1)
    assert found.reservations == NOTHING | {
        "page_not_had": 1,
        "suspect_page": 1,
        "flagged": 1,
    }


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"in_doubt": True}, "in_doubt"),
        ({"is_flagged": True}, "flagged_answers"),
        ({"is_explained": False}, "unexplained"),
        ({"is_explained": False, "is_treeless": True}, "treeless"),
        ({"is_off_tree": True}, "off_tree"),
    ],
)
def test_doubtful_answers_are_named(facts, name):
    found = verdict_counts([answer("lake", 1, **facts), answer("lake", 2)])
    lists = ("in_doubt", "flagged_answers", "treeless", "off_tree", "unexplained")
    named = {each: getattr(found, each) for each in lists if getattr(found, each)}
    assert named == {name: ("lake/answer_1.md",)}


def test_extractions_are_counted_apart():
    """An empty one leaves its claims without a subject."""
    extractions = (
        frozenset({"declined"}),
        frozenset({"page_not_had"}),
        frozenset({"declined"}),
    )
    found = verdict_counts([answer("lake", 1, extractions=extractions)])
    assert (
        found.extractions["declined"],
        found.extractions["page_not_had"],
        found.claims,
    ) == (
        2,
        1,
        0,
    )


def test_only_what_the_scores_rest_on_counts():
    """Answers without a score, or outside of the task list, have no part in it."""
    answers = [
        answer("lake", 1, FINE),
        answer("lake", 2, GONE, score=None),
        answer("wood", 1, GONE),
    ]
    found = agent_metrics("bot", answers, ["lake"]).verdicts
    assert (found.claims, list(found.tasks)) == (1, ["lake"])
