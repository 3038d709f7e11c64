"""The file that a check writes: the example report with its verdicts, in a browser."""

import asyncio
import re
import shutil

import pytest
from axe import AXE, serious_violations
from patchright.async_api import expect
from projects import REPOSITORY

from mind2web2.cli import main
from mind2web2.plugin import ResultFile, RunSettings
from mind2web2_check.findings import checked_report
from mind2web2_check.page import ShownReport, write_page
from mind2web2_check.statements import read_report
from mind2web2_check.verdicts import verdicts_of

# Its links are told from the text by more than their colour.
LINKS_IN_TEXT = "{rules: {'link-in-text-block': {enabled: true}}}"
_FIRST, _LAST = (
    "تم توسيع السد (https://a.example/dam).",
    "The wall is old (https://a.example/wall).",
)
LONG_REPORT = "\n\n".join(["### Dams", _FIRST, *["It rained in the valley."] * 60, _LAST])


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Check the example by replay, and return the address of the file."""
    folder = tmp_path_factory.mktemp("checked")
    shutil.copytree(REPOSITORY / "checks/report/cache", folder / "checks/report/cache")
    words = ["--judgments", REPOSITORY / "examples/report_judgments.jsonl"]
    words += ["--checks", folder / "checks", "-o", folder / "found.html"]
    report = REPOSITORY / "examples/report.md"
    assert main(["check", str(report), "--llm_provider", "replay", *map(str, words)]) == 0
    assert (folder / "checks/report/report.html").is_file()
    return (folder / "found.html").as_uri()


@pytest.fixture
async def long(tmp_path):
    """Write the file of a long report: its last statement is the worst of two that do not hold."""
    statements = verdicts_of(read_report(LONG_REPORT), ResultFile())
    for statement in statements:
        statement.checkable = False
    for statement, verdicts in (
        (statements[0], ["not there"]),
        (statements[-1], ["supported", "contradicted"]),
    ):
        statement.checkable = True
        statement.verdict = verdicts[-1]
        statement.claims = [
            statement.claims[0].model_copy(update={"verdict": verdict}) for verdict in verdicts
        ]
    source = statements[-1].claims[0].sources[0]
    source.quote, source.quote_match = "Old it is.", "not_found"
    found = checked_report("long", read_report(LONG_REPORT), statements, None)
    await write_page(tmp_path / "long.html", [ShownReport(found, LONG_REPORT, RunSettings())])
    return (tmp_path / "long.html").as_uri()


async def test_it_begins_with_a_sentence_and_the_worst_statement(page, checked):
    """The claim, the quotation and the page stand beside the report."""
    await page.goto(checked)
    await expect(page.locator("h1")).to_contain_text(
        "3 of 5 checked claims hold; 1 is contradicted"
    )
    await expect(page.locator(".statement.current").first).to_have_class(
        "statement contradicted current"
    )
    beside = page.get_by_role("region", name="Statement")
    for part in (".claim", ".statement", "p.quote", "pre mark"):
        await expect(beside.locator(part)).to_be_in_viewport()
    await expect(page.locator("main > :last-child")).to_contain_text("https://")


async def test_it_has_no_fault_of_accessibility(page, checked):
    await page.goto(checked)
    await page.evaluate(AXE)
    await expect(page.locator("pre mark")).to_be_visible()
    assert await serious_violations(page, LINKS_IN_TEXT) == []
    await page.emulate_media(color_scheme="dark")
    assert await serious_violations(page, "{runOnly: ['color-contrast']}") == []


async def test_keys_go_from_fault_to_fault_and_a_phone_shows_all(page, checked):
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.goto(checked)
    await expect(page.locator(".statement.current").first).to_contain_text("✗")
    await page.keyboard.press("n")
    await expect(page.locator(".statement.current").first).not_to_contain_text("✗")
    await page.locator(".statement.supported a").first.press("Enter")
    await expect(page.locator(".statement.current").first).to_contain_text("✓")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    assert await asyncio.to_thread(main, ["view", "nowhere.html"]) == 2


async def test_the_sentence_stays_in_sight_until_a_statement_is_chosen(page, long):
    """The worst statement is the last one; its place in the report is one click away."""
    await page.goto(long)
    await expect(page.get_by_role("button", name="1 contradicted")).to_be_visible()
    await expect(page.get_by_role("button", name="1 supported")).to_be_visible()
    beside = page.get_by_role("region", name="Statement")
    await expect(beside.locator(".statement")).to_have_text(["✗ contradicted", "✓ supported"])
    await expect(beside.locator(".quote").first).to_contain_text("not found in the text")
    assert await page.evaluate("scrollY") == 0
    for _ in range(2):
        await beside.get_by_role("link", name="62 of 62").click()
        await expect(page.locator("#statement-61")).to_be_in_viewport()
        await page.evaluate("scrollTo(0, 0)")
    await page.get_by_role("button", name="1 contradicted").click()
    await expect(page.locator("#statement-61")).to_be_in_viewport()


async def test_the_next_fault_after_the_last_is_the_first(page, long):
    """Enter leads to what the pages say, and Escape back to the statement."""
    await page.goto(long)
    await page.get_by_role("button", name="next that does not hold").click()
    await expect(page.locator("#statement-0")).to_have_attribute("aria-current", "true")
    await page.keyboard.press("Escape")
    await expect(page.locator("#statement-0")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("region", name="Statement")).to_be_focused()


async def test_a_statement_is_not_behind_what_its_pages_say_on_a_phone(page, long):
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.goto(f"{long}#/checked/0/30")
    sign = page.locator("#statement-30")
    await expect(sign).to_be_in_viewport()
    await expect(page).to_have_title(re.compile("Checked report .* long"))
    place = await sign.bounding_box()
    pane = await page.get_by_role("region", name="Statement").bounding_box()
    assert place["y"] + place["height"] < pane["y"]


async def test_a_paragraph_has_the_direction_of_its_letters(page, long):
    """Headings begin below that of the page, whatever their level in the report."""
    await page.goto(long)
    await expect(page.get_by_role("heading", name="Dams", level=2)).to_be_visible()
    paragraphs = page.locator(".markdown p")
    directions = [
        await paragraphs.nth(place).evaluate("each => getComputedStyle(each).direction")
        for place in (0, 1)
    ]
    assert directions == ["rtl", "ltr"]
