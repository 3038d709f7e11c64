"""``mind2web2 compare``: whether agents differ by more than chance."""

import json

import pytest
from projects import call
from result_parts import made_from, shown

from mind2web2.cli import main


def add_result(root, agent, task, run, leaves, **more):
    """Write a result with a flat rubric tree; leaves are evidence and a status by id."""
    path = root / "eval_results" / agent / task / f"answer_{run}" / "results"
    path.mkdir(parents=True, exist_ok=True)
    passed = sum(status == "passed" for status, _ in leaves.values())
    children = [
        {
            "id": name,
            "status": status,
            "score": float(status == "passed"),
            "critical": False,
            "strategy": "parallel",
            "children": [],
            "evidence": evidence,
        }
        for name, (status, evidence) in leaves.items()
    ]
    tree = {
        "id": "root",
        "critical": False,
        "strategy": "parallel",
        "children": children,
    }
    tree |= {"status": "partial", "score": passed / len(leaves)}
    content = {
        "answer_name": f"answer_{run}.md",
        "final_score": passed / len(leaves),
        "judge_model": "judge-1",
        "eval_breakdown": [{"info": [], "verification_tree": tree}],
    }
    (path / f"20250714_120000_answer_{run}.md.json").write_text(json.dumps(content | more))


def judged(passed, *votes, claim="c", **more):
    """Return a leaf's status and evidence with votes of the judge."""
    trials = [
        {"trial": k, "supported": one, "reasoning": ""}
        for k, one in enumerate(votes or (passed,), 1)
    ]
    evidence = {"decided_by": "judge", "claim": claim, "votes": trials} | more
    return "passed" if passed else "failed", evidence


def add_agent(root, agent, passes, tasks=12, runs=3, leaves=4, **more):
    """Write results of an agent that passes the first leaves of each answer, by task and run."""
    for task in range(tasks):
        for run in range(1, runs + 1):
            found = {f"leaf_{k}": judged(k < passes(task, run)) for k in range(leaves)}
            add_result(root, agent, f"task_{task}", run, found, **more)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Work in a folder where ``new`` beats ``old`` by a leaf at most tasks, ``same`` hardly."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    add_agent(tmp_path, "old", lambda task, run: task % 2 + run % 2)
    add_agent(tmp_path, "new", lambda task, run: task % 2 + run % 2 + (task % 4 > 0))
    add_agent(
        tmp_path,
        "same",
        lambda task, run: task % 2 + run % 2 + (task % 4 == 0) - (task == 3),
    )
    return tmp_path


def compared(*words, status=0):
    """Return the printed figures of a comparison."""
    run = call(main, "compare", *words, "--json")
    assert (run.returncode, run.stderr) == (status, "")
    return json.loads(run.stdout)


@pytest.mark.usefixtures("project")
def test_two_agents():
    """Nine of twelve tasks gain a quarter: the test of equal changes is McNemar's mid-p test."""
    found = compared("old", "new")
    score = found["metrics"]["avg_score"]
    (pair,) = score["differences"]
    assert (pair["first_agent"], pair["second_agent"], pair["difference"]) == (
        "old",
        "new",
        0.1875,
    )
    assert pair["p_value"] == pytest.approx(1 / 2**9, abs=1e-6) == pair["p_holm"]
    assert 0 < pair["low"] < 0.1875 < pair["high"] <= 0.25
    assert score["tied_with_best"] == ["new"]
    assert 0 < pair["detectable"] < 0.1875
    assert {entry["difference"] for entry in pair["largest"]} == {0.25}
    text = call(main, "compare", "old", "new").stdout
    assert "What moved the score: mind2web2 compare old new --why\n" in text


@pytest.mark.usefixtures("project")
def test_three_agents():
    """P-values are corrected for all three pairs, and an agent that chance separates is tied."""
    found = compared("new", "old", "same")["metrics"]["avg_score"]
    assert next(iter(found["values"])) == "new"
    p_values = {(pair["first_agent"], pair["second_agent"]): pair for pair in found["differences"]}
    assert p_values["new", "old"]["p_holm"] == pytest.approx(3 / 2**9, abs=1e-6)
    assert p_values["old", "same"]["p_holm"] > 0.05
    text = call(main, "compare", "old", "same").stdout
    assert "* tied with the best at the 5% level:" in text


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("new", "old", "--fail_if_worse"), 4),
        (("new", "old", "--fail_if_worse", "0.5"), 0),
        (("old", "new", "--fail_if_worse"), 0),
        (("old", "same", "--fail_if_worse"), 0),
        (("new", "old"), 0),
    ],
)
def test_continuous_integration(words, status):
    run = call(main, "compare", *words)
    assert (run.returncode, run.stderr) == (status, "")
    assert ("Shown to be worse than new by more than 0: old." in run.stdout) is (status == 4)


def test_folders_of_results(project):
    (project / "branch").mkdir()
    (project / "eval_results" / "new").rename(project / "branch" / "old")
    found = compared("eval_results/old", "branch/old")
    assert found["agents"] == ["eval_results/old", "branch/old"]
    assert found["metrics"]["avg_score"]["differences"][0]["difference"] == 0.1875


def test_differences_that_do_not_vary_tell_no_power(tmp_path, monkeypatch):
    """No difference between equal agents would be shown, however small."""
    monkeypatch.chdir(tmp_path)
    for agent in ("one", "two"):
        add_agent(tmp_path, agent, lambda _, __: 1)
    run = call(main, "compare", "one", "two")
    assert (run.returncode, "Power of" in run.stdout) == (0, False)


def test_power_is_stated_within_possible_differences(tmp_path, monkeypatch):
    """Few tasks that differ much show no difference up to 1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    add_agent(tmp_path, "one", lambda task, _: 4 * task, tasks=2, runs=1)
    add_agent(tmp_path, "two", lambda task, _: 4 - 3 * task, tasks=2, runs=1)
    assert compared("one", "two")["metrics"]["avg_score"]["differences"][0]["detectable"] is None
    text = call(main, "compare", "one", "two").stdout
    assert (
        "two against one: with 2 tasks, no difference in partial completion would show (80% power)."
        in text
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"judge_model": "judge-2"}, "old was judged by judge-1 and new by judge-2"),
        (
            {"provenance": made_from(script_sha256="b")},
            "judged by different scripts at every task",
        ),
    ],
)
def test_unfair_comparisons_are_refused(tmp_path, monkeypatch, other, message):
    monkeypatch.chdir(tmp_path)
    add_agent(
        tmp_path,
        "old",
        lambda task, _: task % 3,
        provenance=made_from(script_sha256="a"),
    )
    add_agent(tmp_path, "new", lambda task, _: task % 4, **other)
    empty = {"answer_name": "answer_9.md", "score": 0, "reason": "the agent gave an empty answer"}
    summary = tmp_path / "eval_results/old/task_0/summary.json"
    summary.write_text(json.dumps([{**empty, "status": "failed", "success": False}]))
    run = call(main, "compare", "old", "new")
    assert run.returncode == 2
    assert message in run.stderr and "--allow_unfair" in run.stderr and "--why" in run.stderr
    assert compared("old", "new", "--allow_unfair")["warnings"]


def test_capture_days_and_missing_runs_are_pointed_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for agent, month, runs in (("old", "03", 2), ("new", "05", 1)):
        page = {"url": "http://a.test", "outcome": "supported"}
        page["page"] = shown(captured_at=f"2025-{month}-01")
        for run in range(1, runs + 1):
            add_result(tmp_path, agent, "task", run, {"x": judged(True, pages=[page])})
        add_result(tmp_path, agent, "other", 1, {"x": judged(True)})
    warnings = compared("old", "new")["warnings"]
    assert any(
        "different numbers of runs" in warning and "old 2, new 1" in warning for warning in warnings
    )
    assert "answers without a score at the compared tasks, left out: old 1" in warnings
    assert (
        "pages were captured on different days: old 2025-03-01 to 2025-03-01; new 2025-05-01 to "
        "2025-05-01" in warnings
    )


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["old"],
            "name at least two agents, each one once: mind2web2 compare old OTHER_AGENT",
        ),
        (["old", "old"], "name at least two agents, each one once"),
        (["old", "old/"], "name at least two agents, each one once"),
        (["old", "absent"], "no results of agent absent under"),
        (["old", "new", "--fail_if_worse", "2"], "not a score from 0 to 1"),
    ],
)
def test_mistakes_are_named(words, message):
    run = call(main, "compare", *words)
    assert run.returncode == 2
    assert message in run.stderr
