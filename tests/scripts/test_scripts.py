"""Whole eval scripts in the style of published ones.

With ``-m scripts``, the tests run every script of a folder.
"""

import os
from pathlib import Path

import pytest
from script_checks import problems

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "scripts").glob("*.py"))
FOLDER = os.environ.get("M2W2_SCRIPTS")
OWN = sorted(Path(FOLDER).rglob("*.py")) if FOLDER else [None]


@pytest.mark.parametrize("script", FIXTURES, ids=lambda path: path.stem)
async def test_a_script_of_the_usual_kind_runs(script, tmp_path):
    assert await problems(script, tmp_path, ["by hash"], needs_result=True) == []


@pytest.mark.scripts
@pytest.mark.parametrize("script", OWN, ids=str)
async def test_a_script_of_the_folder_runs(script, tmp_path):
    """``M2W2_SCRIPTS=DIR pytest -m scripts`` runs each script of the folder.

    It does so whatever the judge says.
    """
    if script is None:
        pytest.fail("set M2W2_SCRIPTS to the folder of the scripts")
    assert await problems(script, tmp_path) == []


async def test_problems_are_found(tmp_path):
    """A missing name is one."""
    script = tmp_path / "script.py"
    text = FIXTURES[0].read_text(encoding="utf-8")
    script.write_text(
        text.replace("return evaluator.get_summary()", "return evaluator.get_sumary()")
    )
    found = await problems(script, tmp_path, ["by hash"])
    assert len(found) == 3
    assert "which the toolkit does not have: did you mean 'get_summary'?" in found[0]
