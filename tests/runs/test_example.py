"""The example from end to end: replayed offline, and judged by a server that misbehaves."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import (
    REPOSITORY,
    call,
    claim_in,
    clean_environment,
    read_json,
    run_command,
)
from servers.judge_server import (
    JudgeServer,
    broken_body,
    content,
    drop_before_reply,
    drop_mid_reply,
    prompt_text,
    rate_limited,
    refusal,
    status,
    truncated,
)
from servers.recorded_replies import RECORDED, RecordedReplies, question_in

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import STORE_NAME
from mind2web2.judge.transfer import read_judgments

SCORES = read_json(REPOSITORY / "examples" / "expected_scores.json")
ANSWERS = [(task, answer) for task, answers in SCORES.items() for answer in answers]
# Three answers extract from one page by the same question.
QUESTION_COUNT, JUDGMENT_COUNT = 144, 142

FAULTS = (
    [None] * 4
    + [
        rate_limited(retry_after="0.1"),
        status(500, "oops"),
        broken_body(),
        content("I think so, yes."),
    ]
    + [None] * 20
    + [
        refusal(),
        drop_before_reply(),
        drop_mid_reply(),
        truncated(),
        status(503, "overloaded"),
    ]
)


class Reader(RecordedReplies):
    """Says to each question what is recorded for it.

    An edited claim is answered like the original.
    """

    def __call__(self, body):
        """Return the recorded reply."""
        question = question_in(body)
        claim = question.claim and question.claim.replace("was opened", "opened")
        return self.to(question._replace(claim=claim))


def newest_results(root):
    """Return the newest result of each answer, without the lines of the run itself."""
    return {(task, answer): newest_result(root, task, answer) for task, answer in ANSWERS}


def newest_result(root, task, answer):
    """Return the newest result of one answer, without the lines of the run itself."""
    folder = root / "example" / task / Path(answer).stem / "results"
    result = read_json(max(folder.glob(f"*_{answer}.json")))
    del result["run"]
    return result


def breakdown(result):
    """Return tree and facts without the keys of judgments, which name the model that was asked."""
    text = json.dumps(result["eval_breakdown"])
    return json.loads(
        text,
        object_hook=lambda each: {k: v for k, v in each.items() if k != "judgment"},
    )


def check_scores(root):
    """Hold the result files against the scores derived by hand."""
    for (task, answer), result in newest_results(root).items():
        assert math.isclose(result["final_score"], SCORES[task][answer], abs_tol=1e-9), (
            task,
            answer,
        )


def reused_lines(run):
    """Return how many answers a run reports as reused."""
    return sum(line.startswith("[") and "reused" in line for line in run.stdout.splitlines())


def replay(results, *more, judgments=RECORDED):
    """Evaluate the example from recorded judgments in this process, scripts included."""
    given = [] if judgments is None else ["--judgments", judgments]
    options = [
        "--agent_name",
        "example",
        "--llm_provider",
        "replay",
        "--eval_results_root",
        results,
    ]
    return call(evaluate_main, *options, *given, *more)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """Run the README's first command twice, without a key; return its results and both runs."""
    root = tmp_path_factory.mktemp("replayed")
    options = [
        "--agent_name",
        "example",
        "--llm_provider",
        "replay",
        "--judgments",
        "examples/judgments.jsonl",
    ]
    command = [*options, "--eval_results_root", root]
    return root, [run_command(*command, cwd=REPOSITORY, OPENAI_API_KEY="") for _ in range(2)]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Judge the example once over a server with all its faults; the server stays up."""
    root = tmp_path_factory.mktemp("judged")
    with JudgeServer(Reader(), faults=FAULTS) as server:
        options = [
            "--agent_name",
            "example",
            "--judge_base_url",
            server.base_url,
            "--no_capture",
        ]
        run = run_command(*options, "--eval_results_root", root, cwd=REPOSITORY)
        yield root, run, server


@pytest.fixture
def again(judged, tmp_path, monkeypatch):
    """Return a copy of the judged results, the server, and a function.

    The function evaluates on from there.
    """
    root, _, server = judged
    results = tmp_path / "eval_results"
    shutil.copytree(root, results)
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    asked_before = len(server.requests)

    def evaluate(*more):
        options = [
            "--agent_name",
            "example",
            "--judge_base_url",
            server.base_url,
            "--no_capture",
        ]
        run = call(
            evaluate_main,
            *options,
            "--eval_results_root",
            results,
            *more,
        )
        return run, server.requests[asked_before:]

    return results, evaluate


@pytest.fixture
def repository(monkeypatch):
    """Work in the repository, as the README has it."""
    monkeypatch.chdir(REPOSITORY)


def test_the_first_command_gives_the_scores_derived_by_hand(replayed):
    root, runs = replayed
    assert [(run.returncode, run.stderr) for run in runs] == [(0, ""), (0, "")]
    check_scores(root)
    assert {score for answers in SCORES.values() for score in answers.values()} >= {
        0.0,
        1.0,
    }


def test_the_table_shows_scores_and_metrics(replayed):
    output = replayed[1][0].stdout
    for words in (
        "[9/9] ",
        "step_free_walks/answer_1.md: 0.89",
        "1: 1  2: 0.38  3: 0.50",
        "1: 0.44  2: 1  3: 0",
        "example, all results: 3 tasks, 3 runs",
        "example-key (replay)",
        f"0 judgments asked, {QUESTION_COUNT} reused, 0 tokens",
    ):
        assert words in output
    assert "No result" not in output
    assert reused_lines(replayed[1][0]) == 0


def test_the_metrics_are_those_worked_out_by_hand(replayed):
    """Run by run: (1 + 4/9 + 8/9)/3, (3/8 + 1 + 2/3)/3 and (1/2 + 0 + 5/9)/3."""
    summary = read_json(replayed[0] / "example" / "summary.json")
    assert {name: run["avg_score"] for name, run in summary["per_run"].items()} == {
        "answer_1.md": 0.777778,
        "answer_2.md": 0.680556,
        "answer_3.md": 0.351852,
    }
    assert (summary["agent_name"], summary["num_tasks"], summary["num_runs"]) == (
        "example",
        3,
        3,
    )
    assert (summary["avg_score"], summary["avg_score_std"]) == (0.603395, 0.1822)
    # One task of three in the first two runs, none in the third; two of the tasks at least once.
    assert (summary["success_rate"], summary["success_rate_std"]) == (0.2222, 0.1571)
    assert summary["pass_at_3"] == 0.6667
    words = {
        name: [
            len((REPOSITORY / "answers" / "example" / task / name).read_text().split())
            for task in SCORES
        ]
        for name in ("answer_1.md", "answer_2.md", "answer_3.md")
    }
    assert {name: run["avg_word_count"] for name, run in summary["per_run"].items()} == {
        name: round(sum(counts) / 3, 1) for name, counts in words.items()
    }
    museum = summary["tasks"]["museum_saturday"]
    assert [answer["answer_name"] for answer in museum.pop("answers")] == list(words)
    assert museum == {"best_score": 1.0, "avg_score": 0.481481, "pass": True}
    assert (summary["missing"], summary["warnings"]) == ([], [])
    assert summary["judge_models"] == {"example-key": 9}


def test_the_summaries_have_the_published_form(replayed):
    root = replayed[0]
    merged = read_json(root / "all_results.json")
    assert list(merged) == sorted(SCORES)
    for task, by_agent in merged.items():
        assert by_agent == {"example": read_json(root / "example" / task / "summary.json")}
        for entry in by_agent["example"]:
            score = SCORES[task][entry["answer_name"]]
            assert entry == {
                "answer_name": entry["answer_name"],
                "score": pytest.approx(score),
                "status": "success" if score > 0 else "failed",
                "success": score == 1.0,
            }


def test_a_second_replay_comes_to_the_same(replayed):
    root, runs = replayed
    assert runs[-1].stdout.count(", reused\n") == len(ANSWERS)
    for task, answer in ANSWERS:
        assert len(list((root / "example" / task / Path(answer).stem / "results").iterdir())) == 1


def test_the_answer_key_gives_the_recorded_judgments(tmp_path):
    """Each is used, and none is missing: recording them again gives the same file."""
    recorded = tmp_path / "judgments.jsonl"
    subprocess.run(
        [sys.executable, "examples/record_judgments.py", str(recorded)],
        cwd=REPOSITORY,
        env=clean_environment(),
        capture_output=True,
        check=True,
    )
    assert recorded.read_bytes() == RECORDED.read_bytes()
    assert len(recorded.read_bytes().splitlines()) == JUDGMENT_COUNT


def test_a_server_that_misbehaves_changes_no_score(judged, replayed):
    """Rate limits, errors, damaged replies, a refusal, lost connections: each is asked again."""
    root, run, server = judged
    assert run.returncode == 0
    assert {line.partition(":")[0] for line in run.stderr.splitlines()} == {"warning"}
    check_scores(root)
    assert len(server.requests) >= JUDGMENT_COUNT + len([fault for fault in FAULTS if fault])
    assert {call.headers["authorization"] for call in server.calls} == {"Bearer dummy"}
    assert {body["model"] for body in server.requests} == {"o4-mini"}
    for place, result in newest_results(root).items():
        assert breakdown(result) == breakdown(newest_results(replayed[0])[place])
        assert result["judge_usage"]["rejections"] == []


def test_the_run_says_what_it_cost(judged):
    output = judged[1].stdout
    assert f"{JUDGMENT_COUNT} judgments asked, 2 reused" in output
    assert "Judge: o4-mini (openai http://127.0.0.1:" in output
    assert "$0.0" in output


def test_after_an_edit_only_the_edited_claim_is_asked(again, tmp_path):
    """The other claims of the script, and the other scripts, cost nothing."""
    results, evaluate = again
    scripts = tmp_path / "eval_scripts"
    shutil.copytree(REPOSITORY / "eval_scripts" / "example", scripts / "example")
    script = scripts / "example" / "library_facts.py"
    original = "The main library of Ottermoss opened to the public in {fact.value}."
    assert script.read_text().count(original) == 1
    script.write_text(
        script.read_text().replace(original, original.replace("opened", "was opened"))
    )
    run, asked = evaluate("--eval_scripts_root", scripts)
    assert run.returncode == 0
    # The answer with 1908 never gets that far; those with 1911 are asked twice for each page that
    # is there.
    claims = {claim_in(prompt_text(body)) for body in asked}
    assert claims == {"The main library of Ottermoss was opened to the public in 1911."}
    assert len(asked) == 4
    check_scores(results)


def test_overwriting_asks_everything_again(again):
    """The earlier results stay beside the new ones."""
    results, evaluate = again
    run, asked = evaluate("--overwrite")
    assert (run.returncode, len(asked)) == (0, JUDGMENT_COUNT)
    check_scores(results)
    folder = results / "example" / "library_facts" / "answer_1" / "results"
    assert len(list(folder.iterdir())) == 2


def test_judgments_travel(again, tmp_path):
    results, _ = again
    exported, elsewhere = tmp_path / "example.jsonl", tmp_path / "elsewhere"
    run = call(main, "export", "example", "--judgments", exported, "--eval_results_root", results)
    judgments = list(read_judgments(exported))
    assert run.returncode == 0
    told = f"{len(judgments)} judgments written to {exported}; the newest results use "
    assert run.stdout.startswith(told)
    assert sum(judgment.purpose != "gate" for judgment in judgments) == JUDGMENT_COUNT
    assert replay(elsewhere, judgments=exported).returncode == 0
    check_scores(elsewhere)
    assert not (elsewhere / "example" / STORE_NAME).exists()
    shutil.rmtree(elsewhere)
    for new in (len(judgments), 0):
        run = call(
            main,
            "import",
            "judgments",
            "example",
            exported,
            "--eval-results-root",
            elsewhere,
        )
        assert (run.returncode, run.stdout) == (
            0,
            f"new judgments in {elsewhere}/example/{STORE_NAME}: {new} of {len(judgments)}\n",
        )
    assert replay(elsewhere, judgments=None).returncode == 0
    check_scores(elsewhere)
    run = call(
        main,
        "export",
        "example",
        "--judgments",
        tmp_path / "back.jsonl",
        "--eval_results_root",
        elsewhere,
    )
    assert (tmp_path / "back.jsonl").read_bytes() == exported.read_bytes()


@pytest.mark.usefixtures("repository")
def test_a_missing_judgment_costs_its_answer_only(tmp_path):
    """The reason names claim, page and node; exit status 1."""
    kept = [
        line
        for line in RECORDED.read_text(encoding="utf-8").split("\n")
        if line and not is_of_architect(Judgment.model_validate_json(line))
    ]
    assert len(kept) == JUDGMENT_COUNT - 1
    (tmp_path / "part.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    only = ("--task_id", "library_facts")
    run = replay(tmp_path / "results", *only, judgments=tmp_path / "part.jsonl")
    assert run.returncode == 1
    [reason] = [line for line in run.stdout.splitlines() if line.startswith("No result: ")]
    for words in (
        "library_facts/answer_1.md",
        "no stored judgment on claim 'The architect of the main library of Ottermoss was Ilvane "
        "Corrow.'",
        "https://library.ottermoss.example/about/history",
        "node 'architect_supported', trial 2",
    ):
        assert words in reason
    summary = read_json(tmp_path / "results" / "example" / "library_facts" / "summary.json")
    assert [entry["score"] for entry in summary] == [0.375, 0.5]
    assert run.stdout.count("no result: ") == 1


def is_of_architect(judgment):
    """Tell the one judgment that is taken away."""
    place = (judgment.answer_name, judgment.node, judgment.trial)
    return place == ("answer_1.md", "architect_supported", 2)


def test_a_replay_of_two_judges_asks_which(again):
    """Exit status 2 and one line that names both; then the one chosen is replayed.

    If the agent has results, their judge is replayed.
    """
    results, _ = again
    run = call(main, "import", "judgments", "example", RECORDED, "--eval_results_root", results)
    assert run.returncode == 0
    run = replay(results, judgments=None)
    assert run.returncode == 0
    assert "o4-mini (replay)" in run.stdout
    for folder in (results / "example").glob("*/"):
        shutil.rmtree(folder)
    run = replay(results, judgments=None)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(
        "run_eval.py: replay needs one judge, several fit; the store has: example-key at "
    )
    assert "; o4-mini at openai http://127.0.0.1" in run.stderr
    assert "Choose with --judge_model" in run.stderr
    run = replay(results, "--judge_model", "nobody", judgments=None)
    assert run.returncode == 2
    assert "none fits" in run.stderr
    run = replay(results, "--judge_base_url", "http://elsewhere.example", judgments=None)
    assert run.returncode == 2
    assert "none fits; the store has: example-key at " in run.stderr
    run = replay(results, "--judge_model", "example-key", judgments=None)
    assert run.returncode == 0
    assert "example-key (replay)" in run.stdout
    check_scores(results)
    assert {result["judge_model"] for result in newest_results(results).values()} == {"example-key"}
