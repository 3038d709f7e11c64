"""How long lint takes for a file of 600 lines: four example scripts' worth of code in one."""

import time
from pathlib import Path
from statistics import median

from mind2web2.authoring.script_lint import script_findings

RUNS = 20


def main() -> None:
    """Print the processor time for one file."""
    scripts = sorted((Path(__file__).parent.parent / "eval_scripts/example").glob("*.py"))
    lines = b"\n".join(path.read_bytes() for path in scripts * 2).splitlines()
    # Cut where a definition begins, so that it parses.
    ends = [
        number
        for number, line in enumerate(lines)
        if line.startswith((b"async def", b"class")) and number >= 600
    ]
    source = b"\n".join(lines[: ends[0]])
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        script_findings(source, "script.py")
        times.append((time.process_time() - start) * 1000)
    best, middle = min(times), median(times)
    print(  # noqa: T201
        f"lint of {ends[0]} lines: {best:.1f} ms at best, {middle:.1f} ms in the median of {RUNS}"
    )


if __name__ == "__main__":
    main()
