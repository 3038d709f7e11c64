"""Deferred verifications give what program order gives: made-up scripts, random verdicts, random times."""

import asyncio

from generated_scripts import SEQUENTIAL, RandomJudge, made_up_script, outcome_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mind2web2.pace import Pace

SEEDS = st.integers(0, 10**9)
THOROUGH = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


def both_outcomes(folder, source, verdicts, times, pace):
    """Return outcome and judge in program order, and at another pace."""
    path = folder / "made_up.py"
    path.write_text(source)
    judges = RandomJudge(verdicts, 0, longest_turns=1), RandomJudge(verdicts, times)
    return [
        (asyncio.run(outcome_of(path, judge, kept)), judge)
        for judge, kept in zip(judges, (SEQUENTIAL, pace), strict=True)
    ]


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 25))
@THOROUGH
def test_the_tree_and_the_requests_are_those_of_program_order(
    tmp_path_factory, script, verdicts, times, steps
):
    """Whatever a script does, to the last word of the evidence; it may take a second attempt."""
    source = made_up_script(script, steps)
    folder = tmp_path_factory.getbasetemp()
    expected, deferred = both_outcomes(folder, source, verdicts, times, Pace())
    assert deferred[0] == expected[0], source
    assert +deferred[1].asked == +expected[1].asked, source


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 40))
@THOROUGH
def test_ordinary_scripts_are_right_at_the_first_attempt(tmp_path_factory, script, verdicts, times, steps):
    """Without odd reads and changes nothing is given up."""
    source = made_up_script(script, steps, oddities=False)
    folder = tmp_path_factory.getbasetemp()
    expected, deferred = both_outcomes(folder, source, verdicts, times, Pace())
    assert deferred[0] == expected[0], source
    assert +deferred[1].asked == +expected[1].asked, source
    assert deferred[1].started_over == 0


@given(SEEDS, SEEDS, SEEDS, st.integers(3, 40))
@THOROUGH
def test_judging_ahead_of_time_changes_no_tree(tmp_path_factory, script, verdicts, times, steps):
    """It asks all that program order asks, and more."""
    source = made_up_script(script, steps, oddities=False)
    folder = tmp_path_factory.getbasetemp()
    expected, ahead = both_outcomes(folder, source, verdicts, times, Pace(speculate=True))
    assert ahead[0] == expected[0], source
    assert expected[1].asked <= ahead[1].asked, source
