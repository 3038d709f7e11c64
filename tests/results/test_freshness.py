"""Changes since results were made: the comparison, and an agent's results beside its folders."""

import json
import shutil

import pytest
from evaluations import PAGE
from projects import AGENT, TASK, ClaimJudge, Project, evaluate, read_json

from mind2web2.results.freshness import (
    NO_PROVENANCE,
    FilesNow,
    ResultsNow,
    newest_judge,
    results_now,
)
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.provenance import Provenance
from mind2web2.results.result_file import with_checksum
from mind2web2.results.stored_results import latest_results

OTHER = "https://lake.example/other"


@pytest.mark.parametrize(
    ("was", "change"),
    [
        ({}, None),
        ({"answer_sha256": "x"}, "answer changed"),
        ({"script_sha256": "x"}, "script example/lake.py changed"),
        (
            {"script": "older/lake.py", "script_sha256": "x"},
            "script older/lake.py replaced by example/lake.py",
        ),
        ({"script": "older/lake.py"}, None),
        (
            {"settings_sha256": "x", "versions": {"mind2web2": "0.0.9"}},
            "this version asks the judge differently than version 0.0.9",
        ),
        (
            {"settings_sha256": "x", "versions": {}},
            "this version asks the judge differently",
        ),
        ({"pages": {PAGE: "x"}}, f"page changed: {PAGE}"),
        ({"pages": {PAGE: None}}, f"page cached since: {PAGE}"),
        ({"pages": {OTHER: "x"}}, f"page no longer cached: {OTHER}"),
        ({"pages": {PAGE: "x", OTHER: None}}, f"page changed: {PAGE}"),
        ({"listing_sha256": "x"}, "the list of cached pages changed"),
        (
            {"inputs": {"modules": {"units.py": "x"}}},
            "helper files changed: units.py",
        ),
    ],
)
async def test_each_change_is_one_phrase(project, was, change):
    """It names the old and the new state."""
    _, _, found = next(latest_results(project.paths.eval_results_root, AGENT))
    made_from = Provenance.model_validate({**found.content.document["provenance"], **was})
    changes = FilesNow(project.paths, AGENT).changes_since(TASK, "answer_1.md", made_from)
    assert changes == ([] if change is None else [change])


@pytest.mark.parametrize(
    ("was", "change"),
    [
        ({"model": "judge-0"}, "model judge-0, now judge-1"),
        ({"endpoint": "a", "temperature": 1.0}, "endpoint a, now "),
        ({"provider": "x"}, "provider x, now openai"),
    ],
)
async def test_another_judge_judges_again(project, was, change):
    await _edit_provenance(project, lambda made_from: made_from["judge"].update(was))
    [outcome, _] = await evaluate(project, ClaimJudge())
    assert not outcome.reused
    assert f"judge changed: {change}" in outcome.changed


async def _edit_provenance(project, edit):
    for path in project.result_paths():
        document = read_json(path)
        edit(document["provenance"])
        path.write_text(json.dumps(with_checksum(document)))


def test_a_result_without_provenance_does_not_hold(project):
    [path] = project.result_paths()
    path.write_text(json.dumps({"final_score": 1.0}))
    assert now(project).stale == {f"{TASK}/answer_1.md": (NO_PROVENANCE,)}


@pytest.fixture
async def project(tmp_path):
    """Return a project with two judged answers to one task."""
    project = Project(tmp_path)
    project.add_script({"deep": ("deep", PAGE), "gone": ("gone", OTHER)})
    for stem in ("answer_1", "answer_2"):
        project.add_answer(stem)
    project.cache().put_web(PAGE, "80 m", None)
    await evaluate(project, ClaimJudge())
    return project


def now(project, task_ids=None, **overrides):
    """Return the present state of a project's results."""
    paths = project.paths.apply_overrides(**overrides)
    return results_now(paths, AGENT, agent_answers(paths.eval_results_root, AGENT), task_ids)


CHANGES = {
    "nothing": (lambda _project: None, (), ""),
    "an answer": (
        lambda project: project.add_answer("answer_2", "Shallow."),
        (2,),
        "answer changed",
    ),
    "an answer goes": (
        lambda project: project.add_answer("answer_2").unlink(),
        (2,),
        "answer missing or unreadable",
    ),
    "a damaged answer": (
        lambda project: project.add_answer("answer_2", b"\xff"),
        (2,),
        "answer missing or unreadable",
    ),
    "the script": (
        lambda project: project.add_script({"deep": ("deeper", PAGE)}),
        (1, 2),
        "script example/lake.py changed",
    ),
    "the script goes": (
        lambda project: project.add_script({}).unlink(),
        (1, 2),
        "script example/lake.py missing, and no other script judges the task",
    ),
    "a newer script": (
        lambda project: project.add_script({"deep": ("deeper", PAGE)}, version="2026_01_01"),
        (1, 2),
        "script example/lake.py replaced by 2026_01_01/lake.py",
    ),
    "a page": (
        lambda project: project.cache().put_web(PAGE, "81 m", None),
        (1, 2),
        f"page changed: {PAGE}",
    ),
    "a page's kind": (
        lambda project: project.cache().put_pdf(PAGE, b"%PDF-1.4"),
        (1, 2),
        f"page changed: {PAGE}",
    ),
    "all pages": (
        lambda project: project.cache().clear(),
        (1, 2),
        f"page no longer cached: {PAGE}",
    ),
    "a missing page": (
        lambda project: project.cache().put_web(OTHER, "fish", None),
        (1, 2),
        f"page cached since: {OTHER}",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_changes_on_disk_make_the_results_stale_that_they_concern(project, name):
    """No other result is stale."""
    change, answers, phrase = CHANGES[name]
    change(project)
    assert now(project).stale == {f"{TASK}/answer_{number}.md": (phrase,) for number in answers}


async def test_a_pinned_version_of_the_script_counts(project):
    """As for an evaluation."""
    project.add_script({"deep": ("deeper", PAGE)}, version="2026_01_01")
    assert now(project, eval_version="example") == ResultsNow()


async def test_only_results_that_count_are_compared(project):
    """Neither those outside of the task list, nor those of removed answers."""
    project.add_answer("answer_1", "Another text.")
    assert now(project, ["wood"]) == ResultsNow()
    (project.root / "answers" / AGENT / TASK / "answer_1.md").unlink()
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
async def test_a_missing_folder_makes_no_result_stale(project, folder, unchecked):
    """A line names the comparison that was not possible."""
    shutil.rmtree(project.root / folder)
    found = now(project)
    [line] = found.unchecked
    assert line.startswith(unchecked)
    assert found == ResultsNow(unchecked=(line,))


async def test_scripts_that_read_more_than_answer_and_pages_are_named(project):
    """Only running them again tells whether their results hold."""
    project.add_script_body("sys.path\nreturn evaluator.get_summary()")
    await evaluate(project, ClaimJudge())
    [line] = now(project).unchecked
    assert line.startswith(
        f"other inputs of scripts that read more than answer and pages ({TASK}): "
    )


def test_an_agent_without_results_has_no_judge(tmp_path):
    """Its newest result would name it."""
    assert newest_judge(Project(tmp_path).paths.eval_results_root, AGENT) is None
