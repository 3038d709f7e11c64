"""An auditor's session: from the sample through the browser to the command's figures."""

import json
import re

import pytest
from patchright.async_api import expect
from viewer.conftest import served
from viewer.made_results import Results, leaf, result

from mind2web2.cli import main
from mind2web2.errors import UsageError
from mind2web2.runs.corrections import CorrectionRoots
from mind2web2.runs.labels import LabelFile
from mind2web2.utils.program import program
from mind2web2.viewer.audit import AuditSession, AuditSettings, NewLabel
from mind2web2.viewer.catalog import Catalog

AGENT = "bot"


@pytest.fixture
def results(tmp_path):
    """Return 8 tasks with 2 answers of 6 leaves each, two of which the judge fails."""
    made = Results(tmp_path)
    for task in range(8):
        for answer in ("answer_1", "answer_2"):
            leaves = [
                leaf(f"leaf-{n}", f"Fact {n} of task {task}.", passed=n > 1)
                for n in range(6)
            ]
            made.add(result(AGENT, answer, leaves), f"task-{task}")
    made.summarise(AGENT)
    return made


def catalog_of(results):
    """Return the catalog of the agent."""
    return Catalog(results.paths, [AGENT])


def session_of(results, **more):
    """Return the session of ann, with all leaves in the sample."""
    settings = AuditSettings(
        results.paths.project_root / "audits", AGENT, "ann", size=500, seed=1, **more
    )
    return AuditSession(catalog_of(results), settings)


def test_leaves_behind_a_gate_that_fails_wrongly_come_to_the_sample(results):
    """The judge skipped them, and the corrected score depends on them."""
    gate = leaf("gate", "The lake exists.", passed=False) | {"critical": True}
    behind = leaf("behind", "It is deep.", passed=False) | {"status": "skipped"}
    reason = "not judged, because 'gate' failed"
    behind["evidence"] = {
        "decided_by": "prerequisite",
        "claim": "It is deep.",
        "reason": reason,
    }
    content = result(AGENT, "answer_1", [gate, behind]) | {"final_score": 0.0}
    results.add(content, "task-0", stamp="20261103_100000")
    session = session_of(results)
    before = len(session.state()["labels"])
    names = [session.item(number)["claim"] for number in range(before)]
    at = names.index("The lake exists.")
    assert "It is deep." not in names
    revealed = session.label(NewLabel(number=at, label="y"))
    assert (revealed["supported"], revealed["leaves"]) == (False, before + 1)
    item = session.item(before)
    assert (item["claim"], item["is_skipped"], item["pages"]) == (
        "It is deep.",
        True,
        [],
    )
    assert session.label(NewLabel(number=before, label="n"))["is_skipped"]
    # The next session has it as well, with its label.
    assert session_of(results).state()["labels"][-1] == "n"


def test_second_pass_shows_disagreements_with_the_judges_reasons(results):
    """Its labels are kept apart from the blind ones."""
    session = session_of(results)
    wrong = next(
        number for number in range(96) if "Fact 0" in session.item(number)["claim"]
    )
    right = next(
        number for number in range(96) if "Fact 3" in session.item(number)["claim"]
    )
    for number in (wrong, right):
        session.label(NewLabel(number=number, label="y", note="line 4"))
    second = session_of(results, is_second=True)
    assert second.state() | {"labels": [None], "is_second": True} == second.state()
    item = second.item(0)
    assert item["blind"] == {"label": "y", "note": "line 4"}
    assert not item["judge"]["supported"]
    second.label(NewLabel(number=0, label="n"))
    file = LabelFile(results.paths.project_root / "audits", AGENT, "ann")
    assert [label.label for label in file.blind().values()] == ["y", "y"]
    assert [label.label for label in file.second().values()] == ["n"]


def test_second_pass_needs_a_disagreement(results):
    """Without one there is nothing to look at again."""
    with pytest.raises(UsageError, match="no blind label of ann differs"):
        session_of(results, is_second=True)


async def test_auditor_labels_blind_and_then_sees_the_verdict(page, results, capsys):
    """With keys, through to the command's figures; the next session goes on where this one ended."""
    folder = results.paths.project_root
    catalog = catalog_of(results)
    settings = AuditSettings(folder / "audits", AGENT, "ann", size=6, seed=1)
    with served(
        catalog, {"audit": AuditSession(catalog, settings).routes()}
    ) as address:
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
        pressed = page.locator(".labels [aria-pressed=true]")
        await expect(pressed).to_have_text(re.compile("y supported"))
        await page.keyboard.press("Enter")
        for key in "yynnu":
            await expect(page.locator(".labels button").first).to_be_enabled()
            await page.keyboard.press(key)
            await expect(page.locator(".revealed")).to_be_visible()
            await page.keyboard.press("Enter")
        await expect(page.locator(".progress")).to_contain_text("6 of 6")
        await expect(page.locator(".notice code")).to_have_text(
            f"{program()} audit {AGENT}"
        )
    assert len(LabelFile(folder / "audits", AGENT, "ann").blind()) == 6
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


async def test_second_pass_shows_both_sides_before_it_asks(page, results):
    """The blind label and the judge's reasons stand beside the claim; the blind label stays as it is."""
    blind = session_of(results)
    claims = [blind.item(number)["claim"] for number in range(96)]
    wrong, right = (
        next(number for number, claim in enumerate(claims) if f"Fact {fact}" in claim)
        for fact in (0, 3)
    )
    for number in (wrong, right):
        blind.label(NewLabel(number=number, label="y", note="line 4"))
    second = session_of(results, is_second=True)
    with served(catalog_of(results), {"audit": second.routes()}) as address:
        await page.goto(address)
        await page.get_by_role("link", name="Audit").click()
        await expect(page.locator("h1")).to_contain_text("disagreements")
        await expect(page.locator(".progress")).to_contain_text("0 of 1 leaf")
        await expect(page.locator("blockquote.claim")).to_have_text(claims[wrong])
        claim = page.get_by_role("region", name="Claim")
        await expect(claim).to_contain_text("Your blind label: supported. line 4")
        await expect(claim).to_contain_text("The judge decided: not supported")
        await expect(claim).to_contain_text("The page says so.")
        await expect(page.locator(".labels button").first).to_be_enabled()
        await page.get_by_role("link", name="Audit").focus()
        await page.keyboard.press("n")
        await expect(page.locator(".progress")).to_contain_text("1 of 1 leaf")
    file = LabelFile(results.paths.project_root / "audits", AGENT, "ann")
    assert [label.label for label in file.blind().values()] == ["y", "y"]
    assert [label.label for label in file.second().values()] == ["n"]


def test_audit_without_labels_says_how_to_make_some(results, capsys):
    """In one line."""
    assert (
        main(
            [
                "audit",
                AGENT,
                "--eval_results_root",
                str(results.paths.eval_results_root),
            ]
        )
        == 2
    )
    assert "mind2web2 view bot --audit YOUR_NAME" in capsys.readouterr().err


def test_overview_shows_the_corrected_score_beside_the_raw_one(results):
    """Once there are labels, without a new result."""
    folder = results.paths.project_root
    roots = CorrectionRoots(
        results.paths.eval_results_root, folder / "audits", folder / "rejudged"
    )
    assert (
        Catalog(results.paths, [AGENT], corrections=roots).overview()["agents"][0][
            "corrected"
        ]
        is None
    )
    session = session_of(results)
    for number in range(96):
        session.label(NewLabel(number=number, label="y"))
    (agent,) = Catalog(results.paths, [AGENT], corrections=roots).overview()["agents"]
    assert agent["metrics"]["avg_score"] == pytest.approx(4 / 6, abs=1e-5)
    assert agent["corrected"]["corrected"] == pytest.approx(1)
    assert agent["corrected"]["by"] == "labels of ann"
