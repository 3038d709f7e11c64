"""``mind2web2 rejudge --sample``.

A better judge judges a random part of the answers, and the score is corrected.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from judged_agent import judged_agent, stand_in
from projects import Project, call, claim_in
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.analysis.audited import audited_answers
from mind2web2.analysis.correction import population_of
from mind2web2.analysis.labels import LabelFile
from mind2web2.cli import main

TASKS = [f"lake_{number}" for number in range(8)]
STRONG = ("rejudge", "bot", "--judge_model", "strong")


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a folder with an agent's answers, and the models that were asked.

    The strong one passes less.
    """
    root = tmp_path_factory.mktemp("sampled")
    asked = []

    def reply(body):
        asked.append(body["model"])
        claim, text = claim_in(prompt_text(body)), prompt_text(body)
        is_false = "Fact 0" in claim or (
            "Fact 1" in claim and any(f"lake_{n}" in text for n in (1, 3, 5))
        )
        passes_wrongly = body["model"] == "cheap" and "Fact 1" in claim
        return {"reasoning": "read", "result": passes_wrongly or not is_false}

    with judged_agent(root, TASKS, reply, "cheap") as server:
        yield root, asked, server.base_url


@pytest.fixture
def project(judged, monkeypatch):
    """Stand in the folder, without what other tests judged again.

    Return it and the models that are asked.
    """
    root, asked, base_url = judged
    stand_in(root, base_url, monkeypatch)
    asked.clear()
    return root, asked


def sampled(*words):
    """Return the figures of the agent that a command prints."""
    run = call(main, *STRONG, *words, "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_sample_corrects_the_score_and_is_continued(project):
    _, asked = project
    first = sampled("--sample", "8")
    # Four leaves with two votes each.
    assert asked == ["strong"] * 8 * 4 * 2
    found = first["correction"]
    assert (found["raw"], found["sampled"], found["of"]) == (0.75, 8, 16)
    # Every task is in the sample, and its runs are alike.
    assert found["corrected"] == pytest.approx(0.75 - 3 / 32, abs=0.02)
    assert found["these_tasks"]["low"] < 0.75 - 3 / 32 < found["these_tasks"]["high"]
    assert first["more_wanted"] > 0
    assert first["wrong_passes"]["value"] == pytest.approx(3 / 24)
    sampled("--sample", "10")
    assert len(asked) == 10 * 4 * 2
    whole = sampled("--sample", "16")["correction"]
    assert whole["corrected"] == pytest.approx(0.75 - 3 / 32)
    assert whole["these_tasks"] == {
        "low": pytest.approx(0.65625),
        "high": pytest.approx(0.65625),
    }
    text = call(main, *STRONG, "--sample", "16").stdout
    assert "bot: strong judged 16 of 16 answers" in text
    assert len(asked) == 16 * 4 * 2


def test_metrics_and_compare_show_raw_and_corrected_scores(project):
    """Labels of people count before the strong judge.

    The judge's error rates are compared by agent.
    """
    root, _ = project
    for folder in ("answers", "eval_results"):
        shutil.copytree(root / folder / "bot", root / folder / "twin", dirs_exist_ok=True)
    sampled("--sample", "16")
    missing = call(main, "compare", "bot", "twin", "--corrected")
    assert missing.returncode == 2
    assert "twin has no labels and no sample by a strong judge" in missing.stderr
    assert (
        call(main, "rejudge", "twin", *STRONG[2:], "--sample", "12", "--seed", "5").returncode == 0
    )
    (pair,) = json.loads(call(main, "compare", "bot", "twin", "--corrected", "--json").stdout)[
        "corrected"
    ]
    assert pair["raw_difference"] == 0
    assert pair["these_tasks"]["low"] <= 0 <= pair["these_tasks"]["high"]
    assert pair["wrong_passes"]["low"] < 0 < pair["wrong_passes"]["high"]
    text = call(main, "compare", "bot", "twin", "--corrected").stdout
    assert "Difference of twin from bot by the judge +0 points, corrected" in text
    text = call(main, "metrics", "bot").stdout
    assert (
        "Partial completion by the judge 75%, corrected by strong on 16 of 16 answers: 66%" in text
    )
    sentence = text.split("To copy: ")[1]
    assert "bot reached a partial completion of 75%" in sentence
    assert "judged by cheap" in sentence and "majority of at most 3 votes a claim" in sentence
    assert "corrected by strong on 16 of 16 answers: 66%" in sentence
    answers = audited_answers(root / "eval_results", "bot")
    file = LabelFile(root / "audits", "bot", "ann")
    file.begin(population_of(answers))
    for answer in answers:
        for leaf in answer.leaves:
            file.append(leaf.name, leaf.seen_sha256, "n")
    by_labels = "corrected by labels of ann on 16 of 16 answers: 0%"
    assert by_labels in call(main, "metrics", "bot").stdout
    shutil.rmtree(root / "audits")
    for folder in ("answers", "eval_results"):
        shutil.rmtree(root / folder / "twin")


def test_an_estimate_is_of_the_sample(project):
    _, asked = project
    run = call(main, *STRONG, "--sample", "5", "--estimate")
    assert "Answers to evaluate: 5 of 5" in run.stdout
    assert asked == []


PRICED = ("rejudge", "bot", "--judge_model", "gpt-5-mini", "--json")


@pytest.mark.usefixtures("project")
def test_the_price_of_a_sample_stands_beside_that_of_all_answers():
    run = call(main, *PRICED, "--sample", "8")
    found = json.loads(run.stdout)
    assert found["cost_usd"] > 0
    assert found["cost_of_all_usd"] == pytest.approx(2 * found["cost_usd"], abs=2e-6)
    text = call(main, *PRICED[:-1], "--sample", "8").stdout
    assert re.search(r"judged 8 of 16 answers for \$0\.\d+", text), text


def sample_record():
    """Return the record of the sample."""
    (path,) = Path("rejudged").rglob("sample.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.long
def test_answers_that_a_budget_paid_for_are_no_sample(project, monkeypatch):
    """Long answers are judged last. Without the budget the same command asks for the rest."""
    _, asked = project

    def reply(body):
        asked.append(body["model"])
        return {"reasoning": "read", "result": "Fact 0" not in prompt_text(body)}

    with JudgeServer(reply, input_tokens=2000, output_tokens=500) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        words = (*PRICED, "--sample", "16")
        # A reply costs $0.0015, and eight an answer: the budget pays for nine.
        cut = call(main, *words, "--max_cost", "0.11")
        assert cut.returncode == 1, cut.stderr
        found = json.loads(cut.stdout)
        assert found["correction"] is None
        assert "--max_cost ended before the sample" in found["reason"]
        assert (sample_record()["size"], found["without_result"]) == (0, 0)
        rest = json.loads(call(main, *words).stdout)
    assert rest["correction"]["sampled"] == 16
    # Stored questions are not asked again; the last replies of the budget may be lost.
    assert 16 * 4 * 2 <= len(asked) < 16 * 4 * 2 + 20


def test_the_rounds_share_the_budget(project, monkeypatch):
    """Messages name the limit as it was given."""
    _, asked = project

    def reply(body):
        asked.append(body["model"])
        return {"reasoning": "read", "result": "Fact 0" not in prompt_text(body)}

    with JudgeServer(reply, input_tokens=2000, output_tokens=500) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        # A reply costs $0.0015: the first round takes $0.192, and the second one is cut.
        words = ("rejudge", "bot", "--judge_model", PRICED[3], "--times", "3")
        cut = call(main, *words, "--max_cost", "0.3")
    assert cut.returncode == 1, cut.stderr
    assert 16 * 4 * 2 < len(asked) <= 0.3 / 0.0015 + 5
    assert cut.stdout.count(" of --max_cost 0.3 spent") == 2
    assert "judgment 3 of 3" not in cut.stdout


def test_a_sample_on_which_the_judge_fails_corrects_nothing(project, monkeypatch):
    """The answers that it judged are not a random choice.

    The same command asks for the others again.
    """
    _, asked = project
    is_broken = True

    def reply(body):
        asked.append(body["model"])
        text = prompt_text(body)
        if is_broken and any(f"lake_{n}" in text for n in range(3)):
            return "no JSON"
        return {"reasoning": "read", "result": "Fact 0" not in text}

    with JudgeServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = call(main, *STRONG, "--sample", "16")
        assert run.returncode == 1
        assert "bot: strong failed on 6 answers of the sample" in run.stdout
        assert "bot: no corrected score" in run.stdout
        assert "corrected by" not in call(main, "metrics", "bot").stdout
        again = call(main, *STRONG, "--sample", "16", "--json")
        found = json.loads(again.stdout)
        assert (found["correction"], found["without_result"]) == (None, 6)
        is_broken = False
        asked.clear()
        assert sampled("--sample", "16")["correction"]["sampled"] == 16
    assert len(asked) <= 6 * 4 * 2


@pytest.mark.long
def test_a_smaller_size_keeps_the_answers_of_a_larger_one(tmp_path, monkeypatch):
    """Another seed draws a sample of its own, and outdated results end one."""

    def reply(body):
        return {"reasoning": "read", "result": "Fact 0" not in prompt_text(body)}

    tasks = [f"lake_{number}" for number in range(16)]
    with judged_agent(tmp_path, tasks, reply, "cheap") as server:
        stand_in(tmp_path, server.base_url, monkeypatch)
        for size, expected in (("30", 30), ("6", 30), ("31", 31)):
            found = sampled("--sample", size)["correction"]
            assert (found["sampled"], found["of"]) == (expected, 32)
        assert sampled("--sample", "6", "--seed", "3")["correction"]["sampled"] == 6
        Project(tmp_path).add_script({"leaf_0": ("Fact 1, in short.", None)}, tasks[0])
        run = call(main, *STRONG, "--sample", "31")
        assert "bot: no corrected score: by strong, 2 of 31 answers were judged" in run.stdout
        assert "evaluate results that are out of date, then repeat" in run.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("rejudge", "bot", "--sample", "4"),
            "--sample needs a better judge than that of the results",
        ),
        (
            ("rejudge", "bot", "--judge_model", "cheap", "--sample", "4"),
            "--sample needs a better judge than that of the results",
        ),
        ((*STRONG, "--estimate", "--json"), "--estimate prints a table: leave --json out"),
        ((*STRONG, "--sample", "17"), "--sample 17: bot has 16 answers with a score"),
        (
            (*STRONG, "--sample", "some"),
            "argument --sample",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_wrong_command_is_one_line(words, message):
    """Nothing is asked."""
    run = call(main, *words)
    assert run.returncode == 2
    assert message in run.stderr
