"""The tools of ``mind2web2 mcp``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mind2web2 import NoScore, Scorer
from mind2web2.plugin import (
    UsageError,
    check_name,
    settings_of,
)
from mind2web2_check.checking import earlier_findings
from mind2web2_check.outputs import findings_text
from mind2web2_check.scoring import SCRIPTS, check_report, findings


class Tools:
    """The tools; each call uses the same scorer."""

    def __init__(self, scorer: Scorer, checks: Path) -> None:
        self._scorer = scorer
        self._checks = checks

    async def check_report(self, report: str) -> dict[str, Any]:
        """Check a report in markdown: does each cited page say what the report says?

        Each claim has a verdict, its pages with quotation and depth of reading, and what to change.
        """
        found = await check_report(self._scorer, report)
        if isinstance(found, NoScore):
            reason = {"error": found.reason, "kind": found.kind}
            unjudged = await asyncio.to_thread(findings, report)
            return reason | unjudged.model_dump(mode="json")
        return found.model_dump(mode="json")

    async def verify_claim(self, claim: str, url: str) -> dict[str, Any]:
        """Check one claim, a sentence, by the page at an address."""
        sentence = " ".join(claim.split()).rstrip(".")
        found = await check_report(self._scorer, f"- {sentence} (<{url}>).\n")
        if isinstance(found, NoScore):
            return {"error": found.reason, "kind": found.kind}
        if not found.statements or not found.statements[0].claims[0].sources:
            return {"error": f"{url} is not a web address, or the claim has no words"}
        return found.statements[0].model_dump(mode="json")

    def show(self, name: str) -> str:
        """Return what an earlier ``mind2web2 check`` of this name has found, as text."""
        found = earlier_findings(check_name("check", name), self._checks)
        if found is None:
            return f"no check of this name in {self._checks}"
        return "\n".join(findings_text(found))


def run(options: argparse.Namespace) -> int:
    """Serve the tools until the client ends the connection, and return the exit status."""
    try:
        from mcp.server import MCPServer
    except ModuleNotFoundError as error:
        raise UsageError(
            "mind2web2 mcp needs a package: run `pip install 'mind2web2[mcp]'`, or in a clone `uv "
            "sync --extra mcp`"
        ) from error
    settings = replace(settings_of(options), eval_scripts_root=SCRIPTS)
    scorer = Scorer.of_settings(settings, None, "capture")

    @asynccontextmanager
    async def opened(_: object) -> AsyncIterator[None]:
        async with scorer:
            yield

    server = MCPServer("mind2web2", lifespan=opened)
    tools = Tools(scorer, options.checks)
    for tool in (tools.check_report, tools.verify_claim, tools.show):
        server.add_tool(tool)
    server.run("stdio")
    return 0
