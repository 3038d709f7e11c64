"""Doubts about verdicts that need no labels, as the viewer shows them."""

import pytest
from patchright.async_api import expect
from viewer.conftest import served
from viewer.made_results import URL, Results, leaf, result
from viewer.test_views import show

from mind2web2.analysis.changed_pages import ChangedPages, Excerpt, OtherReply, Share
from mind2web2.results.result_file import ResultFile
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.report import ReportContent, write_report

DEEP = "The lake is 40 m deep."


def report(agent, judge="judge-1"):
    stayed = OtherReply(
        task="lake",
        answer="answer_1",
        leaf="depth",
        kind="number",
        claim=DEEP,
        url=URL,
        page_before=Excerpt(before="It is ", changed="40", after=" m deep."),
        page_after=Excerpt(before="It is ", changed="70", after=" m deep."),
        reason_before="The page says 40.",
        reason_after="<b>Well known.</b>",
    )
    return ChangedPages(
        agent=agent,
        judge=judge,
        probes=4,
        noticed=Share(count=4, value=0.75),
        false_passes=Share(count=4, value=0.25),
        false_alarms=Share(count=1, value=0),
        leaves={"lake/depth": (2, 1)},
        survivors=(stayed,),
    )


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two agents: one judged twice on the same statement, and asked about on a changed page."""
    made = Results(tmp_path)
    for agent, passed in (("old", True), ("new", False)):
        leaves = [
            leaf("depth", DEEP, passed=passed),
            leaf("again", "The lake is 40 m deep, deep.", passed=False),
        ]
        made.add(result(agent, "answer_1", leaves), "lake")
    made.summarise("old", "new")
    monkeypatch.setattr(
        "mind2web2.viewer.catalog.changed_pages",
        lambda agent: [report("old")] if agent == "old" else [],
    )
    return made


@pytest.mark.parametrize("is_file", [False, True])
async def test_verdicts_that_stayed_are_shown_page_beside_page(page, results, is_file):
    path = results.paths.eval_results_root / "report.html"
    await write_report(path, Catalog(results.paths), ReportContent())
    with served(Catalog(results.paths)) as home:
        await show(page, path.as_uri() if is_file else home, "#/doubts")
        stayed = page.locator("article.stayed").first
        await expect(stayed.locator("mark")).to_have_text(["40", "70"])
        await expect(stayed).to_contain_text("The judge: The page says 40.")
        await expect(stayed).to_contain_text("The judge: <b>Well known.</b>")
        main = page.locator("main")
        await expect(main).to_contain_text("judge-1 noticed 75%")
        await stayed.locator("a").first.click()
        await expect(page.locator("section[aria-label='Claim and votes']")).to_be_visible()


async def test_leaves_have_their_doubts_in_answer_compare_and_leaves(page, results):
    with served(Catalog(results.paths)) as home:
        await show(page, home, "#/answer/old/lake/answer_1")
        marks = page.locator("#leaf-depth .doubt")
        await expect(marks).to_have_text(["not read from the page"])
        await show(page, home, "#/compare?a=old&b=new")
        await page.locator("table.changes summary").click()
        await expect(page.locator(".flips .doubt").first).to_have_text(
            "old: not read from the page"
        )
        await show(page, home, "#/leaves/lake")
        row = page.locator("table.leaves tbody tr").filter(has_text="depth")
        await expect(row).to_contain_text("stayed passed on 1 of 2 changed pages")


def test_a_leaf_that_was_judged_again_is_not_marked():
    unread = report("old").unread_leaves
    same = result("old", "answer_1", [leaf("depth", DEEP)])
    other_claim = result("old", "answer_1", [leaf("depth", "The lake is deep.")])
    other_judge = {**same, "judge_model": "judge-2"}
    found = [
        unread("lake", "answer_1", ResultFile.of(each)) for each in (same, other_claim, other_judge)
    ]
    assert found == [{"depth"}, set(), set()]
