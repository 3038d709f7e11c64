"""Corrected scores of answers not sampled, judged otherwise since, or with too few labels."""

import json
import re
import shutil

import pytest
from judged_agent import CLAIMS, judged_agent, stand_in
from projects import ANSWER, Project, call, claim_in, entered
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.analysis.audited import audited_answers
from mind2web2.analysis.labels import LabelFile, LeafName
from mind2web2.cli import evaluate_main, main
from mind2web2.results.result_file import with_checksum
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.audit import AuditSession, AuditSettings, NewLabel
from mind2web2.viewer.catalog import Catalog

TASKS = [f"lake_{number}" for number in range(12)]
EASY, HARD = TASKS[:6], TASKS[6:]
STRONG = ("rejudge", "bot", "--judge_model", "strong", "--sample")
WHOLE = "corrected by strong on 24 of 24 answers: 50%"


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
    run(*STRONG, "8", *chosen(EASY))
    line = score_line()
    assert "not corrected by strong: 12 answers of 24 came after the sample" in line
    assert "outside of it: repeat `" in line
    assert "rejudge bot --judge_model STRONG --sample N`." in line
    assert "interval" not in line
    assert "not corrected for the judge's errors" in run("metrics", "bot")
    assert "corrected by strong on 8 of 12 answers: 100%" in score_line(*chosen(EASY))
    shutil.copytree(project / "eval_results/bot", project / "eval_results/twin")
    refused = call(main, "compare", "bot", "twin", "--corrected")
    assert refused.returncode == 2
    assert "--corrected: bot is not corrected by strong: 12 answers" in refused.stderr
    run(*STRONG, "24")
    assert WHOLE in score_line()


@pytest.mark.parametrize(
    ("size", "change", "cause"),
    [
        pytest.param(
            "24",
            lambda project: project.add_script(
                {"leaf_0": ("Fact 0, in other words.", None)}, HARD[0]
            ),
            "2 of 24 answers were judged on other premises (another script: 2)",
            marks=pytest.mark.long,
        ),
        (
            "8",
            lambda project: project.add_answer(
                "answer_1", f"{ANSWER} {HARD[0]}, in short", HARD[0]
            ),
            "1 of 24 answers were judged on other premises (another text of the answer: 1), "
            f"such as {HARD[0]}/",
        ),
    ],
)
def test_a_sample_ends_where_answers_are_judged_otherwise(project, size, change, cause):
    """Answers outside the sample count too, because it stands for them.

    The same command renews it.
    """
    run(*STRONG, size)
    whole = f"corrected by strong on {size} of 24 answers"
    assert whole in score_line()
    change(Project(project))
    assert call(evaluate_main, "bot", "--judge_model", "cheap").returncode == 0
    assert f"not corrected by strong: {cause}" in score_line()
    run(*STRONG, size)
    assert whole in score_line()


def test_a_sample_ends_where_a_page_is_captured_again(tmp_path, monkeypatch):
    """The results then rest on another page than the sample."""
    project = entered(tmp_path, monkeypatch)
    url = "https://lake.example/facts"
    for task in EASY:
        project.add_answer(text=f"{ANSWER} {task}", task=task)
        project.add_script({"deep": ("The lake is deep.", url)}, task)
        project.cache(task).put_web(url, f"{task} is deep.", None)

    def reply(body):
        return {"reasoning": "read", "result": "is deep." in prompt_text(body)}

    with JudgeServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        judging = ("bot", "--judge_model", "cheap")
        assert call(evaluate_main, *judging).returncode == 0
        run(*STRONG, "6")
        assert "corrected by strong on 6 of 6 answers: 100%" in score_line()
        project.cache(EASY[2]).put_web(url, "The lake is gone.", None)
        assert call(evaluate_main, *judging).returncode == 0
    cause = f"1 of 6 answers were judged on other premises (another page: 1), such as {EASY[2]}"
    assert f"not corrected by strong: {cause}" in score_line()
    assert "not corrected for the judge's errors" in run("metrics", "bot")


@pytest.mark.long
def test_a_sample_of_an_earlier_version_is_renewed(project):
    run(*STRONG, "24")
    (path,) = (project / "rejudged").rglob("sample.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    del record["basis"]
    path.write_text(json.dumps(record), encoding="utf-8")
    assert "the sample is of an earlier version" in score_line()
    run(*STRONG, "24")
    assert WHOLE in score_line()


def test_a_sample_with_gaps_corrects_nothing(project):
    """Records of earlier versions counted answers where the judge failed, a choice not random."""
    run(*STRONG, "16")
    (path,) = (project / "rejudged").rglob("sample.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, "size": 20}), encoding="utf-8")
    line = score_line()
    assert "not corrected by strong: 4 of 20 sampled answers have no score" in line


def test_empty_answers_count_0_by_every_judge(project):
    """One was not empty when it was judged, and one task has no other answers."""
    bot = Project(project)
    bot.add_script(CLAIMS, "sea")
    for answer, task in (("answer_2", HARD[0]), ("answer_1", "sea"), ("answer_2", "sea")):
        bot.add_answer(answer, " ", task)
    assert call(evaluate_main, "bot", "--judge_model", "cheap").returncode == 0
    raw = "Partial completion by the judge 88%, corrected by"
    run(*STRONG, "26")
    assert f"{raw} strong on 26 of 26 answers: 46%" in score_line()
    label_whole(session_of(project), 26)
    assert f"{raw} labels of ann on 26 of 26 answers: 46%" in score_line()
    again = json.loads(run("rejudge", "bot", "--times", "2", "--json"))
    assert (again["repeatability"]["answers"], again["agreement"]) == (26, None)
    assert again["repeatability"]["leaves"] == 23 * 4


@pytest.mark.long
def test_results_without_premises_are_not_alike(project):
    """Two missing checksums are not equal."""
    run(*STRONG, "24")
    for root in ("eval_results", "rejudged"):
        for path in (project / root).rglob(f"{HARD[0]}/*/results/*.json"):
            content = json.loads(path.read_text(encoding="utf-8"))
            del content["provenance"]
            sealed = json.dumps(with_checksum(content))
            path.write_text(sealed, encoding="utf-8")
    assert "(not recorded: 2)" in score_line()


def session_of(project, tasks=()):
    """Return a session of ann over some tasks."""
    settings = AuditSettings(project / "audits", "bot", "ann")
    return AuditSession(Catalog(PathConfig(project), ["bot"], tasks), settings)


def label_whole(session, answers):
    """Label so many answers as the strong judge would; those with labels keep them."""
    while session.state()["whole"] < answers:
        for each in session.state()["leaves"]:
            if each["label"] is None:
                name = LeafName(*each["leaf"])
                label = "y" if name.task in EASY else "n"
                session.label(NewLabel(leaf=name, label=label, seconds=2))


@pytest.mark.long
def test_too_few_labels_leave_the_strong_sample_in_force(project):
    """Labels of people count first where they are enough for a value."""
    run(*STRONG, "24")
    session = session_of(project)
    label_whole(session, 5)
    assert WHOLE in score_line()
    label_whole(session, 12)
    assert "corrected by labels of ann on 12 of 24 answers: 50%" in score_line()


def test_labels_say_nothing_about_answers_outside_of_their_sample(project):
    """Labels of a part of the tasks correct these; a further audit of all answers corrects all."""
    for answers in (5, 10):
        label_whole(session_of(project, EASY), answers)
    # A session that goes on has its sample once.
    lines = (project / "audits/bot/ann.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 40
    line = score_line()
    assert "not corrected by labels of ann: 12 answers of 24 came after the sample" in line
    assert "view bot --audit ann" in line
    assert "interval" not in line
    assert "corrected by labels of ann on 10 of 12" in score_line(*chosen(EASY))
    # Whole answers of the first audit count as well.
    label_whole(session_of(project), 24)
    assert "corrected by labels of ann on 24 of 24 answers: 50%" in score_line()


def test_labels_of_single_leaves_count_for_agreement_alone(project):
    """Earlier versions asked for them; one line says so."""
    file = LabelFile(project / "audits", "bot", "ann")
    for answer in audited_answers(project / "eval_results", "bot"):
        leaf = answer.leaves[0]
        label = "y" if leaf.name.task in EASY else "n"
        file.append(leaf.name, leaf.seen_sha256, label)
    reason = "the labels are of single leaves, and count for agreement alone: go on with"
    assert f"not corrected by labels of ann: {reason}" in score_line()
    found = json.loads(run("metrics", "bot", "--audit", "--json"))["audit"]
    assert found["auditors"][0]["quality"]["figures"]["agreement"]["value"] == 0.5
    assert found["score"]["corrected"] is None


def test_a_corrected_score_says_what_would_change_it(project):
    label_whole(session_of(project), 14)
    text = " ".join(run("metrics", "bot").split())
    assert "To halve the interval for these tasks, judge" in text
    assert "If one label in twenty is wrong, the corrected score is about 5" in text
    found = json.loads(run("metrics", "bot", "--json"))["corrected"]
    assert found["corrected"] == pytest.approx(0.5, abs=0.1)
    assert found["these_tasks"]["low"] < 0.5 < found["these_tasks"]["high"]
    assert found["to_halve"] > 0
    # The judge's verdicts and the labels agree in half of the tasks, and each leaf is a quarter of
    # the score.
    assert found["if_labels_are_wrong"] == pytest.approx(found["corrected"], abs=0.06)


GATED = """
gate = evaluator.add_leaf("gate", "", critical=True)
await evaluator.verify("The gate holds.", gate, None)
leaf = evaluator.add_leaf("leaf", "", critical=False)
await evaluator.verify("The lake is deep.", leaf, None)
return evaluator.get_summary()
"""


def test_a_comparison_is_corrected_for_wrongly_failed_gates(tmp_path, monkeypatch):
    """A person is asked about what is behind them."""
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
            settings = AuditSettings(tmp_path / "audits", agent, "ann")
            session = AuditSession(Catalog(PathConfig(tmp_path), [agent]), settings)
            label_whole(session, 6)
    assert "corrected by labels of ann on 6 of 6 answers: 100%" in score_line()
    (pair,) = json.loads(run("compare", "bot", "twin", "--corrected", "--json"))["corrected"]
    assert (pair["raw_difference"], pair["corrected_difference"]) == (0.5, 0)
    assert pair["these_tasks"] == {"low": 0, "high": 0}
    text = run("compare", "bot", "twin", "--corrected")
    assert "Difference of twin from bot by the judge +50 points, corrected +0 points" in text
