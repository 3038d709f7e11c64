"""Rubric files as text: written as YAML, and shown as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from mind2web2.scripts.rubric_file import NUMBER, RubricFile, RubricNode

_NAME_LISTS = ("sources", "present", "after", "tags", "sum_of")


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML ships no types
    """Writes texts of several lines as blocks."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def rubric_yaml(rubric: RubricFile) -> str:
    """Return the file's text, with what differs from the defaults."""
    plain = rubric.model_dump(mode="json", exclude_defaults=True)
    ordered = {name: plain[name] for name in RubricFile.model_fields if name in plain}
    if "extract" in ordered:
        ordered["extract"] = _short_fields(ordered["extract"])
    text: str = yaml.dump(
        _short_names(ordered), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110
    )
    return text


def _short_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write fields that only say what to ask as a text."""
    short: dict[str, Any] = {}
    for name, spec in fields.items():
        nested = {**spec, "fields": _short_fields(spec["fields"])} if "fields" in spec else spec
        short[name] = spec["ask"] if spec.keys() == {"ask"} else nested
    return short


def _short_names(value: Any) -> Any:
    """Write lists of one name as that name."""
    if isinstance(value, list):
        return [_short_names(each) for each in value]
    if not isinstance(value, dict):
        return value
    short = {name: _short_names(each) for name, each in value.items()}
    for name in _NAME_LISTS:
        if isinstance(short.get(name), list) and len(short[name]) == 1:
            short[name] = short[name][0]
    return short


def expanded(rubric: RubricFile) -> tuple[RubricNode, ...]:
    """Return the nodes below the root with each ``for_each`` written out."""
    return tuple(_expanded(rubric.root.children, rubric, None))


def _expanded(nodes: tuple[RubricNode, ...], rubric: RubricFile, number: int | None) -> Iterator[RubricNode]:
    for node in nodes:
        count = 1 if node.for_each is None else rubric.extract[node.for_each].list or 1
        for each in range(1, count + 1):
            of_item = number if node.for_each is None else each
            written = {name: _numbered(getattr(node, name), of_item) for name in ("id", "desc")}
            children = tuple(_expanded(node.children, rubric, of_item))
            yield node.model_copy(update={**written, "for_each": None, "children": children})


def _numbered(text: str, number: int | None) -> str:
    return text if number is None else text.replace(f"{{{NUMBER}}}", str(number))


def tree_lines(rubric: RubricFile) -> Iterator[str]:
    """Yield the tree as lines of text: gates, leaves and what each leaf asks."""
    yield f"{rubric.task}: root, {rubric.root.strategy}"
    yield from _lines(rubric.root.children, rubric, "  ")


def _lines(nodes: tuple[RubricNode, ...], rubric: RubricFile, indent: str) -> Iterator[str]:
    for node in nodes:
        marks = ["critical"] if node.critical else []
        if node.children:
            marks.append(node.strategy or "parallel")
        if node.for_each is not None:
            marks.append(f"for each of {rubric.extract[node.for_each].list} {node.for_each}")
        marks += [f"tag {tag}" for tag in node.tags]
        marks += [] if node.weight is None else [f"weight {node.weight:g}"]
        yield (
            f"{indent}{node.id} ({', '.join(marks)}): {node.desc}"
            if marks
            else f"{indent}{node.id}: {node.desc}"
        )
        yield from (f"{indent}    {part}" for part in _leaf_parts(node))
        yield from _lines(node.children, rubric, indent + "  ")


def _leaf_parts(node: RubricNode) -> Iterator[str]:
    if node.claim is not None:
        yield f"claim: {' '.join(node.claim.split())} <- {', '.join(node.sources)}"
    if node.instruction is not None:
        yield f"instruction: {' '.join(node.instruction.split())}"
    if node.present:
        yield f"present: {', '.join(node.present)}"
    if node.distinct is not None:
        yield f"distinct: {node.distinct}"
    if node.equals is not None:
        equals = node.equals
        wanted = " + ".join(equals.sum_of) or equals.same_as or repr(equals.value)
        within = f", within {equals.within}" if equals.within else ""
        yield f"equals: {equals.field} = {wanted} (as {equals.compare}{within})"
    if node.after:
        yield f"after: {', '.join(node.after)}"
