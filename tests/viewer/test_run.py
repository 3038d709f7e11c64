"""A run in the viewer while it goes on."""

import json
from datetime import UTC, datetime, timedelta

from patchright.async_api import expect
from viewer.conftest import served

from mind2web2.judge.usage import RunUsage
from mind2web2.results.stored_results import PROGRESS_NAME
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.run import ProgressFile, RunProgress
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.server import run_routes, run_states


async def test_progress_is_shown_as_it_changes(page, tmp_path):
    """Without loading the page again; answers without a score are grouped by their cause."""
    catalog = Catalog(PathConfig(tmp_path))
    folder = catalog.paths.eval_results_root / "bot"
    file = ProgressFile(folder / PROGRESS_NAME)
    progress = RunProgress(answers_total=4, tasks_total=2, running={"lake/answer_1": None})
    with served(catalog, {"run": run_routes(catalog)}) as address:
        base = address.partition("?")[0]
        await page.goto(address)
        await page.goto(f"{base}#/run")
        await expect(page.locator("main")).to_contain_text("No run has been started")
        file.write(progress, RunUsage(), "running")
        assert catalog.agents() == ["bot"]
        assert catalog.overview()["answers"] == []
        await expect(page.locator("main")).to_contain_text("0 of 4 answers, 0 with a score")
        await expect(page.locator("main")).to_contain_text("Now: lake/answer_1")
        for number in (1, 2, 3):
            outcome = AnswerOutcome("lake", f"answer_{number}.md", None, "the judge is down")
            progress.outcomes.append(outcome)
        file.write(progress, RunUsage(), "ended")
        await expect(page.locator("main")).to_contain_text("3 answers: the judge is down")
        await expect(page.locator("main")).to_contain_text("ended")
        await page.goto(f"{base}#/overview")
        await expect(page.locator("main")).to_contain_text("There are no answers yet")


def test_killed_run_counts_as_stopped(tmp_path):
    """Its file says that it runs, and has not been written for long; damaged files are left out."""
    catalog = Catalog(PathConfig(tmp_path))
    root = catalog.paths.eval_results_root
    ProgressFile(root / "bot" / PROGRESS_NAME).write(RunProgress(), RunUsage(), "running")
    ProgressFile(root / "other" / PROGRESS_NAME).write(RunProgress(), RunUsage(), "running")
    path = root / "bot" / PROGRESS_NAME
    content = json.loads(path.read_text())
    content["updated"] = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    path.write_text(json.dumps(content))
    (root / "broken").mkdir()
    (root / "broken" / PROGRESS_NAME).write_text("{")
    assert {run["agent"]: run["state"] for run in run_states(catalog)} == {
        "bot": "stopped",
        "other": "running",
    }


def test_run_leaves_its_progress(example_paths):
    """An evaluation on the command line writes it beside its results."""
    content = json.loads((example_paths.eval_results_root / "example" / PROGRESS_NAME).read_text())
    assert content["state"] == "ended"
    assert (
        content["answers_done"],
        content["answers_scored"],
        content["judgments_reused"],
    ) == (9, 9, 144)
