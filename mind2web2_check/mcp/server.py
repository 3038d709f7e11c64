"""The tools of ``mind2web2 mcp``."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mind2web2 import NoScore, Scorer
from mind2web2.plugin import RunSettings, UsageError, settings_of, uniform_text
from mind2web2_check.checking import Check, earlier_findings, earlier_names
from mind2web2_check.findings import CheckedReport
from mind2web2_check.outputs import findings_text
from mind2web2_check.scoring import TASK, check_report
from mind2web2_check.statements import read_report

_STOPS = ".!?。！？।؟"


class Tools:
    """The tools; each call uses the same scorer.

    Args:
        checks: where ``mind2web2 check`` keeps results.
        folder: has what the scorer keeps, as the folder of a check has it.
    """

    def __init__(self, settings: RunSettings, checks: Path, folder: Path) -> None:
        self._own = Check(TASK, "", read_report(""), folder)
        self._settings = self._own.settings(settings)
        self._checks = checks
        self._writing = threading.Lock()
        pages = self._own.pages.task_dir.parent
        self._own.judgments.parent.mkdir(parents=True)
        pages.mkdir(parents=True)
        settings = replace(self._settings, judgments=self._own.judgments)
        self.scorer = Scorer.of_settings(settings, pages, "capture")

    async def check_report(self, report: str) -> dict[str, Any]:
        """Check a report in markdown: does each cited page say what the report says?

        Each claim has a verdict, its pages with quotation and depth of reading, and what to change.
        """
        found = await self._found(report)
        if isinstance(found, NoScore):
            reason = {"error": found.reason, "kind": found.kind}
            so_far = await asyncio.to_thread(self._so_far, report, found.reason)
            return reason | so_far.model_dump(mode="json")
        reason = {} if found.statements else {"error": "the report says nothing to check"}
        return reason | found.model_dump(mode="json")

    async def _found(self, report: str) -> CheckedReport | NoScore:
        found = await check_report(self.scorer, report)
        if isinstance(found, NoScore):
            return found
        return await asyncio.to_thread(self._with_pages, report, found)

    def _with_pages(self, report: str, found: CheckedReport) -> CheckedReport:
        return self._check(report).with_pages(found.statements, found.judge)

    def _check(self, report: str) -> Check:
        text = uniform_text(report)
        return replace(self._own, text=text, read=read_report(text))

    def _so_far(self, report: str, why: str) -> CheckedReport:
        """Return what was judged before the judge failed or the budget was spent."""
        check = self._check(report)
        with self._writing:
            check.write()
            return check.findings_so_far(self._settings, why)

    async def verify_claim(self, claim: str, url: str) -> dict[str, Any]:
        """Check one claim, a sentence, by the page at an address."""
        sentence = " ".join(claim.split()).rstrip(_STOPS)
        item = f"{sentence} (<{url}>)."
        found = await self._found(f"- {item}\n")
        if isinstance(found, NoScore):
            return {"error": found.reason, "kind": found.kind}
        # Words before its last sentence, or an address in it, would not be checked.
        if [(each.text, bool(each.sources)) for each in found.statements] != [(item, True)]:
            return {"error": f"give one sentence, and a web address that begins with http: {url}"}
        return found.statements[0].model_dump(mode="json")

    def show(self, name: str) -> str:
        """Return what an earlier ``mind2web2 check`` of this name has found, as text."""
        names = earlier_names(self._checks)
        if name not in names:
            return f"no check of this name in {self._checks}. Found: {', '.join(names)}"
        return "\n".join(findings_text(earlier_findings(name, self._checks)))


def run(options: argparse.Namespace) -> int:
    """Serve the tools until the client ends the connection, and return the exit status."""
    with UsageError.naming_extra("mind2web2 mcp", "mcp"):
        from mcp.server import MCPServer

    @asynccontextmanager
    async def opened(_: object) -> AsyncIterator[None]:
        async with tools.scorer:
            yield

    server = MCPServer("mind2web2", lifespan=opened)
    with tempfile.TemporaryDirectory(prefix="mind2web2-mcp-") as folder:
        tools = Tools(settings_of(options), options.checks, Path(folder))
        for tool in (tools.check_report, tools.verify_claim, tools.show):
            server.add_tool(tool)
        server.run("stdio")
    return 0
