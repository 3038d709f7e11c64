"""Every view with axe-core: no serious violation, in light and dark."""

from axe import AXE, serious_violations
from patchright.async_api import expect
from viewer.test_views import ANSWER, VIEWS, open_view


async def test_views_have_no_serious_violation(page, example_server):
    """As axe-core's rules have it; a dark page differs in its colours alone."""
    await page.goto(example_server)
    await page.evaluate(AXE)
    found = {}
    for view, there in {
        **VIEWS,
        f"{ANSWER}?leaf=tour_start_supported": ".node.current",
    }.items():
        await open_view(page, example_server, view)
        await expect(page.locator(there)).to_be_visible()
        await page.emulate_media(color_scheme="light")
        violations = await serious_violations(page)
        await page.emulate_media(color_scheme="dark")
        violations += await serious_violations(page, "{runOnly: ['color-contrast']}")
        found |= {view: violations} if violations else {}
    assert found == {}
