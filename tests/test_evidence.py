"""Evidence: a score can be audited from the result alone."""

import pytest
from evaluations import OTHER, PAGE, evidence_of, started, stored, tree_nodes
from scripted_judge import ScriptedJudge

from mind2web2 import AggregationStrategy
from mind2web2.verification.run_questions import BinaryEvalResult


@pytest.fixture
def cache(tmp_path):
    """Return a cache with two pages."""
    return stored(tmp_path)


async def test_a_score_can_be_audited_from_the_result_alone(cache):
    """Every leaf says who decided it and from what: claims, pages, votes, reasons, causes."""
    judge = ScriptedJudge(
        lambda question: BinaryEvalResult(
            reasoning=f"on {question.claim}", result="good" in question.claim
        )
    )
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf
    await evaluator.verify(
        "good claim", leaf("judged", ""), [PAGE], additional_instruction="Accept feet."
    )
    await evaluator.verify(
        "bad claim", leaf("denied", ""), [PAGE, OTHER, "https://lake.example/gone"]
    )
    await evaluator.verify("good answer", leaf("answer", ""), num_trials=1)
    gate = evaluator.add_custom_node(None, "gate", "")
    await evaluator.verify("good claim", leaf("skipped", ""), extra_prerequisites=[gate])
    nodes = tree_nodes(evaluator.get_summary())
    judged = nodes["judged"]["evidence"]
    assert (judged["decided_by"], judged["claim"]) == ("judge", "good claim")
    assert judged["additional_instruction"] == "Accept feet."
    page = judged["pages"][0]["page"]
    assert page["sha256"] == cache.digest(PAGE)
    assert (page["kind"], page["text_chars"], page["text_chars_stored"]) == (
        "web",
        11,
        11,
    )
    assert judged["pages"][0]["votes"] == [
        {"trial": trial, "supported": True, "reasoning": "on good claim"} for trial in (1, 2)
    ]
    outcomes = [check["outcome"] for check in nodes["denied"]["evidence"]["pages"]]
    assert outcomes == ["not_supported", "not_supported", "unavailable"]
    assert nodes["answer"]["evidence"]["votes"][0]["reasoning"] == "on good answer"
    assert nodes["skipped"]["evidence"]["reason"] == "not judged, because 'gate' failed"
    assert (
        nodes["gate"]["evidence"]["reason"]
        == "checked by the script without a judge: not met (value: None)"
    )


async def test_a_leaf_behind_a_shortfall_shows_what_was_superseded():
    """A leaf that passed and yet counts as skipped says so."""
    evaluator = started(ScriptedJudge(), strategy=AggregationStrategy.SEQUENTIAL)
    evaluator.add_leaf("open", "")
    await evaluator.verify("claim", evaluator.add_leaf("late", ""))
    late = tree_nodes(evaluator.get_summary())["late"]
    assert (late["status"], late["score"], late["evidence"]["decided_by"]) == (
        "skipped",
        0.0,
        "judge",
    )
    assert (late["superseded"]["status"], late["superseded"]["score"]) == (
        "passed",
        1.0,
    )


async def test_sources_that_name_no_page_are_remarked(cache):
    """The evidence says that a claim's citations were empty.

    A claim judged from the answer alone for that reason does not look like another.
    """
    evaluator = started(cache=cache)
    await evaluator.verify("claim", evaluator.add_leaf("leaf", ""), [None, ""])
    assert "name no page" in evidence_of(evaluator, "leaf")["reason"]


@pytest.mark.parametrize(
    ("sources", "quote", "expected"),
    [
        (
            PAGE,
            "80\u00a0M",
            {"match": "found", "source": "page", "start": 7, "end": 11},
        ),
        (
            PAGE,
            PAGE,
            {"match": "found", "source": "address", "start": 0, "end": len(PAGE)},
        ),
        (PAGE, "The lake is 80 m deep.", {"match": "not_found"}),
        (
            None,
            "80 m deep",
            {"match": "found", "source": "answer", "start": 12, "end": 21},
        ),
        (PAGE, " ", None),
    ],
)
async def test_the_passage_that_the_judge_quotes_is_looked_up(sources, quote, expected, cache):
    judge = ScriptedJudge(lambda _: BinaryEvalResult(reasoning="r", result=True, quote=quote))
    evaluator = started(judge, cache, answer="The lake is 80 m deep.")
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, sources, majority_vote=False)
    evidence = tree_nodes(evaluator.get_summary())["leaf"]["evidence"]
    [vote] = evidence["votes"] if sources is None else evidence["pages"][0]["votes"]
    assert vote.get("quote") == (expected and {"text": quote, **expected})
