"""Changes since results were made: the comparison, and an agent's results beside its folders."""

import json
import shutil
import threading

import pytest
from evaluations import PAGE
from projects import AGENT, TASK, ClaimJudge, Project, evaluate, read_json

from mind2web2.results.freshness import CHANGED, ResultsNow, folder_sha256, results_now
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.result_file import with_checksum

OTHER = "https://lake.example/other"


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


def edited(path, **fields):
    """Write fields into the provenance of a result."""
    document = read_json(path)
    document["provenance"] |= fields
    path.write_text(json.dumps(with_checksum(document)))


# Each with the answers whose results it makes stale.
CHANGES = {
    "nothing": (lambda _project: None, ()),
    "an answer": (lambda project: project.add_answer("answer_2", "Shallow."), (2,)),
    "an answer goes": (lambda project: project.add_answer("answer_2").unlink(), (2,)),
    "a damaged answer": (lambda project: project.add_answer("answer_2", b"\xff"), (2,)),
    "the script": (lambda project: project.add_script({"deep": ("deeper", PAGE)}), (1, 2)),
    "a file beside it": (
        lambda project: (project.root / "eval_scripts/example/facts.json").write_text("{}"),
        (1, 2),
    ),
    "a hidden file": (
        lambda project: (project.root / "eval_scripts/example/.notes").write_text("{}"),
        (),
    ),
    "the script goes": (lambda project: project.add_script({}).unlink(), (1, 2)),
    "a newer script": (
        lambda project: project.add_script({"deep": ("deeper", PAGE)}, version="2026_01_01"),
        (1, 2),
    ),
    "a page": (lambda project: project.cache().put_web(PAGE, "81 m", None), (1, 2)),
    "all pages": (lambda project: project.cache().clear(), (1, 2)),
    "a missing page": (lambda project: project.cache().put_web(OTHER, "fish", None), (1, 2)),
    "another page": (lambda project: project.cache().put_web(f"{OTHER}/2", "fish", None), ()),
    "a version": (
        lambda project: edited(project.result_paths("answer_2")[0], digest="x"),
        (2,),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_changes_on_disk_make_the_results_stale_that_they_concern(project, name):
    """No other result is stale."""
    change, answers = CHANGES[name]
    change(project)
    assert now(project).stale == {f"{TASK}/answer_{number}.md": CHANGED for number in answers}


async def test_a_result_of_an_earlier_version_is_run_again_from_stored_judgments(project):
    for path in project.result_paths():
        edited(path, digest=None, dataset_commit="c", other_pages={}, inputs={"modules": {}})
    assert set(now(project).stale.values()) == {"it does not say what it was made from"}
    judge = ClaimJudge()
    outcomes = await evaluate(project, judge)
    assert ([each.score for each in outcomes], judge.claims) == ([0.5, 0.5], [])
    assert now(project).stale == {}


async def test_a_pinned_version_of_the_script_counts(project):
    project.add_script({"deep": ("deeper", PAGE)}, version="2026_01_01")
    assert now(project, eval_version="example") == ResultsNow()


async def test_only_results_that_count_are_compared(project):
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


def test_a_file_that_goes_while_a_folder_is_read_costs_no_answer(tmp_path):
    """Scripts and editors write files beside a script, and remove them again."""
    (tmp_path / "script.py").write_text("")
    is_over = threading.Event()

    def write_and_remove():
        while not is_over.is_set():
            for number in range(50):
                (tmp_path / f"{number}.tmp").write_text("")
            for number in range(50):
                (tmp_path / f"{number}.tmp").unlink()

    writer = threading.Thread(target=write_and_remove)
    writer.start()
    try:
        digests = [folder_sha256(tmp_path) for _ in range(200)]
    finally:
        is_over.set()
        writer.join()
    assert all(len(digest) == 64 for digest in digests)
