"""Record the pages and judgments that a replay of ``mind2web2 check examples/report.md`` reads.

    uv run --group dev python examples/record_report.py

For maintainers: run it after a change to the report, its key, the site, or a prompt. A question without an
entry and a quotation that is not on its page are errors.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from build_cache import replace_folder
from record_judgments import misquoted
from site_server import SiteServer

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.errors import JudgmentMissingError
from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import Judgment, JudgmentStore, judgment_key
from mind2web2.judge.transfer import export_judgments
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.pages.crawl import AgentCache, CrawlProgress, TaskCitations, crawl
from mind2web2.pages.library import PageLibrary
from mind2web2.plugins.check.checking import TASK, Check
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work

EXAMPLES = Path(__file__).resolve().parent
CHECKS = EXAMPLES.parent / "checks"
JUDGMENTS = EXAMPLES / "report_judgments.jsonl"
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


class ReportKeyJudge(CachingJudge):
    """Answers from the key of the report, and stores each reply as a judgment of ``example-key``."""

    def __init__(self, store: JudgmentStore, key: dict[str, Any]) -> None:
        super().__init__(JudgeSettings("replay", "example-key"), None, store)
        self._key_store = store
        self._key = key

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,  # noqa: ARG002
    ) -> Judgment:
        """Return the key's reply to a question as a judgment."""
        if subject.purpose == "extract":
            reply = self._claims(request)
        else:
            reply = self._verdict(subject.claim or "", subject.page or "")
        judgment = Judgment(
            key=judgment_key(request, subject.trial),
            endpoint="report_key.json",
            model=request.model,
            outcome="reply",
            text=json.dumps(reply, ensure_ascii=False),
            created=self._key["written"],
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )
        await self._key_store.put(judgment)
        return judgment

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
        replace_folder(fresh, check.paths.cache_root / check.name)


async def record(check: Check, judge: ReportKeyJudge, results: Path) -> list[str]:
    """Check the report with the key, and return what does not fit."""
    check.write()
    run = RunParts(
        judge=judge,
        library=PageLibrary(),
        limits=DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(1)),
        reuse=False,
        answer_timeout_s=None,
    )
    folders = RunFolders(check.name, check.paths.cache_root, results)
    work = select_work(check.paths, check.name)
    outcomes = await evaluate_work(work, folders, run, Concurrency(1, 1), RunProgress())
    failures = [each.reason or "no result" for each in outcomes if each.score is None]
    return failures + [text for each in outcomes for text in misquoted(each.result)]


def main() -> int:
    """Record pages and judgments, and return the exit status."""
    check = Check.of(str(EXAMPLES / "report.md"), CHECKS)
    key = json.loads((EXAMPLES / "report_key.json").read_text(encoding="utf-8"))
    asyncio.run(capture(check))
    with tempfile.TemporaryDirectory() as results, JudgmentStore(None) as store:
        problems = asyncio.run(record(check, ReportKeyJudge(store, key), Path(results)))
        if not problems:
            count = len(export_judgments(store, JUDGMENTS))
            sys.stdout.write(f"{count} judgments written to {JUDGMENTS.name}\n")
            return 0
    sys.stderr.write("\n".join(problems) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
