"""The human audit: from the sample through the browser to the corrected score."""

import json
import re

import pytest
from patchright.async_api import expect
from viewer.conftest import served
from viewer.made_results import Results, leaf, result

from mind2web2.cli import main
from mind2web2.viewer.audit import (
    AuditSession,
    AuditSettings,
    LabelFile,
    corrected_score,
    judge_quality,
    judged_leaves,
    sample,
)
from mind2web2.viewer.catalog import Catalog

AGENT = "bot"


@pytest.fixture
def results(tmp_path):
    """Return 8 tasks with 2 answers of 6 leaves each, two of which the judge fails."""
    made = Results(tmp_path)
    for task in range(8):
        for answer in ("answer_1", "answer_2"):
            leaves = [leaf(f"leaf-{n}", f"Fact {n} of task {task}.", passed=n > 1) for n in range(6)]
            made.add(result(AGENT, answer, leaves), f"task-{task}")
    made.summarise(AGENT)
    return made


def catalog_of(results):
    """Return the catalog of the agent."""
    return Catalog(results.paths, [AGENT])


def label_all(results, leaves, verdict, auditor="ann"):
    """Label leaves, each with what a function of it returns."""
    file = LabelFile(results.paths.project_root / "audits", AGENT, auditor)
    for each in leaves:
        file.append(each, verdict(each), "", 1.0)
    return file.labels()


def test_sample_is_the_same_for_one_seed_and_has_all_strata(results):
    """Its weights add up to all leaves."""
    leaves = judged_leaves(catalog_of(results), AGENT)
    assert len(leaves) == 96
    one, other = sample(leaves, 30, seed=1), sample(leaves, 30, seed=2)
    assert one == sample(leaves, 30, seed=1)
    assert one != other
    assert len(one) == len({found.name for found in one}) == 30
    assert {found.supported for found in one} == {True, False}
    assert len({found.place.task for found in one}) == 8
    assert sum(found.weight for found in one) == pytest.approx(96)
    assert len(sample(leaves, 500, seed=1)) == 96


def test_labels_correct_the_score(results):
    """A judge that fails a third of the leaves wrongly: the corrected score is 1, whatever the raw one."""
    catalog = catalog_of(results)
    leaves = judged_leaves(catalog, AGENT)
    labels = label_all(results, leaves, lambda _: "y")
    found = corrected_score(catalog, AGENT, leaves, labels)
    assert found.raw == pytest.approx(4 / 6)
    assert found.corrected.value == pytest.approx(1)
    quality = judge_quality(leaves, labels)
    assert quality.agreement.value == pytest.approx(4 / 6)
    assert quality.wrong_failures.value == 1
    assert quality.wrong_passes.value == 0


def test_labels_of_one_answer_count_together(results):
    """Two critical leaves that failed wrongly hold an answer at 0: either alone would change nothing."""
    leaves = [leaf(f"leaf-{n}", f"Fact {n}.", passed=n > 1) | {"critical": n < 2} for n in range(6)]
    content = result(AGENT, "answer_1", leaves) | {"final_score": 0.0}
    results.add(content, "task-0", stamp="20261103_100000")
    catalog = catalog_of(results)
    judged = [found for found in judged_leaves(catalog, AGENT) if found.place.task == "task-0"]
    own = [found for found in judged if found.place.answer == "answer_1"]
    labels = label_all(results, judged, lambda found: "y" if found in own else "n")
    found = corrected_score(catalog, AGENT, judged, labels)
    # One answer is right in all, the other in nothing.
    assert found.answers == 2
    assert found.corrected.value == pytest.approx(0.5, abs=0.35)
    alone = corrected_score(catalog, AGENT, own, {name: labels[name] for name in [one.name for one in own]})
    assert alone.answers == 1


def test_labels_of_a_sample_estimate_the_same_score(results):
    """Within the interval, which holds the truth."""
    catalog = catalog_of(results)
    leaves = judged_leaves(catalog, AGENT)
    labels = label_all(results, sample(leaves, 12, seed=3), lambda _: "y")
    found = corrected_score(catalog, AGENT, leaves, labels)
    assert found.answers < 16
    assert found.corrected.value > found.raw + 0.15
    assert found.corrected.low <= 1 == found.corrected.high


def test_labels_survive_a_crash_and_stale_ones_do_not_count(results):
    """A line that was cut short is left out; a leaf that was judged on another claim needs a new label."""
    catalog = catalog_of(results)
    leaves = judged_leaves(catalog, AGENT)
    label_all(results, leaves[:3], lambda _: "y")
    file = LabelFile(results.paths.project_root / "audits", AGENT, "ann")
    with file.path.open("ab") as stream:
        stream.write(b'{"agent": "bot", "ta')
    file.append(leaves[3], "u", "hard to say", 2.0)
    labels = file.labels()
    assert [labels[found.name].label for found in leaves[:4]] == ["y", "y", "y", "u"]
    changed = [leaf(f"leaf-{n}", f"Another fact {n}.") for n in range(6)]
    results.add(result(AGENT, "answer_1", changed), "task-0", stamp="20261102_100000")
    quality = judge_quality(judged_leaves(catalog_of(results), AGENT), labels)
    assert (quality.labels, quality.undecidable, quality.stale) == (0, 0, 4)


def test_first_label_of_a_leaf_counts(results):
    """It was given blind; the second one after the judge's verdict was shown."""
    leaves = judged_leaves(catalog_of(results), AGENT)[:1]
    label_all(results, leaves, lambda _: "n")
    assert label_all(results, leaves, lambda _: "y")[leaves[0].name].label == "n"


async def test_auditor_labels_blind_and_then_sees_the_verdict(page, results, capsys):
    """With keys, through to the command's figures; the next session goes on where this one ended."""
    folder = results.paths.project_root
    catalog = catalog_of(results)
    settings = AuditSettings(folder / "audits", AGENT, "ann", size=6, seed=1)
    with served(catalog, {"audit": AuditSession(catalog, settings).routes()}) as address:
        await page.goto(address)
        await page.get_by_role("link", name="Audit").click()
        await expect(page.locator("blockquote.claim")).to_contain_text("Fact")
        assert "The page says so." not in await page.locator("main").inner_text()
        await page.get_by_label("Note").fill("as the page says")
        await expect(page.locator(".labels button").first).to_be_enabled()
        await page.get_by_role("link", name="Audit").focus()
        await page.keyboard.press("y")
        await expect(page.locator(".revealed")).to_contain_text(
            re.compile("The judge decided: (not )?supported")
        )
        await page.keyboard.press("Enter")
        for key in "yynnu":
            await expect(page.locator(".labels button").first).to_be_enabled()
            await page.keyboard.press(key)
            await expect(page.locator(".revealed")).to_be_visible()
            await page.keyboard.press("Enter")
        await expect(page.locator(".progress")).to_contain_text("6 of 6")
    assert len(LabelFile(folder / "audits", AGENT, "ann").labels()) == 6
    session = AuditSession(catalog, settings)
    assert None not in session.state()["labels"]
    assert "supported" not in json.dumps(session.item(0))
    arguments = [AGENT, "--eval_results_root", str(results.paths.eval_results_root)]
    arguments += ["--audits_root", str(folder / "audits")]
    assert main(["audit", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "Judge and ann: 5 leaves" in printed
    assert "Undecidable: 1 leaf," in printed
    assert main(["audit", *arguments, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["auditors"]["ann"]["labels"] == 5
    assert figures["score"]["raw"] == pytest.approx(4 / 6)


def test_audit_without_labels_says_how_to_make_some(results, capsys):
    """In one line."""
    assert main(["audit", AGENT, "--eval_results_root", str(results.paths.eval_results_root)]) == 2
    assert "mind2web2 view bot --audit YOUR_NAME" in capsys.readouterr().err
