"""CPU-bound work in worker processes, whose crashes and hangs do not affect the run.

Neither ``anyio.to_process`` nor ``concurrent.futures`` fits. Both run the user's main script again
in every worker, so that a script without a ``__main__`` guard starts itself over and over; the
first ties its workers to one event loop, the second lets one crash fail every pending call. So:
processes off a fork server that has loaded this module only. They make one call at a time, and are
kept for further calls.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import pickle
import signal
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, TypeVar, TypeVarTuple, cast

from mind2web2.errors import Mind2Web2Error, WorkerError
from mind2web2.utils.fork_loop import ForkLoop
from mind2web2.utils.machine import processors
from mind2web2.utils.processes import ChildProcess, ForkServer, not_started

# A document that unfolds to more than this costs one worker, not the machine.
MAX_WORKER_MEMORY_BYTES = 2 * 1024**3
# The parent ends a worker that overruns; this alarm is for workers whose fork server was killed.
ORPHAN_GRACE_S = 5.0
# Sent once, before the first reply: a worker that cannot start says nothing about a document.
READY = b"ready"


def serve(control_fd: int) -> None:
    """Be the fork server of workers."""
    gc.enable()
    ForkLoop(socket.socket(fileno=control_fd), answer_calls).run()


def answer_calls(connection_fd: int) -> None:
    """Answer calls until the connection is closed."""
    connection = Connection(connection_fd)
    connection.send_bytes(READY)
    while True:
        try:
            function, args, timeout_s = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        except Exception as error:  # a function that does not import here
            reply = _pickle_error(error)
        else:
            _set_alarm(timeout_s + ORPHAN_GRACE_S)
            reply = _make_call(function, args)
            _set_alarm(0)
        connection.send_bytes(reply)


def _set_alarm(seconds: float) -> None:
    """Have the system end this process after ``seconds``, even inside a C library.

    0 calls it off.
    """
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _make_call(function: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    """Return the pickled pair of success and result, or of failure and exception."""
    try:
        return pickle.dumps((True, function(*args)), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # it is handed to the caller, who waits in another process
        return _pickle_error(error)


def _pickle_error(error: Exception) -> bytes:
    """Pickle an exception with its traceback as a note, or else a RuntimeError."""
    error.add_note("in a worker process:\n" + traceback.format_exc())
    try:
        reply = pickle.dumps((False, error))
        pickle.loads(reply)
    except Exception:  # pickling runs the exception's own code, which may raise anything
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return reply


T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

MAX_WORKERS = min(processors(), 8)
# Libraries keep some memory of every document; a fresh process gives it back.
MAX_CALLS_PER_WORKER = 200

# A process that has not started by then never will.
_START_TIMEOUT_S = 300.0
# An idle process ends in milliseconds.
_END_GRACE_S = 2.0
_NOT_STARTED = f"did not start within {_START_TIMEOUT_S:g} s"


async def run_in_worker(
    function: Callable[[*Arguments], T],
    *args: *Arguments,
    timeout_s: float,
    is_last: bool = False,
) -> T:
    """Return ``function(*args)`` as computed in a worker process, without blocking the event loop.

    Function, arguments and result must pickle; errors of the function are raised here. It may be
    called twice (after a worker's death), so it should have no side effects. Cancelling the caller
    kills the worker.

    Args:
        is_last: the function leaves the worker unfit for others.

    Raises:
        WorkerError: the function took longer than ``timeout_s``, crashed its process, or took too
            much memory.
        MachineError: worker processes do not start at all.
    """
    call = _Call(function, args, timeout_s, is_last=is_last)
    # A thread waits, not the event loop, since workers outlive event loops.
    pending = asyncio.get_running_loop().run_in_executor(_pool.threads, call.run, _pool)
    try:
        return cast(T, await pending)
    except asyncio.CancelledError:
        call.stop("was cancelled")
        raise


def call_in_worker(function: Callable[[*Arguments], T], *args: *Arguments, timeout_s: float) -> T:
    """Return what ``run_in_worker`` returns; for threads without an event loop."""
    return cast(T, _Call(function, args, timeout_s).run(_pool))


class _Worker:
    """A process that makes calls one after the other."""

    def __init__(self, server: ForkServer) -> None:
        self.calls_made = 0
        self.is_ready = False
        nowhere = open(os.devnull, "w+b")  # noqa: PTH123, SIM115 (closed with the process)
        self.process = ChildProcess.start(server, MAX_WORKER_MEMORY_BYTES, nowhere)
        self._connection = Connection(os.dup(self.process.connection.fileno()))

    def wait_until_ready(self) -> None:
        """Wait for the process to start, unless it has started before."""
        if not self.is_ready:
            self.is_ready = self._connection.recv_bytes() == READY

    def call(self, request: bytes) -> tuple[bool, Any]:
        """Send a pickled call and return the reply; OSError or EOFError if the worker dies."""
        self._connection.send_bytes(request)
        succeeded, outcome = pickle.loads(self._connection.recv_bytes())
        self.calls_made += 1
        return succeeded, outcome

    def close(self) -> None:
        """Let the process end, as it does when its connection is closed."""
        self._connection.close()
        self.process.connection.close()
        self.process.end(_END_GRACE_S)
        self.process.close()


class _Pool:
    """Threads that wait for workers, and idle workers, most recently used last."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(MAX_WORKERS, thread_name_prefix="worker-wait")
        self._server = ForkServer(__name__)
        # Threads share it without a lock: append and pop are atomic.
        self._idle: list[_Worker] = []
        atexit.register(self.close)

    def new(self) -> _Worker:
        """Return a new worker. Raises MachineError: it cannot be started."""
        return _Worker(self._server)

    def take(self) -> _Worker:
        """Return an idle worker that is alive, or a new one."""
        with contextlib.suppress(IndexError):
            while not (worker := self._idle.pop()).process.is_alive():
                worker.close()
            return worker
        return self.new()

    def give_back(self, worker: _Worker, *, is_spent: bool) -> None:
        """Keep a worker for further calls, or end it after its share of them."""
        if is_spent or worker.calls_made >= MAX_CALLS_PER_WORKER:
            worker.close()
        else:
            self._idle.append(worker)

    def close(self) -> None:
        """End all idle workers."""
        while self._idle:
            self._idle.pop().close()


class _Call:
    """One pending call: made by a worker, awaited by a thread, stopped from other threads."""

    def __init__(
        self,
        function: Callable[..., object],
        args: tuple[object, ...],
        timeout_s: float,
        *,
        is_last: bool = False,
    ) -> None:
        # A partial has no name of its own.
        self._name = getattr(getattr(function, "func", function), "__name__", "work")
        self._function, self._args, self._timeout_s = function, args, timeout_s
        self._is_last = is_last
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._stop_reason: str | None = None

    def run(self, pool: _Pool) -> object:
        """Return the function's result or raise its error."""
        content = (self._function, self._args, self._timeout_s)
        request = pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
        worker = pool.take()
        was_used = worker.calls_made > 0
        reply = self._try_worker(worker, request)
        if reply is None and was_used and self._stop_reason is None:
            # An earlier document may have damaged this worker's memory; only a fresh one tells.
            worker = pool.new()
            reply = self._try_worker(worker, request)
        if reply is None:
            raise self._explain_death(worker)
        pool.give_back(worker, is_spent=self._is_last)
        succeeded, outcome = reply
        if not succeeded:
            raise outcome
        return outcome

    def stop(self, reason: str) -> None:
        """Kill the worker if it still works on this call."""
        with self._lock:
            self._stop_reason = self._stop_reason or reason
            if self._worker is not None:
                self._worker.process.kill()

    def _try_worker(self, worker: _Worker, request: bytes) -> tuple[bool, Any] | None:
        """Return the worker's reply, or ``None`` if it died or was stopped."""
        with self._lock:
            self._worker = worker
            if self._stop_reason is not None:
                worker.process.kill()
        reply = None
        try:
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
                # On a busy machine a process starts slowly, which says nothing about the document.
                with self._stop_after(_START_TIMEOUT_S, _NOT_STARTED):
                    worker.wait_until_ready()
                with self._stop_after(self._timeout_s, f"took longer than {self._timeout_s:g} s"):
                    reply = worker.call(request)
        finally:
            with self._lock:
                self._worker = None
            if reply is None:
                if worker.process.end(_EXIT_GRACE_S).was_too_large:
                    limit_mb = MAX_WORKER_MEMORY_BYTES // 1024**2
                    self._stop_reason = f"took more than {limit_mb} MB of memory"
                worker.close()
        return reply

    @contextlib.contextmanager
    def _stop_after(self, timeout_s: float, reason: str) -> Iterator[None]:
        deadline = threading.Timer(timeout_s, self.stop, (reason,))
        deadline.daemon = True
        deadline.start()
        try:
            yield
        finally:
            deadline.cancel()

    def _explain_death(self, worker: _Worker) -> Mind2Web2Error:
        if self._stop_reason in (None, _NOT_STARTED) and not worker.is_ready:
            return not_started(self._stop_reason or "it ended at once")
        return WorkerError(f"{self._name} {self._stop_reason or 'crashed its worker process'}")


# For the fork server to report how a process has ended.
_EXIT_GRACE_S = 1.0
_pool = _Pool()


def _forget_workers() -> None:
    """Forget the sockets after a fork, since they belong to the parent."""
    global _pool  # noqa: PLW0603 - one pool a process
    _pool = _Pool()


os.register_at_fork(after_in_child=_forget_workers)
