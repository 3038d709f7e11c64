"""The example's views in a real browser, from the server and from a file."""

import json
import re
import shutil

import pytest
from patchright.async_api import expect
from planted_changes import copy_agent, planted
from projects import call
from viewer.conftest import served
from viewer.made_results import Results, leaf, result

from mind2web2.cli import main
from mind2web2.utils import text
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.report import ReportContent, write_report

ANSWER = "#/answer/example/museum_saturday/answer_1"
EVIDENCE = "#/evidence/example/museum_saturday/answer_1/tour_start_supported"
# Each view is ready once this element is there.
VIEWS = {
    "#/overview": "h1:text-is('Results')",
    ANSWER: "h1:has-text('answer_1')",
    EVIDENCE: "mark",
    "#/compare": "h1:text-is('Compare')",
    "#/leaves": "h1:text-is('Leaves')",
    "#/leaves/museum_saturday": "table.leaves",
    "#/doubts": "h1:text-is('Doubts')",
}


async def show(page, home, view):
    """Open a view; the session's key first, where there is one."""
    await page.goto(home)
    await open_view(page, home, view)


async def open_view(page, home, view):
    """Go to another view of the document that a tab shows."""
    await page.goto(home.partition("?")[0] + view)


async def test_overview_has_agents_and_a_cell_for_each_answer(page, home):
    await show(page, home, "#/overview")
    await expect(page.locator("table.agents")).to_contain_text("60%")
    await expect(page.locator("table.matrix td.cell")).to_have_count(9)
    await page.get_by_label("answer_1 of museum_saturday").click()
    await expect(page.locator("h1")).to_have_text(re.compile("answer_1.*0.44"))


async def test_figures_are_rounded_as_in_the_terminal(page, home):
    values = [count / parts for parts in (8, 16, 40, 200, 1000) for count in range(parts + 1)]
    await show(page, home, "#/overview")
    shown = await page.evaluate(
        """async (values) => {
            const { number, percent } = await import("viewer/parts");
            return values.map((value) => [number(value), percent(value)]);
        }""",
        values,
        isolated_context=False,
    )
    assert shown == [[text.number(value), text.percent(value)] for value in values]


@pytest.fixture
def rivals(tmp_path):
    """Make results of two agents with two runs; the second is better but at one task."""
    made = Results(tmp_path)
    for number in range(8):
        passes = {"old": 1 + number % 2, "new": 1 if number == 5 else 3 + number % 2}
        for agent, passed in passes.items():
            for run in (1, 2):
                leaves = [
                    leaf(f"l{place}", "A claim", passed=place < passed + run - 1)
                    for place in range(5)
                ]
                made.add(result(agent, f"answer_{run}", leaves), f"task_{number}")
    made.summarise("old", "new")
    return made


async def test_agents_are_drawn_with_their_intervals_best_first(page, rivals):
    with served(Catalog(rivals.paths)) as home:
        await show(page, home, "#/overview")
        names = page.locator("table.agents tbody th bdi")
        await expect(names).to_have_text(["new", "old"])
        best = page.locator("table.agents tbody tr").first.locator("td.plot").first
        await expect(best).to_have_text(re.compile(r"^73%\s+\d\d% to \d\d%"))
        interval = best.locator("line.between")
        text = await best.inner_text()
        low, high = re.search(r"([\d.]+)% to ([\d.]+)%", text).groups()
        drawn = [await interval.get_attribute(end) for end in ("x1", "x2")]
        assert [float(end.strip("%")) for end in drawn] == pytest.approx(
            # The text has whole percents.
            [float(low), float(high)],
            abs=0.5,
        )
        await page.get_by_role("link", name="spread of runs' means").click()
        await expect(page).to_have_url(re.compile("agents=spread"))
        chosen = page.locator("table.agents th[aria-sort='descending']")
        await expect(chosen).to_contain_text("spread of runs' means")


async def test_tasks_are_drawn_in_the_order_that_is_chosen(page, rivals):
    """The matrix has the same order; a line says its scores and leads to the row."""
    with served(Catalog(rivals.paths)) as home:
        await show(page, home, "#/overview")
        lines, rows = (
            page.locator(".task-plot a"),
            page.locator("table.matrix tbody tr"),
        )
        await expect(lines.first).to_contain_text("task_5: new 0.30, old 0.50")
        await expect(lines.first.locator("path")).to_have_count(2)
        await expect(lines.first.locator("line.tick")).to_have_count(4)
        await expect(rows.first).to_contain_text("task_5")
        await page.get_by_label("Order of tasks").select_option("name")
        await expect(page).to_have_url(re.compile("tasks=name"))
        await expect(rows.first).to_contain_text("task_0")
        await page.get_by_role("link", name=re.compile("^below 1")).click()
        await expect(page).to_have_url(re.compile("tasks=name.*filter=failed"))
        await lines.nth(5).focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("table.matrix tr.current")).to_contain_text("task_5")
        await expect(page.locator("table.matrix th:focus")).to_have_text("task_5")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("Leaves of task_5")


async def test_filters_and_search_narrow_the_overview(page, home):
    """A filter has an address of its own; a search finds tasks and claims."""
    await show(page, home, "#/overview")
    await page.get_by_role("link", name="score 0 1").click()
    await expect(page.locator("table.matrix tbody tr")).to_have_count(1)
    assert "filter=zero" in page.url
    await page.get_by_role("link", name=re.compile("^all")).click()
    await page.get_by_label("Search tasks and claims").fill("guided TOUR")
    await expect(page.locator("ul.claims li").first).to_contain_text("guided tour")
    await expect(page).to_have_url(re.compile("search=guided"))
    await page.reload()
    await expect(page.get_by_label("Search tasks and claims")).to_have_value("guided TOUR")
    await page.locator("ul.claims a").first.click()
    await expect(page.locator("blockquote.claim")).to_contain_text("guided tour")


async def test_tree_is_walked_with_the_keyboard(page, home):
    """J and k go from leaf to leaf, n to the next failure, Enter to the evidence, Escape back."""
    await show(page, home, ANSWER)
    await expect(page.locator(".node").first).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.locator(".node.current")).to_have_attribute("id", "leaf-plan_complete")
    await page.keyboard.press("n")
    current = page.locator(".node.current")
    await expect(current).to_have_class(re.compile("failed|skipped"))
    await page.keyboard.press("k")
    await expect(current).to_have_class(re.compile("passed"))
    await page.keyboard.press("Enter")
    await expect(page.locator("section[aria-label='Claim and votes']")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(".node.current")).to_be_visible()


async def test_answer_shows_gates_skips_and_the_text(page, home):
    """Critical nodes are marked, a skipped leaf says why, and the answer stands beside the tree."""
    await show(page, home, ANSWER)
    await expect(page.locator(".critical").first).to_have_text("◆ critical")
    await expect(page.locator(".node.skipped .why").first).to_contain_text("not judged")
    await expect(page.locator(".markdown h2").first).to_have_text(
        "A July Saturday at the Mill Museum"
    )
    await page.get_by_role("tab", name="How it was judged").click()
    await expect(page.locator("table.facts").first).to_contain_text("example-key")


async def test_evidence_marks_the_quoted_passage(page, home):
    await show(page, home, EVIDENCE)
    await expect(page.locator("mark")).to_have_text("| Saturday | 11:00 and 14:30 |")
    await expect(page.locator("mark")).to_be_in_viewport()
    await expect(page.locator("ol.votes li")).to_have_count(2)
    await page.get_by_role("tab", name="Screenshot").click()
    image = page.locator(".images img")
    await expect(image).to_be_visible()
    assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    await page.get_by_role("tab", name="Capture").click()
    await expect(page.locator("table.facts")).to_contain_text("2026-11-21")


async def test_pages_of_a_pdf_are_pictures(page, home):
    await show(page, home, EVIDENCE.replace("tour_start_supported", "ferry_crossing"))
    await page.get_by_role("tab", name="Pages").click()
    await expect(page.locator(".images img")).to_have_count(2)


async def test_comparison_lists_differences_and_flips(page, home):
    await show(page, home, "#/compare?a=example+%2F+answer_1&b=example+%2F+answer_3")
    await expect(page.locator("table.changes tbody tr")).to_have_count(3)
    await expect(page.locator("table.changes tbody tr").first).to_contain_text("\u22120.5")
    await page.locator("table.changes summary").first.click()
    await page.locator(".flips a").first.click()
    await expect(page.locator("section[aria-label='Claim and votes']")).to_be_visible()


async def test_a_flip_shows_both_claims(page, tmp_path):
    made = Results(tmp_path)
    for agent, claim, passed in (
        ("old", "The Alder has 16 GB.", True),
        ("new", "The Dogwood has 16 GB.", False),
    ):
        leaves = [
            leaf("memory", claim, passed=passed),
            leaf("price", "It costs 900 crowns.", passed=not passed),
        ]
        made.add(result(agent, "answer_1", leaves), "laptops")
    made.summarise("old", "new")
    with served(Catalog(made.paths)) as home:
        await show(page, home, "#/compare?a=old&b=new")
        await page.locator("table.changes summary").click()
        memory, price = await page.locator(".flips li").all()
        await expect(memory).to_contain_text("old, answer_1: The Alder has 16 GB.")
        await expect(memory).to_contain_text("new, answer_1: The Dogwood has 16 GB.")
        await expect(price.locator(".text")).to_have_text(["It costs 900 crowns."])


@pytest.mark.parametrize(("count", "text"), [(1, "1 leaf"), (2, "2 leaves")])
async def test_flips_are_counted(page, tmp_path, count, text):
    made = Results(tmp_path)
    for agent, passed in (("old", True), ("new", False)):
        leaves = [leaf(f"l{place}", "A claim", passed=passed) for place in range(count)]
        made.add(result(agent, "answer_1", leaves), "lake")
    made.summarise("old", "new")
    with served(Catalog(made.paths)) as home:
        await show(page, home, "#/compare?a=old&b=new")
        await expect(page.locator("main")).to_contain_text(f"; {text} flipped.")


async def test_comparison_of_agents_has_its_tests(page, tmp_path):
    """The same from the server and in a file, in either direction, whatever other agents have."""
    made = Results(tmp_path)
    for number in range(7):
        for agent, passed in (("old", 1 + number % 2), ("new", 2 + number % 2)):
            leaves = [leaf(f"l{place}", "A claim", passed=place < passed) for place in range(4)]
            made.add(result(agent, "answer_1", leaves), f"task_{number}")
    made.add(result("third", "answer_1", [leaf("l0", "A claim")]), "another_task")
    made.summarise("old", "new", "third")
    shutil.copytree(made.paths.eval_results_root / "third", made.paths.eval_results_root / "empty")
    shutil.rmtree(made.paths.eval_results_root / "empty" / "another_task")
    catalog = Catalog(made.paths)
    file = tmp_path / "report.html"
    await write_report(file, catalog, ReportContent())
    with served(catalog) as home:
        for place in (home, file.as_uri()):
            await show(page, place, "#/compare?a=new&b=old")
            rows = page.locator("table.tests tbody tr")
            await expect(rows.first).to_contain_text("\u22120.25")
            await expect(rows.first).to_contain_text("0.0078")
            await expect(rows.last).to_contain_text("new, old")
            assert await page.locator("option", has_text="empty").count() == 0
            await show(page, place, "#/compare?a=new&b=third")
            reason = "No test: no task has scores of new and third."
            await expect(page.locator("p.hint", has_text="No test")).to_have_text(reason)
            await show(page, place, "#/overview")
            await expect(page.locator("table.agents tbody tr")).to_have_count(3)
            await expect(page.locator("p.notice", has_text="No results yet: empty")).to_be_visible()


async def test_a_run_without_an_answer_has_one_reason(page, tmp_path):
    made = Results(tmp_path)
    made.add(result("old", "answer_1", [leaf("l", "A claim")]), "lake")
    entry = {
        "answer_name": "answer_2.md",
        "score": 0.0,
        "reason": "the agent gave an empty answer",
    }
    (made.paths.eval_results_root / "old/lake/summary.json").write_text(json.dumps([entry]))
    made.summarise("old")
    with served(Catalog(made.paths)) as home:
        await show(page, home, "#/answer/old/lake/answer_2")
        await expect(page.locator(".notice.error")).to_have_text(
            "Score 0: the agent gave an empty answer"
        )
        await expect(page.locator("main")).not_to_contain_text("without a rubric tree")


async def test_a_judge_that_failed_its_check_is_named_first(page, tmp_path):
    made = Results(tmp_path)
    content = result("old", "answer_1", [leaf("l", "A claim")])
    check = {
        "set_version": 1,
        "set_digest": "d",
        "is_whole_set": True,
        "cases": 326,
        "checked": "2026-11-22",
    }
    failed = {**check, "accuracy": 0.531, "low": 0.48, "high": 0.58}
    made.add({**content, "run": {**content.get("run", {}), "judge_check": failed}}, "lake")
    made.summarise("old")
    catalog = Catalog(made.paths)
    file = tmp_path / "report.html"
    await write_report(file, catalog, ReportContent())
    with served(catalog) as home:
        for place in (home, file.as_uri()):
            await show(page, place, "#/overview")
            expected = "old: the judge failed its check: 53% right (48% to 58%)"
            await expect(page.locator("p.notice.error")).to_contain_text(expected)


async def test_mistakes_of_the_script_are_named(page, tmp_path):
    """Above the tree, which counts the leaf that was never judged."""
    made = Results(tmp_path)
    fault = "lake.py, line 3: leaf 'late' is never judged, and counts 0"
    late = {**leaf("late", "A claim"), "status": "initialized", "score": 0.0}
    content = {
        **result("old", "answer_1", [leaf("l", "A claim"), late]),
        "script_faults": [fault],
    }
    made.add(content, "lake")
    made.summarise("old")
    with served(Catalog(made.paths)) as home:
        await show(page, home, "#/answer/old/lake/answer_1")
        await expect(page.locator("p.notice")).to_have_text(f"Mistake of the script: {fault}")
        await expect(page.locator("p.hint", has_text="never judged")).to_contain_text(
            "1 never judged"
        )
        await expect(page.locator(".status.initialized")).to_contain_text("never judged")


async def test_what_is_not_there_is_said(page, home):
    await show(page, home, "#/answer/example/museum_saturday/answer_77")
    await expect(page.locator(".notice.error")).to_be_visible()
    await show(page, home, "#/nowhere")
    await page.get_by_role("link", name="Overview").last.click()
    await expect(page.locator("table.agents")).to_be_visible()


async def test_messages_are_exactly_those_of_the_judgment(page, example_server):
    """The hash of the messages is the judgment's key."""
    await show(page, example_server, EVIDENCE)
    await page.locator("details.messages summary").first.click()
    await expect(page.locator("details.messages").first).to_contain_text("Exactly these messages")
    await expect(page.locator("details.messages pre").last).to_contain_text(
        "Does the page support this claim?"
    )


async def test_views_fit_narrow_windows(page, example_server):
    """Nothing but wide tables has to be scrolled sideways."""
    await page.goto(example_server)
    for view, there in VIEWS.items():
        await open_view(page, example_server, view)
        await expect(page.locator(there)).to_be_visible()
        for width in (1000, 390):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, view


async def test_file_opens_without_a_network(browser, example_file):
    context = await browser.new_context(offline=True)
    page = await context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(example_file + EVIDENCE)
    await expect(page.locator("mark")).to_be_visible()
    assert [url for url in asked if not url.startswith(("data:", "blob:", example_file))] == []
    await context.close()


@pytest.mark.parametrize("is_file", [False, True])
async def test_leaves_of_a_task_have_their_counts_and_marks(page, rivals, is_file):
    hidden = {**leaf("idle", "It is cold.", passed=False), "status": "skipped"}
    for number in range(1, 4):
        leaves = [leaf("name", "It is a lake."), leaf("depth", "x", passed=number < 2)]
        rivals.add(result("new", f"answer_{number}", [*leaves, hidden]), "lake")
    other = {**result("old", "answer_1", [leaf("depth", "x")]), "judge_model": "j-2"}
    rivals.add(other, "lake")
    rivals.summarise("old", "new")
    catalog = Catalog(rivals.paths)
    path = rivals.paths.eval_results_root / "report.html"
    await write_report(path, catalog, ReportContent(pages=False))
    with served(catalog) as address:
        await show(page, path.as_uri() if is_file else address, "#/leaves")
        await page.get_by_role("link", name="lake", exact=True).click()
        main = page.locator("main")
        await expect(main).to_contain_text("4 results of new, old")
        await expect(main).to_contain_text("12 are needed, there are 4")
        await expect(main).to_contain_text(
            "different judges are taken together: j-2 (1), judge-1 (3)"
        )
        rows = page.locator("table.leaves tbody tr")
        cells = await rows.filter(has_text="depth").locator("td").all_inner_texts()
        assert cells[:5] == ["33%", "100%", "2", "2", "0"]


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Return results of two agents that differ in their judge."""
    monkeypatch.chdir(tmp_path)
    with planted(tmp_path, monkeypatch.setenv, ["lake", "hill"]) as changes:
        copy_agent(changes)
        changes.judge.wrong["judge-2"] = {("hill", "depth")}
        changes.evaluate("other", "--judge_model", "judge-2")
    return Catalog(changes.project.paths)


async def test_a_command_tells_the_causes_of_a_difference(page, moved):
    with served(moved) as home:
        await show(page, home, "#/compare?a=bot&b=other")
        await expect(page.get_by_text("compare bot other --why")).to_be_visible()


@pytest.fixture
def explained(moved):
    """Return these results with their causes."""
    assert call(main, "compare", "bot", "other", "--why").returncode == 0
    return moved


async def test_the_causes_of_a_difference_are_shown(page, explained):
    kept = explained.paths.eval_results_root / "other" / "why.json"
    more = {"rehearsals": ["rehearsals/hill"], "missing": 3, "is_least": True}
    kept.write_text(json.dumps(json.loads(kept.read_text()) | more))
    with served(explained) as home:
        await show(page, home, "#/compare?a=bot&b=other")
        await expect(page.locator("table.why tbody")).to_contain_text("judge, votes or prompts")
        await expect(page.get_by_text("changed scripts: rehearsals/hill")).to_be_visible()
        await expect(page.get_by_text("Missing: at least 3 stored judgments.")).to_be_visible()
        await page.locator(".movers a").first.click()
        await expect(page.locator("section[aria-label='Claim and votes']")).to_be_visible()
