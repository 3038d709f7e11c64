"""The file that a check writes: the example report with its verdicts, in a browser."""

import asyncio
import shutil

import pytest
from axe import AXE, serious_violations
from patchright.async_api import expect
from projects import REPOSITORY

from mind2web2.cli import main


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
    await expect(beside.locator("p.quote")).to_be_visible()
    await expect(beside.locator("pre mark")).to_be_visible()
    await expect(page.locator("main > :last-child")).to_contain_text("https://")


async def test_it_has_no_fault_of_accessibility(page, checked):
    await page.goto(checked)
    await page.evaluate(AXE)
    await expect(page.locator("pre mark")).to_be_visible()
    assert await serious_violations(page) == []
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
