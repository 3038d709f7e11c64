"""The report of the README, checked by replay, and the viewer that shows it."""

import shutil

import pytest
from patchright.async_api import expect
from projects import REPOSITORY, call
from viewer.conftest import served

from mind2web2.cli import main
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog

OUTCOMES = "3 supported, 1 contradicted, 1 not there, 1 page unavailable, 1 no source given"


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Check the report, and yield what was printed and the address of the viewer."""
    folder = tmp_path_factory.mktemp("checked")
    shutil.copytree(REPOSITORY / "checks/report/cache", folder / "checks/report/cache")
    judgments = REPOSITORY / "examples/report_judgments.jsonl"
    words = ["--llm_provider", "replay", "--judgments", judgments, "--checks", folder / "checks"]
    done = call(main, "check", REPOSITORY / "examples/report.md", *words)
    assert done.returncode == 0, done.stderr
    with served(Catalog(PathConfig(folder / "checks/report"))) as address:
        yield done.stdout, address


def test_the_example_has_one_of_each_outcome(checked):
    assert OUTCOMES in checked[0]


async def test_a_statement_leads_to_its_claim_beside_its_page(checked, page):
    await page.goto(checked[1])
    await page.goto(checked[1].partition("?")[0] + "#/answer/report/report/answer_1")
    report = page.frame_locator("iframe.report")
    await report.locator(".contradicted[data-statement]").press("Enter")
    await expect(report.locator("aside")).to_contain_text("131,540")
    await report.get_by_role("button", name="1 not there", exact=True).click()
    await expect(report.locator("aside")).to_contain_text("ninety readers")
    await report.get_by_role("button", name="1 contradicted", exact=True).click()
    await report.get_by_text("Claim beside its page").first.click()
    await expect(page.locator("mark").first).to_be_visible()
    assert "#/evidence/report/report/answer_1/s" in page.url
