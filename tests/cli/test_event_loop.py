"""The event loop of a run."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

import pytest

from mind2web2.cli.event_loop import RunLoop


def test_a_result_comes_back():
    """The loop leaves nothing behind.

    That includes tasks that nobody waited for and threads that were used.
    """

    async def main():
        other = asyncio.ensure_future(asyncio.sleep(3600))
        await asyncio.to_thread(int)
        return other

    loop = RunLoop()
    other = loop.run(main())
    assert other.cancelled()
    assert not loop.has_leftovers


def test_an_error_comes_out():
    """As from ``asyncio.run``."""

    async def main():
        raise ValueError("bad luck")

    with pytest.raises(ValueError, match="bad luck"):
        RunLoop().run(main())


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_an_exit_in_a_task_reaches_who_waits_for_it_only(ending):
    """Several of them, one after the other; the rest goes on."""

    async def leave(status):
        raise ending(status)

    async def main():
        statuses = []
        for status in (0, 3):
            try:
                await asyncio.gather(leave(status), asyncio.sleep(0))
            except ending as error:
                statuses.extend(error.args)
        return statuses

    assert RunLoop().run(main()) == [0, 3]


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_an_exit_in_a_task_that_is_not_awaited_has_no_effect(ending):
    """The same holds while the loop is closing."""

    async def leave():
        raise ending

    async def leave_when_cancelled():
        try:
            await asyncio.Event().wait()
        finally:
            raise ending

    async def main():
        tasks = [
            asyncio.ensure_future(leave()),
            asyncio.ensure_future(leave_when_cancelled()),
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return tasks

    tasks = RunLoop().run(main())
    assert all(isinstance(task.exception(), ending) for task in tasks)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_running_tasks(ending):
    """Its cleanup runs, then ``KeyboardInterrupt`` comes out.

    SIGTERM does the same for that time.
    """
    before = signal.getsignal(signal.SIGTERM)
    steps = []

    async def main():
        try:
            os.kill(os.getpid(), ending)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        RunLoop().run(main())
    assert steps == ["cleaned up"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_after_an_exit_in_a_task():
    """The loop that goes on is stopped like any other."""

    async def leave():
        sys.exit(0)

    async def main():
        with contextlib.suppress(SystemExit):
            await asyncio.ensure_future(leave())
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        RunLoop().run(main())


TWICE = """
import asyncio, os, signal, sys, time
from mind2web2.cli.event_loop import RunLoop

async def main():
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

RunLoop(lambda: print("told")).run(main())
"""


def test_a_second_ctrl_c_ends_at_once_and_says_so():
    """In one line, whatever is under way."""
    command = [sys.executable, "-c", TWICE]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert (run.returncode, run.stdout) == (130, "")
    assert run.stderr == "stopped at once; results and judgments stored so far are kept\n"
