"""``mind2web2 metrics --leaves``: the leaves of rubrics in all stored results."""

import json

import pytest
from projects import call
from viewer.made_results import Results, leaf, result

from mind2web2.cli import main

AGENTS = ("bot", "crawler")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Store results of two agents with six answers each.

    The depth varies, and one leaf passes where the others fail.
    """
    made = Results(tmp_path)
    for agent in AGENTS:
        for number in range(1, 7):
            deep = number % 2 == 1 or agent == "crawler"
            leaves = [
                leaf("name", "It is a lake.", passed=True),
                leaf("depth", "It is deep.", passed=deep),
                leaf("area", "It is large.", passed=deep),
                leaf("turned", "It is shallow.", passed=not deep),
                {**leaf("idle", "It is cold.", passed=False), "status": "skipped"},
            ]
            made.add(result(agent, f"answer_{number}", leaves), "lake")
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.usefixtures("results")
def test_the_leaves_to_look_at_first_come_worst_first():
    shown = call(main, "metrics", *AGENTS, "--leaves").stdout
    rows = shown.partition("Leaves to look at first:")[2].splitlines()[1:]
    assert [row.split()[1].rstrip(":") for row in rows] == ["turned", "idle", "name"]
    assert "passed by bot 50%, crawler 0%; r -1.00; passes where the rest fails" in rows[0]
    assert "never reached" in rows[1] and "always passed" in rows[2]


def test_all_leaves_of_a_task_and_too_few_results(results):
    other = {**result("bot", "answer_1", [leaf("cold", "It is cold.")]), "judge_model": "judge-2"}
    results.add(other, "pond")
    results.add(result("bot", "answer_2", [leaf("cold", "It is cold.")]), "pond")
    shown = call(main, "metrics", "bot", "--leaves", "--task_id", "pond").stdout
    assert "Warning: pond: results of different judges are taken together: judge-1" in shown
    assert "  pond cold: passed by bot 100%" in shown
    assert "It takes 12 results of a task to judge its leaves: pond has 2." in shown
    assert "always" not in shown


@pytest.mark.usefixtures("results")
def test_the_leaves_as_json():
    [task] = json.loads(call(main, "metrics", "bot", "--leaves", "--json").stdout)["leaves"]
    depth = next(row for row in task["leaves"] if row["leaf"] == "depth")
    assert (depth["passed"], depth["failed"], depth["by_agent"]) == (3, 3, {"bot": 0.5})
