"""Verifying a claim: whom the judge is asked about, and what decides."""

import asyncio
import json

import pytest
from evaluations import OTHER, PAGE, evidence_of, started, stored
from pydantic import HttpUrl
from scripted_judge import ScriptedJudge

from mind2web2 import AggregationStrategy, EvaluatorConfig
from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.structured_output import read_reply
from mind2web2.verification.run_questions import BinaryEvalResult
from mind2web2.verification.verifier import urls_of


@pytest.fixture
def cache(tmp_path):
    """Return a cache with two pages."""
    return stored(tmp_path)


def supported_by(*addresses):
    """Return a judge for whom these pages, and no other, support any claim."""
    return ScriptedJudge(lambda question: question.blocks.get("page address") in addresses)


def asked(judge):
    """Return the page addresses of the questions, ``None`` for one on the answer alone."""
    return [question.blocks.get("page address") for question in judge.questions]


# Fields of the leaf


@pytest.mark.parametrize("quote", [{}, {"quote": ""}, {"quote": None}])
def test_a_verdict_without_a_quote_counts(quote):
    """Models that follow the schema in words write null where nothing is to be quoted."""
    reply = json.dumps({"reasoning": "r", "result": True, **quote})
    _, verdict = read_reply(Completion(reply), BinaryEvalResult)
    assert verdict.quote == ""


@pytest.mark.parametrize(
    ("opinion", "status", "score"), [(True, "passed", 1.0), (False, "failed", 0.0)]
)
async def test_the_verdict_is_written_and_returned(opinion, status, score):
    """The bool, the status and the score agree."""
    evaluator = started(ScriptedJudge(opinion))
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf) is opinion
    assert (leaf.status, leaf.score, evaluator.score()) == (status, score, score)


@pytest.mark.parametrize("opinion", [True, False])
async def test_without_a_node_there_is_only_the_bool(opinion):
    """The tree stays as it is."""
    evaluator = started(ScriptedJudge(opinion))
    assert await evaluator.verify("claim", None) is opinion
    assert evaluator.get_all_node_ids() == ["root"]


async def test_a_second_verification_replaces_the_verdict():
    """The last verdict counts, and what was skipped or failed does not stick."""
    evaluator = started(ScriptedJudge([False, False, True, True]))
    leaf = evaluator.add_leaf("leaf", "", status="skipped")
    for expected in (False, True):
        assert await evaluator.verify("claim", leaf) is expected
        assert evaluator.score() == float(expected)


async def test_the_claim_and_the_instruction_reach_the_judge():
    judge = ScriptedJudge()
    evaluator = started(judge, verify_model="judge-2", task_description="How deep?", answer="80 m")
    await evaluator.verify("It is 80 m deep.", None, additional_instruction="Accept feet.")
    blocks = judge.questions[0].blocks
    told = {"claim": "It is 80 m deep.", "extra instruction": "Accept feet."}
    assert blocks == {"task": "How deep?", "answer": "80 m", **told}
    assert (judge.questions[0].model, judge.questions[0].template) == (
        "judge-2",
        BinaryEvalResult,
    )


@pytest.mark.parametrize("nothing", ["None", None, "", "  "])
async def test_no_instruction_is_none_at_all(nothing):
    """The published default is a word that no judge should see as an instruction."""
    judge = ScriptedJudge()
    await started(judge).verify("claim", None, additional_instruction=nothing)
    assert "extra instruction" not in judge.questions[0].text


async def test_settings_of_the_evaluation_stand_in_for_arguments():
    """Trials, vote, screenshot and instruction default to the configuration's."""
    judge = ScriptedJudge([True, True, False])
    config = EvaluatorConfig(default_num_trials=5, default_additional_instruction="Be strict.")
    evaluator = started(judge, config=config)
    await evaluator.verify("claim", None)
    config.default_majority_vote = False
    assert await evaluator.verify("claim", None) is False
    assert [question.blocks["extra instruction"] for question in judge.questions] == [
        "Be strict."
    ] * 3


@pytest.mark.parametrize("claim", ["half of a \ud83d character", "", 80])
async def test_odd_claims_are_judged(claim):
    """A lone surrogate, an empty text or a number costs neither the leaf nor the answer."""
    judge = ScriptedJudge()
    evaluator = started(judge)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify(claim, leaf, additional_instruction="\udc00")
    assert judge.claims[0] == str(claim).replace("\ud83d", "?")
    assert evaluator.score() == 1.0


# Sources


@pytest.mark.parametrize(
    "sources",
    ["", " ", [None], ["", None], [" "], [[]], {""}, iter([None]), (), {}, b""],
)
async def test_sources_that_name_no_page_fail_the_claim(sources, cache):
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert not await evaluator.verify("claim", leaf, sources)
    assert judge.questions == []
    assert (leaf.status, leaf.evidence.decided_by) == ("failed", "page")
    assert leaf.evidence.reason == "the sources given name no page"


@pytest.mark.parametrize("sources", [None, []])
async def test_no_source_judges_from_the_answer_alone(sources, cache):
    """No page is looked at."""
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    assert await evaluator.verify("claim", None, sources)
    assert asked(judge) == [None, None]
    assert not judge.questions[0].images
    assert judge.questions[0].text.endswith("Is this claim correct?")


@pytest.mark.parametrize(
    "sources",
    [PAGE, [PAGE], (PAGE,), [None, PAGE, ""], f" {PAGE} ", {PAGE: 1}, HttpUrl(PAGE)],
)
async def test_one_source_is_judged_against_its_page(sources, cache):
    """A URL, a one-item list, a type of pydantic's: the judge sees the stored page."""
    judge = ScriptedJudge()
    assert await started(judge, cache).verify("claim", None, sources)
    assert asked(judge) == [PAGE, PAGE]
    assert judge.questions[0].blocks["page"] == "Depth: 80 m"


@pytest.mark.parametrize(
    ("good", "expected", "checked"),
    [
        ([PAGE, OTHER], True, [PAGE, PAGE]),
        ([OTHER], True, [PAGE, PAGE, OTHER, OTHER]),
        ([], False, [PAGE, PAGE, OTHER, OTHER]),
    ],
)
async def test_several_sources_stop_at_the_first_support(good, expected, checked, cache):
    judge = supported_by(*good)
    assert await started(judge, cache).verify("claim", None, [PAGE, OTHER]) is expected
    assert asked(judge) == checked


async def test_spellings_of_one_page_are_judged_once(cache):
    """Duplicates by page cost no further requests, whatever they look like."""
    judge = ScriptedJudge(False)
    others = [
        "http://www.lake.example/depth/",
        "lake.example/depth?utm_source=x",
        f"{PAGE}#top",
    ]
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert not await evaluator.verify("claim", leaf, [PAGE, PAGE, *others])
    assert asked(judge) == [PAGE, PAGE]
    assert len(leaf.evidence.pages) == 1


def test_pages_that_differ_are_all_kept():
    """Letter case in the path and other queries are other pages; order is the script's."""
    urls = [
        "https://v.example/A",
        "https://v.example/a",
        "https://v.example/a?x=1",
        "no url",
        "no url",
        "::",
    ]
    assert urls_of(urls) == [*urls[:4], "::"]
    assert urls_of(iter(urls[:2])) == urls[:2]


def test_a_page_keeps_the_place_and_spelling_it_was_first_given_with():
    assert urls_of([PAGE, OTHER, f"{PAGE}/", OTHER]) == [PAGE, OTHER]
    assert urls_of([[PAGE], None, (OTHER, [PAGE])]) == [PAGE, OTHER]


async def test_any_spelling_finds_the_stored_page(cache):
    """Escapes of markdown, a missing scheme and tracking parameters lead to the same page."""
    judge = ScriptedJudge()
    assert await started(judge, cache).verify(
        "claim", None, "WWW.lake.example/depth/?utm_medium=mail"
    )
    assert judge.questions[0].blocks["page"] == "Depth: 80 m"


async def test_an_unavailable_page_fails_without_a_question(cache):
    """The evidence says why."""
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, "https://lake.example/gone") is False
    assert (leaf.status, judge.questions) == ("failed", [])
    evidence = evidence_of(evaluator, "leaf")
    assert evidence["decided_by"] == "page"
    assert evidence["pages"] == [
        {
            "url": "https://lake.example/gone",
            "outcome": "unavailable",
            "reason": "not in the cache, and this run captures no pages",
        }
    ]


async def test_an_unavailable_page_does_not_affect_another(cache):
    """The next source may still support the claim."""
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, ["https://lake.example/gone", PAGE])
    assert [check.outcome for check in leaf.evidence.pages] == ["supported"]
    assert asked(judge) == [PAGE, PAGE]


@pytest.mark.parametrize(
    "address",
    ["not a url", "http://[", "javascript:alert(1)", "https://a.example/\ud800"],
)
async def test_what_is_no_url_is_a_page_that_cannot_be_had(address, cache):
    """Answers cite all sorts of things; the leaf fails, and no other is affected."""
    judge = ScriptedJudge()
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, [address]) is False
    assert (leaf.status, judge.questions) == ("failed", [])
    assert evaluator.score() == 0.0


async def test_without_a_cache_no_page_can_be_had():
    judge = ScriptedJudge()
    evaluator = started(judge)
    leaf = evaluator.add_leaf("leaf", "")
    assert not await evaluator.verify("claim", leaf, PAGE)
    assert leaf.evidence.pages[0].reason == "this evaluation has no page cache"


# Prerequisites


async def test_a_failed_prerequisite_costs_no_question():
    judge = ScriptedJudge()
    evaluator = started(judge)
    gate = evaluator.add_custom_node(False, "gate", "")
    beside, free = evaluator.add_leaf("beside", ""), evaluator.add_parallel("free", "")
    assert not await evaluator.verify("claim", beside)
    assert not await evaluator.verify("claim", None, extra_prerequisites=[gate])
    assert not await evaluator.verify(
        "claim", evaluator.add_leaf("below", "", free), extra_prerequisites=None
    )
    assert judge.questions == []
    assert (beside.status, beside.score, beside.evidence.reason) == (
        "skipped",
        0.0,
        "not judged, because 'gate' failed",
    )


async def test_a_skipped_leaf_skips_others():
    judge = ScriptedJudge([False, False])
    evaluator = started(judge, strategy=AggregationStrategy.SEQUENTIAL)
    leaves = [evaluator.add_leaf(name, "") for name in "abc"]
    assert [await evaluator.verify("claim", leaf) for leaf in leaves] == [
        False,
        False,
        False,
    ]
    assert [leaf.status for leaf in leaves] == ["failed", "skipped", "skipped"]
    assert leaves[2].evidence.reason == "not judged, because 'a' failed"


@pytest.mark.parametrize(
    "named", [lambda node: [node], lambda node: node, lambda node: [None, node]]
)
async def test_extra_prerequisites_are_taken_as_scripts_give_them(named):
    evaluator = started()
    failed = evaluator.add_leaf(
        "failed", "", evaluator.add_parallel("elsewhere", ""), status="failed"
    )
    leaf = evaluator.add_leaf("leaf", "", evaluator.add_parallel("here", ""))
    assert not await evaluator.verify("claim", leaf, extra_prerequisites=named(failed))
    assert leaf.evidence.prerequisites == (failed.id,)
    assert leaf.status == "skipped"


async def test_a_node_cannot_be_its_own_prerequisite():
    judge = ScriptedJudge()
    evaluator = started(judge)
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(ValueError, match="'leaf'"):
        await evaluator.verify("claim", leaf, extra_prerequisites=[leaf])
    assert (leaf.status, judge.questions) == ("initialized", [])


@pytest.mark.parametrize("sources", [None, PAGE, "https://lake.example/gone"])
@pytest.mark.parametrize("together", ["batch_verify", "gather"])
async def test_critical_siblings_verified_together_do_not_block_each_other(
    together, sources, cache
):
    """Each is decided by the judge or its page, though the other one fails."""
    evaluator = started(ScriptedJudge(False), cache)
    leaves = [evaluator.add_leaf(name, "", critical=True) for name in "abc"]
    if together == "gather":
        await asyncio.gather(*(evaluator.verify(leaf.id, leaf, sources) for leaf in leaves))
    else:
        await evaluator.batch_verify([(leaf.id, sources, leaf, "None") for leaf in leaves])
    assert [leaf.status for leaf in leaves] == ["failed"] * 3


async def test_nothing_decided_at_the_same_time_blocks():
    """Not even what needs no question blocks: a leaf without a page, or one that is skipped."""
    judge = ScriptedJudge()
    evaluator = started(judge, strategy=AggregationStrategy.SEQUENTIAL)
    first = evaluator.add_leaf("first", "")
    evaluator.add_leaf("failed", "", status="failed")
    skipped, pageless = (
        evaluator.add_leaf(name, "", critical=True) for name in ("skipped", "pageless")
    )
    results = await evaluator.batch_verify(
        [
            ("a", None, skipped, None),
            ("b", PAGE, pageless, None),
            ("c", None, first, None),
        ]
    )
    assert results == [False, False, True]
    assert (first.status, skipped.status) == ("passed", "skipped")


# Votes


@pytest.mark.parametrize(
    ("opinions", "settings", "expected"),
    [
        ([True, True], {}, True),
        ([False, False], {}, False),
        ([True, False, True], {}, True),
        ([True, False, False], {}, False),
        ([True], {"num_trials": 1}, True),
        ([False], {"num_trials": 1}, False),
        ([False], {"majority_vote": False}, False),
        ([True], {"majority_vote": False, "num_trials": 5}, True),
        ([True, True], {"num_trials": 5}, True),
        ([True, False, True, True], {"num_trials": 5}, True),
        ([True, False, False, True, False], {"num_trials": 5}, False),
    ],
)
@pytest.mark.parametrize("sources", [None, PAGE])
async def test_a_vote_takes_the_requests_it_needs(opinions, settings, expected, sources, cache):
    """The script holds exactly as many replies as may be asked for; the evidence lists each."""
    judge = ScriptedJudge(opinions)
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, sources, **settings) is expected
    votes = leaf.evidence.pages[0].votes if sources else leaf.evidence.votes
    assert [vote.supported for vote in votes] == opinions
    assert [vote.trial for vote in votes] == list(range(1, len(opinions) + 1))
    assert len(judge.questions) == len(opinions)


@pytest.mark.parametrize("num_trials", [0, 2, 4, -1, 3.0, "3"])
@pytest.mark.parametrize("majority_vote", [True, False])
async def test_trials_must_be_odd(num_trials, majority_vote):
    judge = ScriptedJudge()
    evaluator = started(judge)
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(ValueError, match="odd"):
        await evaluator.verify("claim", leaf, num_trials=num_trials, majority_vote=majority_vote)
    assert (leaf.status, judge.questions) == ("initialized", [])


# Several at once


async def test_a_batch_keeps_the_order():
    """Results stand where their claims stood; without a node there is still a result."""
    judge = ScriptedJudge(lambda question: question.claim == "b")
    evaluator = started(judge)
    leaf = evaluator.add_leaf("leaf", "")
    batch = [("a", None, leaf, "None"), ("b", None, None, "x"), ("c", None, None, None)]
    assert await evaluator.batch_verify(batch) == [False, True, False]
    assert await evaluator.batch_verify([]) == []


async def test_a_batch_passes_its_settings_on():
    """The keyword arguments hold for each."""
    judge = ScriptedJudge([True, False])
    results = await started(judge).batch_verify([("a", None, None, None)] * 2, majority_vote=False)
    assert sorted(results) == [False, True]


async def test_an_exception_stands_in_its_place():
    """A verification whose arguments make no sense costs the others nothing."""
    evaluator = started()
    leaf, other = evaluator.add_leaf("leaf", ""), evaluator.add_leaf("other", "")
    results = await evaluator.batch_verify(
        [("a", None, leaf, None), ("b", None, other, None)], extra_prerequisites=[leaf]
    )
    assert isinstance(results[0], ValueError)
    assert results[1] is True
    assert (leaf.status, other.status) == ("initialized", "passed")
