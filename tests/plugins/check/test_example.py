"""README's report, checked by replay with the pages and judgments of the repository."""

import shutil
from pathlib import Path

import pytest
from projects import REPOSITORY, call

from mind2web2.cli import main


def test_the_example_has_one_of_each_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(REPOSITORY / "checks/report/cache", tmp_path / "checks/report/cache")
    monkeypatch.chdir(tmp_path)
    judgments = REPOSITORY / "examples/report_judgments.jsonl"
    done = call(
        main,
        "check",
        REPOSITORY / "examples/report.md",
        "--llm_provider",
        "replay",
        "--judgments",
        judgments,
    )
    assert done.returncode == 0, done.stderr
    outcomes = "3 supported, 1 contradicted, 1 not there, 1 page unavailable, 1 no source given"
    assert outcomes in done.stdout
