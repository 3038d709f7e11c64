"""Run a function in a process that may use so much memory and so much time, and no more."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def outcome_within(
    memory_mb: int, seconds: int, function: Callable[..., Any], *arguments: object
) -> Any:
    """Return what a function returns or raises.

    A process that dies of a limit is an ``AssertionError``.
    """
    # Each is forked from one process that has loaded the package.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["inputs.parsers"])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, memory_mb, seconds, function, arguments))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        process.join()
        raise AssertionError(
            f"the process ended with {process.exitcode} instead of an outcome"
        ) from None
    finally:
        process.join()
        ours.close()


def _run(
    theirs: Connection,
    memory_mb: int,
    seconds: int,
    function: Callable[..., Any],
    arguments: tuple[object, ...],
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 1024**2, resource.RLIM_INFINITY))
    # The limit is processor time, so that a busy machine makes no difference.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    try:
        outcome = function(*arguments)
    except Exception as error:  # handed to the test
        outcome = error
    theirs.send(outcome)
