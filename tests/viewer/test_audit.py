"""An auditor's session: whole answers through the browser to the command's figures."""

import json

import pytest
from patchright.async_api import expect
from result_parts import made_from
from viewer.conftest import served
from viewer.made_results import Results, leaf, result

from mind2web2.analysis.correction_record import CorrectionRoots
from mind2web2.analysis.labels import LabelFile, LeafName
from mind2web2.cli import main
from mind2web2.utils.program import program
from mind2web2.viewer.audit import AuditSession, AuditSettings, NewLabel
from mind2web2.viewer.catalog import Catalog

AGENT = "bot"
# Presses a key as a keyboard does that repeats it while it is held.
HOLD = """(key) => {
  for (let press = 0; press < 40; press++)
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, repeat: press > 0 }));
}"""


@pytest.fixture
def results(tmp_path):
    """Return 8 tasks with an answer of 3 leaves each, one of which the judge fails."""
    made = Results(tmp_path)
    for task in range(8):
        leaves = [leaf(f"leaf-{n}", f"Fact {n} of task {task}.", passed=n > 0) for n in range(3)]
        content = result(AGENT, "answer_1", leaves) | {"provenance": made_from()}
        made.add(content, f"task-{task}")
    made.summarise(AGENT)
    return made


def catalog_of(results):
    """Return the catalog of the agent."""
    return Catalog(results.paths, [AGENT])


def session_of(results, **more):
    """Return the session of ann."""
    settings = AuditSettings(results.paths.project_root / "audits", AGENT, "ann", **more)
    return AuditSession(catalog_of(results), settings)


def labels_of(results):
    """Return the file of ann's labels."""
    return LabelFile(results.paths.project_root / "audits", AGENT, "ann")


def label(session, label="y", **more):
    """Label the first leaf without one and return its name."""
    name = next(
        LeafName(*each["leaf"]) for each in session.state()["leaves"] if each["label"] is None
    )
    session.label(NewLabel(leaf=name, label=label, **more))
    return name


def test_an_auditor_labels_one_answer_after_the_other(results):
    """Leaves behind a gate that the auditor fails need no label; the next session goes on."""
    gate = leaf("gate", "The lake exists.", passed=False) | {"critical": True}
    behind = leaf("behind", "It is deep.", passed=False) | {"status": "skipped"}
    behind["evidence"] = {
        "decided_by": "prerequisite",
        "claim": "It is deep.",
        "reason": "not judged, because 'gate' failed",
    }
    content = result(AGENT, "answer_1", [gate, behind]) | {"final_score": 0.0}
    session = session_of(results)
    first = LeafName(*session.state()["leaves"][0]["leaf"])
    content["provenance"] = made_from()
    results.add(content, first.task, stamp="20261103_100000")
    session = session_of(results)
    assert session.state()["whole"] == 0
    assert [each["leaf"][2] for each in session.state()["leaves"]] == ["gate", "behind"]
    label(session, "n")
    state = session_of(results).state()
    assert (state["whole"], len(state["leaves"])) == (1, 1 + 3)
    gate_name = LeafName(*state["leaves"][0]["leaf"])
    session.label(NewLabel(leaf=gate_name, label=None))
    session.label(NewLabel(leaf=gate_name, label="y"))
    state = session.state()
    assert (state["whole"], len(state["leaves"])) == (0, 2)
    item = session.item(gate_name._replace(leaf="behind"))
    assert (item["claim"], item["pages"]) == ("It is deep.", [])
    assert "judge" not in item


async def test_an_auditor_labels_blind_by_keys(page, results, capsys):
    session = session_of(results)
    with served(catalog_of(results), {"audit": session.routes()}) as address:
        await page.goto(f"{address}#/audit")
        await expect(page.locator("blockquote.claim")).to_contain_text("Fact 0")
        await page.get_by_label("Note").fill("as the page says")
        links = page.get_by_role("navigation", name="Views").get_by_role("link")
        await expect(links).to_have_text(["Audit"])
        assert "#/overview" not in await page.locator("header").inner_html()
        await links.focus()
        for place, key in enumerate("ynu"):
            await expect(page.locator("blockquote.claim")).to_contain_text(f"Fact {place}")
            await expect(page.locator(".labels button").first).to_be_enabled()
            await page.keyboard.press(key)
            await expect(page.locator(".progress")).to_contain_text(
                f"{place + 1} of {3 if place < 2 else 6} leaves"
            )
            assert "The page says so." not in await page.locator("main").inner_text()
            await page.keyboard.press("Enter")
        await expect(page.locator(".progress")).to_contain_text("1 of 8 answers")
        command = f"{program()} metrics {AGENT} --audit"
        await expect(page.locator(".notice code")).to_have_text(command)
    given = labels_of(results).blind().values()
    assert [each.label for each in given] == ["y", "n", "u"]
    arguments = [AGENT, "--eval_results_root", str(results.paths.eval_results_root)]
    arguments += ["--audits_root", str(results.paths.project_root / "audits")]
    assert main(["metrics", *arguments, "--audit"]) in (0, 1)
    printed = capsys.readouterr().out
    assert "Judge and ann: 2 leaves" in printed
    assert "Not counted: 1 undecidable leaf." in printed


async def test_a_held_or_repeated_key_labels_one_leaf(page, results):
    """``n`` does not go on, and ``z`` takes the label back."""
    session = session_of(results)
    with served(catalog_of(results), {"audit": session.routes()}) as address:
        await page.goto(f"{address}#/audit")
        first = page.locator(".labels button").first
        await expect(first).to_be_enabled()
        await page.evaluate(HOLD, "n")
        await expect(page.locator(".progress")).to_contain_text("1 of 3 leaves")
        for _ in range(3):
            await page.keyboard.press("n")
        await expect(page.locator("blockquote.claim")).to_contain_text("Fact 0")
        await page.evaluate(HOLD, "Enter")
        await expect(page.locator("blockquote.claim")).to_contain_text("Fact 1")
        await page.keyboard.press("k")
        await expect(page.locator("blockquote.claim")).to_contain_text("Fact 0")
        await expect(page.get_by_role("button", name="take back")).to_be_enabled()
        assert len(labels_of(results).blind()) == 1
        await expect(page.locator(".beside h2")).to_be_visible()
        await page.keyboard.press("z")
        await expect(page.locator(".progress")).to_contain_text("0 of 3 leaves")
        await expect(first).to_be_enabled()
        await page.keyboard.press("y")
        await expect(page.locator(".progress")).to_contain_text("1 of 3 leaves")
    assert [each.label for each in labels_of(results).blind().values()] == ["y"]
    # The sample, and each press that counted.
    assert len(labels_of(results).path.read_text().splitlines()) == 1 + 3


def test_audit_without_labels_says_how_to_make_some(results, capsys):
    root = str(results.paths.eval_results_root)
    assert main(["metrics", AGENT, "--audit", "--eval_results_root", root]) == 2
    assert "mind2web2 view bot --audit YOUR_NAME" in capsys.readouterr().err


def test_overview_shows_the_corrected_score_beside_the_raw_one(results):
    folder = results.paths.project_root
    roots = CorrectionRoots(results.paths.eval_results_root, folder / "audits", folder / "rejudged")

    def shown():
        catalog = Catalog(results.paths, [AGENT], corrections=roots)
        (agent,) = json.loads(json.dumps(catalog.overview()["agents"]))
        return agent

    assert shown()["corrected"] is None
    session = session_of(results)
    for _ in range(24):
        label(session, seconds=2)
    assert shown()["metrics"]["avg_score"] == pytest.approx(2 / 3, abs=1e-4)
    assert shown()["corrected"]["corrected"] == pytest.approx(1)
    assert shown()["corrected"]["by"] == "labels of ann on 8 of 8 answers"
