"""The question of a report."""

import pytest

from mind2web2_check.question import question_of
from mind2web2_check.scoring import script_with


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ("# Old dams\n\nThey are tall.", "Old dams"),
        (
            "# Old dams\n\nIt rains. Which dam is the oldest? The Ayr Dam.",
            "Which dam is the oldest? Old dams",
        ),
        ("**Question:** List the dams.\n\n# Dams", "List the dams. Dams"),
        ("They are tall.", ""),
    ],
)
def test_the_question_is_in_the_report(report: str, expected: str) -> None:
    assert question_of(report) == expected


def test_the_script_has_the_question_of_the_command() -> None:
    variables: dict[str, object] = {}
    exec(script_with('Which "dam"?\n\\'), variables)
    assert variables["QUESTION"] == 'Which "dam"?\n\\'
