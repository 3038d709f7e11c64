"""Mistakes of a script that cost the answer points.

A message names script and line.
"""

import pytest
from projects import AGENT, TASK, call, entered, read_json
from servers.judge_server import JudgeServer

from mind2web2.cli import main

BODY = """
evaluator.add_leaf("forgotten", "Its hours")
evaluator.add_custom_node(True, "gate", "A place is named", critcal=False)
part = evaluator.add_parallel("part", "Its parts")
leaf = evaluator.add_leaf("judged", "It is deep")
await evaluator.verify("The lake is deep.", leaf)
return evaluator.get_summary()
"""
FAULTS = [
    "lake.py, line {1}: unknown keyword 'critcal' of node 'gate' is ignored: did you mean "
    "'critical'?",
    "lake.py, line {0}: leaf 'forgotten' is never judged, and counts 0",
    "lake.py, line {2}: node 'part' has no leaf, and counts 0",
]


@pytest.fixture(name="project")
def of_a_careless_script(tmp_path, monkeypatch):
    """Stand in a project with two answers and a script that makes three mistakes."""
    project = entered(tmp_path, monkeypatch)
    project.add_script_body(BODY)
    for number in (1, 2):
        project.add_answer(f"answer_{number}", f"The lake is deep, says {number}.")
    return project


@pytest.fixture
def server():
    """Return a judge that supports every claim."""
    with JudgeServer() as server:
        yield server


def evaluate(server, *more):
    """Evaluate the agent's answers."""
    return call(
        main,
        "evaluate",
        AGENT,
        "--no_capture",
        "--judge_base_url",
        server.base_url,
        *more,
    )


def faults(project):
    """Return the three faults, with the lines of the script that they are in."""
    lines = project.paths.find_script(TASK).path.read_text().splitlines()
    numbers = [
        next(number for number, line in enumerate(lines, 1) if words in line)
        for words in ("forgotten", "critcal", "add_parallel")
    ]
    return [fault.format(*numbers) for fault in FAULTS]


def test_a_run_names_each_with_script_and_line(project, server):
    run = evaluate(server)
    assert (run.returncode, run.stderr) == (0, "")
    for fault in faults(project):
        assert f"Warning: {fault} (lake/answer_1.md, lake/answer_2.md)\n" in run.stdout
    result = read_json(project.result_paths()[0])
    assert result["script_faults"] == faults(project)
    assert (result["undecided_leaves"], result["ignored_arguments"]) == (
        ["forgotten", "part"],
        ["critcal"],
    )


def test_metrics_and_show_name_them(project, server):
    evaluate(server)
    told, shown = call(main, "metrics", AGENT), call(main, "show", AGENT, TASK, "1")
    for fault in faults(project):
        assert f"Warning: {fault} (lake/answer_1.md, lake/answer_2.md)" in told.stdout
        assert f"Mistake of the script: {fault}." in shown.stdout
    assert "2 passed, 0 failed, 0 skipped, 2 never judged." in shown.stdout
    assert "never judged forgotten" in shown.stdout


def test_a_tree_without_a_leaf_is_named(project, server):
    project.add_script_body("return evaluator.get_summary()")
    run = evaluate(server)
    assert (
        "Warning: lake.py: the rubric tree has no leaf, and counts 0 (lake/answer_1.md, "
        in run.stdout
    )


def test_a_parent_that_is_no_node_is_named(project, server):
    wrong = "try:\n    evaluator.add_leaf('a', 'a', 'root')\nexcept Exception:\n    pass\n"
    project.add_script_body(f"{wrong}return evaluator.get_summary()")
    run = evaluate(server)
    assert run.returncode == 1
    assert "gives node 'a' the parent 'root'" in run.stdout
    assert "pass the node, as add_parallel returns it" in run.stdout
