"""Labels of leaves on which two agents differ, from the comparison to the figures."""

from patchright.async_api import expect
from projects import call
from viewer.conftest import served
from viewer.made_results import Results, leaf, result
from viewer.test_views import show

from mind2web2.analysis.labels import LabelFile
from mind2web2.cli import main
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.differing_labels import DifferingLabels


async def test_a_leaf_that_differs_is_labelled_for_agreement_alone(page, tmp_path, monkeypatch):
    made = Results(tmp_path)
    for agent, passed in (("old", True), ("new", False)):
        made.add(result(agent, "answer_1", [leaf("depth", "It is deep.", passed=passed)]), "lake")
    made.summarise("old", "new")
    catalog = Catalog(made.paths)
    labels = DifferingLabels(catalog, tmp_path / "audits", "ann")
    with served(catalog, {"labels": labels.routes()}) as home:
        await show(page, home, "#/compare?a=old&b=new")
        await page.locator("table.changes summary").click()
        old, new = await page.locator(".flips .leaf-label").all()
        await old.get_by_role("button", name="not supported").click()
        pressed = old.locator("[aria-pressed=true]")
        await expect(pressed).to_have_text("not supported")
        await old.get_by_role("button", name="undecidable").click()
        await expect(pressed).to_have_text("undecidable")
        await old.get_by_role("button", name="supported", exact=True).click()
        await expect(pressed).to_have_text("supported")
        await new.get_by_role("button", name="undecidable").click()
        await expect(new.locator("[aria-pressed=true]")).to_have_text("undecidable")
        await new.get_by_role("button", name="undecidable").click()
        await expect(new.locator("[aria-pressed=true]")).to_have_count(0)
    file = LabelFile(tmp_path / "audits", "old", "ann")
    assert [label.label for label in file.differing().values()] == ["y"]
    assert file.blind() == {}
    assert LabelFile(tmp_path / "audits", "new", "ann").differing() == {}
    monkeypatch.chdir(tmp_path)
    printed = call(main, "metrics", "old", "--audit").stdout
    assert "they count only for agreement" in printed.replace("\n", " ")
    assert "corrected" not in printed
