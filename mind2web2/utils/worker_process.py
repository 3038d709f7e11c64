"""The child's side of ``workers``: read a call, make it, write back what came of it.

Imports little on purpose: this module is what every worker loads before its first call.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from mind2web2.errors import DocumentError

if sys.platform != "win32":
    import resource
    import signal

# A document that unfolds to more than this costs one worker, not the machine.
MAX_WORKER_MEMORY_BYTES = 2 * 1024**3
# The parent kills a worker that overruns; this alarm is for workers whose parent was killed meanwhile.
ORPHAN_GRACE_S = 5.0
# Written once, before the first reply: a worker that cannot start says nothing about a document.
READY = b"ready\n"


def serve() -> None:
    """Answer calls from standard input until it is closed."""
    calls, replies = sys.stdin.buffer, _take_over_stdout()
    _limit_memory()
    replies.write(READY)
    replies.flush()
    while True:
        try:
            function, args, timeout_s = pickle.load(calls)
        except EOFError:
            return
        except Exception as error:  # a function that does not import here; the caller is told
            reply = _pickle_error(error)
        else:
            _set_alarm(timeout_s + ORPHAN_GRACE_S)
            reply = _make_call(function, args)
            _set_alarm(0)
        replies.write(reply)
        replies.flush()


def _take_over_stdout() -> BinaryIO:
    """Keep the pipe to the parent for replies; what a library prints goes nowhere."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def _limit_memory() -> None:
    if sys.platform != "win32":
        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        if hard_limit == resource.RLIM_INFINITY or hard_limit > MAX_WORKER_MEMORY_BYTES:
            resource.setrlimit(resource.RLIMIT_DATA, (MAX_WORKER_MEMORY_BYTES, hard_limit))


def _set_alarm(seconds: float) -> None:
    """Have the system end this process after ``seconds``, even inside a C library; 0 calls it off."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _make_call(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Return the pickled pair of success and result, or of failure and exception."""
    try:
        return pickle.dumps((True, function(*args)), protocol=pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        limit_mb = MAX_WORKER_MEMORY_BYTES // 1024**2
        return pickle.dumps((False, DocumentError(f"document needs more than {limit_mb} MB of memory")))
    except Exception as error:  # it is handed to the caller, who waits in another process
        return _pickle_error(error)


def _pickle_error(error: Exception) -> bytes:
    """Pickle an exception with its traceback as a note, or a RuntimeError where it does not survive that."""
    error.add_note("in a worker process:\n" + traceback.format_exc())
    try:
        reply = pickle.dumps((False, error))
        pickle.loads(reply)
    except Exception:  # pickling runs the exception's own code, which may raise anything
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return reply
