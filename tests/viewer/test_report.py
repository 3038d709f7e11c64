"""The exported file: its contents, and what it leaves out."""

import asyncio

import pytest
from patchright.async_api import expect
from viewer.test_views import ANSWER, EVIDENCE, show

from mind2web2.cli import main
from mind2web2.viewer import report
from mind2web2.viewer.catalog import Catalog


@pytest.fixture
def write(example_paths, tmp_path):
    """Return a function that writes a report of the example and returns its address."""

    def write(*options):
        path = tmp_path / "report.html"
        folders = ["--eval_results_root", str(example_paths.eval_results_root)]
        folders += [
            "--answer_folder",
            str(example_paths.answers_root),
            "--cache_root",
            str(example_paths.cache_root),
        ]
        assert main(["report", "example", "-o", str(path), *folders, *options]) == 0
        return path.as_uri(), path.read_text(encoding="utf-8")

    return write


async def test_file_says_what_it_is(page, write):
    address, _ = await asyncio.to_thread(write)
    await show(page, address, "#/overview")
    await page.get_by_role("link", name="about this file").click()
    about = page.locator("main")
    await expect(about).to_contain_text("9 answers to 3 tasks")
    await expect(about).to_contain_text("example-key")
    await expect(about).to_contain_text(
        "mind2web2 evaluate example --llm_provider replay --judgments example.jsonl"
    )


async def test_report_has_its_title_and_a_legend(page, write):
    address, _ = await asyncio.to_thread(write, "--no_pages", "--title", "Museums & <b>ferries</b>")
    await show(page, address, "#/overview")
    await expect(page.locator("h1")).to_have_text("Museums & <b>ferries</b>")
    assert (await page.title()).endswith("Museums & <b>ferries</b>")
    await page.get_by_text("What the figures and colours mean").click()
    await expect(page.locator(".legend dd").first).to_contain_text("the share of the points")


async def test_pages_are_left_out(page, write):
    """The evidence stays, and says that the page is not there."""
    address, text = await asyncio.to_thread(write, "--no_pages")
    assert len(text) < 500_000
    await show(page, address, EVIDENCE)
    await expect(page.locator("ol.votes li")).to_have_count(2)
    await expect(page.locator(".beside")).to_contain_text("left out when the report was written")


async def test_tasks_and_their_texts_are_left_out(page, write):
    """Other tasks are not in the file, and the text of the task is not in it anywhere."""
    address, _ = await asyncio.to_thread(
        write, "--tasks", "museum_saturday", "--redact_tasks", "--no_pages"
    )
    await show(page, address, "#/overview")
    await expect(page.locator("table.matrix tbody tr")).to_have_count(1)
    await show(page, address, ANSWER)
    await expect(page.locator(".node").first).to_contain_text("[redacted]")
    found = await page.evaluate(
        """async (words) => {
          let found = false;
          for (const block of document.querySelectorAll("script[data-block]")) {
            const bytes = Uint8Array.from(atob(block.textContent), (letter) => letter.charCodeAt(0));
            const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
            found = found || (await new Response(stream).text()).includes(words);
          }
          return found;
        }""",
        "a nine-year-old in Reedholm. On",
    )
    assert found is False


def test_large_files_are_written_with_a_warning(
    write, example_paths, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("mind2web2.cli.results.view.LARGE_FILE_BYTES", 1000)
    _, whole = write()
    assert "Leave pages out with --no_pages" in " ".join(capsys.readouterr().out.split())
    path = tmp_path / "bounded.html"
    content = report.ReportContent(most_picture_bytes=1000)
    asyncio.run(report.write_report(path, Catalog(example_paths), content))
    bounded = path.read_text(encoding="utf-8")
    assert bounded.count("[&quot;image&quot;") == 0 < whole.count("[&quot;image&quot;")


@pytest.mark.parametrize("option", ["--tasks", "--task_id"])
def test_unknown_tasks_are_named(example_paths, tmp_path, capsys, option):
    path = tmp_path / "x.html"
    arguments = ["report", "example", "-o", str(path), option, "museum_sunday"]
    assert main([*arguments, "--eval_results_root", str(example_paths.eval_results_root)]) == 2
    assert "task museum_sunday of example" in (text := capsys.readouterr().err)
    assert text.endswith("did you mean museum_saturday?\n") and not path.exists()


@pytest.mark.parametrize(
    "words",
    [("report", "exampel", "-o", "x.html"), ("view", "exampel")],
    ids=lambda words: words[0],
)
def test_unknown_agents_are_named(example_paths, capsys, words):
    root = str(example_paths.eval_results_root)
    assert main([*words, "--eval_results_root", root]) == 2
    message = capsys.readouterr().err
    assert f"no results of agent exampel under {root}: did you mean example?" in message
    assert message.endswith("There are results of example\n")
