"""``mind2web2 leaves``: the report on the leaves of stored results."""

import json

import pytest
from projects import call
from viewer.made_results import Results, leaf, result

from mind2web2.cli import main

AGENTS = ("bot", "crawler")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two agents with six answers each: the depth varies, the twin follows it, the name is always right."""
    made = Results(tmp_path)
    for agent in AGENTS:
        for number in range(1, 7):
            deep = number % 2 == 1 or agent == "crawler"
            leaves = [
                leaf("name", "It is a lake.", passed=True),
                leaf("depth", "It is deep.", passed=deep),
                leaf("twin", "The lake is deep.", passed=deep),
                {**leaf("idle", "It is cold.", passed=False), "status": "skipped"},
            ]
            made.add(result(agent, f"answer_{number}", leaves), "lake")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return made


@pytest.mark.usefixtures("results")
def test_conspicuous_leaves_are_named():
    """With their counts, and the task's figures."""
    outcome = call(main, "leaves")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    rows = {line.split()[1]: line for line in outcome.stdout.splitlines() if line.startswith("│")}
    assert rows["name"].split("│")[2:5] == ["     12 ", "      0 ", "       0 "]
    assert "always true" in rows["name"]
    assert "never reached" in rows["idle"]
    assert "twins, the same verdict everywhere: depth, twin" in outcome.stdout
    assert "between agents: 0.25 from worst to best" in outcome.stdout
    assert "Judged leaves that passed, by pages cited: 1 page" in outcome.stdout
    assert "Too few" not in outcome.stdout


@pytest.mark.usefixtures("results")
def test_the_report_as_json():
    report = json.loads(call(main, "leaves", "bot", "--json").stdout)
    [task] = report["tasks"]
    assert (task["task_id"], task["results"], task["too_few"]) == ("lake", 6, True)
    depth = next(row for row in task["leaves"] if row["leaf"] == "depth")
    assert (
        depth["counts"]["passed"],
        depth["counts"]["failed"],
        depth["judgments"],
    ) == (3, 3, 12)
    assert depth["correlation"] == pytest.approx(1)
    assert depth["with_page"] == depth["judged"] == 6


def test_results_of_different_judges_are_named_and_can_be_told_apart(results):
    """A leaf may look mixed for its judges alone."""
    leaves = [leaf("name", "It is a lake.", passed=False)]
    other = {**result("bot", "answer_7", leaves), "judge_model": "judge-2"}
    results.add(other, "lake")
    shown = call(main, "leaves").stdout
    assert "results of different judges are taken together: judge-1 (12), judge-2 (1)" in shown
    alone = call(main, "leaves", "--judge", "judge-2")
    assert "lake: 1 result of bot" in alone.stdout and "Warning" not in alone.stdout
    none = call(main, "leaves", "--judge", "judge-3")
    assert "no results by judge judge-3 under eval_results: check --judge" in none.stderr


def test_ids_are_whole_on_narrow_outputs(results, monkeypatch):
    """They are searched for and copied."""
    monkeypatch.setenv("COLUMNS", "40")
    name = "a_leaf_with_an_id_that_is_longer_than_a_narrow_terminal"
    results.add(result("bot", "answer_8", [leaf(name, "It is cold.")]), "pond")
    shown = call(main, "leaves", "--task_id", "pond").stdout
    assert f"│ {name} │" in shown
    assert "always true" in shown


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["nobody"],
            "no results of agent nobody under eval_results: run mind2web2 evaluate nobody first; there are",
        ),
        (
            ["--task_id", "pond"],
            "no results of task pond under eval_results: check --task_id",
        ),
    ],
)
def test_what_is_not_there_is_one_line(words, message):
    """With what is there, or what to check."""
    outcome = call(main, "leaves", *words)
    assert (outcome.returncode, message in outcome.stderr) == (2, True), outcome.stderr
