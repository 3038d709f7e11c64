"""Reports in the forms that systems export, in many languages; they are invented.

``report_forms.txt`` has for each report a phrase of each statement and what its sources have in
their addresses, the marks that lead nowhere, and how many statements there may be.
"""

import re
from pathlib import Path

import pytest
from projects import REPOSITORY

from mind2web2_check.inputs import report_in

FILE = REPOSITORY / "tests" / "fixtures" / "report_forms.txt"
REPORTS = dict(
    part.split("\n", 1) for part in re.split(r"^=== ", FILE.read_text("utf-8"), flags=re.M)[1:]
)


@pytest.mark.parametrize("name", REPORTS)
def test_each_statement_has_its_sources(name: str, tmp_path: Path) -> None:
    text, expected = REPORTS[name].split("--- expected\n")
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    report = report_in(str(path))[1]
    texts = [" ".join(each.text.split()) for each in report.statements]
    for phrase, sources in re.findall(r"^(.+) =>(.*)$", expected, re.M):
        [first, *_] = [at for at, said in enumerate(texts) if phrase in said]
        found = report.statements[first].sources
        hosts = [f"//{each}." if len(each) == 1 else each for each in sources.split()]
        assert len(found) == len(hosts), phrase
        assert all(any(host in url for url in found) for host in hosts), phrase
    assert {*re.findall(r"^unresolved: (.+)$", expected, re.M)} <= {*report.unresolved}
    for most in re.findall(r"^at most (\d+)", expected, re.M):
        assert len(texts) <= int(most)
