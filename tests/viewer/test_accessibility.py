"""Every view with axe-core: no serious violation, in light and dark."""

from importlib.resources import files

from patchright.async_api import expect
from viewer.test_views import ANSWER, VIEWS, open_view

AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


async def test_views_have_no_serious_violation(page, example_server):
    """As axe-core's rules have it; a dark page differs in its colours alone."""
    await page.goto(example_server)
    await page.evaluate(AXE)
    found = {}
    for view, there in {**VIEWS, f"{ANSWER}?leaf=tour_start_supported": ".node.current"}.items():
        await open_view(page, example_server, view)
        await expect(page.locator(there)).to_be_visible()
        await page.emulate_media(color_scheme="light")
        violations = await _serious_violations(page)
        await page.emulate_media(color_scheme="dark")
        violations += await _serious_violations(page, "{runOnly: ['color-contrast']}")
        found |= {view: violations} if violations else {}
    assert found == {}


async def _serious_violations(page, options="{}"):
    """Run axe-core on the view that a tab shows."""
    violations = await page.evaluate(f"axe.run({options}).then((result) => result.violations)")
    return [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]][:3])
        for rule in violations
        if rule["impact"] in ("serious", "critical")
    ]
