"""The work of ``mind2web2 check``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from mind2web2.cli.console import line, plain_console
from mind2web2.cli.evaluate import prepared
from mind2web2.cli.evaluate_report import print_estimate
from mind2web2.cli.evaluate_run import run_evaluation
from mind2web2.cli.settings_file import settings_of
from mind2web2.plugins.check.figures import Bound
from mind2web2.plugins.check.findings import CheckedReport, checked_report
from mind2web2.plugins.check.inputs import report_name, report_text
from mind2web2.plugins.check.outputs import print_findings, write_output
from mind2web2.plugins.check.statements import ReadReport, read_report
from mind2web2.runs.answers import select_work
from mind2web2.runs.results import answer_results_dir, latest_result
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.files import write_whole
from mind2web2.utils.path_config import PathConfig

_SCRIPTS = Path(__file__).parent / "eval_scripts"
TASK = "report"
ANSWER = "answer_1"


@dataclass(frozen=True)
class Check:
    """A report that is checked, in a project of its own.

    Args:
        folder: has the report as an answer, its pages and results.
    """

    name: str
    text: str
    read: ReadReport
    folder: Path

    @classmethod
    def of(cls, report: str, checks: Path) -> Check:
        """Read a report."""
        name = report_name(report)
        text = report_text(report)
        return cls(name, text, read_report(text), checks / name)

    @property
    def paths(self) -> PathConfig:
        """Return the folders of the project."""
        return PathConfig(self.folder).apply_overrides(eval_scripts_root=_SCRIPTS)

    def write(self) -> None:
        """Write the report as the answer that is evaluated."""
        path = self.paths.answers_root / self.name / TASK / f"{ANSWER}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.text)

    def settings(self, settings: RunSettings) -> RunSettings:
        """Return the settings of the evaluation."""
        roots = self.paths
        return replace(
            settings,
            agent_name=self.name,
            answer_folder=roots.answers_root,
            eval_scripts_root=roots.eval_scripts_root,
            eval_results_root=roots.eval_results_root,
            cache_root=roots.cache_root,
        )

    def findings(self) -> CheckedReport | None:
        """Return what the newest result says, ``None`` without one."""
        folder = answer_results_dir(
            self.paths.eval_results_root, self.name, TASK, ANSWER
        )
        found = latest_result(folder)
        return (
            None
            if found is None
            else checked_report(self.name, self.read, found.content)
        )


def run(options: argparse.Namespace) -> int:
    """Check the reports and return the exit status."""
    bounds = [Bound.read(text) for text in options.fail_under]
    checks = [Check.of(report, options.checks) for report in options.reports]
    if options.list:
        for check in checks:
            print(check.read.model_dump_json(indent=2))  # noqa: T201
        return 0
    settings = prepared(settings_of(options, is_announced=True))
    console = plain_console()
    statuses = [
        _checked(check, settings, console, options.output, bounds) for check in checks
    ]
    return max(statuses)


def _checked(
    check: Check,
    settings: RunSettings,
    console: Console,
    outputs: Sequence[Path],
    bounds: Sequence[Bound],
) -> int:
    check.write()
    own = check.settings(settings)
    work = select_work(check.paths, check.name)
    if own.estimate:
        return print_estimate(own, check.name, check.paths, work)
    status = run_evaluation(
        replace(own, quiet=True), check.name, check.paths, work, checked=own
    )
    found = check.findings() if status == 0 else None
    if found is None:
        return status or 1
    print_findings(console, found, check.folder)
    for output in outputs:
        write_output(output, found, check.text)
        line(console, f"Written: {output}")
    failures = [text for bound in bounds if (text := bound.failure(found.figures))]
    for text in failures:
        line(console, f"Failed: {text}")
    return 1 if failures else 0
