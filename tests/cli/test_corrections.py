"""Corrected scores: of answers that were not sampled, judged otherwise since, or with too few labels."""

import json
import re
import shutil

import pytest
from judged_agent import judged_agent, stand_in
from projects import ANSWER, Project, call, claim_in, entered
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import evaluate_main, main
from mind2web2.runs.audited import audited_answers
from mind2web2.runs.labels import LabelFile
from mind2web2.runs.result_file import with_checksum
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.audit import AuditSession, AuditSettings, NewLabel
from mind2web2.viewer.catalog import Catalog

TASKS = [f"lake_{number}" for number in range(12)]
EASY, HARD = TASKS[:6], TASKS[6:]
STRONG = ("rejudge", "bot", "--judge_model", "strong", "--sample")
WHOLE = "corrected by strong on 24 of 24 answers: 0.5000"


def reply(body):
    """Pass everything as the cheap judge; as the strong one, the tasks of the first half alone."""
    task = re.findall(r"lake_\d+", prompt_text(body))[-1]
    return {"reasoning": "read", "result": body["model"] == "cheap" or task in EASY}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a folder with an agent's answers, and the judges' server."""
    root = tmp_path_factory.mktemp("corrected")
    with judged_agent(root, TASKS, reply, "cheap") as server:
        yield root, server.base_url


@pytest.fixture
def project(judged, tmp_path, monkeypatch):
    """Stand in a copy of the folder and return it."""
    root, base_url = judged
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    stand_in(tmp_path, base_url, monkeypatch)
    return tmp_path


def run(*words):
    """Run a command that succeeds and return its output."""
    ended = call(main, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def score_line(*words):
    """Return the line about the corrected score that ``metrics`` prints."""
    text = run("metrics", "bot", *words)
    (line,) = re.findall("Partial completion by the judge.*", text)
    return line


def chosen(tasks):
    """Return the options that choose tasks."""
    return [word for task in tasks for word in ("--task_id", task)]


def test_a_sample_says_nothing_about_answers_outside_of_it(project):
    """Whether other tasks were left out, or came later; it holds for its own, and a larger one for all."""
    run(*STRONG, "8", *chosen(EASY))
    line = score_line()
    assert "not corrected by strong: 12 answers of 24 came after the sample" in line
    assert "outside of it: repeat `" in line
    assert "rejudge bot --judge_model STRONG --sample N`." in line
    assert "interval" not in line
    assert "not corrected for the judge's errors" in run("metrics", "bot")
    assert "corrected by strong on 8 of 12 answers: 1.0000" in score_line(*chosen(EASY))
    shutil.copytree(project / "eval_results/bot", project / "eval_results/twin")
    refused = call(main, "compare", "bot", "twin", "--corrected")
    assert refused.returncode == 2
    assert "--corrected: bot is not corrected by strong: 12 answers" in refused.stderr
    run(*STRONG, "24")
    assert WHOLE in score_line()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (
            lambda project: project.add_script(
                {"leaf_0": ("Fact 0, in other words.", None)}, HARD[0]
            ),
            "2 of 24 sampled answers were judged on other premises than the results (another script: 2)",
        ),
        (
            lambda project: project.add_answer(
                "answer_1", f"{ANSWER} {HARD[0]}, in short", HARD[0]
            ),
            "1 of 24 sampled answers were judged on other premises than the results (another text of the "
            "answer: 1)",
        ),
    ],
)
def test_a_sample_ends_where_answers_are_judged_otherwise(project, change, cause):
    """By another script or text; the same command with the results of today renews it."""
    run(*STRONG, "24")
    assert WHOLE in score_line()
    change(Project(project))
    assert call(evaluate_main, "bot", "--judge_model", "cheap").returncode == 0
    assert f"not corrected by strong: {cause}" in score_line()
    run(*STRONG, "24")
    assert "corrected by strong on 24 of 24 answers" in score_line()


def test_a_sample_with_gaps_corrects_nothing(project):
    """Records of earlier versions counted answers on which the judge failed, which are no random choice."""
    run(*STRONG, "16")
    (path,) = (project / "rejudged").rglob("sample.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, "size": 20}), encoding="utf-8")
    line = score_line()
    assert "not corrected by strong: 4 of 20 sampled answers have no score" in line


def test_results_without_premises_are_not_alike(project):
    """Two checksums that are missing are no equal ones."""
    run(*STRONG, "24")
    for root in ("eval_results", "rejudged"):
        for path in (project / root).rglob(f"{HARD[0]}/*/results/*.json"):
            content = json.loads(path.read_text(encoding="utf-8"))
            del content["provenance"]
            sealed = json.dumps(with_checksum(content))
            path.write_text(sealed, encoding="utf-8")
    assert "(not recorded: 2)" in score_line()


def test_too_few_labels_leave_the_strong_sample_in_force(project):
    """Labels of people count first where they are enough for a value."""
    run(*STRONG, "24")
    file = LabelFile(project / "audits", "bot", "ann")
    leaves = []
    for answer in audited_answers(project / "eval_results", "bot"):
        leaves += answer.leaves
    file.append(leaves[0].name, leaves[0].seen_sha256, "y")
    assert WHOLE in score_line()
    for leaf in leaves:
        file.append(leaf.name, leaf.seen_sha256, "y")
    assert "corrected by labels of ann" in score_line()


def session_of(project, tasks=(), **more):
    """Return a session of ann over some tasks."""
    paths = PathConfig(project)
    settings = AuditSettings(project / "audits", "bot", "ann", **more)
    return AuditSession(Catalog(paths, ["bot"], tasks), settings)


def labelled(session, number):
    """Label the first leaves of a session as the strong judge would; those with a label keep it."""
    for place, label in enumerate(session.state()["labels"][:number]):
        is_easy = session.item(place)["task"] in EASY
        if label is None:
            session.label(NewLabel(number=place, label="y" if is_easy else "n"))


def test_labels_say_nothing_about_answers_outside_of_their_sample(project):
    """Labels of a part of the tasks correct these; a further sample of all answers corrects all."""
    for number in (20, 40):
        labelled(session_of(project, EASY, size=40, seed=0), number)
    # A session that goes on has its sample once.
    labels = (project / "audits/bot/ann.jsonl").read_text(encoding="utf-8")
    assert len(labels.splitlines()) == 1 + 40
    line = score_line()
    assert (
        "not corrected by labels of ann: 12 answers of 24 came after the audit" in line
    )
    assert "view bot --audit ann" in line
    assert "interval" not in line
    audit = run("audit", "bot")
    assert "Labels of ann do not correct the score: 12 answers of 24" in audit
    assert "Corrected by the labels" not in audit
    assert "corrected by labels of ann" in score_line(*chosen(EASY))
    # Those of the first sample that the second has as well count as far as it was labelled.
    labelled(session_of(project, size=80, seed=0), 60)
    assert estimate() == pytest.approx(0.5, abs=0.15)
    labelled(session_of(project, size=96, seed=0), 96)
    assert estimate() == pytest.approx(0.5)


def estimate():
    """Return the score that ``audit`` corrects."""
    found = json.loads(run("audit", "bot", "--json"))
    assert found["not_counting"] == {}
    return found["score"]["estimate"]


def test_labels_of_earlier_versions_count_where_all_tasks_have_some(project):
    """They do not tell which answers they were drawn from."""
    file = LabelFile(project / "audits", "bot", "ann")
    leaves = {}
    for answer in audited_answers(project / "eval_results", "bot"):
        for leaf in answer.leaves:
            leaves.setdefault(leaf.name.task, []).append(leaf)
    for task in (*EASY, *HARD[1:]):
        leaf = leaves[task][0]
        file.append(leaf.name, leaf.seen_sha256, "y" if task in EASY else "n")
    assert "1 task of 12 may have been outside of the audit" in score_line()
    last = leaves[HARD[0]][0]
    file.append(last.name, last.seen_sha256, "n")
    assert "corrected by labels of ann" in score_line()


GATED = """
gate = evaluator.add_leaf("gate", "", critical=True)
await evaluator.verify("The gate holds.", gate, None)
leaf = evaluator.add_leaf("leaf", "", critical=False)
await evaluator.verify("The lake is deep.", leaf, None)
return evaluator.get_summary()
"""


def test_a_comparison_allows_for_what_is_behind_wrongly_failed_gates(
    tmp_path, monkeypatch
):
    """As long as nothing decides it, there is an interval but no value."""
    project = entered(tmp_path, monkeypatch)
    for task in EASY:
        project.add_script_body(GATED, task)
        for agent in ("bot", "twin"):
            path = tmp_path / "answers" / agent / task / "answer_1.md"
            path.parent.mkdir(parents=True)
            path.write_text(f"{ANSWER} {task} by {agent}", encoding="utf-8")

    def wrong_gates(body):
        text = prompt_text(body)
        is_wrong = "gate" in claim_in(text) and re.search(r"_[135] by bot", text)
        return {"reasoning": "read", "result": not is_wrong}

    with JudgeServer(wrong_gates) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for agent in ("bot", "twin"):
            assert call(evaluate_main, agent, "--judge_model", "cheap").returncode == 0
            for answer in audited_answers(tmp_path / "eval_results", agent):
                for leaf in answer.leaves:
                    file = LabelFile(tmp_path / "audits", agent, "ann")
                    file.append(leaf.name, leaf.seen_sha256, "y")
    own = "no value better than the judge's; 95% interval for these tasks 0.5000 to 1"
    assert own in score_line()
    (found,) = json.loads(run("compare", "bot", "twin", "--corrected", "--json"))[
        "corrected"
    ]
    assert found["raw_difference"] == 0.5
    assert found["corrected_difference"] is None
    assert found["these_tasks"] == {"low": 0.0, "high": 0.5}
    assert found["tasks_at_large"]["low"] <= 0
    text = run("compare", "bot", "twin", "--corrected")
    assert "no corrected value, as one of the two has none; 95% interval" in text
