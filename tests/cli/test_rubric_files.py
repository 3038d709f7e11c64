"""A rubric file in the place of a script: every command takes it."""

import json

import pytest
from projects import ANSWER, TASK, Project, call, entered
from servers.judge_server import JudgeServer, prompt_text

from mind2web2 import CacheFileSys
from mind2web2.cli import main
from mind2web2.scoring.scorer import Judge, Scorer
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.keys import AnswerKey

PAGE = "https://lake.example/depth"
RUBRIC = f"""\
task: {TASK}
question: How deep is the lake?
extract:
  depth: the depth
  urls: the addresses cited for it
root:
  children:
    - {{id: given, desc: given, critical: true, present: [depth, urls]}}
    - {{id: deep, desc: right, claim: "The lake is {{depth}} deep.", sources: urls, tags: depth}}
    - {{id: cold, desc: cold, claim: The answer calls the lake cold., sources: answer}}
"""


def reply(body):
    """Fill the form, and support what is said of the depth."""
    text = prompt_text(body)
    if "what to extract" in text:
        return json.dumps({"depth": "80 m", "urls": [PAGE]})
    return json.dumps({"reasoning": "r", "result": "80 m deep." in text, "quote": ""})


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project with a rubric file, an answer, its page and a judge."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer(text=f"{ANSWER} [depth]({PAGE})")
    CacheFileSys(tmp_path / "cache" / "bot" / TASK).put_web(PAGE, "Depth: 80 m", None)
    path = tmp_path / "eval_scripts" / "own" / f"{TASK}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(RUBRIC, encoding="utf-8")
    with JudgeServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield Project(tmp_path)


def evaluate():
    """Evaluate the agent in the scripts' own processes, and return what is printed."""
    outcome = call(main, "evaluate", "bot", "--no_capture", "--judge_model", "judge-1")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return outcome.stdout


def result(project):
    """Return the newest result."""
    return json.loads(project.result_paths()[-1].read_text(encoding="utf-8"))


def test_it_is_evaluated_reused_and_judged_again_once_it_changes(project):
    evaluate()
    first = result(project)
    assert first["final_score"] == 0.5
    assert first["provenance"]["script"] == f"own/{TASK}.yaml"
    assert "reused" in evaluate()
    checked = call(main, "verify-results", "bot")
    assert checked.returncode == 0, checked.stdout
    path = project.root / "eval_scripts" / "own" / f"{TASK}.yaml"
    path.write_text(RUBRIC.replace("sources: answer", "sources: answer, critical: true"))
    shown = call(main, "metrics", "bot", "--by_tag").stdout
    assert "1 result out of date" in shown
    assert "bot, tag depth: 100% of its leaves passed (1 leaf of 1 answer, 1 task)" in shown
    evaluate()
    assert result(project)["final_score"] == 0.0


def test_a_file_that_is_wrong_gives_no_result(project):
    """The reason has file, line, field and cure, before anything is asked."""
    path = project.root / "eval_scripts" / "own" / f"{TASK}.yaml"
    path.write_text(RUBRIC.replace("sources: urls", "sources: url"), encoding="utf-8")
    outcome = call(main, "evaluate", "bot", "--no_capture", "--judge_model", "judge-1")
    assert outcome.returncode == 1
    assert (
        "line 9, root.children[1].sources: no field 'url': did you mean 'urls'?" in outcome.stdout
    )
    assert f"No result: {TASK}/answer_1.md: eval_scripts/own/{TASK}.yaml, line" in outcome.stdout
    again = "The same command tries the answers without a result again"
    assert again in outcome.stdout
    shown = call(main, "show", "bot", TASK)
    assert "why an answer has its score" not in outcome.stdout + shown.stdout
    assert "1 task: 1 faulty" in call(main, "rehearse", "--no_run").stdout
    path.with_suffix(".py").write_text("", encoding="utf-8")
    assert "two scripts for task lake: keep" in call(main, "rehearse").stderr


def test_a_scorer_takes_it(project):
    for scripts in ("eval_scripts", "eval_scripts/own"):
        judge = Judge(model="judge-1")
        with Scorer(judge=judge, scripts=scripts, pages=project.root / "cache" / "bot") as scorer:
            assert scorer.score_sync(TASK, f"{ANSWER} [depth]({PAGE})").score == 0.5


def test_tasks_and_estimates_read_it(project):
    """The question is the file's; an estimate asks nothing."""
    assert "How deep is the lake?" in call(main, "rehearse", TASK, "--no_run", "-v").stdout
    outcome = call(
        main,
        "evaluate",
        "bot",
        "--no_capture",
        "--judge_model",
        "o4-mini",
        "--estimate",
    )
    assert outcome.returncode == 0
    assert not project.results.exists() or not project.result_paths()


def test_a_comparison_shows_what_was_found_and_what_is_right(project):
    path = project.root / "eval_scripts" / "own" / f"{TASK}.yaml"
    leaves = """\
    - {id: wrong, desc: d, equals: {field: depth, value: 90 m, compare: text}}
    - {id: right, desc: d, equals: {field: depth, value: 80, compare: number, within: 1}}
    - {id: summed, desc: d, equals: {field: depth, sum_of: [depth, depth], compare: number}}
"""
    path.write_text(RUBRIC + leaves, encoding="utf-8")
    evaluate()
    shown = call(main, "show", "bot", TASK, "answer_1").stdout
    viewed = json.dumps(Catalog(project.paths).answer(AnswerKey("bot", TASK, "answer_1")))
    for expected in (
        "not met (depth: '80 m', expected: '90 m')",
        "met (depth: '80 m', expected: 80)",
        "not met (depth: '80 m', expected: 160)",
    ):
        assert f"checked by the script without a judge: {expected}" in shown
        assert expected in viewed
