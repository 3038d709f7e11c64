"""``mind2web2 probe`` against a judge on loopback, on the example's results."""

import json
import os
from contextlib import chdir
from unittest.mock import patch

import pytest
from projects import REPOSITORY, call, clean_environment
from servers.judge_server import JudgeServer

from mind2web2.cli import main


def command(folder, *arguments):
    environment = clean_environment(OPENAI_API_KEY="key")
    with chdir(folder), patch.dict(os.environ, environment, clear=True):
        return call(main, *arguments)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Return the example project, evaluated."""
    folder = tmp_path_factory.mktemp("probe")
    assert command(folder, "example").returncode == 0
    return folder / "example"


def probe(example, server, *options, model="rules"):
    judge = ["--judge_base_url", server.base_url, "--judge_model", model]
    return command(example, "probe", "example", *judge, *options)


def files_of(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "probes" not in path.parts
    }


def test_a_judge_that_ignores_pages_notices_nothing(example):
    before = files_of(example)
    with JudgeServer(reply={"reasoning": "sure", "result": True}) as server:
        outcome = probe(example, server, "--sample", "20", "--json")
    # The server is gone: the replies are stored.
    again = probe(example, server, "--sample", "20", "--json")
    assert outcome.returncode == 0, outcome.stderr
    (report,) = json.loads(outcome.stdout)
    assert (report["probes"], report["noticed"]["value"]) == (20, 0)
    assert report["false_passes"]["value"] == 1
    assert len(report["survivors"]) == 20
    assert report["false_alarms"] == {"count": 4, "value": 0, "low": None, "high": None}
    assert again.stdout == outcome.stdout
    assert files_of(example) == before


def test_metrics_shows_the_figures(example):
    result = next(example.glob("eval_results/example/*/*/results/*.json"))
    model = json.loads(result.read_text(encoding="utf-8"))["judge_model"]
    with JudgeServer(reply={"reasoning": "sure", "result": True}) as server:
        probe(example, server, "--sample", "20", model=model)
    sentence = f"On changed pages of example, {model} noticed 0%"
    assert sentence in command(example, "metrics", "example").stdout
    numbers = json.loads(command(example, "metrics", "example", "--json").stdout)
    shown = next(each for each in numbers["changed_pages"] if each["judge"] == model)
    assert (shown["probes"], shown["noticed"]["value"]) == (20, 0)


def test_a_judge_that_refuses_everything_fails_each_control(example):
    with JudgeServer(reply={"reasoning": "no", "result": False}) as server:
        outcome = probe(example, server, "--sample", "10", "--seed", "3")
    assert outcome.returncode == 0, outcome.stderr
    assert "100%" in outcome.stdout
    assert "Controls, where the verdict must stay: 100% of 2 changed." in outcome.stdout


def test_a_larger_sample_begins_with_the_same_probes(example):
    with JudgeServer(reply={"reasoning": "sure", "result": True}) as server:
        small = probe(example, server, "--sample", "30", "--json", model="wide")
        asked = len(server.requests)
        all_probes = probe(example, server, "--sample", "2000", "--json", model="wide")
        further = len(server.requests) - asked
    first, second = json.loads(small.stdout)[0], json.loads(all_probes.stdout)[0]
    assert first["probes"] < second["probes"]
    controls = second["false_alarms"]["count"] - first["false_alarms"]["count"]
    assert further == second["probes"] - first["probes"] + controls
    # Their text is changed as that of other pages.
    assert any(".pdf" in each["url"] for each in second["survivors"])


def test_two_judges_are_compared_on_the_same_probes(example):
    def reply(body):
        return json.dumps({"reasoning": "r", "result": body["model"] == "yes", "quote": ""})

    with JudgeServer(reply) as server:
        options = ["--judge_model", "no", "--sample", "10"]
        outcome = probe(example, server, *options, model="yes")
    assert outcome.returncode == 0, outcome.stderr
    assert "only yes noticed 0, and only no noticed 10 (McNemar's p 0.001)" in outcome.stdout


def test_a_budget_ends_the_questions(example):
    with JudgeServer(reply={"reasoning": "sure", "result": True}) as server:
        limits = ["--sample", "20", "--max_cost", "0.000001", "--max_llm_requests", "1"]
        outcome = probe(example, server, *limits, model="gpt-5-mini")
    assert outcome.returncode == 1
    assert len(server.requests) < 5
    assert "failed; the same command asks only for these" in outcome.stdout


def test_an_estimate_asks_nothing(example):
    with JudgeServer() as server:
        outcome = probe(example, server, "--estimate")
        assert server.requests == []
    lines = outcome.stdout.splitlines()
    assert " requests with controls, about " in lines[0]
    assert (lines[-2], lines[-1]) == ("The results have 65 probes at most.", "Nothing was asked.")


def test_the_example_is_probed_without_a_key(example):
    """No change leaves the passage that the key quotes, and each control does."""
    recorded = str(REPOSITORY / "examples" / "probe_judgments.jsonl")
    outcome = command(
        example, "probe", "example", "--llm_provider", "replay", "--judgments", recorded, "--json"
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    [report] = json.loads(outcome.stdout)
    assert (report["probes"], report["survivors"], report["failed"]) == (65, [], 0)
    assert report["false_alarms"]["value"] == 0


def test_an_agent_without_results_is_named(example):
    outcome = command(example, "probe", "nobody")
    assert outcome.returncode == 2
    assert "nobody" in outcome.stderr


def test_verdicts_that_stayed_are_shown_page_beside_page(example):
    with JudgeServer(reply={"reasoning": "<b>sure</b>", "result": True}) as server:
        outcome = probe(example, server, "--sample", "5", "--seed", "2", "-o", "s.html")
    assert outcome.returncode == 0, outcome.stderr
    page = (example / "s.html").read_text(encoding="utf-8")
    assert page.count("<article>") == 5
    assert "&lt;b&gt;sure" in page
    assert "Not read from the page:" in outcome.stdout
    assert "Left out: 0 claims that passed without a quotation" in outcome.stdout
