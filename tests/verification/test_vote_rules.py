"""``--votes``: how many votes a claim has by each rule, and what the evidence says of it."""

import json
from dataclasses import replace

import pytest
from evaluations import PAGE, started, stored
from projects import ClaimJudge, call, entered, evaluate
from scripted_judge import ScriptedJudge
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.spec import JudgeSpec
from mind2web2.rubric.vote_rule import VoteRule

FOUND, MISSING = "80 m", "90 fathoms"


def reply(result, quote=FOUND):
    """Return a judge's reply."""
    return {"reasoning": "", "result": result, "quote": quote}


def by_rule(evaluator, rule):
    """Let an evaluation outside of any run vote by a rule."""
    verifier = evaluator.verifier
    verifier._context = replace(verifier._context, votes=VoteRule.parse(rule))


async def judged(tmp_path, rule, replies, *, critical=False, **options):
    """Return verdict and evidence of a claim on a page; the judge has exactly these replies."""
    judge = ScriptedJudge([_validated(each) for each in replies])
    evaluator = started(judge, stored(tmp_path))
    leaf = evaluator.add_leaf("leaf", "", critical=critical)
    by_rule(evaluator, rule)
    verdict = await evaluator.verify("claim", leaf, PAGE, **options)
    assert len(judge.questions) == len(replies)
    return verdict, leaf.evidence


def _validated(fields):
    return lambda question: question.template.model_validate(fields)


@pytest.mark.parametrize(
    ("rule", "replies", "options", "expected"),
    [
        ("always", [reply(True), reply(True)], {}, True),
        ("1", [reply(True, MISSING)], {}, True),
        ("1", [reply(False)], {"critical": True}, False),
        ("1", [reply(True), reply(True)], {"num_trials": 5}, True),
    ],
)
async def test_a_rule_takes_the_votes_it_needs(tmp_path, rule, replies, options, expected):
    """The judge has exactly the replies that may be asked for, and no other."""
    verdict, evidence = await judged(tmp_path, rule, replies, **options)
    assert verdict is expected
    assert len(evidence.pages[0].votes) == len(replies)


async def test_results_of_another_rule_are_judged_again(tmp_path, monkeypatch):
    """The rule is part of a result's provenance, and no part of a judgment's key."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script({"deep": ("The lake is deep.", None)})
    judge = ClaimJudge()
    rules = ["always", "always", "1"]
    requests = []
    for rule in rules:
        await evaluate(
            project,
            judge,
            settings=JudgeSpec("judge-1", votes=rule),
        )
        requests.append(len(judge.claims))
    assert requests == [2, 2, 2], "the first vote is stored"
    found = [json.loads(path.read_text(encoding="utf-8")) for path in project.result_paths()]
    assert [each["provenance"]["judge"]["votes"] for each in found] == ["always", "1"]


@pytest.mark.parametrize(("rule", "requests"), [("always", 3), ("1", 2)])
def test_a_run_and_its_replay_follow_the_rule(tmp_path, monkeypatch, rule, requests):
    """The replay that verifies the results asks for no others."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script_body(
        """
        await evaluator.verify("claim 1", evaluator.add_leaf("one", "", critical=ONE_IS_GATE), None)
        await evaluator.verify("claim 2", evaluator.add_leaf("two", "", critical=False), None, num_trials=1)
        return evaluator.get_summary()
        """.replace("ONE_IS_GATE", str(rule == "1"))
    )
    deep = {"reasoning": "", "result": True, "quote": "deep and cold"}
    with JudgeServer(reply=deep) as server:
        words = ["--judge_base_url", server.base_url, "--votes", rule]
        assert call(evaluate_main, "bot", *words).returncode == 0
        assert len(server.requests) == requests
    [path] = project.result_paths()
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["provenance"]["judge"]["votes"] == rule
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout
    metrics = call(main, "metrics", "bot").stdout
    assert ("votes=" in metrics) is (rule != "always"), metrics
