"""The work of ``mind2web2 check``."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from mind2web2 import CacheFileSys
from mind2web2.plugin import (
    AddressCrawl,
    AgentEvaluation,
    AgentResults,
    PlainConsole,
    ResultFile,
    RunSettings,
    StoredRuns,
    command_line,
    default_barred,
    read_answer,
    settings_of,
    write_whole,
)
from mind2web2_check.figures import Bound, Figures
from mind2web2_check.findings import CheckedReport, checked_report, precision_without
from mind2web2_check.hints import hints_of
from mind2web2_check.inputs import PATH_NAME, STANDARD_INPUT, free_name, path_from, report_in
from mind2web2_check.outputs import (
    check_ending,
    evidence_table,
    print_findings,
    print_hints,
    write_findings,
    write_hints,
)
from mind2web2_check.page import ShownReport, write_page
from mind2web2_check.rubric import page_address
from mind2web2_check.scoring import ANSWER, SCRIPT, SCRIPTS, TASK
from mind2web2_check.sources import NOT_OPENED, Capturing, SourcePage, source_page
from mind2web2_check.statements import ReadReport, read_report
from mind2web2_check.verdicts import StatementVerdict, verdicts_of

# In the folder of a check: the report with its verdicts, for a browser.
PAGE_NAME = "report.html"
# In the folder of an agent's answers.
_ANSWER_PATH = f"{TASK}/{ANSWER}.md"
_INTERRUPTED = 130
_STOPPED = "the check was stopped before"
_NO_HOST = "not opened: no host of the public web was found, so this machine may be offline"
_NO_KEY = (
    "For verdicts, name a judge: set OPENAI_API_KEY, or choose another one with --llm_provider."
)


@dataclass(frozen=True)
class Check:
    """A report that is checked, in a project of its own.

    Args:
        folder: has the report as an answer, its pages and results.
        file: the report's path as it was given.
    """

    name: str
    text: str
    read: ReadReport
    folder: Path
    file: str = STANDARD_INPUT

    @classmethod
    def of(cls, report: str, checks: Path, taken: Collection[str] = ()) -> Check:
        """Read a report; its name is not one of those that are taken."""
        name = free_name(report, checks, taken)
        return cls(name, *report_in(report), checks / name, report)

    @property
    def project(self) -> RunSettings:
        """Return settings with the folders of the project."""
        return self.settings(RunSettings())

    def write(self) -> None:
        """Write the report as the answer that is evaluated."""
        _write(self.folder / PATH_NAME, path_from(self.folder, self.file))
        _write(self.project.paths.answers_root / self.name / _ANSWER_PATH, self.text)

    def settings(self, settings: RunSettings) -> RunSettings:
        """Return the settings of the evaluation."""
        return replace(
            settings,
            agent_name=self.name,
            answer_folder=self.folder / "answers",
            eval_scripts_root=SCRIPTS,
            eval_results_root=self.folder / "eval_results",
            cache_root=self.folder / "cache",
            given=settings.given | {"answer_folder", "cache_root"},
        )

    @property
    def judgments(self) -> Path:
        """Return the file of the judge's replies."""
        return self.project.paths.eval_results_root / self.name / "judgments.sqlite3"

    @property
    def results(self) -> AgentResults:
        """Return the results of the check."""
        return AgentResults(self.project.paths.eval_results_root, self.name)

    @property
    def reason(self) -> str | None:
        """Return why the last judging has no result, ``None`` if it has one."""
        [answer] = self.results.answers()
        return answer.reason

    def findings(self) -> CheckedReport:
        """Return what the newest result says, or without one that nothing is judged."""
        found = self.results.newest(TASK, ANSWER)
        result = found.content if found else ResultFile()
        return self.with_pages(verdicts_of(self.read, result), result.judge_model)

    def findings_so_far(self, settings: RunSettings, why: str) -> CheckedReport:
        """Return the verdicts of a check that was stopped, from the judgments up to then.

        Args:
            why: it was stopped.
        """
        evaluation = AgentEvaluation.of(self.settings(settings), self.name)
        with StoredRuns.opened(list(filter(Path.is_file, [self.judgments]))) as runs:
            again = asyncio.run(
                runs.run_again(
                    self.name,
                    TASK,
                    evaluation.work[0].answers[0],
                    SCRIPT,
                    runs.pages(self.pages.task_dir, TASK),
                    evaluation.judge_record(),
                    None,
                    None,
                    "fails",
                )
            )
        missing = {
            page_address(each.source) for each in self.source_pages() if each.problem == NOT_OPENED
        }
        verdicts = verdicts_of(
            self.read, again.result or ResultFile(), missing.union(again.missing), why
        )
        return self.with_pages(verdicts, None)

    def with_pages(self, statements: list[StatementVerdict], judge: str | None) -> CheckedReport:
        """Return all that was found by these verdicts, with what the sources' pages say."""
        report = checked_report(self.name, self.read, statements, judge)
        pages = self.source_pages()
        report.name_pages({page.source: page for page in pages})
        read = list(map(page_address, self.sources))
        barred = default_barred().sources_of("", read, self.pages)
        contaminated = [source["url"] for source in barred]
        return report.model_copy(
            update={
                "retracted": [page.source for page in pages if page.is_retracted],
                "invented": [page.source for page in pages if page.is_invented],
                "contaminated": contaminated,
                "precision_without": precision_without(report.statements, contaminated),
            }
        )

    @property
    def pages(self) -> CacheFileSys:
        """Return the cache of the report's pages."""
        return CacheFileSys(self.project.paths.cache_root / self.name / TASK)

    def of_others(self, pattern: str) -> list[Path]:
        """Return files or folders of the other checks."""
        found = self.folder.parent.glob(f"*/{pattern}")
        return sorted(path for path in found if not path.is_relative_to(self.folder))

    @property
    def sources(self) -> list[str]:
        """Return the sources of all statements, each once."""
        sources = (source for each in self.read.statements for source in each.sources)
        return list(dict.fromkeys(sources))

    def source_pages(self) -> list[SourcePage]:
        """Return the page of each source as it is stored; reads files."""
        cache = self.pages
        pages = [source_page(cache, source) for source in self.sources]
        if any(page.is_public for page in pages):
            return pages
        return [replace(page, problem=_NO_HOST) if page.is_invented else page for page in pages]


def earlier_names(checks: Path) -> list[str]:
    """Return the names of the checks in a folder."""
    return sorted(answer.parents[1].name for answer in checks.glob(f"*/answers/*/{_ANSWER_PATH}"))


def earlier_findings(name: str, checks: Path) -> CheckedReport:
    """Return what the newest check of a name has found."""
    text = read_answer(checks / name / "answers" / name / _ANSWER_PATH)
    return Check(name, text, read_report(text), checks / name).findings()


def run(options: argparse.Namespace) -> int:
    """Check the reports and return the exit status."""
    bounds = list(map(Bound.read, options.fail_under))
    checks: list[Check] = []
    for report in options.reports:
        taken = {each.name for each in checks}
        checks.append(Check.of(report, options.checks, taken))
    if options.list:
        for check in checks:
            print(check.read.model_dump_json(indent=2))  # noqa: T201
            for text in evidence_table(check.read) if options.verbose else ():
                print(text, file=sys.stderr)  # noqa: T201
        return 0
    return _status_of(options, checks, settings_of(options, is_announced=True), bounds)


def _status_of(
    options: argparse.Namespace,
    checks: Sequence[Check],
    given: RunSettings,
    bounds: Sequence[Bound],
) -> int:
    has_key = given.names_a_judge or "OPENAI_API_KEY" in os.environ
    has_judge = not options.no_judge and has_key
    for check in checks:
        check.write()
    given.check()
    command = _Command(
        given,
        PlainConsole(),
        archive_url=options.archive_url,
        uses_archive=options.archive,
        email=options.open_copies,
        outputs=options.output,
        bounds=bounds,
    )
    if given.estimate:
        return command.estimate(checks)
    for output in options.output:
        check_ending(output, has_judge)
    if has_judge and not given.is_replay:
        # Before pages are captured: it says what a judge needs that is missing.
        command.evaluation(checks[0]).check_judge()
    if not has_key and not options.no_judge:
        command.console.print_line(_NO_KEY)
    status = command.capture(checks) if given.captures_pages else 0
    return command.judge(checks, status) if has_judge else command.print_hints(checks, status)


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


@dataclass(frozen=True)
class _Command:
    settings: RunSettings
    console: PlainConsole
    archive_url: str
    uses_archive: bool
    email: str
    outputs: Sequence[Path]
    bounds: Sequence[Bound]

    def capture(self, checks: Sequence[Check]) -> int:
        """Capture the pages of reports, and return the exit status: 0, or 130 after Ctrl-C."""

        async def captured() -> int:
            for check in checks:
                await self._capture(check)
            return 0

        stopped = "Stopped. The pages so far are kept: the same command continues from here."
        return self.console.run(captured(), stopped)

    async def _capture(self, check: Check) -> None:
        settings = check.settings(self.settings)
        crawl = AddressCrawl(self.console, settings, check.pages.task_dir, self.archive_url)
        others = [CacheFileSys(folder / TASK) for folder in check.of_others("cache/*")]
        capturing = Capturing(crawl, others, self.uses_archive, self.email)
        await capturing.capture(check.sources, _moment(settings))

    def print_hints(self, checks: Sequence[Check], status: int = 0) -> int:
        """Print and write what may be wrong without a judge, and return the exit status.

        Args:
            status: that of the capture.
        """
        found = []
        for check in checks:
            hints = hints_of(check.read, {page.source: page for page in check.source_pages()})
            print_hints(self.console, check.name, check.read, hints)
            found.append(hints)
        for output in self.outputs:
            write_hints(output, found)
            self.console.print_line(f"Written: {output}")
        return max(status, self._failed({}))

    def estimate(self, checks: Sequence[Check]) -> int:
        """Print what the reports will cost, and return the exit status."""
        for check in checks:
            self.evaluation(check).estimate()
        return 0

    def judge(self, checks: Sequence[Check], stopped: int = 0) -> int:
        """Judge the reports, print and write what was found, and return the exit status.

        Args:
            stopped: the exit status of a capture that was stopped, after which nothing is judged.
        """
        status, reports = 0, []
        why: str | None
        for check in checks:
            own_status = stopped or self.evaluation(check).run()
            if own_status == _INTERRUPTED:
                stopped, why = own_status, _STOPPED
            else:
                why = check.reason
            # The newest result of a check that was stopped may be of another text.
            found = check.findings_so_far(self.settings, why) if why else check.findings()
            print_findings(self.console, found)
            reports.append(ShownReport(found, check.text, check.project))
            status = max(status, own_status, self._failed(found.figures))
        self._write(reports)
        return status

    def _failed(self, figures: Figures) -> int:
        """Print which bounds the figures do not reach, and return the exit status."""
        failures = list(filter(None, (each.failure(figures) for each in self.bounds)))
        self.console.print_lines(failures, "Failed: ")
        return int(bool(failures))

    def evaluation(self, check: Check) -> AgentEvaluation:
        """Return the evaluation of a report, which reuses what other reports have asked."""
        evaluation = AgentEvaluation.of(check.settings(self.settings), check.name)
        stores = check.of_others("eval_results/*/judgments.sqlite3")
        return replace(evaluation, is_quiet=True, shows_scores=False, other_stores=stores)

    def _write(self, reports: Sequence[ShownReport]) -> None:
        for output in self.outputs:
            if output.suffix.lower() in (".html", ".htm"):
                asyncio.run(write_page(output, reports))
            else:
                write_findings(output, [report.found for report in reports])
            self.console.print_line(f"Written: {output}")
        for report in reports:
            page = report.project.paths.eval_results_root.parent / PAGE_NAME
            asyncio.run(write_page(page, [report]))
            self.console.print_line(f"Look at it: {command_line('view', str(page))}")


def _moment(settings: RunSettings) -> datetime | None:
    """Return the report's date, if the command names it."""
    return settings.as_of if isinstance(settings.as_of, datetime) else None
