"""``make injection``: show of each attack of the suite whether its block holds it."""

from __future__ import annotations

import asyncio
import sys

from injection_suite.attacks import ATTACKS
from injection_suite.checks import check_attacks
from rich.console import Console


def main() -> int:
    """Print a line for each attack; return 1 if one got through."""
    console = Console(markup=False, highlight=False, soft_wrap=True)
    checks = asyncio.run(check_attacks(ATTACKS))
    for check in checks:
        console.print(
            f"{check.attack.place:16}  {check.attack.name:40}  "
            f"{'; '.join(check.problems) or 'held'}"
        )
    held = sum(not check.problems for check in checks)
    console.print(f"{held} of {len(checks)} attacks held.")
    return held < len(checks)


if __name__ == "__main__":
    sys.exit(main())
