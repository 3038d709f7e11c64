"""Deferred verifications give what program order gives: made-up scripts, random verdicts, random times."""

import asyncio
import os
import tempfile
from pathlib import Path

from generated_scripts import SEQUENTIAL, RandomJudge, made_up_script, outcome_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mind2web2.scheduling.options import ExecutionOptions

SEEDS = st.integers(0, 10**9)
# make fuzz tries more.
EXAMPLES = int(os.environ.get("EXAMPLES", "40"))
THOROUGH = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
# Pages are files, and files take their time.
WITH_PAGES = settings(THOROUGH, max_examples=EXAMPLES // 2)


def both_outcomes(
    source, verdicts, times, options, *, with_pages=False, fails_one_in=None
):
    """Return outcome and judge in program order, and with other options."""
    in_order = RandomJudge(verdicts, 0, longest_turns=1, fails_one_in=fails_one_in)
    judges = in_order, RandomJudge(verdicts, times, fails_one_in=fails_one_in)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "made_up.py"
        path.write_text(source)
        return [
            (
                asyncio.run(
                    outcome_of(path, judge, kept, folder / kind if with_pages else None)
                ),
                judge,
            )
            for judge, kept, kind in zip(
                judges, (SEQUENTIAL, options), ("in_order", "other"), strict=True
            )
        ]


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 25))
@THOROUGH
def test_the_tree_and_the_requests_are_those_of_program_order(
    script, verdicts, times, steps
):
    """Whatever a script does, to the last word of the evidence; it may take a second attempt."""
    source = made_up_script(script, steps)
    expected, deferred = both_outcomes(source, verdicts, times, ExecutionOptions())
    assert deferred[0] == expected[0], source
    assert +deferred[1].asked == +expected[1].asked, source


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 25), st.booleans())
@WITH_PAGES
def test_pages_are_those_of_program_order(script, verdicts, times, steps, oddities):
    """Stored, captured on the spot or put by the script, and looked at in all ways."""
    source = made_up_script(script, steps, oddities, with_pages=True)
    expected, deferred = both_outcomes(
        source, verdicts, times, ExecutionOptions(), with_pages=True
    )
    assert deferred[0] == expected[0], source
    assert +deferred[1].asked == +expected[1].asked, source


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 40))
@THOROUGH
def test_ordinary_scripts_are_right_at_the_first_attempt(
    script, verdicts, times, steps
):
    """Without odd reads and changes nothing is given up."""
    source = made_up_script(script, steps, oddities=False)
    expected, deferred = both_outcomes(source, verdicts, times, ExecutionOptions())
    assert deferred[0] == expected[0], source
    assert +deferred[1].asked == +expected[1].asked, source


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 25))
@THOROUGH
def test_a_judge_that_fails_costs_the_same_results(script, verdicts, times, steps):
    """A failure that program order never comes to costs nothing."""
    source = made_up_script(script, steps)
    expected, other = both_outcomes(
        source, verdicts, times, ExecutionOptions(), fails_one_in=12
    )
    assert without_details(other[0]) == without_details(expected[0]), source


def without_details(outcome):
    """Return an outcome; of a failure, that there is none: which comes first is a matter of time."""
    return (
        "no result"
        if isinstance(outcome, str) and outcome.startswith("Judge")
        else outcome
    )
