"""The cautions that a user reads beside a run's results."""

import pytest
from result_parts import made_from, shown, vote

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.evaluate_report import print_scores
from mind2web2.results.answers import TaskWork
from mind2web2.results.cautions import CautionFacts, cautions
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.answer import AnswerOutcome

TORN = "the script has set a score that contradicts the status"


def check(url, outcome, **more):
    """Return a page's check."""
    return {"url": url, "outcome": outcome, **more}


def claims(*troubles, doubts=()):
    """Return a result with a claim for each page with these troubles."""
    leaves = []
    for number, kinds in enumerate(troubles):
        pages = [check("u", "not_supported", page=shown(troubles=kinds))]
        evidence = {"decided_by": "judge", "pages": pages}
        leaves.append({"id": f"leaf_{number}", "evidence": evidence})
    tree = {"id": "root", "children": leaves}
    return {"eval_breakdown": [{"verification_tree": tree}], "doubts": list(doubts)}


def leaves_of(result):
    """Return the leaves of such a result."""
    return result["eval_breakdown"][0]["verification_tree"]["children"]


def told(result, recapture=""):
    """Return what a user is told of one result."""
    return cautions([CautionFacts.of("lake", "answer_1.md", ResultFile.of(result))], recapture)


def test_the_counts_of_suspect_pages_add_up():
    """A claim whose page has two troubles is counted once; the way out can be copied."""
    result = claims(["challenge"], ["http_error", "challenge"], ["challenge"], [])
    assert told(result, "do it again") == [
        "some claims were judged on pages that look wrong: 3 (challenge 2, challenge and "
        "http_error 1). Look at these pages, or capture them again: do it again"
    ]


def test_unavailable_pages_of_claims_and_extractions_are_counted():
    """Each page once, however often it was wanted, and those that an option brings."""
    result = claims([], [])
    first, second = leaves_of(result)
    first["evidence"]["pages"] = [check("claimed", "unavailable")]
    second["evidence"]["pages"] = [check("both", "unavailable")]
    result["extractions"] = [
        {"name": "towns", "url": "both", "unavailable": "refused"},
        {"name": "lakes", "url": "both", "unavailable": "refused"},
        {"name": "hills", "url": "read", "unavailable": None},
    ]
    line = (
        "2 cited pages unavailable (lake 2); claims on them are not supported; 2 extractions "
        "came out empty"
    )
    assert told(result) == [line]
    result["provenance"] = made_from(refused_pages=["both", "never asked for"])
    private = (
        "; 1 of them on this machine or its network (if you trust the answers, add "
        "--allow_private_network)"
    )
    assert told(result) == [f"{line}{private}"]


def test_a_doubt_names_only_the_page():
    """The server may have been at fault as well."""
    assert told(claims([], doubts=["https://lake.example: HTTP status 500"])) == [
        "lake/answer_1.md: in doubt, the next run judges it again: https://lake.example: HTTP "
        "status 500"
    ]


def test_a_score_without_a_tree_is_reported():
    alone = {"eval_breakdown": [{"verification_tree": {"id": "root", "children": []}}]}
    results = (
        {"final_score": 1.0},
        {"final_score": 1.0, "eval_breakdown": [{}]},
        alone,
    )
    line = (
        "lake/answer_1.md: its script returned a score without a rubric tree, which cannot be "
        "checked"
    )
    assert [told(result) for result in results] == [[line], [line], []]


@pytest.mark.parametrize(("score", "is_told"), [(0.25, True), (1.0, False), (1 - 1e-12, False)])
def test_a_score_that_differs_from_the_tree_is_reported(score, is_told):
    """Metrics and records of others would be misled by the difference; rounding does not count."""
    own = {
        "desc": "",
        "critical": False,
        "score": 1.0,
        "status": "passed",
        "strategy": "parallel",
    }
    tree = {"id": "root", **own, "children": [{"id": "a", **own, "children": []}]}
    result = {"final_score": score, "eval_breakdown": [{"verification_tree": tree}]}
    line = f"lake/answer_1.md: its script returned the score {score:g}, but its rubric tree has 1"
    assert told(result) == [line] * is_told


def test_refusals_of_the_judge_are_counted():
    result = claims([], [])
    first, second = leaves_of(result)
    first["evidence"]["votes"] = [vote(declined="no"), vote(supported=True)]
    second["evidence"]["pages"][0]["votes"] = [vote(declined="no")]
    result["extractions"] = [
        {"name": "towns", "declined": "no"},
        {"name": "lakes", "declined": None},
    ]
    assert told(result) == [
        "the judge refused to answer, twice each: votes 2, extractions 1 (lake 3). Such votes "
        "count as not supported, and such extractions are empty"
    ]


@pytest.mark.parametrize(
    ("score", "status", "is_told"),
    [
        (1.0, "failed", True),
        (0.0, "passed", True),
        (1.0, "initialized", True),
        (1.0, "passed", False),
        (0.0, "skipped", False),
        (0.5, "partial", False),
    ],
)
def test_a_score_that_contradicts_its_status_is_reported(score, status, is_told):
    for verdict in ({"score": score, "status": status}, behind(score, status)):
        result = claims([])
        leaves_of(result)[0].update(verdict)
        assert told(result) == [f"lake/answer_1.md: {TORN}: leaf_0"] * is_told


def behind(score, status):
    """Return what a leaf behind the first shortfall of a sequence shows."""
    return {
        "score": 0.0,
        "status": "skipped",
        "superseded": {"score": score, "status": status},
    }


def test_mistakes_of_scripts_are_named_at_the_end():
    fault = "harlow.py, line 3: leaf 'hours' is never judged, and counts 0"

    def facts_of(task, number, **more):
        result = ResultFile.of({"final_score": 1.0, **more})
        return CautionFacts.of(task, f"answer_{number}.md", result)

    several = [facts_of("harlow", number, script_faults=[fault]) for number in (1, 2)]
    assert cautions(several, "")[-1] == f"{fault} (harlow/answer_1.md, harlow/answer_2.md)"


def test_failed_runs_are_in_the_table(capsys):
    task = TaskWork("lake", (), None, None, failed_runs={"answer_2.md": "the agent failed"})
    outcomes = [
        AnswerOutcome("lake", name, ResultFile.of({"final_score": score}), None)
        for name, score in (("answer_1.md", 1.0), ("answer_3.md", 0.5))
    ]
    print_scores(PlainConsole(), [task], outcomes)
    assert "1: 1  2: 0  3: 0.50" in (shown := capsys.readouterr().out) and " 0.50 " in shown


def test_answers_of_one_short_name_keep_their_scores(capsys):
    """The table leaves ``answer_`` out of names."""
    task = TaskWork("lake", (), None, None)
    outcomes = [
        AnswerOutcome("lake", name, ResultFile.of({"final_score": score}), None)
        for name, score in (("1.md", 0.25), ("answer_1.md", 0.75))
    ]
    print_scores(PlainConsole(), [task], outcomes)
    assert "1: 0.25  1: 0.75" in capsys.readouterr().out
