"""The facts that results of any tool state about their making and verdicts."""

import asyncio
import json

import pytest
from evaluations import PAGE, started, stored
from hypothesis import given
from hypothesis import strategies as st
from result_parts import JUDGE, made_from, shown
from scripted_judge import ScriptedJudge

from mind2web2.results.claim_facts import ClaimFacts
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ResultFacts, result_facts
from mind2web2.results.task_facts import TaskFacts

PASSED, FAILED = {"score": 1.0, "status": "passed"}, {"score": 0.0, "status": "failed"}
FLAG = {"kind": "instruction", "excerpt": "x"}
SUPPORTED, REFUTED = "supported", "not_supported"
DECLINED = {
    "trial": 1,
    "supported": False,
    "reasoning": "",
    "declined": "I cannot help with that",
}


def votes(*opinions):
    """Return votes of these opinions."""
    return [
        {"trial": k, "supported": opinion, "reasoning": ""}
        for k, opinion in enumerate(opinions, start=1)
    ]


def check(outcome, *opinions, troubles=(), flags=()):
    """Return one page's check."""
    page = shown(troubles=list(troubles), flags=list(flags))
    return {"url": "u", "outcome": outcome, "page": page, "votes": votes(*opinions)}


GONE = {"url": "gone", "outcome": "unavailable", "reason": "HTTP status 404"}


def leaf(status, decided_by="judge", **evidence):
    """Return a leaf with this evidence."""
    return {
        "id": "x",
        "status": status,
        "children": [],
        "evidence": {"decided_by": decided_by, **evidence},
    }


def facts(*leaves, **more):
    """Return the facts of a result with these leaves."""
    tree = {
        "id": "root",
        "status": "partial",
        "children": [{"id": "part", "children": list(leaves)}],
    }
    return result_facts(ResultFile.of({"eval_breakdown": [{"verification_tree": tree}], **more}))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (leaf("passed", votes=votes(True, True)), set()),
        (leaf("failed", "page", pages=[GONE]), {"page_not_had"}),
        (leaf("failed", pages=[GONE, check(REFUTED, False, False)]), {"page_not_had"}),
        (leaf("passed", pages=[GONE, check(SUPPORTED, True, True)]), set()),
        (
            leaf("failed", pages=[check(REFUTED, False, False, troubles=["challenge"])]),
            {"suspect_page"},
        ),
        (
            leaf("passed", pages=[check(SUPPORTED, True, True, troubles=["challenge"])]),
            {"suspect_page"},
        ),
        (
            leaf(
                "passed",
                pages=[
                    check(REFUTED, False, troubles=["challenge"]),
                    check(SUPPORTED, True),
                ],
            ),
            set(),
        ),
        (leaf("failed", votes=[DECLINED, *votes(True, False)]), {"declined"}),
        (leaf("passed", votes=[DECLINED, *votes(True, True)]), set()),
        (
            leaf("failed", pages=[{**check(REFUTED), "votes": [DECLINED, DECLINED]}]),
            {"declined"},
        ),
        (leaf("passed", pages=[check(SUPPORTED, True, flags=[FLAG])]), {"flagged"}),
        (leaf("failed", flags=[FLAG], votes=votes(False, False)), {"flagged"}),
        (leaf("failed", "error", reason="KeyError: 'x'"), {"error"}),
        (
            {
                **leaf("skipped", pages=[GONE]),
                "superseded": {"score": 1.0, "status": "passed"},
            },
            set(),
        ),
        (
            {
                **leaf("skipped", pages=[GONE]),
                "superseded": {"score": 0.0, "status": "failed"},
            },
            {"page_not_had"},
        ),
    ],
)
def test_reservations_about_a_verdict(found, expected):
    """Troubles of the deciding pages, and anything that could have changed the verdict."""
    [claim] = facts(found).claims
    assert claim.reservations == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (leaf("passed", votes=votes(True)), (False, False)),
        (leaf("passed", votes=votes(True, True)), (True, False)),
        (leaf("passed", votes=votes(True, False, True)), (True, True)),
        (
            leaf("failed", pages=[check(REFUTED, False), check(REFUTED, False)]),
            (False, False),
        ),
        (
            leaf(
                "passed",
                pages=[check(REFUTED, False, False), check(SUPPORTED, True, True)],
            ),
            (True, False),
        ),
        (
            leaf(
                "passed",
                pages=[check(REFUTED, False, True, False), check(SUPPORTED, True)],
            ),
            (True, True),
        ),
        (leaf("failed", votes=[DECLINED, *votes(True)]), (False, False)),
    ],
)
def test_votes_differ_on_the_same_question_only(found, expected):
    """Pages that differ are not a split vote, and a refusal is not an opinion."""
    [claim] = facts(found).claims
    assert (claim.is_voted, claim.is_split) == expected


@pytest.mark.parametrize("decided_by", ["script", "prerequisite"])
def test_a_leaf_that_no_judge_decided_is_no_claim(decided_by):
    found = facts(leaf("skipped", decided_by))
    assert (found.claims, found.is_explained) == ((), True)


def test_a_result_without_a_tree_is_seen():
    assert result_facts(
        ResultFile.of({"eval_breakdown": [None, {"verification_tree": []}]})
    ).is_treeless
    assert not facts(leaf("passed")).is_treeless


@pytest.mark.parametrize(("score", "is_off_tree"), [(1.0, False), (0.25, True)])
def test_a_score_against_its_tree_is_seen(score, is_off_tree):
    """The script has returned another one than its leaves come to."""
    evaluator = started()
    evaluator.add_custom_node(True, "a", "", critical=False)
    result = ResultFile.of({**evaluator.get_summary(), "final_score": score})
    assert result_facts(result).is_off_tree is is_off_tree


def test_empty_and_doubtful_extractions_are_kept():
    """An unavailable page, or a refusal, leaves nothing to judge."""
    found = facts(
        extractions=[
            {"name": "towns", "url": "u", "unavailable": "HTTP status 404"},
            {"name": "lakes", "declined": "no"},
            {
                "name": "pages",
                "url": "u",
                "page": shown(troubles=["login"], flags=[FLAG]),
            },
            {"name": "fine", "url": "u", "page": shown()},
        ]
    )
    assert found.extractions == (
        {"page_not_had"},
        {"declined"},
        {"suspect_page", "flagged"},
    )


def test_how_it_was_made():
    result = ResultFile.of(
        {
            "judge_model": "o4-mini",
            "provenance": made_from(
                judge={
                    **JUDGE,
                    "model": "o4-mini",
                    "temperature": 0.0,
                    "reasoning_effort": None,
                },
                versions={"mind2web2": "1.2", "python": "3.11.2"},
                served=[
                    {
                        "model": "o4-mini-2025",
                        "system_fingerprint": "fp_1",
                        "judgments": 3,
                    },
                    {
                        "model": "o4-mini-2025",
                        "system_fingerprint": None,
                        "judgments": 1,
                    },
                    {"model": None, "system_fingerprint": None, "judgments": 1},
                ],
            ),
            "doubts": ["https://lake.example: HTTP status 500"],
            "answer_flags": [{"kind": "instruction", "excerpt": "x"}],
            "run": {"version": "1.1"},
        }
    )
    assert result_facts(result) == ResultFacts(
        judge="o4-mini temperature=0.0",
        server="https://judge.example",
        served=frozenset({"o4-mini-2025 (fp_1)", "o4-mini-2025"}),
        versions={"mind2web2": "1.2", "python": "3.11.2"},
        script="2025_07_14/lake.py",
        script_sha256="abc",
        in_doubt=True,
        is_treeless=True,
        is_flagged=True,
    )


@pytest.mark.parametrize("endpoint", ["replay", "client 140234", None])
def test_not_every_endpoint_tells_servers_apart(endpoint):
    """A replay's are any server's, and a client of the caller's own has a new name each time."""
    made = made_from(judge={**JUDGE, "endpoint": endpoint})
    assert result_facts(ResultFile.of({"provenance": made})).server is None


def test_facts_that_older_tools_leave_out_are_unknown():
    found = result_facts(ResultFile.of({"judge_model": "o4-mini"}))
    assert found == ResultFacts(
        judge="o4-mini, parameters not recorded",
        is_treeless=True,
    )


def test_a_real_evaluation_is_read(tmp_path):
    """One claim on the answer with a split vote, one on a page, one on a page that is not there."""
    evaluator = started(ScriptedJudge([True, False, True, False, False]), stored(tmp_path))

    async def evaluate():
        for claim, source in (
            ("deep", None),
            ("salty", PAGE),
            ("old", "https://lake.example/gone"),
        ):
            await evaluator.verify(claim, evaluator.add_leaf(claim, claim), source)

    asyncio.run(evaluate())
    # Leaves come in no order.
    assert set(result_facts(ResultFile.of(evaluator.get_summary())).claims) == {
        ClaimFacts(frozenset(), is_voted=True, is_split=True),
        ClaimFacts(frozenset(), is_voted=True, is_split=False),
        ClaimFacts(frozenset({"page_not_had"}), is_voted=False, is_split=False),
    }


KEYS = st.sampled_from(
    [
        "eval_breakdown",
        "verification_tree",
        "children",
        "evidence",
        "decided_by",
        "pages",
        "page",
        "votes",
        "troubles",
        "flags",
        "supported",
        "declined",
        "outcome",
        "provenance",
        "judge",
        "served",
        "versions",
        "run",
        "version",
        "extractions",
        "superseded",
        "status",
        "judge_model",
        "url",
        "doubts",
    ]
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.sampled_from(["judge", "page", "unavailable", "supported", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)


@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_no_content_makes_it_fail(content):
    """Any tool may have written a result; malformed fields say nothing."""
    found = result_facts(ResultFile.of(content))
    assert all(isinstance(claim, ClaimFacts) for claim in found.claims)


def test_facts_with_half_a_surrogate_are_written(tmp_path):
    """A judge's server may report such a name."""
    path = tmp_path / "answer_1/results/20250714_120000_answer_1.md.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"final_score": 1, "judge_model": "\ud800"}))
    for _ in range(2):
        facts = TaskFacts(tmp_path)
        assert facts.answer(path).judge_model == "\ud800"
        facts.write()
