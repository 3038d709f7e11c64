"""The sentence with which the findings of a check begin."""

import pytest

from mind2web2_check.findings import CheckedReport
from mind2web2_check.verdicts import ClaimVerdict, StatementVerdict


def statement(verdict):
    claim = ClaimVerdict(claim="It is so.", verdict=verdict, sources=[])
    return StatementVerdict(
        text="It is so.",
        start=0,
        end=9,
        marks=[],
        checkable=True,
        verdict=verdict,
        claims=[claim],
    )


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([], "no claim was found"),
        (["supported"], "1 of 1 checked claim holds"),
        (
            ["supported", "contradicted", "qualified", "contradicted"],
            "1 of 4 checked claims hold; 2 are contradicted, 1 is qualified",
        ),
        (
            ["supported", "not judged"],
            "1 of 1 checked claim holds; not checked: 1 not judged",
        ),
        (
            ["not judged", "no source given"],
            "not checked: 1 not judged, 1 no source given",
        ),
    ],
)
def test_the_parts_of_the_sentence_add_up(verdicts, sentence):
    report = CheckedReport(
        name="r",
        statements=[*map(statement, verdicts)],
        figures={},
        unresolved=[],
        uncited=[],
        judge=None,
    )
    assert report.summary == sentence
