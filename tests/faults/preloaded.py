"""Commands as processes of their own that begin at once.

They are forked from one that has loaded the package.

with Preloaded() as commands:
    process = commands.start(["evaluate", "bot"], folder, folder / "output.txt")
    process.ends_within(0.5) or process.kill()
    print(process.status())
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from projects import REPOSITORY, clean_environment

PATIENCE_S = 120.0
_PROGRAM = "from faults.preloaded import serve; serve()"


class Preloaded:
    """Starts ``mind2web2`` commands; a context manager."""

    def __enter__(self) -> Self:
        path = os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests")))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env=clean_environment(PYTHONPATH=path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()

    def start(
        self, command: Sequence[object], folder: Path, output: Path, **variables: str
    ) -> Started:
        """Start a command in a folder; what it prints goes to a file."""
        words = list(map(str, command))
        asked = {
            "command": words,
            "folder": str(folder),
            "output": str(output),
            "variables": variables,
        }
        return Started(self, self.tell(asked), output)

    def run(self, command: Sequence[object], folder: Path, output: Path, **variables: str) -> int:
        """Run a command to its end and return its status."""
        return self.start(command, folder, output, **variables).status()

    def tell(self, message: dict[str, Any]) -> int:
        """Have the loaded process do something, and return the number that it answers."""
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@dataclass
class Started:
    """A process that was started."""

    commands: Preloaded
    pid: int
    output: Path

    def __post_init__(self) -> None:
        """Watch the process, so that no other can be taken for it."""
        self._handle = os.pidfd_open(self.pid)

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end for so long, and tell whether it has come."""
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def kill(self) -> None:
        """End it without any warning."""
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        signal.pidfd_send_signal(self._handle, signal.SIGINT)

    def status(self) -> int:
        """Wait for the end and return the exit status, negative for a signal."""
        if not self.ends_within(PATIENCE_S):
            self.kill()
            raise AssertionError(f"still running after {PATIENCE_S:g} s: {self.printed()}")
        os.close(self._handle)
        return os.waitstatus_to_exitcode(self.commands.tell({"ended": self.pid}))

    def printed(self) -> str:
        """Return what it has printed so far."""
        return self.output.read_text(encoding="utf-8")


def preloaded(commands: Preloaded | None) -> AbstractContextManager[Preloaded]:
    """Open commands that end with the block, unless there are some already."""
    return Preloaded() if commands is None else nullcontext(commands)


def serve() -> None:
    """Start what standard input says until it ends."""
    main = _loaded()
    answers = os.fdopen(os.dup(1), "w")
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if "ended" in message:
            _, status = os.waitpid(message["ended"], 0)
            print(status, file=answers, flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            _become(main, message)
        print(pid, file=answers, flush=True)


# Modules that commands and the scripts of an evaluation import late.
_LATE_MODULES = (
    "anyio.from_thread",
    "filelock",
    "markdown_it",
    "openai",
    "mind2web2.capture.browser_manager",
    "mind2web2.capture.pdf",
    "mind2web2.cli.evaluate_run",
    "mind2web2.cli.results.tables",
    "mind2web2.pages.crawl",
    "mind2web2.evaluator",
    "mind2web2.eval_runner",
    "mind2web2.llm_client.openai_protocol",
)


def _loaded() -> Any:
    for name in _LATE_MODULES:
        import_module(name)
    from mind2web2.cli import main
    from mind2web2.llm_client.chat import Usage
    from mind2web2.llm_client.prices import price_usd
    from mind2web2.prompts.flags import address_flags

    price_usd(Usage(), "o4-mini")  # reads the price list
    address_flags("")  # compiles the signs
    gc.collect()
    gc.freeze()  # so that the collector leaves this memory shared with the processes
    return main


def _become(main: Any, message: dict[str, Any]) -> None:
    status = 70
    try:
        output = os.open(message["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.chdir(message["folder"])
        os.environ.update(message["variables"])
        status = main(message["command"])
    except SystemExit as error:
        status = int(error.code or 0)
    except BaseException:  # whatever it is, it must not go on as the process that was forked
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
