"""Lint of tasks: eval scripts and rubric files, without running them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mind2web2.authoring.lint_rules import RULES, Rule
from mind2web2.authoring.rubric_lint import rubric_findings
from mind2web2.authoring.script_lint import script_findings
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.utils.files import read_regular_file

_IGNORED = re.compile(rb"#\s*lint:\s*ignore(?:\[([\w ,]*)\])?")
# What a file among scripts must hold to be one, so that helper modules are left alone.
_SCRIPT_SIGNS = (b"evaluate_answer", b"Evaluator(")


@dataclass(frozen=True, order=True)
class Finding:
    """What a rule finds in a file.

    Args:
        line: from 1.
        detail: what the line shows.
    """

    path: Path
    line: int
    number: str
    detail: str

    @property
    def rule(self) -> Rule:
        """Return the rule, in the words of the file's kind."""
        rule = RULES[self.number]
        return rule.of_rubric_files() if self.path.suffix == RUBRIC_SUFFIX else rule

    def __str__(self) -> str:
        """Return one line, as compilers print theirs."""
        return f"{self.path}:{self.line}: {self.number} {self.rule.name}: {self.detail}"


def lint_file(path: Path) -> list[Finding]:
    """Return the findings in an eval script or rubric file, without those that a comment ignores.

    Raises:
        OSError: the file cannot be read.
    """
    content = read_regular_file(path)
    found = (
        rubric_findings(content, path)
        if path.suffix == RUBRIC_SUFFIX
        else script_findings(content, path.name)
    )
    lines = content.splitlines()
    return [
        Finding(path, line, number, " ".join(detail.split()))
        for line, number, detail in found
        if not _is_ignored(lines, line, number)
    ]


def task_files(folder: Path) -> Iterator[Path]:
    """Yield the eval scripts and rubric files below a folder, without helper modules, in order."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix == RUBRIC_SUFFIX or (path.suffix == ".py" and _is_script(path)):
            yield path


def _is_script(path: Path) -> bool:
    """Tell whether a file is an eval script; one without a readable text is taken for a damaged one."""
    content = read_regular_file(path)
    is_damaged = not content.strip() or b"\0" in content
    if is_damaged and path.name != "__init__.py":
        return True
    return any(sign in content for sign in _SCRIPT_SIGNS)


def rules_of(findings: Iterable[Finding]) -> list[Rule]:
    """Return the rules of findings by number, each once for scripts and rubric files alike."""
    rules = {finding.rule for finding in findings}
    return sorted(rules, key=lambda rule: (rule.number, rule.cure))


def _is_ignored(lines: list[bytes], line: int, number: str) -> bool:
    """Tell whether a comment on the line, or alone on the one above, ignores the rule."""
    if line <= len(lines):
        own = lines[line - 1]
    else:
        own = b""
    if 2 <= line <= len(lines) + 1:
        above = lines[line - 2].strip()
    else:
        above = b""
    for text in (own, above if above.startswith(b"#") else b""):
        comment = _IGNORED.search(text)
        if comment is None:
            continue
        numbers = comment[1]
        if (
            numbers is None
            or number in numbers.decode("utf-8", "replace").replace(",", " ").split()
        ):
            return True
    return False
