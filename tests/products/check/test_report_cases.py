"""Reports whose citations are hard to read, after public bug reports, through ``check --list``."""

import json

import pytest
from projects import REPOSITORY, call, read_json

from mind2web2.cli import main

FOLDER = REPOSITORY / "tests" / "fixtures" / "report_cases"
# By the name of a file: a phrase of each statement and its sources, the marks that lead nowhere,
# and how many statements there may be.
EXPECTED = read_json(FOLDER / "expected.json")


def test_every_report_is_expected() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*EXPECTED, "expected.json"}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_statement_has_its_sources(name: str) -> None:
    done = call(main, "check", FOLDER / name, "--list")
    assert done.returncode == 0, done.stderr
    report, expected = json.loads(done.stdout), EXPECTED[name]
    texts = [" ".join(each["text"].split()) for each in report["statements"]]
    for phrase, sources in expected["statements"]:
        [first, *_] = [number for number, text in enumerate(texts) if phrase in text]
        assert set(report["statements"][first]["sources"]) == set(sources), phrase
    assert set(expected.get("unresolved", ())) <= set(report["unresolved"])
    assert len(texts) <= expected.get("most", len(texts))
