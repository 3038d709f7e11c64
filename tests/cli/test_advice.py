"""What ``verify-results`` advises puts right what it has found, and asks no more than that takes."""

import json
import re
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest
from evaluations import PAGE, tree_nodes
from projects import AGENT, TASK, Project, call, read_json
from servers.judge_server import JudgeServer, status

from mind2web2.cli import evaluate_main, main
from mind2web2.judgments import FILE_NAME, JudgmentStore
from mind2web2.result_checks import OTHER_SCORE
from mind2web2.seals import sealed
from mind2web2.store_checks import NOT_STORED

STEMS = ("answer_1", "answer_2")
CLAIMS = {"deep": ("deep", PAGE), "cold": ("cold", None)}


@pytest.fixture(scope="module")
def judge():
    """Return a judge that stays where it is."""
    with JudgeServer() as server:
        yield server


def evaluated(judge, *words):
    """Evaluate with the options of before and return the run."""
    options = ["--judge_base_url", judge.base_url, "--no_capture", "--no_isolate"]
    return call(evaluate_main, "--agent_name", AGENT, *options, *words)


@pytest.fixture(scope="module")
def judged(judge, tmp_path_factory):
    """Return a folder with two judged answers and a copy of their judgments."""
    project = Project(tmp_path_factory.mktemp("judged"))
    for stem in STEMS:
        project.add_answer(stem, f"The lake is deep and cold ({stem}).")
    project.add_script(CLAIMS)
    project.cache().put_web(PAGE, "80 m", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.chdir(project.root)
        assert evaluated(judge).returncode == 0
        assert call(main, "judgments", "export", AGENT, "exported.jsonl").returncode == 0
    return project.root


@pytest.fixture
def project(judged, tmp_path, monkeypatch):
    """Return a copy of that project, in the working directory."""
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    root = shutil.copytree(judged, tmp_path / "project")
    monkeypatch.chdir(root)
    return Project(root)


def edit(path, change, *, seal=False):
    """Change a file of JSON."""
    content = read_json(path)
    change(content)
    path.write_text(json.dumps(sealed(content) if seal else content), encoding="utf-8")


def on_result(change, *, seal):
    """Return what changes the first answer's result."""
    return lambda project: edit(project.result_paths()[-1], change, seal=seal)


def in_store(statement):
    """Return what changes the store of judgments."""

    def change(project):
        with sqlite3.connect(project.results / FILE_NAME) as connection:
            connection.execute(statement)
        connection.close()

    return change


def serve_otherwise(project):
    """Let the judge have been another model for one more question."""
    with JudgmentStore(project.results / FILE_NAME) as store:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        another = {"key": "f" * 64, "served_model": "newer", "created": now}
        store.add([store.all()[0].model_copy(update=another)])


def change_vote(result):
    """Let a vote say what the judge did not."""
    tree_nodes(result)["cold"]["evidence"]["votes"][0]["reasoning"] = "sure"


SCORE = on_result(lambda result: result.update(final_score=0.5), seal=False)
# What happens to a project, what is advised, and how many requests follow.
CASES = {
    "score": (SCORE, "to judge what is wrong", 0),
    "seal": (on_result(lambda result: result["run"].pop("content_sha256"), seal=False), "to judge", 0),
    "vote": (on_result(change_vote, seal=False), "to judge", 0),
    "provenance": (on_result(lambda result: result.pop("provenance"), seal=True), "to judge", 0),
    "no provenance": (on_result(lambda result: result.update(provenance=1), seal=True), "to judge", 0),
    "damaged": (lambda project: project.result_paths()[0].write_text("{"), "to judge", 0),
    "deleted": (lambda project: project.result_paths()[0].unlink(), "to judge", 0),
    "answer": (lambda project: project.add_answer("answer_1", "The lake is dry."), "to judge", 4),
    "page": (lambda project: project.cache().put_web(PAGE, "81 m", None), "to judge", 4),
    "copy": (lambda project: (project.folder() / "answer_1.md").unlink(), "move these files away", 0),
    "other copy": (lambda project: (project.folder() / "answer_1.md").write_text("x"), "move these", 0),
    "rows": (in_store("DELETE FROM judgments WHERE claim = 'cold' AND trial = 1"), "anew by:", 8),
    "empty store": (in_store("DELETE FROM judgments"), "anew by:", 8),
    "sealed vote": (on_result(change_vote, seal=True), "--task_id lake --overwrite", 8),
    "stored text": (in_store("UPDATE judgments SET text = replace(text, 'true', 'false')"), "--overwrite", 8),
    "served": (serve_otherwise, "--overwrite", 8),
    "answer gone": (
        lambda project: (project.root / "answers" / AGENT / TASK / "answer_1.md").unlink(),
        "put these answers back, or",
        0,
    ),
    "task summary": (lambda project: (project.results / TASK / "summary.json").unlink(), "mind2web2 eval", 0),
    "summary": (lambda project: (project.results / "summary.json").unlink(), "sum up anew: mind2web2 met", 0),
    "all results": (
        lambda project: project.results.with_name("all_results.json").write_text("{"),
        "sum up anew: mind2web2 evaluate",
        0,
    ),
}


AGAIN = f"""
first = evaluator.add_leaf("a", "a", critical=True)
await evaluator.verify("deep", first, sources="https://lake.example/gone")
await evaluator.verify("cold", evaluator.add_leaf("b", "b"))
await evaluator.verify("deep", first, sources="{PAGE}")
return evaluator.get_summary()
"""


def as_earlier_versions(result):
    """Take away what they did not keep."""
    del tree_nodes(result)["a"]["earlier"], result["run"]["tree_format"]


def verified(*words):
    """Run the command and return its status and what it printed."""
    run = call(main, "verify-results", AGENT, *words)
    return run.returncode, run.stdout


def follow(judge, output):
    """Do what the output advises."""
    for place in re.findall(r"^  (\S+)$", output, re.MULTILINE):
        shutil.move(place, "away")
    lines = [line for line in output.splitlines() if line.startswith(("Next", "  mind2web2"))]
    commands = re.findall(rf"mind2web2 (evaluate|metrics) {AGENT}([^(\n]*)", "\n".join(lines))
    for command, words in commands:
        if command == "evaluate":
            assert evaluated(judge, *words.split()).returncode == 0
        else:
            call(main, "metrics", AGENT)


@pytest.mark.parametrize("what", CASES)
def test_advice_that_is_followed_puts_everything_right(judge, project, what):
    """With as many requests as are needed, and none where the stored judgments do."""
    happen, advice, requests = CASES[what]
    happen(project)
    exit_status, output = verified()
    assert exit_status in (1, 3)
    assert advice in output
    before = len(judge.requests)
    follow(judge, output)
    exit_status, output = verified()
    assert exit_status == 0, output
    assert len(judge.requests) - before == requests


def test_results_of_earlier_versions_are_not_wrong_for_what_those_did_not_keep(judge, project):
    """What a leaf was skipped for has passed since; whoever wants it checked needs no more requests."""
    project.add_script_body(AGAIN)
    assert evaluated(judge).returncode == 0
    assert verified()[0] == 0
    for stem in STEMS:
        edit(project.result_paths(stem)[-1], as_earlier_versions, seal=True)
    exit_status, output = verified()
    assert exit_status == 3
    assert "what would show whether these leaves were rightly skipped: b\n" in output
    before = len(judge.requests)
    follow(judge, output)
    assert (verified()[0], len(judge.requests)) == (0, before)


def test_another_file_s_judgments_are_no_reason_to_ask_anew(judge, project):
    """An export from before the last evaluation says nothing about it, whatever the judge said then."""
    assert evaluated(judge, "--overwrite").returncode == 0
    exit_status, output = verified("--judgments", "exported.jsonl")
    assert exit_status == 3
    assert f"{NOT_STORED}, 4 of 4: cold, deep\n" in output
    assert "without that option they are looked up in the agent's own store" in output
    assert "--overwrite" not in output
    assert verified()[0] == 0
    assert verified("--judgments", project.results / FILE_NAME)[0] == 0


def test_a_vote_that_a_named_file_contradicts_is_settled_by_the_own_store(project):
    """It is wrong; what another file says is no reason to pay."""
    on_result(change_vote, seal=True)(project)
    exit_status, output = verified("--judgments", "exported.jsonl")
    assert (exit_status, "it is not what the judge said, which is stored" in output) == (1, True)
    assert "without that option they are looked up in the agent's own store" in output
    assert "--overwrite" not in output


def test_judgments_that_are_lost_can_be_asked_anew(judge, project):
    """With what that costs; or somebody has them in a file."""
    (project.results / FILE_NAME).unlink()
    exit_status, output = verified()
    assert (exit_status, "where they are lost, each is asked, and paid for, anew by:\n" in output) == (
        3,
        True,
    )
    assert verified("--judgments", "exported.jsonl")[0] == 0
    before = len(judge.requests)
    follow(judge, output)
    assert (verified()[0], len(judge.requests) - before) == (0, 8)


def test_another_judge_that_is_to_count_is_advised(judge, project):
    """Everything that it has not judged is asked anew."""
    words = ["--judge_model", "gpt-4o-mini"]
    exit_status, output = verified(*words)
    assert (exit_status, f"mind2web2 evaluate {AGENT} --judge_model gpt-4o-mini (" in output) == (3, True)
    before = len(judge.requests)
    follow(judge, output)
    assert (verified(*words)[0], len(judge.requests) - before) == (0, 8)
    assert len(project.result_paths()) == 2


def test_what_is_gone_is_to_be_put_back(project):
    """Script and answer are named; nothing else would do for the script."""
    script = project.root / "eval_scripts" / "example" / f"{TASK}.py"
    answer = project.root / "answers" / AGENT / TASK / "answer_1.md"
    for path, words in ((script, "put the eval scripts of these"), (answer, "put these answers back")):
        path.rename("away")
        exit_status, output = verified()
        assert (exit_status, words in output) == (3, True)
        (project.root / "away").rename(path)
        assert verified()[0] == 0


@pytest.mark.usefixtures("project")
def test_an_answer_that_the_last_run_did_not_score_is_scored_by_the_next(judge):
    """Its earlier result still holds, so that nothing is asked."""
    with JudgeServer(faults=lambda _body: status(401, "revoked")) as broken:
        assert evaluated(broken, "--overwrite").returncode == 1
    exit_status, output = verified()
    assert (exit_status, "to judge what is wrong, stale or missing" in output) == (3, True)
    before = len(judge.requests)
    follow(judge, output)
    assert (verified()[0], len(judge.requests)) == (0, before)


def test_each_answer_has_its_cure_for_programs(project):
    """Beside the findings."""
    (project.folder() / "answer_1.md").unlink()
    answers = json.loads(verified("--json")[1])["answers"]
    assert [answer["cure"] for answer in answers] == ["move away and evaluate", None]


OWN_SCORE = """
await evaluator.verify("deep", evaluator.add_leaf("deep", "deep"))
return {**evaluator.get_summary(), "final_score": 0.25}
"""


def test_a_score_that_a_script_returns_against_its_tree_is_for_its_author(judge, project):
    """Everybody is told, and nobody is sent to evaluate again; also where the record lacks something else."""
    project.add_script_body(OWN_SCORE)
    told = "its script returned the score 0.25, but its rubric tree has 1\n"
    assert evaluated(judge).stdout.count(told) == 2
    names = f"2 ({TASK}/answer_1.md, {TASK}/answer_2.md)"
    assert f"rubric trees come to, on the word of a script: {names}" in call(main, "metrics", AGENT).stdout
    exit_status, output = verified()
    [line] = [line for line in output.splitlines() if line.startswith("Wrong")]
    assert (exit_status, line.endswith(f"{OTHER_SCORE}final_score is 0.25, and by its tree 1")) == (1, True)
    assert "mend them; evaluating again changes nothing before: lake\n" in output
    assert "move these files away" not in output
    (project.results / FILE_NAME).unlink()
    assert f"mind2web2 evaluate {AGENT} --task_id lake --overwrite" in verified()[1]


def test_an_answer_that_is_there_is_to_be_mended(judge, project):
    """It need not be put back, and what is left of it need not go; once mended it is judged again."""
    for content in (b"", b"\xff\xfe"):
        path = project.add_answer("answer_1", content)
        assert evaluated(judge).returncode == 1
        exit_status, output = verified()
        assert exit_status == 3
        assert (
            "mend these answers, which are there and cannot be judged as they are, and run: mind2" in output
        )
        assert "put these answers back" not in output
        assert str(project.folder()) not in output
    path.write_text("The lake is deep and cold (answer_1).")
    before = len(judge.requests)
    follow(judge, output)
    assert (verified()[0], len(judge.requests)) == (0, before)
