"""The event loop of a command."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from mind2web2.cli.event_loop import run_to_exit


def never():
    """Fail: nothing was stopped."""
    raise AssertionError("nothing was stopped")


def test_a_status_comes_back():
    """Tasks that nobody waited for are cancelled."""
    others = []

    async def main():
        others.append(asyncio.ensure_future(asyncio.sleep(3600)))
        return 3

    assert run_to_exit(main(), never) == 3
    assert others[0].cancelled()


def test_an_error_comes_out():
    async def main():
        raise ValueError("bad luck")

    with pytest.raises(ValueError, match="bad luck"):
        run_to_exit(main(), never)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_coroutine(ending):
    before = signal.getsignal(signal.SIGTERM)
    steps = []

    async def main():
        try:
            os.kill(os.getpid(), ending)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")
        return 0

    assert run_to_exit(main(), lambda: steps.append("reported")) == 130
    assert steps == ["cleaned up", "reported"]
    assert signal.getsignal(signal.SIGTERM) is before


TWICE = """
import os, signal, time
from mind2web2.cli.event_loop import run_to_exit

async def main():
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

run_to_exit(main(), lambda: print("told"))
"""


def test_a_second_ctrl_c_ends_at_once_and_says_so():
    command = [sys.executable, "-c", TWICE]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert (run.returncode, run.stdout) == (130, "")
    assert run.stderr == "stopped at once; results and judgments stored so far are kept\n"
