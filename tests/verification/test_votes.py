"""``--votes``: how many votes a claim has, and what the evidence says of it."""

import json
from dataclasses import replace

import pytest
from evaluations import PAGE, started, stored
from projects import ClaimJudge, call, entered, evaluate
from scripted_judge import ScriptedJudge
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.spec import JudgeSpec

FOUND, MISSING = "80 m", "90 fathoms"


def reply(result, quote=FOUND):
    """Return a judge's reply."""
    return {"reasoning": "", "result": result, "quote": quote}


async def judged(tmp_path, votes, replies, *, critical=False, **options):
    """Return verdict and evidence of a claim on a page; the judge has exactly these replies."""
    judge = ScriptedJudge([_validated(each) for each in replies])
    evaluator = started(judge, stored(tmp_path))
    leaf = evaluator.add_leaf("leaf", "", critical=critical)
    questions = evaluator.verifier._context.run
    questions._context = replace(questions._context, votes=votes)
    verdict = await evaluator.verify("claim", leaf, PAGE, **options)
    assert len(judge.questions) == len(replies)
    return verdict, leaf.evidence


def _validated(fields):
    return lambda question: question.template.model_validate(fields)


@pytest.mark.parametrize(
    ("votes", "replies", "options", "expected"),
    [
        (3, [reply(True), reply(True)], {}, True),
        (3, [reply(True), reply(False), reply(False)], {}, False),
        (5, [reply(True), reply(False), reply(True), reply(True)], {}, True),
        (1, [reply(True, MISSING)], {}, True),
        (1, [reply(False)], {"critical": True}, False),
        (1, [reply(True), reply(True)], {"num_trials": 5}, True),
    ],
)
async def test_the_judge_is_asked_until_the_votes_decide(
    tmp_path, votes, replies, options, expected
):
    """The judge has exactly the replies that may be asked for, and no other."""
    verdict, evidence = await judged(tmp_path, votes, replies, **options)
    assert verdict is expected
    assert len(evidence.pages[0].votes) == len(replies)


async def test_results_of_another_number_are_judged_again(tmp_path, monkeypatch):
    """The number is part of a result's provenance, and no part of a judgment's key."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script({"deep": ("The lake is deep.", None)})
    judge = ClaimJudge()
    requests = []
    for votes in (3, 3, 1):
        await evaluate(
            project,
            judge,
            settings=JudgeSpec("judge-1", votes=votes),
        )
        requests.append(len(judge.claims))
    assert requests == [2, 2, 2], "the first vote is stored"
    found = [json.loads(path.read_text(encoding="utf-8")) for path in project.result_paths()]
    assert [each["provenance"]["judge"]["votes"] for each in found] == [3, 1]


@pytest.mark.parametrize(("votes", "requests"), [(3, 3), (1, 2)])
def test_a_run_and_its_replay_have_the_same_votes(tmp_path, monkeypatch, votes, requests):
    """The replay that verifies the results asks for no others."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script_body(
        """
        await evaluator.verify("claim 1", evaluator.add_leaf("one", "", critical=ONE_IS_GATE), None)
        await evaluator.verify("claim 2", evaluator.add_leaf("two", "", critical=False), None, num_trials=1)
        return evaluator.get_summary()
        """.replace("ONE_IS_GATE", str(votes == 1))
    )
    deep = {"reasoning": "", "result": True, "quote": "deep and cold"}
    with JudgeServer(reply=deep) as server:
        words = ["--judge_base_url", server.base_url, "--votes", str(votes)]
        assert call(evaluate_main, "bot", *words).returncode == 0
        assert len(server.requests) == requests
    [path] = project.result_paths()
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["provenance"]["judge"]["votes"] == votes
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout
    metrics = call(main, "metrics", "bot").stdout
    assert ("votes=" in metrics) is (votes != 3), metrics
