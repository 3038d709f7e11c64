"""Feed every parser nearly sound inputs for as long as you like.

    PYTHONPATH=tests python -m inputs.fuzz --seconds 3600

Parsers run in processes of their own, within limits of memory and processor time. An input that
does harm is kept in a folder, and the exit status is 1.
"""

import argparse
import hashlib
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from inputs.limited import outcome_within
from inputs.mutations import mutated
from inputs.parsers import PARSERS

MEMORY_MB = 1536
# Processor time for the inputs of one process.
SECONDS = 90
ROUND_S = 10.0


def main() -> int:
    """Run until the time is over, print how many inputs were read and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="makes a run repeatable")
    parser.add_argument(
        "--parser",
        action="append",
        choices=PARSERS,
        help="only this one; may be repeated",
    )
    options = parser.parse_args()
    names, findings = (
        options.parser or list(PARSERS),
        Path(tempfile.mkdtemp(prefix="findings-")),
    )
    counts: Counter[str] = Counter()
    round_s = min(ROUND_S, options.seconds / len(names))
    end, number = time.monotonic() + options.seconds, 0
    while number < len(names) or time.monotonic() < end:
        name = names[number % len(names)]
        try:
            counts[name] += outcome_within(
                MEMORY_MB,
                SECONDS,
                read_inputs,
                name,
                round_s,
                f"{options.seed} {number}",
                findings,
            )
        except AssertionError as error:
            # The input that ended the process is where it was kept before it was read.
            print(f"{name}: {error}")  # noqa: T201 (it is a command)
        number += 1
    harmful = sorted(findings.iterdir())
    for name in names:
        print(f"{name}: {counts[name]:,} inputs")  # noqa: T201
    print(f"seed {options.seed}: {len(harmful)} harmful inputs in {findings}")  # noqa: T201
    return 1 if harmful else 0


def read_inputs(name: str, seconds: float, seed: str, findings: Path) -> int:
    """Let a parser read inputs for a while, and keep those that do harm."""
    logging.disable(logging.CRITICAL)
    parser, source, count = PARSERS[name], random.Random(seed), 0
    end = time.monotonic() + seconds
    while count == 0 or time.monotonic() < end:
        count += 1
        content = mutated(parser.seeds, source)
        kept = findings / f"{name.replace(' ', '_')}-{hashlib.sha256(content).hexdigest()[:16]}"
        kept.write_bytes(content)
        with tempfile.TemporaryDirectory() as folder:
            fault = parser.fault(content, Path(folder))
        if fault is None:
            kept.unlink()
        else:
            print(f"{kept.name}: {' '.join(fault.split())[:200]}", flush=True)  # noqa: T201
    return count


if __name__ == "__main__":
    sys.exit(main())
