"""Every view with axe-core: no serious violation, in light and dark."""

from importlib.resources import files

import pytest
from patchright.async_api import expect
from viewer.test_views import ANSWER, EVIDENCE, show

AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "view",
    [
        "#/overview",
        ANSWER,
        f"{ANSWER}?leaf=tour_start_supported",
        EVIDENCE,
        "#/compare",
        "#/pages",
        "#/run",
        "#/audit",
    ],
)
async def test_view_has_no_serious_violation(page, example_server, view):
    """As axe-core's rules have it."""
    await show(page, example_server, view)
    await expect(page.locator("main h1")).to_be_visible()
    if "evidence" in view:
        await expect(page.locator("mark")).to_be_visible()
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        await assert_accessible(page)


async def assert_accessible(page):
    """Run axe-core on what a tab shows."""
    found = await page.evaluate(AXE + "; axe.run().then((result) => result.violations)")
    serious = [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]][:3])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []
