"""The report of the README, checked by replay."""

import shutil

from projects import REPOSITORY, call

from mind2web2.cli import main

OUTCOMES = (
    "3 of 5 checked claims hold; 1 is contradicted, 1 is not there; not checked: "
    "1 page unavailable, 1 no source given"
)


def test_the_example_has_one_of_each_outcome(tmp_path):
    shutil.copytree(REPOSITORY / "checks/report/cache", tmp_path / "checks/report/cache")
    judgments = REPOSITORY / "examples/report_judgments.jsonl"
    words = ["--llm_provider", "replay", "--judgments", judgments, "--checks", tmp_path / "checks"]
    done = call(main, "check", REPOSITORY / "examples/report.md", *words)
    assert (done.returncode, OUTCOMES in done.stdout) == (0, True), done.stderr
