"""Lint of rubric files: the rules that data can break."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mind2web2.authoring.lint_rules import (
    ABOUT_THE_ANSWER,
    HIDDEN_TAG,
    RANGE_OR_UNIT,
    has_several_facts,
    unclear_word,
)
from mind2web2.scripts.rubric_file import FROM_ANSWER, FieldSpec, RubricNode
from mind2web2.scripts.rubric_reading import ReadRubric, parsed_rubric
from mind2web2.scripts.yaml_lines import Place, YamlFileError
from mind2web2.utils.text import counted

Found = tuple[int, str, str]
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def rubric_findings(content: bytes, path: Path) -> list[Found]:
    """Return the findings on a rubric file: line, number of the rule, and what the line shows."""
    try:
        read = parsed_rubric(content, path)
    except YamlFileError as error:
        return [
            (problem.line, "R101", f"{problem.field} {problem.message}".strip())
            for problem in error.problems
        ]
    checks = (
        _name,
        _claims,
        _whole_tree,
        _repeated_leaves,
        _given_away,
        _numbers,
        _descriptions,
    )
    return sorted({found for check in checks for found in check(read)})


def _name(read: ReadRubric) -> Iterator[Found]:
    task, name = read.rubric.task, read.path.stem
    if task != name:
        yield read.line_of("task"), "R104", f"task: {task} in {read.path.name}"


def _claims(read: ReadRubric) -> Iterator[Found]:
    for place, node in read.nodes():
        if node.claim is None:
            continue
        line = read.line_of(*place, "claim")
        # A placeholder stands for a name, whose letters say nothing.
        text = _PLACEHOLDER.sub("{}", node.claim)
        is_about_answer = ABOUT_THE_ANSWER.search(f"{text} {node.instruction or ''}")
        if node.sources == (FROM_ANSWER,) and not is_about_answer:
            yield read.line_of(*place, "sources"), "R201", node.id
        if has_several_facts(text):
            yield line, "R401", node.claim
        word = unclear_word(text)
        if word is not None:
            yield line, "R402", f"'{word}' in: {node.claim}"


def _whole_tree(read: ReadRubric) -> Iterator[Found]:
    nodes = list(read.rubric.root.walk())
    claims = [node for node in nodes if node.claim is not None]
    line = read.line_of("root")
    if not any(node.sources and node.sources != (FROM_ANSWER,) for node in claims):
        reads_page = any(field.page for field in read.rubric.extract.values())
        if not reads_page:
            yield line, "R203", f"{counted(len(claims), 'claim')}, none with a page"
    strategies = {read.rubric.root.strategy, *(node.strategy for node in nodes)}
    if "sequential" not in strategies and not any(node.critical for node in nodes):
        yield line, "R301", f"{counted(len(nodes), 'node')}, none critical"


def _repeated_leaves(read: ReadRubric) -> Iterator[Found]:
    tests: dict[str, tuple[int, str]] = {}
    for place, node in read.nodes():
        if not node.is_leaf:
            continue
        test = _test_of(node)
        line = read.line_of(*place)
        if test in tests:
            yield (
                line,
                "R303",
                f"'{node.id}' tests what '{tests[test][1]}' in line {tests[test][0]} does",
            )
        tests.setdefault(test, (line, node.id))


def _test_of(node: RubricNode) -> str:
    """Return what a leaf tests, without its name and place."""
    return node.model_dump_json(
        include={"claim", "sources", "present", "equals", "distinct", "for_each"}
    )


def _given_away(read: ReadRubric) -> Iterator[Found]:
    question = read.rubric.question.casefold()
    expected = {
        node.equals.value.strip()
        for node in read.rubric.root.walk()
        if node.equals is not None and isinstance(node.equals.value, str)
    }
    for place, field in _fields(read):
        for value in sorted(expected):
            if len(value) < 4 or value.casefold() in question:
                continue
            if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", field.ask, re.IGNORECASE):
                yield read.line_of(*place, "ask"), "R205", f"'{value}' in: {field.ask}"


def _numbers(read: ReadRubric) -> Iterator[Found]:
    for place, field in _fields(read):
        if field.type in ("number", "integer") and RANGE_OR_UNIT.search(field.ask):
            yield read.line_of(*place, "ask"), "R404", field.ask


def _descriptions(read: ReadRubric) -> Iterator[Found]:
    for place, node in read.nodes():
        tag = HIDDEN_TAG.match(node.desc)
        if tag is not None:
            yield read.line_of(*place, "desc"), "R403", tag[1]


def _fields(read: ReadRubric) -> Iterator[tuple[Place, FieldSpec]]:
    """Yield all fields of the extraction with their places."""
    waiting: list[tuple[Place, FieldSpec]] = [
        (("extract", name), field) for name, field in read.rubric.extract.items()
    ]
    while waiting:
        place, field = waiting.pop()
        yield place, field
        waiting += [((*place, "fields", name), part) for name, part in field.fields.items()]
