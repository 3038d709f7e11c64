"""Callers: the toolkit's code, a script's, or a library's."""

import asyncio
import sys

import pytest

from mind2web2.utils.callers import caller_of, is_installed


def test_the_program_that_runs_the_event_loop_is_no_caller():
    """A library's own task belongs neither to a script nor to the program."""
    names = {"caller_of": caller_of, "sys": sys}
    exec(
        compile("async def look(): return caller_of(sys._getframe())", "<library>", "exec"),
        names,
    )
    assert asyncio.run(names["look"]()) == "other"


@pytest.mark.parametrize("folder", ["/run/media/disk", "/dev/shm", "/etc/tasks", "/home/me"])
def test_scripts_may_lie_in_any_folder_of_the_system(folder):
    assert not is_installed(f"{folder}/lake.py")
