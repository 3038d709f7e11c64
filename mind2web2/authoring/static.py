"""Text rules: what the text of an eval script or rubric file shows to be wrong, without running it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mind2web2.authoring.findings import ABOUT_THE_ANSWER
from mind2web2.authoring.script_rules import Found, script_findings
from mind2web2.scripts.rubric_file import FROM_ANSWER, RUBRIC_SUFFIX, RubricNode
from mind2web2.scripts.rubric_reading import ReadRubric, parsed_rubric
from mind2web2.scripts.yaml_lines import YamlFileError
from mind2web2.utils.files import read_regular_file

_IGNORED = re.compile(rb"#\s*(?:lint|rehearse):\s*ignore(?:\[([\w ,]*)\])?")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class Rule:
    """A rule for the text of scripts and rubric files.

    Args:
        is_error: no other rule can look at the file.
        is_certain: also told where a full rehearsal shows what the rubric does.
        kind: of the findings by which a run shows the same.
    """

    number: str
    name: str
    cure: str
    is_error: bool = False
    is_certain: bool = False
    kind: str = ""


_SOURCES = "sources dropped"
_RULES = (
    Rule("R101", "does not parse", "correct the line", is_error=True, is_certain=True),
    Rule("R102", "undefined name", "import or define it, or correct its spelling", is_certain=True),
    Rule("R201", "claim about the world without sources", "name the cited pages", kind=_SOURCES),
    Rule("R202", "sources without a gate", "add a critical test that there are any", kind=_SOURCES),
    Rule("R203", "no leaf opens a page", "judge central claims on their pages", kind=_SOURCES),
    Rule("R303", "the same test in two leaves", "remove one", is_certain=True, kind="claim twice"),
    Rule("R304", "id repeated", "give each node an id of its own", is_certain=True),
    Rule("R305", "leaf never judged", "verify it, or decide it by code", kind="never judged"),
)
RULES = {rule.number: rule for rule in _RULES}


@dataclass(frozen=True, order=True)
class Remark:
    """A finding of a rule in a file.

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
        """Return the rule."""
        return RULES[self.number]

    def __str__(self) -> str:
        """Return one line with the place and the cure."""
        rule = self.rule
        return (
            f"{self.path.name}:{self.line}: {self.number} {rule.name}: {self.detail}; {rule.cure}"
        )


def remarks_on(path: Path) -> list[Remark]:
    """Return the remarks on an eval script or rubric file, without those that a comment ignores."""
    content = read_regular_file(path)
    if path.suffix == RUBRIC_SUFFIX:
        found = rubric_findings(content, path)
    else:
        found = script_findings(content, path.name)
    lines = content.splitlines()
    return [
        Remark(path, line, number, " ".join(detail.split()))
        for line, number, detail in found
        if not _is_ignored(lines, line, number)
    ]


def _is_ignored(lines: list[bytes], line: int, number: str) -> bool:
    """Tell whether a comment on the line, or alone on the one above, ignores the rule."""
    texts = lines[line - 1 : line]
    above = lines[line - 2] if 2 <= line <= len(lines) + 1 else b""
    if above.strip().startswith(b"#"):
        texts.append(above)
    for text in texts:
        comment = _IGNORED.search(text)
        if comment is None:
            continue
        numbers = (comment[1] or b"").decode("utf-8", "replace").replace(",", " ").split()
        if comment[1] is None or number in numbers:
            return True
    return False


def rubric_findings(content: bytes, path: Path) -> list[Found]:
    """Return the findings on a rubric file: line, number of the rule, and what the line shows."""
    try:
        read = parsed_rubric(content, path)
    except YamlFileError as error:
        return [
            (problem.line, "R101", f"{problem.field} {problem.message}".strip())
            for problem in error.problems
        ]
    return sorted({*_claims(read), *_no_page(read), *_repeated_leaves(read)})


def _claims(read: ReadRubric) -> Iterator[Found]:
    for place, node in read.nodes():
        # A placeholder stands for a name, whose letters say nothing.
        text = _PLACEHOLDER.sub("{}", node.claim or "")
        is_fact = "{}" in text and not ABOUT_THE_ANSWER.search(text)
        if node.sources == (FROM_ANSWER,) and is_fact:
            yield read.line_of(*place, "sources"), "R201", node.id


def _no_page(read: ReadRubric) -> Iterator[Found]:
    claims = [node for node in read.rubric.root.walk() if node.claim is not None]
    opens_page = any(node.sources != (FROM_ANSWER,) for node in claims)
    reads_page = any(field.page for field in read.rubric.extract.values())
    if claims and not opens_page and not reads_page:
        yield read.line_of("root"), "R203", "each claim has the answer as its source"


def _repeated_leaves(read: ReadRubric) -> Iterator[Found]:
    tests: dict[str, tuple[int, str]] = {}
    for place, node in read.nodes():
        if not node.is_leaf:
            continue
        line, test = read.line_of(*place), _test_of(node)
        if test in tests:
            first_line, first = tests[test]
            yield line, "R303", f"'{node.id}' tests what '{first}' in line {first_line} does"
        tests.setdefault(test, (line, node.id))


def _test_of(node: RubricNode) -> str:
    """Return what a leaf tests, without its name and place."""
    names = {"id", "desc", "critical", "tags", "weight", "instruction", "after", "votes"}
    return node.model_dump_json(exclude=names)
