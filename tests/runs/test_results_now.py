"""Results beside the answers, scripts and pages that they were made from."""

import shutil

import pytest
from projects import AGENT, ClaimJudge, Project, evaluate

from mind2web2.runs.freshness import ResultsNow, results_now
from mind2web2.runs.summaries import agent_answers

PAGE = "https://lake.example/depth"


@pytest.fixture
async def project(tmp_path):
    """Return a project with results of two answers to each of two tasks."""
    project = Project(tmp_path)
    for task in ("lake", "wood"):
        for stem in ("answer_1", "answer_2"):
            project.add_answer(stem, task=task)
        project.add_script({"depth": ("It is deep.", PAGE)}, task=task)
        project.cache(task).put_web(PAGE, "Depth: 80 m", None)
    await evaluate(project, ClaimJudge())
    return project


def now(project, task_ids=None):
    """Return what a look at the project's folders tells."""
    return results_now(project.paths, AGENT, agent_answers(project.root / "eval_results", AGENT), task_ids)


async def test_fresh_results_are_not_stale(project):
    """Nothing has changed, and nothing is missing."""
    assert now(project) == ResultsNow()


async def test_what_has_changed_since_is_named(project):
    """An answer, a script, a page."""
    project.add_answer("answer_1", "Another text.")
    assert list(now(project).stale) == ["lake/answer_1.md"]
    project.add_script({"depth": ("It is very deep.", PAGE)}, task="wood")
    assert list(now(project).stale) == ["lake/answer_1.md", "wood/answer_1.md", "wood/answer_2.md"]
    project.cache("lake").put_web(PAGE, "Depth: 8 m", None)
    found = now(project).stale
    assert found["lake/answer_1.md"] == ("answer: its text has changed", f"pages changed: {PAGE}")
    assert found["lake/answer_2.md"] == (f"pages changed: {PAGE}",)


async def test_answers_that_were_never_evaluated_are_named(project):
    """They are nowhere in the results, and would go unnoticed."""
    project.add_answer("answer_3")
    project.add_answer("answer_1", task="hill")
    assert now(project).unevaluated == ("hill/answer_1.md", "lake/answer_3.md")
    assert now(project, ["lake", "wood"]).unevaluated == ("lake/answer_3.md",)


async def test_only_results_that_count_are_looked_at(project):
    """Neither those of tasks that are not in the list, nor those that no answer belongs to any more."""
    project.add_answer("answer_1", "Another text.", task="wood")
    assert now(project, ["lake"]).stale == {}
    (project.root / "answers" / AGENT / "lake" / "answer_2.md").unlink()
    await evaluate(project, ClaimJudge())
    assert now(project) == ResultsNow()


@pytest.mark.parametrize(
    ("folder", "unchecked"),
    [
        ("answers", "whether results are stale: no answers folder "),
        ("eval_scripts", "whether results are stale: no folder "),
        ("cache", "whether pages have changed: no folder "),
    ],
)
async def test_results_that_came_without_their_folders_are_not_called_stale(project, folder, unchecked):
    """What was not looked at is said."""
    shutil.rmtree(project.root / folder)
    found = now(project)
    assert (found.stale, found.unevaluated) == ({}, ())
    [line] = found.unchecked
    assert line.startswith(unchecked)
    assert found == ResultsNow(unchecked=(line,))
