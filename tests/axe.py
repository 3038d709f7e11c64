"""Run axe-core on the page that a tab of the browser shows."""

from importlib.resources import files

AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")


async def serious_violations(page, options="{}"):
    """Run axe-core, loaded by the tab, and return rules and elements of serious violations."""
    violations = await page.evaluate(f"axe.run({options}).then((result) => result.violations)")
    return [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]][:3])
        for rule in violations
        if rule["impact"] in ("serious", "critical")
    ]
