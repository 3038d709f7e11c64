"""Ctrl-C in the middle of a run, as ``make faults`` measures it.

The test has patience for slow machines.
"""

import pytest
from faults import stops

_PATIENCE_S = 20.0


@pytest.mark.parametrize("scene", stops.SCENES, ids=lambda scene: scene.name)
def test_ctrl_c_stops_a_run_and_keeps_what_is_there(commands, scene):
    """Whatever the run is at; it says how to go on."""
    figures = stops.stopped(commands, scene, times=1, limit_s=_PATIENCE_S)
    assert figures.is_clean, figures


@pytest.mark.parametrize("scene", [stops.SCENES[0], stops.SCENES[3]], ids=lambda scene: scene.name)
def test_a_second_ctrl_c_ends_it_at_once(commands, scene):
    """Nothing that was stored is lost either way."""
    figures = stops.stopped(commands, scene, times=2, limit_s=_PATIENCE_S)
    assert figures.is_clean, figures
