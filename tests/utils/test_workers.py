"""Work in worker processes: results, errors, hangs, crashes, and nothing left behind."""

import asyncio
import os
import posix
import select
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from fixtures.process_tree import wait_for_end

from mind2web2.errors import DocumentError
from mind2web2.utils.images import to_jpeg
from mind2web2.utils.workers import run_in_worker

PROGRAM = """
import asyncio, os
from mind2web2.utils.workers import run_in_worker

def main():
    print(asyncio.run(run_in_worker(os.getpid, timeout_s=60)))
"""


async def test_work_is_done_in_another_process():
    """The function's result comes back from a process that is not this one."""
    assert await run_in_worker(os.getpid, timeout_s=60) != os.getpid()


async def test_large_content_passes_both_ways():
    """Megabytes go to a worker and come back unchanged."""
    content = os.urandom(5_000_000)
    assert await run_in_worker(bytes, content, timeout_s=60) == content


@pytest.mark.parametrize(
    ("function", "argument", "error"),
    [
        (to_jpeg, b"junk", DocumentError),
        (int, "x", ValueError),
        (exec, "raise KeyError(1)", KeyError),
    ],
)
async def test_what_the_function_raises_is_raised_here(function, argument, error):
    """Errors cross the process boundary as they are, with the worker's traceback as a note."""
    with pytest.raises(error) as caught:
        await run_in_worker(function, argument, timeout_s=60)
    assert "in a worker process" in caught.value.__notes__[0]


async def test_work_that_reads_the_input_meets_its_end():
    """The worker would wait forever on the pipe for calls."""
    assert await run_in_worker(os.read, 0, 1, timeout_s=60) == b""


async def test_a_result_that_does_not_pickle_is_an_error():
    """A lock cannot travel; the caller is told rather than left waiting."""
    with pytest.raises(TypeError, match="pickle"):
        await run_in_worker(threading.Lock, timeout_s=60)


@pytest.mark.parametrize(
    ("function", "arguments"), [(time.sleep, (600,)), (partial(time.sleep, 600), ())]
)
async def test_a_hanging_function_is_ended(function, arguments):
    """A function over its time limit is a document that cannot be read."""
    with pytest.raises(DocumentError, match=r"sleep took longer than 0\.2 s"):
        await run_in_worker(function, *arguments, timeout_s=0.2)


@pytest.mark.parametrize(
    ("function", "arguments"), [(os.abort, ()), (posix._exit, (0,)), (sys.exit, (0,))]
)
async def test_a_crash_costs_the_call_only(function, arguments):
    """The call whose worker dies fails as an unreadable document, others go on."""
    crash, other = await asyncio.gather(
        run_in_worker(function, *arguments, timeout_s=60),
        run_in_worker(len, b"abc", timeout_s=60),
        return_exceptions=True,
    )
    assert isinstance(crash, DocumentError)
    assert "crashed" in str(crash)
    assert other == 3


async def test_a_document_that_unfolds_too_far_is_refused():
    """Memory beyond the limit is an unreadable document, not a dead machine."""
    with pytest.raises(DocumentError, match="memory"):
        await run_in_worker(bytes, 3 * 1024**3, timeout_s=60)


async def test_prints_do_not_disturb_the_reply():
    assert (
        await run_in_worker(exec, "import os; os.write(1, b'noise'); print('noise')", timeout_s=60)
        is None
    )
    assert await run_in_worker(len, b"abc", timeout_s=60) == 3


async def test_an_idle_worker_that_died_is_replaced():
    """A worker killed between two calls does not fail the second."""
    os.kill(await run_in_worker(os.getpid, timeout_s=60), signal.SIGKILL)
    assert await run_in_worker(len, b"abc", timeout_s=60) == 3


async def test_a_used_worker_that_dies_gets_a_second_opinion(tmp_path):
    """A crash that an earlier document may have caused is tried again in a fresh process."""
    mark = tmp_path / "tried"
    once = (
        f"import os, pathlib; p = pathlib.Path({str(mark)!r})\nif not p.exists(): p.touch(); "
        "os._exit(1)"
    )
    await run_in_worker(len, b"abc", timeout_s=60)
    assert await run_in_worker(exec, once, timeout_s=60) is None
    assert mark.exists()


async def test_cancelling_kills_the_worker(tmp_path):
    """The worker of a cancelled caller ends, and so does its hold on files."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    task = asyncio.create_task(run_in_worker(exec, f"open({str(fifo)!r}).read()", timeout_s=600))
    writer = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    poll = select.poll()
    poll.register(writer, 0)
    assert await asyncio.to_thread(poll.poll, 30_000) == [(writer, select.POLLERR)]
    os.close(writer)


def _script(folder):
    """Write a program that starts itself whenever it is imported, as careless scripts do."""
    path = folder / "careless.py"
    path.write_text(PROGRAM + "main()\n")
    return [str(path)]


def _module(folder):
    """Write a program for ``python -m``."""
    (folder / "program.py").write_text(PROGRAM + "if __name__ == '__main__': main()\n")
    return ["-m", "program"]


def _console_script(folder):
    """Write a program as installers write console scripts."""
    (folder / "program.py").write_text(PROGRAM)
    path = folder / "program-command"
    path.write_text(
        "import sys\nfrom program import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    return [str(path)]


@pytest.mark.parametrize("write_program", [_script, _module, _console_script])
def test_any_kind_of_program_leaves_nothing_behind(write_program, tmp_path):
    """Workers serve scripts, modules and commands, end with them, and cause no warning."""
    command = [sys.executable, "-X", "dev", "-W", "error", *write_program(tmp_path)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def _start_interruptible(folder, handler, work):
    """Start a program with a worker at ``work`` in a process group of its own.

    Return it and that worker.
    """
    started = folder / "started"
    os.mkfifo(started)
    # A shell starts its background jobs with interrupts ignored, and children inherit that.
    heed = f"import signal\nsignal.signal(signal.SIGINT, {handler})\n"
    work = f"import os; open({str(started)!r}, 'w').write(str(os.getpid())); {work}"
    program = heed + PROGRAM.replace("os.getpid", f"exec, {work!r}") + "main()\n"
    running = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    return running, int(started.read_text())


def _finish(running):
    """Return what a program wrote, and leave no process behind."""
    with running:
        try:
            return running.communicate(timeout=60)
        finally:
            running.kill()


def test_an_interrupt_ends_program_and_worker(tmp_path):
    """Ctrl-C stops the program with its worker, and no document is blamed."""
    work = "import time; time.sleep(600)"
    running, worker_id = _start_interruptible(tmp_path, "signal.default_int_handler", work)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = _finish(running)
    assert "KeyboardInterrupt" in errors
    assert "DocumentError" not in errors
    with pytest.raises(ProcessLookupError):
        os.kill(worker_id, 0)


def test_no_worker_outlives_a_program_that_is_killed(tmp_path):
    """Whatever it does then, the fork server ends it."""
    running, worker_id = _start_interruptible(
        tmp_path, "signal.default_int_handler", "import itertools; sum(itertools.repeat(0))"
    )
    running.kill()
    _finish(running)
    wait_for_end([worker_id])


def test_an_interrupt_does_not_reach_the_worker(tmp_path):
    """A program that finishes its work after Ctrl-C gets the result, not a crashed document."""
    resume = tmp_path / "resume"
    os.mkfifo(resume)
    both_ends = os.open(resume, os.O_RDWR)
    running, _ = _start_interruptible(
        tmp_path, "lambda *_: None", f"open({str(resume)!r}).readline()"
    )
    os.killpg(running.pid, signal.SIGINT)
    os.write(both_ends, b"go on\n")
    output, errors = _finish(running)
    os.close(both_ends)
    assert (output, errors) == ("None\n", "")


def test_the_start_of_a_worker_takes_no_time_from_its_call():
    """On a busy machine a process may start slowly, which says nothing about the document."""
    slow = "import time; time.sleep(3); from mind2web2.utils.workers import serve; serve()"
    command = f"workers._COMMAND = (sys.executable, '-c', {slow!r})"
    patch = f"import sys\nfrom mind2web2.utils import workers\n{command}\n"
    program = f"{PROGRAM.replace('timeout_s=60', 'timeout_s=2')}{patch}main()\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.strip().isdigit(), done.stderr


def test_workers_that_do_not_start_blame_no_document():
    program = "import sys; sys.executable = '/bin/false'" + PROGRAM + "main()\n"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "MachineError: no process could be started" in done.stderr
