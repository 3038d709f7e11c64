"""``mind2web2 export AGENT --inspect FILE``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.plugin import UsageError, counted
from mind2web2_inspect.inspect_log import write_inspect_log


@dataclass(frozen=True)
class InspectExport:
    """Writes one agent's results as a log of Inspect."""

    help: str = (
        "write one agent's results as a log of Inspect, a .eval or .json file (needs the extra "
        "'inspect')"
    )

    def write(self, output: Path, agents: Sequence[str], results_root: Path) -> str:
        """Write the log and return the line that says so."""
        if len(agents) > 1:
            raise UsageError("--inspect writes all of one agent: name one")
        samples = write_inspect_log(output, agents[0], results_root)
        return f"{counted(samples, 'sample')} written to {output}"


EXPORT = InspectExport()
