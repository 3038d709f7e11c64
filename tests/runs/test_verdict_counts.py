"""How many verdicts rest on something doubtful."""

from mind2web2.runs.comparability import verdict_counts
from mind2web2.runs.metrics import agent_metrics
from mind2web2.runs.reader import ClaimFacts, ResultFacts
from mind2web2.runs.score_matrix import ScoredAnswer

FINE = ClaimFacts(frozenset(), is_voted=True, is_split=False, quotes=("found", "not_found"))
SPLIT = ClaimFacts(frozenset(), is_voted=True, is_split=True)
GONE = ClaimFacts(frozenset({"page_not_had"}), is_voted=False, is_split=False)
DOUBLE = ClaimFacts(frozenset({"suspect_page", "flagged"}), is_voted=True, is_split=False)


def answer(task, number, *claims, score=1.0, **facts):
    """Return an answer with these claims."""
    facts = {"is_explained": True, **facts}
    return ScoredAnswer(task, f"answer_{number}.md", score, facts=ResultFacts(claims=claims, **facts))


def test_claims_are_counted_by_what_speaks_against_them():
    """In all and by task; one may count twice."""
    found = verdict_counts(
        [answer("lake", 1, FINE, SPLIT), answer("lake", 2, GONE), answer("wood", 1, DOUBLE)]
    )
    nothing = {"page_not_had": 0, "suspect_page": 0, "declined": 0, "flagged": 0, "error": 0}
    none = {"found": 0, "approximate": 0, "not_found": 0}
    quoted = none | {"found": 1, "not_found": 1}
    assert found.summary() == {
        "claims": 4,
        "reservations": nothing | {"page_not_had": 1, "suspect_page": 1, "flagged": 1},
        "voted": 3,
        "split": 1,
        "quotes": quoted,
        "tasks": {
            "lake": {
                "claims": 3,
                "reservations": nothing | {"page_not_had": 1},
                "voted": 2,
                "split": 1,
                "quotes": quoted,
            },
            "wood": {
                "claims": 1,
                "reservations": nothing | {"suspect_page": 1, "flagged": 1},
                "voted": 1,
                "split": 0,
                "quotes": none,
            },
        },
        "extractions": nothing,
        "in_doubt": [],
        "flagged_answers": [],
        "treeless": [],
        "off_tree": [],
        "unexplained": [],
    }


def test_answers_are_named():
    """Those in doubt, those that talk to the judge, those off it, those of which nothing is known."""
    found = verdict_counts(
        [
            answer("lake", 1, in_doubt=True),
            answer("lake", 2, is_flagged=True),
            answer("lake", 3, is_explained=False),
            answer("lake", 4, is_explained=False, is_treeless=True),
            answer("lake", 5, is_off_tree=True),
        ]
    )
    assert found.in_doubt == ("lake/answer_1.md",)
    assert found.flagged == ("lake/answer_2.md",)
    assert found.treeless == ("lake/answer_4.md",)
    assert found.off_tree == ("lake/answer_5.md",)
    assert found.unexplained == ("lake/answer_3.md",)


def test_extractions_are_counted_apart():
    """An empty one leaves its claims without a subject."""
    extractions = (frozenset({"declined"}), frozenset({"page_not_had"}), frozenset({"declined"}))
    found = verdict_counts([answer("lake", 1, extractions=extractions)])
    assert (found.extractions["declined"], found.extractions["page_not_had"], found.total.claims) == (2, 1, 0)


def test_only_what_the_scores_rest_on_counts():
    """Answers without a score, or outside of the task list, have no part in it."""
    answers = [answer("lake", 1, FINE), answer("lake", 2, GONE, score=None), answer("wood", 1, GONE)]
    found = agent_metrics("bot", answers, ["lake"]).verdicts
    assert (found.total.claims, list(found.tasks)) == (1, ["lake"])
