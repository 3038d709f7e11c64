"""``check-judge`` asks a decision model the claims on a page together, and each one alone."""

import json

import pytest
from projects import block_in, call
from servers.decision_server import DecisionServer
from servers.labelled_judge import cases_by_question

from mind2web2.cli import main

NAME = "gpt-6-luna, "
TOGETHER = f"{NAME}claims of a page asked together"
ALONE = f"{NAME}each claim asked alone"
CASES = cases_by_question()


def careless_together(claim, asked):
    """Be right and sure of a claim alone, and unsure and wrong of one that is not the first of several."""
    case, right = CASES[claim, block_in(asked.state, "page address")]
    assert case.question == claim
    is_first = claim == min(asked.claims)
    return (0.99 if right else 0.02) if is_first else (0.4 if right else 0.6)


def check(server, *words, model="decisions:gpt-6-luna"):
    """Check a decision model, and return the command's result."""
    options = ("--judge_base_url", server.base_url, "--sample", "30", *words)
    return call(main, "check-judge", "--judge_model", model, *options)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Return a decision model that others' questions disturb, in an empty folder."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)
    with DecisionServer(careless_together) as server:
        yield server


def test_claims_asked_together_are_compared_with_each_asked_alone(server):
    """Both have figures by the probability, and their difference; stored replies of each are free."""
    done = check(server)
    assert done.returncode == 0, done.stdout + done.stderr
    claims = sum(len(asked.claims) for asked in server.requests)
    alone = [asked for asked in server.requests if len(asked.claims) == 1]
    assert len(alone) < len(server.requests) < claims
    shown = " ".join(done.stdout.split())
    assert f"Accuracy of {ALONE} minus that of {TOGETHER}: +" in shown
    assert "verdicts of them differ, and probabilities by 0." in shown
    assert "Right on claims with: probability above .97" in shown
    assert "of .7 or less 0/" in shown
    asked = len(server.requests)
    again = check(server, "--json")
    assert len(server.requests) == asked
    together, each = json.loads(again.stdout)["judges"]
    assert (together["name"], each["name"]) == (TOGETHER, ALONE)
    assert each["overall"]["accuracy"]["value"] == 1.0
    assert together["overall"]["accuracy"]["value"] < 1.0
    assert "form" not in " ".join(together["categories"])


def test_an_estimate_expects_no_further_votes(server):
    """A decision model is asked once; a judge that votes is asked again where two votes differ."""
    words = ("--judge_model", "o4-mini", "--estimate")
    done = check(server, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    further = {
        line.partition(":")[0]: "one more for each split vote" in line
        for line in done.stdout.splitlines()
        if "judge requests" in line
    }
    assert further == {TOGETHER: False, ALONE: False, "o4-mini": True}
    once = check(server, "--votes", "1", "--estimate", model="o4-mini")
    assert "judge requests" in once.stdout and "split vote" not in once.stdout


@pytest.mark.usefixtures("server")
def test_a_decision_model_has_a_name():
    """The prefix alone is none."""
    done = call(main, "check-judge", "--judge_model", "decisions:", "--estimate")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--judge_model decisions: names no model: write decisions:" in done.stderr


def test_the_provider_may_be_an_option(server):
    """As other providers are; and a page is estimated once for its claims."""
    words = ("--llm_provider", "openai_decisions", "--estimate", "--json")
    done = check(server, *words, model="gpt-6-luna")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found[TOGETHER]["requests"] < found[ALONE]["requests"]
    assert found[TOGETHER]["input_tokens"] < 0.7 * found[ALONE]["input_tokens"]
    assert not server.requests
