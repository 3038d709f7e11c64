"""``mind2web2 verify-results`` on the example as it was judged, and after changes of every kind."""

import hashlib
import json
import shutil
import sqlite3

import pytest
from evaluations import tree_nodes
from projects import AGENT, REPOSITORY, Project, call, read_json
from servers.judge_server import JudgeServer, rate_limited, status
from servers.recorded_replies import RecordedReplies

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.store import STORE_NAME
from mind2web2.results.freshness import CHANGED
from mind2web2.results.result_file import with_checksum

RECORDED = REPOSITORY / "examples" / "judgments.jsonl"
FOLDERS = ("answers", "eval_scripts", "cache")
TASK, STEM = "museum_saturday", "answer_1"
NAME = f"{TASK}/{STEM}.md"


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a folder with the example, judged by a server that is asked twice for some replies."""
    root = tmp_path_factory.mktemp("judged")
    for folder in FOLDERS:
        shutil.copytree(REPOSITORY / folder, root / folder)
    faults = [None, rate_limited(retry_after="0"), None, status(500, "oops")]
    with (
        JudgeServer(RecordedReplies(), faults=faults) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.chdir(root)
        words = [
            "--agent_name",
            "example",
            "--judge_base_url",
            server.base_url,
            "--no_capture",
        ]
        assert call(evaluate_main, *words).returncode == 0
    return root


@pytest.fixture
def example(judged, tmp_path, monkeypatch):
    """Return a copy of that folder, which is the working directory."""
    root = shutil.copytree(judged, tmp_path / "example")
    monkeypatch.chdir(root)
    return root


def verify(*words):
    """Run the command.

    Return its status, what it found as (kind, answers, text), and its output.
    """
    run = call(main, "verify-results", "example", *words)
    lines = [line.split(": ", 2) for line in run.stdout.splitlines()]
    kinds = ("Wrong", "Stale", "Missing")
    found = [(line[0].lower(), line[1], line[2]) for line in lines if line[0] in kinds]
    return run.returncode, found, run.stdout + run.stderr


def result_path(root, task=TASK, stem=STEM):
    """Return the path of the example's result for an answer."""
    [path] = (root / "eval_results" / "example" / task / stem / "results").glob("*.json")
    return path


def change(path, edit, *, seal=False):
    """Change a file of JSON."""
    content = read_json(path)
    edit(content)
    path.write_text(json.dumps(with_checksum(content) if seal else content), encoding="utf-8")


def test_results_of_a_run_are_correct_and_up_to_date(example, caplog):
    """Nine answers, each score again from its tree.

    Nothing is logged, or written even beside the store.
    """
    before = {path: path.stat().st_mtime_ns for path in example.rglob("*")}
    exit_status, found, output = verify()
    assert (exit_status, found) == (0, [])
    assert output.splitlines()[-1] == "9 answers: 9 correct and up to date"
    assert sum(line.count("ok") for line in output.splitlines()) == 9
    assert {path: path.stat().st_mtime_ns for path in example.rglob("*")} == before
    assert caplog.text == ""


def test_a_changed_score_is_wrong(example, caplog):
    """Exit status 1.

    The answer is named with what to do about it, and the log tells of the file once.
    """
    change(result_path(example), lambda result: result.update(final_score=1.0))
    exit_status, found, output = verify()
    assert exit_status == 1
    assert any(
        kind == "wrong" and "changed after it was written" in words for kind, _, words in found
    )
    assert (
        "wrong",
        NAME,
        "its score is 1, but its rubric tree gives 0.444444",
    ) in found
    assert (
        "Next, delete the result files that are wrong, then run from the stored judgments "
        "(without --llm_provider, a judge is asked for those that are missing): "
        "mind2web2 evaluate example --llm_provider replay" in output
    )
    assert "9 answers: 8 correct and up to date, 1 wrong" in output
    assert caplog.text.count("result was changed after it was written, counts as none path=") == 1
    assert verify("--task_id", "library_facts")[:2] == (0, [])


def leaf_with_votes(result):
    """Return the first leaf that a judge has decided by a page."""
    nodes = tree_nodes(result).values()
    return next(node for node in nodes if "votes" in node.get("evidence", {}).get("pages", [{}])[0])


EDITS = {
    "a score": (
        lambda result: result.update(final_score=0.5),
        ("wrong", "but its rubric tree gives"),
    ),
    "a leaf": (
        lambda result: leaf_with_votes(result).update(score=0.0, status="failed"),
        ("wrong", "is passed (1.0) instead of failed (0.0)"),
    ),
    "a score without a tree": (
        lambda result: result.update(final_score="high"),
        ("wrong", "its score is 0.4444444444444444 instead of None"),
    ),
    "what it was made from": (
        lambda result: result["provenance"].update(digest="0" * 64),
        ("stale", CHANGED),
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_each_kind_of_change_is_found(example, what):
    edit, (kind, text) = EDITS[what]
    change(result_path(example), edit, seal=True)
    exit_status, found, _ = verify("--task_id", TASK)
    assert exit_status == {"wrong": 1, "stale": 3}[kind]
    assert any((kind, NAME) == each[:2] and text in each[2] for each in found)


def test_a_result_that_was_changed_is_not_reused(example, monkeypatch):
    """The next evaluation judges it again, from the stored judgments, and all is right."""
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    endpoint = read_json(result_path(example))["provenance"]["judge"]["endpoint"]
    change(result_path(example), lambda result: result.update(final_score=1.0))
    with JudgeServer() as server:
        words = [
            "--agent_name",
            "example",
            "--no_capture",
            "--judge_base_url",
            endpoint.split()[-1],
            "--task_id",
            TASK,
        ]
        run = call(evaluate_main, *words)
        assert (run.returncode, server.requests) == (0, [])
    assert "0 judgments asked" in run.stdout
    assert verify("--task_id", TASK)[:2] == (0, [])


def test_a_judgment_that_was_changed_shows(example):
    """A store that is edited does not go with the results any more."""
    with sqlite3.connect(example / "eval_results" / "example" / STORE_NAME) as connection:
        connection.execute("UPDATE judgments SET text = replace(text, 'true', 'false')")
    connection.close()
    exit_status, found, _ = verify()
    assert exit_status == 1
    assert len({name for _, name, _ in found}) > 5


def test_the_score_of_the_script_that_is_run_again_is_shown(example):
    with sqlite3.connect(example / "eval_results" / "example" / STORE_NAME) as connection:
        connection.execute("UPDATE judgments SET text = replace(text, 'true', 'false')")
    connection.close()

    def entry():
        words = ("--task_id", TASK, "--json")
        content = json.loads(call(main, "verify-results", "example", *words).stdout)
        names = [answer["answer_name"] for answer in content["answers"]]
        return content["answers"][names.index(f"{STEM}.md")]

    found = entry()
    scores = found["score"], found["score_again"]
    assert (found["record"], *scores) == ("wrong", pytest.approx(4 / 9, abs=1e-4), 0.0)


def test_why_a_page_is_unavailable_decides_nothing(example):
    """A later attempt to capture it may fail for another reason.

    Results stay correct and up to date.
    """
    for path in (example / "cache").rglob("*.capture.json"):
        record = read_json(path)
        if record["failure"]:
            path.write_text(
                json.dumps(record | {"failure": "connection refused"}), encoding="utf-8"
            )
    assert verify()[:2] == (0, [])


def test_a_replay_is_verified_against_the_file_that_it_was_made_from(tmp_path, monkeypatch):
    """Results record it, relative to the working directory; a missing file is a finding."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "shared" / "judgments.jsonl"
    file.parent.mkdir()
    shutil.copy(RECORDED, file)
    words = []
    for folder, option in zip(
        FOLDERS, ("answer_folder", "eval_scripts_root", "cache_root"), strict=True
    ):
        words += [f"--{option}", REPOSITORY / folder]
    replay = [
        "--agent_name",
        "example",
        "--llm_provider",
        "replay",
        "--judgments",
        "shared/judgments.jsonl",
    ]
    words += ["--task_id", TASK]
    assert call(evaluate_main, *words, *replay).returncode == 0
    sha256 = hashlib.sha256(RECORDED.read_bytes()).hexdigest()
    assert read_json(result_path(tmp_path))["provenance"]["replayed_from"] == {
        "path": "shared/judgments.jsonl",
        "sha256": sha256,
    }
    assert verify(*words)[:2] == (0, [])
    with file.open("a", encoding="utf-8") as more:
        more.write(RECORDED.read_text(encoding="utf-8").split("\n")[0] + "\n")
    assert verify(*words)[:2] == (0, [])
    file.unlink()
    _, [(kind, _, text)], output = verify(*words)
    assert "--llm_provider replay --judgments shared/judgments.jsonl" in output
    assert (kind, "no judgments at shared/judgments.jsonl" in text) == ("missing", True)
    assert verify(*words, "--judgments", RECORDED)[:2] == (0, [])


def test_results_of_earlier_tools_are_checked_as_far_as_they_go(tmp_path, monkeypatch):
    """A score that follows from its tree is all there is to check."""
    project = Project(tmp_path)
    project.add_answer("answer_1")
    leaf = {
        "id": "a",
        "desc": "",
        "critical": False,
        "score": 1.0,
        "status": "passed",
        "strategy": "parallel",
    }
    tree = {**leaf, "id": "root", "children": [leaf]}
    path = project.folder() / "results" / "20250101_000000_answer_1.md.json"
    path.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for score, exit_status in ((1.0, 3), (0.5, 1)):
        content = {
            "final_score": score,
            "eval_breakdown": [{"info": [], "verification_tree": tree}],
        }
        path.write_text(json.dumps(content))
        run = call(main, "verify-results", AGENT)
        assert run.returncode == exit_status
        assert "Missing: lake/answer_1.md: it does not say what it was made from" in run.stdout


def test_missing_and_damaged_files_are_named(example):
    results = example / "eval_results" / "example"
    with sqlite3.connect(results / STORE_NAME) as connection:
        connection.execute(
            "DELETE FROM judgments WHERE answer_name = 'answer_2.md' AND task_id = ?",
            [TASK],
        )
    connection.close()
    (example / "answers" / "example" / TASK / "answer_3.md").unlink()
    result_path(example).write_text("{")
    exit_status, found, _ = verify("--task_id", TASK)
    assert exit_status == 1
    by_name = {name: (kind, text) for kind, name, text in found}
    assert by_name[NAME] == (
        "wrong",
        "its newest result is damaged",
    )
    kind, text = by_name[f"{TASK}/answer_2.md"]
    assert kind == "missing"
    assert "its script cannot be run again: no stored judgment on" in text
    assert by_name[f"{TASK}/answer_3.md"][0] == "missing"


def test_several_agents_are_checked_in_one_command(example):
    for folder in ("answers", "cache", "eval_results"):
        shutil.copytree(example / folder / "example", example / folder / "copy")
    exit_status, _, output = verify("copy", "--task_id", TASK, "--json")
    names = [agent["agent"] for agent in json.loads(output)["agents"]]
    assert (exit_status, names) == (0, ["example", "copy"])


def test_findings_are_available_as_json(example):
    change(result_path(example), lambda result: result.update(final_score=1.0), seal=True)
    exit_status, _, output = verify("--json", "--task_id", TASK)
    content = json.loads(output)
    assert exit_status == 1
    [wrong] = [answer for answer in content["answers"] if answer["record"] == "wrong"]
    assert (wrong["task_id"], wrong["answer_name"], wrong["score"]) == (
        TASK,
        f"{STEM}.md",
        1.0,
    )
    assert wrong["score_again"] == pytest.approx(4 / 9)
    assert [finding["kind"] for finding in wrong["findings"]] == ["wrong", "wrong"]
    assert wrong["findings"][0]["text"] == "its score is 1, but its rubric tree gives 0.444444"
    change(
        result_path(example),
        lambda result: result.update(final_score="high"),
        seal=True,
    )
    scores = [
        answer["score"] for answer in json.loads(verify("--json", "--task_id", TASK)[2])["answers"]
    ]
    assert None in scores and "high" not in scores


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody"], "no results of agent nobody under eval_results"),
        (
            ["example", "--task_id", "sea"],
            "no answers or results of agent example to sea. Found: library",
        ),
        (["example", "--eval_version", "v9"], "no eval version v9"),
        (["example", "--judgments", "gone.jsonl"], "no judgments at gone.jsonl"),
        (["../x"], "agent '../x' begins with a dot"),
    ],
)
def test_a_check_that_is_impossible_is_one_line(example, words, message):  # noqa: ARG001
    run = call(main, "verify-results", *words)
    assert run.returncode == 2
    assert message in run.stderr
    assert run.stderr.count("\n") == 1


def test_the_help_explains_the_exit_status():
    run = call(main, "verify-results", "--help")
    for words in (
        "1 something is wrong",
        "2 nothing could be checked",
        "3 nothing is wrong, but",
        "stale  ",
    ):
        assert words in " ".join(run.stdout.split()) or words in run.stdout
