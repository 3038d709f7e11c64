"""Every view with axe-core: no serious violation, in light and dark."""

import pytest
from axe import AXE, serious_violations
from patchright.async_api import expect
from result_parts import made_from
from viewer.conftest import served
from viewer.made_results import Results, leaf, result
from viewer.test_views import ANSWER, VIEWS, open_view

from mind2web2.analysis.audited import audited_answers
from mind2web2.analysis.correction import population_of
from mind2web2.analysis.correction_record import CorrectionRoots
from mind2web2.analysis.labels import LabelFile
from mind2web2.viewer.audit import AuditSession, AuditSettings
from mind2web2.viewer.catalog import Catalog

LONG_NAMES = ("research_agent_with_search", "research_agent_with_a_browser")


async def violations_of(page, home, views):
    """Return the serious violations of views, each shown once there is what its selector finds."""
    await page.goto(home)
    await page.evaluate(AXE)
    found = {}
    for view, there in views.items():
        await open_view(page, home, view)
        await expect(page.locator(there)).to_be_visible()
        await page.emulate_media(color_scheme="light")
        violations = await serious_violations(page)
        await page.emulate_media(color_scheme="dark")
        violations += await serious_violations(page, "{runOnly: ['color-contrast']}")
        found |= {view: violations} if violations else {}
    return found


async def test_views_have_no_serious_violation(page, example_server):
    views = {**VIEWS, f"{ANSWER}?leaf=tour_start_supported": ".node.current"}
    assert await violations_of(page, example_server, views) == {}


@pytest.fixture
def rivals(tmp_path):
    """Return a catalog of two agents with corrected scores."""
    made = Results(tmp_path)
    for number in range(8):
        for passed, agent in enumerate(LONG_NAMES, start=2):
            leaves = [
                leaf(f"leaf-{place}", "A claim", passed=place < passed + number % 2)
                for place in range(5)
            ]
            content = result(agent, "answer_1", leaves)
            content["judge_model"] = "claude-sonnet-4-5-20250929"
            content["provenance"] = made_from()
            made.add(content, f"task_{number}")
    made.summarise(*LONG_NAMES)
    for agent in LONG_NAMES:
        answers = audited_answers(made.paths.eval_results_root, agent)
        file = LabelFile(tmp_path / "audits", agent, "ann")
        file.begin(population_of(answers))
        for answer in answers:
            for each in answer.leaves:
                file.append(each.name, each.seen_sha256, "y")
    roots = (made.paths.eval_results_root, tmp_path / "audits", tmp_path / "rejudged")
    return Catalog(made.paths, corrections=CorrectionRoots(*roots))


async def test_views_of_two_agents_have_no_serious_violation(page, rivals):
    """Plots with corrected scores, the comparison, and the leaves of a task."""
    views = {
        "#/overview": ".task-plot",
        "#/compare": "h1:text-is('Compare')",
        "#/leaves/task_0": "table.leaves",
        f"#/answer/{LONG_NAMES[0]}/task_0/answer_1": "h1:has-text('answer_1')",
    }
    with served(rivals) as home:
        assert await violations_of(page, home, views) == {}


async def test_an_audit_has_no_serious_violation(page, rivals, tmp_path):
    session = AuditSession(
        Catalog(rivals.paths, [LONG_NAMES[0]]),
        AuditSettings(tmp_path / "audits", LONG_NAMES[0], "bob"),
    )
    with served(rivals, {"audit": session.routes()}) as home:
        views = {"#/audit": "blockquote.claim"}
        assert await violations_of(page, home, views) == {}


async def test_all_figures_of_agents_fit_a_usual_window(page, rivals):
    """Nothing has to be scrolled; the judge's name stands below the agent's.

    The data is asked for once.
    """
    asked = []
    page.on("request", lambda request: asked.append(request.url.partition("?")[0]))
    with served(rivals) as home:
        await page.goto(home)
        table = page.locator("table.agents")
        await expect(table).to_contain_text("labels of ann")
        names = table.locator("tbody th").first
        await expect(names).to_contain_text(LONG_NAMES[1])
        await expect(names).to_contain_text("claude-sonnet-4-5-20250929")
        hidden = "(table) => table.parentElement.scrollWidth - table.parentElement.clientWidth"
        assert await table.evaluate(hidden) == 0
    assert [url.rpartition("/")[2] for url in asked].count("overview") == 1
