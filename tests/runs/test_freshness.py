"""What has changed since results were made: the comparison, and an agent's results beside its folders."""

import shutil
from copy import deepcopy
from dataclasses import replace

import pytest
from evaluations import PAGE
from mind2web2.runs.current_inputs import (
    EDITED,
    NO_PROVENANCE,
    Present,
    settings_sha256,
)
from projects import AGENT, TASK, ClaimJudge, Project, evaluate

from mind2web2.judge.store import FILE_NAME, Judgment, JudgmentStore
from mind2web2.runs.freshness import (
    PresentReader,
    ResultsNow,
    newest_judge,
    results_now,
)
from mind2web2.runs.known_answers import agent_answers
from mind2web2.runs.provenance import JudgeRecord, Provenance, Served
from mind2web2.runs.result_file import ResultFile, with_checksum
from mind2web2.runs.results import latest_results, write_result
from mind2web2.scripts.inputs import InputsNow, ScriptInputs

OTHER = "https://lake.example/other"
JUDGE = JudgeRecord(provider="openai", endpoint="openai http://a", model="judge-1")
MADE_FROM = Provenance(
    answer_sha256="a",
    script="example/t.py",
    script_sha256="s",
    settings_sha256=settings_sha256(),
    judge=JUDGE,
    pages={PAGE: "p", OTHER: None},
    versions={"mind2web2": "0.0.9"},
    served=(Served(model="judge-1-2026", judgments=2),),
)
FIRST = Served(model="first-2026", judgments=2)
PAGES = {PAGE: "p"}
NOW = Present(
    answer_sha256="a",
    script="example/t.py",
    script_sha256="s",
    judge=JUDGE.model_dump(),
    served_models=frozenset({"judge-1-2026"}),
    page_sha256=PAGES.get,
)


def changes(made=None, now=None):
    """Return the changes since a result that differs in ``made``, in a present that differs in ``now``."""
    made_from = MADE_FROM.model_copy(update=made or {})
    return replace(NOW, **(now or {})).changes_since(made_from, is_edited=False)


@pytest.mark.parametrize(
    ("made", "now", "change"),
    [
        ({}, {"answer_sha256": "x"}, "answer changed"),
        ({}, {"answer_sha256": None}, "answer unreadable"),
        ({}, {"answer_sha256": None, "is_answer_there": False}, "answer missing"),
        ({}, {"script_sha256": "x"}, "script example/t.py changed"),
        (
            {},
            {"script": "2026_01_01/t.py", "script_sha256": "x"},
            "script example/t.py replaced by 2026_01_01/t.py",
        ),
        (
            {},
            {"script": None, "script_sha256": None},
            "script example/t.py missing, and no other script judges the task",
        ),
        (
            {"settings_sha256": "x"},
            {},
            "this version asks the judge differently than version 0.0.9",
        ),
        ({"settings_sha256": "x", "versions": {}}, {}, "asks the judge differently"),
        ({}, {"page_sha256": {PAGE: "x"}.get}, f"page changed: {PAGE}"),
        ({}, {"page_sha256": {}.get}, f"page no longer cached: {PAGE}"),
        ({}, {"page_sha256": {**PAGES, OTHER: "x"}.get}, f"page cached since: {OTHER}"),
        (
            {"pages": {PAGE: "x", OTHER: "x"}},
            {"page_sha256": {PAGE: "p", OTHER: "p"}.get},
            f"pages changed: {PAGE}, {OTHER}",
        ),
        (
            {"listing_sha256": "l"},
            {"listing_sha256": lambda: "x"},
            "the list of cached pages changed",
        ),
        (
            {},
            {"judge": {"model": "judge-2"}},
            "judge changed: model judge-1, now judge-2",
        ),
        (
            {},
            {"judge": {"endpoint": "b"}},
            "judge changed: endpoint openai http://a, now b",
        ),
        (
            {},
            {"judge": {"temperature": 1.0}},
            "judge changed: temperature not set, now 1.0",
        ),
        ({}, {"judge": {"provider": "x"}}, "judge changed: provider openai, now x"),
        (
            {},
            {"served_models": {"judge-1-2027"}},
            "judge changed: served as judge-1-2026, since then as judge-1-2027",
        ),
        (
            {"served": (MADE_FROM.served[0], FIRST)},
            {"served_models": {"judge-1-2026", "first-2027"}},
            "judge changed: served as first-2026, since then as first-2027",
        ),
    ],
)
def test_each_change_is_one_phrase(made, now, change):
    """It names the old and the new state."""
    [found] = changes(made, now)
    assert change in found


@pytest.mark.parametrize(
    ("made", "now"),
    [
        ({}, {}),
        ({"script": "older/t.py"}, {}),
        ({}, {"page_sha256": None}),
        ({"listing_sha256": "l"}, {"listing_sha256": lambda: "l"}),
        ({"listing_sha256": "l"}, {}),
        ({}, {"judge": {}}),
        ({}, {"served_models": frozenset()}),
        ({"served": ()}, {"served_models": {"judge-1-2027"}}),
        ({"served": (FIRST,)}, {"served_models": {"judge-1-2026", "first-2026"}}),
        ({"served": (FIRST,)}, {"served_models": {"judge-1-2027", "first-2026"}}),
    ],
)
def test_a_result_holds(made, now):
    """Nothing changed, the present is not known, or the difference does not matter."""
    assert changes(made, now) == ()


def test_several_changes_are_all_named(tmp_path):
    """In a fixed order; a file that the script read counts as well."""
    inputs = ScriptInputs(files={"data.txt": "f"}, variables={"KEY": "1"})
    now = {"script_folder": tmp_path, "inputs": InputsNow(None, {"KEY": "2"})}
    found = changes(
        {"inputs": inputs}, {**now, "answer_sha256": "x", "judge": {"model": "judge-2"}}
    )
    assert [change.split(" ")[0] for change in found] == [
        "answer",
        "file",
        "variables",
        "judge",
    ]


def test_a_result_without_provenance_or_with_another_content_does_not_hold():
    """The checksum shows that a result was edited."""
    sealed = with_checksum({"provenance": MADE_FROM.model_dump(mode="json"), "run": {}})
    for document, changes in (
        ({"final_score": 1.0}, (NO_PROVENANCE,)),
        (sealed, ()),
        ({**sealed, "final_score": 1.0}, (EDITED,)),
        ({**sealed, "run": {}}, (EDITED,)),
    ):
        result = ResultFile.of(document)
        assert (
            NOW.changes_since(result.provenance, is_edited=result.is_edited) == changes
        )


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
    return results_now(
        paths, AGENT, agent_answers(paths.eval_results_root, AGENT), task_ids
    )


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
        "answer missing",
    ),
    "a damaged answer": (
        lambda project: project.add_answer("answer_2", b"\xff"),
        (2,),
        "answer unreadable",
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
        lambda project: project.add_script(
            {"deep": ("deeper", PAGE)}, version="2026_01_01"
        ),
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
    assert now(project).stale == {
        f"{TASK}/answer_{number}.md": (phrase,) for number in answers
    }


async def test_a_pinned_version_of_the_script_counts(project):
    """As for an evaluation."""
    project.add_script({"deep": ("deeper", PAGE)}, version="2026_01_01")
    assert now(project, eval_version="example") == ResultsNow()


async def test_answers_without_a_record_are_named(project):
    """No result mentions them."""
    project.add_answer("answer_3")
    project.add_answer("answer_1", task="hill")
    assert now(project).unevaluated == ("hill/answer_1.md", f"{TASK}/answer_3.md")
    assert now(project, [TASK]).unevaluated == (f"{TASK}/answer_3.md",)


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


async def test_the_judge_of_the_newest_result_counts(project):
    """Unless another one is given."""
    results = {
        name: found
        for _, name, found in latest_results(project.paths.eval_results_root, AGENT)
    }
    other = deepcopy(results["answer_2.md"].content.document)
    other["provenance"]["judge"]["model"] = "judge-2"
    write_result(
        results["answer_2.md"].path.parent,
        "answer_2.md",
        ResultFile.of(with_checksum(other)),
    )
    assert newest_judge(project.paths.eval_results_root, AGENT).model == "judge-2"
    change = "judge changed: model judge-1, now judge-2"
    assert now(project).stale == {f"{TASK}/answer_1.md": (change,)}
    present = PresentReader(project.paths, AGENT, judge={"model": "judge-1"}).present
    made_from = results["answer_1.md"].content.provenance
    assert present(TASK, "answer_1.md", made_from).judge == {"model": "judge-1"}


@pytest.mark.parametrize(
    ("was", "newest", "is_compared"),
    [
        ("openai http://a", "openai http://b", True),
        ("replay", "openai http://b", False),
        ("openai http://a", "replay", False),
        ("client a.B 1", "client a.B 2", False),
        ("openai http://a", "client a.B 2", True),
    ],
)
def test_not_every_endpoint_is_compared(tmp_path, was, newest, is_compared):
    """A replay takes judgments of any server, and a caller's own client has another name each time."""
    judge = JUDGE.model_copy(update={"endpoint": was})
    made_from = MADE_FROM.model_copy(update={"judge": judge})
    reader = PresentReader(Project(tmp_path).paths, AGENT, judge={"endpoint": newest})
    present = reader.present(TASK, "answer_1.md", made_from)
    assert ("endpoint" in present.judge) is is_compared


async def test_a_model_that_is_served_differently_since_is_another_judge(project):
    """The server may change the model behind a name."""
    _, _, found = next(latest_results(project.paths.eval_results_root, AGENT))
    made_from = found.content.provenance
    endpoint = made_from.judge.endpoint

    def served_models():
        present = PresentReader(project.paths, AGENT).present(
            TASK, "answer_1.md", made_from
        )
        return present.served_models

    assert served_models() == frozenset()
    later = Judgment(
        key="later",
        endpoint=endpoint,
        model="judge-1",
        outcome="reply",
        text="{}",
        created="2027",
        purpose="verify",
        served_model="judge-1-2027",
    )
    with JudgmentStore(project.results / FILE_NAME) as store:
        store.add([later])
    assert served_models() == {"judge-1-2027"}


async def test_a_damaged_store_is_no_reason_to_stop(project, caplog):
    """The log names it."""
    (project.results / FILE_NAME).write_bytes(b"damaged" * 1000)
    assert now(project) == ResultsNow()
    assert "judge not compared" in caplog.text


def test_an_agent_without_results_has_no_judge(tmp_path):
    """Its newest result would name it."""
    assert newest_judge(Project(tmp_path).paths.eval_results_root, AGENT) is None
