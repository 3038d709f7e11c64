"""What has changed since a result was made."""

from copy import deepcopy

import pytest
from evaluations import PAGE
from projects import AGENT, TASK, ClaimJudge, Project, evaluate

from mind2web2.judge.caching import JudgeSettings
from mind2web2.judge.store import FILE_NAME, Judgment, JudgmentStore
from mind2web2.runs.freshness import (
    CHANGED,
    NO_PROVENANCE,
    Present,
    PresentReader,
    newest_judge,
    stale_reasons,
    stale_results,
)
from mind2web2.runs.provenance import JudgeRecord, Provenance, Served
from mind2web2.runs.results import latest_results, sealed, write_result

OTHER = "https://lake.example/other"
MADE_FROM = Provenance(
    answer_sha256="a",
    script="example/t.py",
    script_sha256="s",
    settings_sha256="c",
    judge=JudgeRecord(provider="openai", endpoint="openai http://a", model="judge-1"),
    pages={PAGE: "p", OTHER: None},
    versions={"mind2web2": "0.1.0"},
    served=(Served(model="judge-1-2026", judgments=2),),
)
NOW = Present(
    answer_sha256="a",
    script="example/t.py",
    script_sha256="s",
    settings_sha256="c",
    pages={PAGE: "p", OTHER: None},
    judge={"model": "judge-1", "endpoint": "openai http://a", "temperature": None},
    served_model="judge-1-2026",
)


def reasons(made=None, now=None):
    """Return why a result with these changes is stale beside a present with those."""
    result = {"provenance": MADE_FROM.model_copy(update=made or {}).model_dump(mode="json")}
    fields = {name: getattr(NOW, name) for name in Present.__dataclass_fields__}
    return stale_reasons(result, Present(**{**fields, **(now or {})}))


@pytest.mark.parametrize(
    ("made", "now", "found"),
    [
        ({}, {"answer_sha256": "x"}, "answer: its text has changed"),
        ({}, {"answer_sha256": None}, "answer: it cannot be read any more"),
        ({}, {"answer_sha256": None, "is_answer_there": False}, "answer: it is gone"),
        ({}, {"script_sha256": "x"}, "script: example/t.py has changed"),
        (
            {},
            {"script": "2026_01_01/t.py", "script_sha256": "x"},
            "script: judged by example/t.py, which is 2026_01_01/t.py now",
        ),
        ({}, {"script": None, "script_sha256": None}, "script: example/t.py is gone, and no other"),
        ({}, {"settings_sha256": "x"}, "asks judges in another way (it was made by version 0.1.0)"),
        ({"versions": {}}, {"settings_sha256": "x"}, "settings: this version asks judges in another way"),
        ({}, {"pages": {PAGE: "x", OTHER: None}}, f"pages changed: {PAGE}"),
        ({}, {"pages": {PAGE: None, OTHER: None}}, f"pages no longer cached: {PAGE}"),
        ({}, {"pages": {PAGE: "p", OTHER: "x"}}, f"pages cached since: {OTHER}"),
        ({"listing_sha256": "l"}, {"listing_sha256": "x"}, "pages: the script listed the cached ones"),
        ({}, {"judge": {"model": "judge-2"}}, "judge: model judge-1, now judge-2"),
        ({}, {"judge": {"endpoint": "openai http://b"}}, "judge: endpoint openai http://a, now openai"),
        ({}, {"judge": {"temperature": 1.0}}, "judge: temperature None, now 1.0"),
        ({}, {"served_model": "judge-1-2027"}, "judge: served as judge-1-2026, and as judge-1-2027 since"),
    ],
)
def test_each_change_is_told_in_one_line(made, now, found):
    """With what it was, and what it is."""
    (reason,) = reasons(made, now)
    assert found in reason


@pytest.mark.parametrize(
    ("made", "now"),
    [
        ({}, {}),
        ({"script": "older/t.py"}, {}),
        ({}, {"pages": None}),
        ({}, {"pages": {PAGE: "p"}}),
        ({"listing_sha256": "l"}, {"listing_sha256": "l"}),
        ({}, {"judge": None}),
        ({}, {"served_model": None}),
        ({"served": ()}, {"served_model": "judge-1-2027"}),
        ({"judge": MADE_FROM.judge.model_copy(update={"endpoint": "replay"})}, {}),
        ({}, {"judge": {"endpoint": "replay"}}),
        (
            {"judge": MADE_FROM.judge.model_copy(update={"endpoint": "client a.B 1"})},
            {"judge": {"endpoint": "client a.B 2"}},
        ),
    ],
)
def test_a_result_holds(made, now):
    """Nothing changed, or it is not known, or it makes no difference."""
    assert reasons(made, now) == ()


def test_several_changes_are_all_told():
    """One line each, in a fixed order."""
    changed = reasons({}, {"answer_sha256": "x", "script_sha256": "x", "judge": {"model": "judge-2"}})
    assert [reason.partition(":")[0] for reason in changed] == ["answer", "script", "judge"]


def test_a_result_that_says_nothing_of_its_making_does_not_hold():
    """Nor one whose content is not what it was when it was written."""
    assert stale_reasons({"final_score": 1.0}, NOW) == (NO_PROVENANCE,)
    result = sealed({"provenance": MADE_FROM.model_dump(mode="json"), "run": {}})
    assert stale_reasons(result, NOW) == ()
    result["final_score"] = 1.0
    assert stale_reasons(result, NOW) == (CHANGED,)


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


def change_answer(project):
    """Edit one answer."""
    project.add_answer("answer_2", "The lake is shallow.")


def remove_answer(project):
    """Remove one answer."""
    project.add_answer("answer_2").unlink()


def damage_answer(project):
    """Make one answer unreadable."""
    project.add_answer("answer_2", b"\xff")


def change_script(project):
    """Edit the script."""
    project.add_script({"deep": ("deeper", PAGE)})


def remove_script(project):
    """Remove the script."""
    project.add_script({}).unlink()


def newer_script(project):
    """Put a newer version of the script beside it."""
    project.add_script({"deep": ("deeper", PAGE)}, version="2026_01_01")


def change_page(project):
    """Capture a page anew."""
    project.cache().put_web(PAGE, "81 m", None)


def change_page_kind(project):
    """Capture a page anew, as a PDF."""
    project.cache().put_pdf(PAGE, b"%PDF-1.4")


def clear_cache(project):
    """Lose all pages."""
    project.cache().clear()


def add_page(project):
    """Capture the page that was missing."""
    project.cache().put_web(OTHER, "fish", None)


@pytest.mark.parametrize(
    ("change", "stale"),
    [
        (lambda _project: None, {}),
        (change_answer, {"answer_2.md": "answer: its text has changed"}),
        (remove_answer, {"answer_2.md": "answer: it is gone"}),
        (damage_answer, {"answer_2.md": "answer: it cannot be read any more"}),
        (change_script, dict.fromkeys(("answer_1.md", "answer_2.md"), "script: example/lake.py has changed")),
        (
            remove_script,
            dict.fromkeys(
                ("answer_1.md", "answer_2.md"),
                "script: example/lake.py is gone, and no other judges the task",
            ),
        ),
        (
            newer_script,
            dict.fromkeys(
                ("answer_1.md", "answer_2.md"),
                "script: judged by example/lake.py, which is 2026_01_01/lake.py now",
            ),
        ),
        (change_page, dict.fromkeys(("answer_1.md", "answer_2.md"), f"pages changed: {PAGE}")),
        (change_page_kind, dict.fromkeys(("answer_1.md", "answer_2.md"), f"pages changed: {PAGE}")),
        (clear_cache, dict.fromkeys(("answer_1.md", "answer_2.md"), f"pages no longer cached: {PAGE}")),
        (add_page, dict.fromkeys(("answer_1.md", "answer_2.md"), f"pages cached since: {OTHER}")),
    ],
)
async def test_what_changes_on_disk_is_noticed(project, change, stale):
    """For the answers that it bears on, and no other."""
    change(project)
    expected = {(TASK, name): (reason,) for name, reason in stale.items()}
    assert stale_results(project.paths, AGENT) == expected


async def test_pages_may_be_left_out(project):
    """They are many files; the rest is compared all the same."""
    change_page(project)
    change_answer(project)
    assert stale_results(project.paths, AGENT, with_pages=False) == {
        (TASK, "answer_2.md"): ("answer: its text has changed",)
    }


async def test_a_pinned_version_of_the_script_counts(project):
    """As it does for an evaluation."""
    newer_script(project)
    paths = project.paths.apply_overrides(eval_version="example")
    assert stale_results(paths, AGENT) == {}


async def test_whoever_judged_last_is_the_judge_that_counts(project):
    """Unless another one is named; an earlier result of its own does not count beside the newest."""
    assert newest_judge(project.paths.eval_results_root, AGENT)["model"] == "judge-1"
    results = {name: found for _, name, found in latest_results(project.paths.eval_results_root, AGENT)}
    other = deepcopy(results["answer_2.md"].content)
    other["provenance"]["judge"]["model"] = "judge-2"
    write_result(results["answer_2.md"].path.parent, "answer_2.md", sealed(other))
    assert newest_judge(project.paths.eval_results_root, AGENT)["model"] == "judge-2"
    assert stale_results(project.paths, AGENT) == {
        (TASK, "answer_1.md"): ("judge: model judge-1, now judge-2",)
    }
    assert stale_results(project.paths, AGENT, judge={"model": "judge-1"}) == {
        (TASK, "answer_2.md"): ("judge: model judge-2, now judge-1",)
    }


async def test_a_model_that_is_served_otherwise_since_is_another_judge(project):
    """What answers to a name changes behind it."""
    [path, _] = [found.path for _, _, found in latest_results(project.paths.eval_results_root, AGENT)]
    settings = JudgeSettings("openai", "judge-1")
    content = {
        "final_score": 1.0,
        "provenance": MADE_FROM.model_copy(
            update={"judge": JudgeRecord.of(settings, "the judge of the tests")}
        ).model_dump(mode="json"),
    }
    write_result(path.parent, "answer_1.md", content)
    reader = PresentReader(project.paths, AGENT, with_pages=False)
    assert reader.present(TASK, "answer_1.md", content).served_model is None
    with JudgmentStore(project.results / FILE_NAME) as store:
        store.add(
            [
                Judgment(
                    key="later",
                    endpoint="the judge of the tests",
                    model="judge-1",
                    outcome="reply",
                    text="{}",
                    created="2027",
                    purpose="verify",
                    served_model="judge-1-2027",
                )
            ]
        )
    present = PresentReader(project.paths, AGENT, with_pages=False).present(TASK, "answer_1.md", content)
    assert "judge: served as judge-1-2026, and as judge-1-2027 since" in stale_reasons(content, present)


async def test_what_cannot_be_read_is_no_reason_to_stop(project, caplog):
    """A store or an index that is damaged is told in the log."""
    (project.results / FILE_NAME).write_bytes(b"damaged" * 1000)
    assert stale_results(project.paths, AGENT) == {}
    assert "judge not compared" in caplog.text


def test_an_agent_without_results_has_none_that_are_stale(tmp_path):
    """Nor a judge."""
    project = Project(tmp_path)
    assert stale_results(project.paths, AGENT) == {}
    assert newest_judge(project.paths.eval_results_root, AGENT) is None
