"""Every view with axe-core: no serious violation, in light and dark."""

from importlib.resources import files

import pytest
from patchright.async_api import expect
from viewer.test_views import ANSWER, EVIDENCE, show

AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "view",
    [
        *("#/overview", ANSWER, f"{ANSWER}?leaf=tour_start_supported", EVIDENCE, "#/compare", "#/pages"),
        *("#/run", "#/audit"),
    ],
)
async def test_view_has_no_serious_violation(page, example_server, view):
    """As axe-core's rules have it; a dark page differs in its colours alone."""
    await show(page, example_server, view)
    await expect(page.locator("main h1")).to_be_visible()
    if "evidence" in view:
        await expect(page.locator("mark")).to_be_visible()
    await assert_accessible(page)
    await page.emulate_media(color_scheme="dark")
    await assert_accessible(page, "{runOnly: ['color-contrast']}")


async def assert_accessible(page, options="{}"):
    """Run axe-core on the view that a tab shows."""
    found = await page.evaluate(AXE + f"; axe.run({options}).then((result) => result.violations)")
    serious = [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]][:3])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
