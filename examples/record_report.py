"""Record the pages and judgments that a replay of ``mind2web2 check examples/report.md`` reads.

    uv run --group dev python examples/record_report.py

For maintainers: run it after a change to the report, its key, the site, or a prompt. A question
without an entry and a quotation that is not on its page are errors.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from build_cache import replace_folder
from record_judgments import RecordingJudge, misquoted, record
from site_server import SiteServer

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.errors import JudgmentMissingError
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import export_judgments
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.pages.crawl import CrawlProgress, crawl
from mind2web2.runs.answer import AnswerOutcome
from mind2web2_check.checking import TASK, Check

EXAMPLES = Path(__file__).resolve().parent
CHECKS = EXAMPLES.parent / "checks"
JUDGMENTS = EXAMPLES / "report_judgments.jsonl"
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


class ReportKeyJudge(RecordingJudge):
    """Answers from the key of the report."""

    def __init__(self, store: JudgmentStore, key: dict[str, Any]) -> None:
        super().__init__(store, "report_key.json", key["written"])
        self._key = key

    def reply(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],  # noqa: ARG002
    ) -> Any:
        """Return the claims or the verdict of the key."""
        if subject.purpose == "extract":
            return self._claims(request)
        return self._verdict(subject.claim or "", subject.page or "")

    def _claims(self, request: ChatRequest) -> dict[str, Any]:
        content = request.messages[-1]["content"]
        text = "".join(part.get("text", "") for part in content if isinstance(part, dict))
        return {
            "statements": [
                {
                    "number": int(number),
                    "checkable": True,
                    "claims": self._key["claims"].get(statement, [statement]),
                }
                for number, statement in _NUMBERED.findall(text)
            ]
        }

    def _verdict(self, claim: str, page: str) -> dict[str, Any]:
        for entry in self._key["verdicts"]:
            if entry["claim"] == claim and page.rstrip("/").endswith(entry["page"]):
                return {name: entry[name] for name in ("reasoning", "result", "quote")}
        raise JudgmentMissingError(f"no entry for {claim!r} on {page}")


async def capture(check: Check) -> None:
    """Capture the cited pages from the site of the example."""
    with SiteServer() as server, tempfile.TemporaryDirectory() as work:
        network = NetworkSettings(host_map=server.host_map, trusted_keys=(server.spki,))
        fresh = Path(work) / check.name
        sources = [source for each in check.read.statements for source in each.sources]
        await crawl(
            [TaskCitations(TASK, {"report": sources})],
            AgentCache(fresh),
            lambda: BatchBrowserManager(settings=CaptureSettings(network=network)),
            CrawlProgress(),
        )
        replace_folder(fresh, check.project.paths.cache_root / check.name)


def problems(outcomes: Iterable[AnswerOutcome]) -> Iterator[str]:
    """Yield what does not fit, one line each."""
    for each in outcomes:
        if each.score is None:
            yield each.reason or "no result"
        yield from misquoted(each.result)


def main() -> int:
    """Record pages and judgments, and return the exit status."""
    check = Check.of(str(EXAMPLES / "report.md"), CHECKS)
    key = json.loads((EXAMPLES / "report_key.json").read_text(encoding="utf-8"))
    asyncio.run(capture(check))
    with tempfile.TemporaryDirectory() as results, JudgmentStore(None) as store:
        check.write()
        judge = ReportKeyJudge(store, key)
        outcomes = asyncio.run(record(judge, check.project.paths, check.name, Path(results)))
        found = list(problems(outcomes))
        if not found:
            count = len(export_judgments(store, JUDGMENTS))
            sys.stdout.write(f"{count} judgments written to {JUDGMENTS.name}\n")
            return 0
    sys.stderr.write("\n".join(found) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
