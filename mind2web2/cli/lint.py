"""``mind2web2 lint``: faults of eval scripts and rubric files, found without running them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from mind2web2.authoring.lint import Finding, lint_file, rules_of, task_files
from mind2web2.errors import UsageError
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status."""
    paths = _chosen(options.files or [options.eval_scripts_root])
    findings = [finding for path in paths for finding in lint_file(path)]
    write = {"text": _text, "json": _json, "github": _github}[options.format]
    sys.stdout.writelines(f"{line}\n" for line in write(findings, len(paths)))
    has_error = any(finding.rule.is_error for finding in findings)
    return FAILED if has_error or (options.strict and findings) else 0


def _chosen(given: Sequence[Path]) -> list[Path]:

    paths: list[Path] = []
    for path in given:
        if path.is_dir():
            paths += task_files(path)
        elif path.is_file():
            paths.append(path)
        else:
            raise UsageError(
                f"no file {path}: name an eval script, a rubric file or a folder of them"
            )
    if not paths:
        raise UsageError(f"no eval scripts under {given[0]}: make one with {program()} new TASK")
    return paths


def _text(findings: Sequence[Finding], files: int) -> Iterable[str]:

    yield from map(str, findings)
    if findings:
        yield ""
    for rule in rules_of(findings):
        yield f"{rule.number} {rule.name}: {rule.reason}. To do: {rule.cure}."
    number = counted(len(findings), "finding") if findings else "no findings"
    yield f"{counted(files, 'file')}, {number}."


def _json(findings: Sequence[Finding], _: int) -> Iterable[str]:
    yield json.dumps(
        [
            {
                "path": str(finding.path),
                "line": finding.line,
                "rule": finding.number,
                "name": finding.rule.name,
                "detail": finding.detail,
                "reason": finding.rule.reason,
                "cure": finding.rule.cure,
            }
            for finding in findings
        ],
        indent=1,
    )


def _github(findings: Sequence[Finding], _: int) -> Iterable[str]:
    for finding in findings:
        title = f"{finding.number} {finding.rule.name}"
        text = f"{finding.detail} ({finding.rule.reason}; {finding.rule.cure})"
        place = f"file={_escaped(str(finding.path))},line={finding.line},title={_escaped(title)}"
        level = "error" if finding.rule.is_error else "warning"
        yield f"::{level} {place}::{_escaped(text, in_value=False)}"


def _escaped(text: str, in_value: bool = True) -> str:
    """Return a text as GitHub's workflow commands take it."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_value else text
