"""Feed every parser nearly sound inputs for as long as you like.

    PYTHONPATH=tests python -m inputs.fuzz --seconds 3600

Each parser runs in a process of its own, within limits of memory and of time for each input. An input that
does harm is kept, and ``--replay`` reads it again. The exit status is 1 if one did.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from inputs.mutations import mutated
from inputs.parsers import PARSERS
from rich.console import Console
from rich.table import Table

console = Console()

# Of the process that reads; workers have a limit of their own.
MEMORY_BYTES = 1536 * 1024**2
# Of one input: the limit on what a worker does, twice, and some more.
INPUT_LIMIT_S = 90
ROUND_S = 10.0
_SHOWN_CHARS = 200


def main() -> int:
    """Run until the time is over, print how many inputs were read and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long, over all parsers (default: 60)"
    )
    parser.add_argument("--seed", type=int, default=None, help="makes a run repeatable (default: the time)")
    parser.add_argument("--parser", action="append", choices=PARSERS, help="only this one; may be repeated")
    parser.add_argument("--findings", type=Path, help="where harmful inputs are kept (default: a new folder)")
    parser.add_argument(
        "--replay", type=Path, help="read this input only, with the one --parser that is named"
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    names = options.parser or list(PARSERS)
    if options.replay is not None:
        return _replay(names, options.replay)
    findings = options.findings or Path(tempfile.mkdtemp(prefix="findings-"))
    findings.mkdir(parents=True, exist_ok=True)
    seed = int(time.time()) if options.seed is None else options.seed
    counts, harms = _run(names, options.seconds, seed, findings)
    table = Table("parser", "inputs", "harmful", caption=f"seed {seed}, findings in {findings}")
    for name in names:
        table.add_row(name, f"{counts[name]:,}", f"{harms[name]:,}")
    table.add_row("all", f"{counts.total():,}", f"{harms.total():,}")
    console.print(table)
    return 1 if harms else 0


def _replay(names: list[str], path: Path) -> int:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            fault = PARSERS[name].fault(path.read_bytes(), Path(folder))
        console.print(f"{name}: {fault or 'no harm'}", markup=False)
    return 0


def _run(names: list[str], seconds: float, seed: int, findings: Path) -> tuple[Counter[str], Counter[str]]:
    counts: Counter[str] = Counter()
    harms: Counter[str] = Counter()
    start, number = time.monotonic(), 0
    round_s = min(ROUND_S, seconds / len(names))
    while number < len(names) or time.monotonic() - start < seconds:
        name = names[number % len(names)]
        read, harmful = _round(name, round_s, f"{seed} {number}", findings)
        counts[name] += read
        harms[name] += harmful
        number += 1
    return counts, +harms


def _round(name: str, seconds: float, seed: str, findings: Path) -> tuple[int, int]:
    """Let a process of its own read inputs for a while; return how many, and how many did harm."""
    context = multiprocessing.get_context("spawn")
    read, harmful = context.Value("q", 0), context.Value("q", 0)
    with tempfile.TemporaryDirectory() as folder:
        current = Path(folder) / "current"
        process = context.Process(
            target=_read_inputs, args=(name, seconds, seed, current, findings, read, harmful)
        )
        process.start()
        process.join()
        if process.exitcode != 0:
            harmful.value += 1
            reason = (
                f"{INPUT_LIMIT_S} s" if process.exitcode == -signal.SIGALRM else f"exit {process.exitcode}"
            )
            _keep(name, current.read_bytes() if current.exists() else b"", reason, findings)
    return read.value, harmful.value


def _read_inputs(
    name: str,
    seconds: float,
    seed: str,
    current: Path,
    findings: Path,
    read: Synchronized[int],
    harmful: Synchronized[int],
) -> None:
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.RLIM_INFINITY))
    parser, source = PARSERS[name], random.Random(seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        content = mutated(parser.seeds, source)
        current.write_bytes(content)
        # Ends this process wherever it is, also inside of a C library.
        signal.alarm(INPUT_LIMIT_S)
        with tempfile.TemporaryDirectory(dir=current.parent) as folder:
            fault = parser.fault(content, Path(folder))
        signal.alarm(0)
        read.value += 1
        if fault is not None:
            harmful.value += 1
            _keep(name, content, fault, findings)


def _keep(name: str, content: bytes, reason: str, findings: Path) -> None:
    file_name = f"{name.replace(' ', '_')}-{hashlib.sha256(content).hexdigest()[:16]}"
    (findings / file_name).write_bytes(content)
    console.print(f"{file_name}: {' '.join(reason.split())[:_SHOWN_CHARS]}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
