"""Rubric files written as YAML, and their trees with each loop written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from mind2web2.scripts.rubric_file import RubricFile, RubricNode, numbered

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
        _short_names(ordered),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
    )
    return text


def _short_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write fields that only say what to ask as a text."""
    short: dict[str, Any] = {}
    for name, spec in fields.items():
        nested = (
            {**spec, "fields": _short_fields(spec["fields"])}
            if "fields" in spec
            else spec
        )
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


def _expanded(
    nodes: tuple[RubricNode, ...], rubric: RubricFile, number: int | None
) -> Iterator[RubricNode]:
    for node in nodes:
        for each in range(1, rubric.items_of(node.for_each) + 1):
            of_item = number if node.for_each is None else each
            written = {
                name: numbered(getattr(node, name), of_item) for name in ("id", "desc")
            }
            children = tuple(_expanded(node.children, rubric, of_item))
            yield node.model_copy(
                update={**written, "for_each": None, "children": children}
            )
