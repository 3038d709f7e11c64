"""Rubric files read and checked: names lead to fields and nodes, and each leaf says one thing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from keyword import iskeyword
from pathlib import Path
from string import Formatter
from typing import Any

from pydantic import BaseModel

from mind2web2.rubric.values import is_day, number_of
from mind2web2.scripts.rubric_file import (
    ANSWER_EXTRACTION,
    FROM_ANSWER,
    ITEM,
    NUMBER,
    RUBRIC_SUFFIX,
    Condition,
    Equals,
    FieldSpec,
    Limit,
    Root,
    RubricFile,
    RubricNode,
    is_address,
    numbered,
)
from mind2web2.scripts.yaml_lines import (
    AuthorFile,
    Place,
    YamlFileError,
    nearest,
)
from mind2web2.utils.files import read_regular_file


@dataclass(frozen=True)
class ReadRubric:
    """A rubric file with the lines of its parts.

    Args:
        file: has the line of each part, such as ``("root", "children", 0)``.
    """

    file: AuthorFile
    rubric: RubricFile

    @classmethod
    def at(cls, path: Path) -> ReadRubric | None:
        """Read and check a rubric file; return ``None`` for an eval script.

        Raises:
            OSError: there is no such file.
            YamlFileError: as ``parsed``.
        """
        return cls.parsed(read_regular_file(path), path) if path.suffix == RUBRIC_SUFFIX else None

    @staticmethod
    @lru_cache(maxsize=8)
    def parsed(content: bytes, path: Path) -> ReadRubric:
        """Return the rubric of a file's content.

        Raises:
            YamlFileError: it is not a proper rubric file; the text names the line, the field and
                what to do.
        """
        file = AuthorFile.parsed(content, path)
        if file.plain is None:
            raise file.fault((), "the file is empty: mind2web2 new TASK writes one to begin with")
        rubric = file.values_of(RubricFile, Root, RubricNode, FieldSpec, Equals, Limit, Condition)
        read = ReadRubric(file, rubric)
        problems = [file.problem(*each) for each in _Checks(read).faults()]
        if problems:
            raise YamlFileError(path, sorted(problems))
        return read

    def list_counts(self) -> dict[tuple[str, tuple[str, ...]], int]:
        """Return how many items of each list count, by extraction and path."""
        lists = self.rubric.extract.items()
        return {(ANSWER_EXTRACTION, (name,)): each.list for name, each in lists if each.list}

    def nodes(self) -> Iterator[tuple[Place, RubricNode]]:
        """Yield each node with its place, each before its children."""
        yield from _nodes_with_places(self.rubric.root.children, ("root",))


def _nodes_with_places(
    nodes: Sequence[RubricNode], above: Place
) -> Iterator[tuple[Place, RubricNode]]:
    for position, node in enumerate(nodes):
        place = (*above, "children", position)
        yield place, node
        yield from _nodes_with_places(node.children, place)


def rubric_schema() -> dict[str, Any]:
    """Return the JSON Schema of rubric files, as editors read it."""
    schema = RubricFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


# Faults that concern several parts


_Fault = tuple[Place, str]
# What a node may have beside what all may have, by its kind.
_OF_ALL = frozenset({"id", "desc", "critical", "tags", "for_each"})
_OF_TEST = frozenset({"present", "equals", "limit", "distinct"})
_OF_KIND = {
    "a node with children": frozenset({"children", "strategy"}),
    "a claim": frozenset({"claim", "sources", "instruction", "domain", "after", "votes"}),
    "any_of": frozenset({"any_of"}),
    "a leaf that code decides": _OF_TEST | {"domain"},
}
_TYPE_NAMES = frozenset({"str", "int", "float", "bool", "list", "Field"})
_RESERVED = frozenset({ITEM, NUMBER, FROM_ANSWER})


def placeholders(text: str) -> list[str]:
    """Return the names in braces of a text. Raises ValueError: the braces make no sense."""
    names = []
    for _, name, form, conversion in Formatter().parse(text):
        if name is None:
            continue
        if (
            form
            or conversion
            or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*", name)
        ):
            raise ValueError(
                f"{{{name}}} names no field: write {{{{ and }}}} for braces of the text"
            )
        names.append(name)
    return names


class _Checks:
    """Checks that names lead to fields and nodes, and that each leaf says one thing."""

    def __init__(self, read: ReadRubric) -> None:
        self._rubric = read.rubric
        self._read = read
        self._ids: dict[str, Place] = {}
        extract = read.rubric.extract
        self._lists = [
            name for name, field in extract.items() if field.list is not None and field.fields
        ]

    def faults(self) -> Iterator[_Fault]:
        """Yield the faults with their places."""
        if self._rubric.task != self._read.file.path.stem:
            yield (
                ("task",),
                f"the file is named {self._read.file.path.stem}: give both the same name",
            )
        for name, spec in self._rubric.extract.items():
            yield from self._field_faults(("extract", name), name, spec, depth=0)
        yield from self._children_faults(self._rubric.root.children, ("root",), None, None)

    def _field_faults(
        self, place: Place, name: str, spec: FieldSpec, depth: int
    ) -> Iterator[_Fault]:
        is_taken = name in _TYPE_NAMES or name in dir(BaseModel) or iskeyword(name)
        has_page, has_list, has_parts = spec.page is not None, spec.list is not None, spec.fields
        yield from _those_that_hold(
            place,
            (name in _RESERVED, "", f"'{name}' has a meaning of its own here: choose another name"),
            (
                is_taken or name.startswith("model_"),
                "",
                f"'{name}' is a name of Python's or pydantic's: choose another one",
            ),
            (
                has_page and has_list,
                "list",
                "a page gives no list: leave it out, and give the group its parts as fields",
            ),
            (
                has_page and depth,
                "page",
                "only a field of the top level can have a page: move it there",
            ),
            (
                has_parts and spec.type is not None,
                "type",
                "a group has no type: give types to its fields",
            ),
            (
                has_list and not has_parts,
                "list",
                "a list needs fields: say what each item has (fields: {name: ...})",
            ),
            (has_list and depth, "list", "a list stands at the top level: move it there"),
            (
                has_page and not has_parts,
                "page",
                "a page needs fields: say what to read from it (fields: {year: ...})",
            ),
        )
        for part, below in spec.fields.items():
            yield from self._field_faults((*place, "fields", part), part, below, depth + 1)

    def _children_faults(
        self,
        nodes: Sequence[RubricNode],
        above: Place,
        parent: RubricNode | None,
        inside: str | None,
    ) -> Iterator[_Fault]:
        for position, node in enumerate(nodes):
            place = (*above, "children", position)
            if parent is not None and parent.critical and not node.critical:
                yield (
                    place,
                    f"'{node.id}' is not critical under the critical '{parent.id}': add critical: "
                    "true",
                )
            around = inside
            if node.for_each is not None:
                yield from self._loop_faults(node.for_each, place, inside)
                around = node.for_each if node.for_each in self._lists else None
            yield from self._id_faults(node, place, around)
            yield from self._text_faults(node, place, around)
            yield from self._leaf_faults(node, place, around)
            yield from self._children_faults(node.children, place, node, around)

    def _loop_faults(self, name: str, place: Place, inside: str | None) -> Iterator[_Fault]:
        if inside is not None:
            yield (
                (*place, "for_each"),
                "stands within another for_each: write the inner nodes out",
            )
        if name not in self._lists:
            there = (
                f"there is {', '.join(self._lists)}"
                if self._lists
                else "give a field 'list: N' and 'fields'"
            )
            yield (
                (*place, "for_each"),
                f"'{name}' is not a list of the extraction: {there}",
            )

    def _id_faults(self, node: RubricNode, place: Place, inside: str | None) -> Iterator[_Fault]:
        for node_id in _item_ids(node.id, self._rubric, inside):
            if node_id == "root":
                yield (
                    (*place, "id"),
                    "the tree's root has the id 'root': choose another one",
                )
            elif node_id in self._ids:
                first = self._read.file.line_of(*self._ids[node_id], "id")
                yield (
                    (*place, "id"),
                    f"'{node_id}' is the id of another node, in line {first}: choose another one",
                )
            self._ids.setdefault(node_id, place)
        if inside is not None and "{number}" not in node.id:
            yield (
                (*place, "id"),
                f"stands in a for_each: put {{number}} into it, such as '{node.id}_{{number}}'",
            )

    def _text_faults(self, node: RubricNode, place: Place, inside: str | None) -> Iterator[_Fault]:
        for field in ("id", "desc", "instruction", "claim"):
            text = getattr(node, field)
            if text is None:
                continue
            try:
                names = placeholders(text)
            except ValueError as error:
                yield (*place, field), str(error)
                continue
            for name in names:
                if name == NUMBER and inside is not None:
                    continue
                if field != "claim" or name == NUMBER:
                    where = (
                        "only {number} stands here, within a for_each"
                        if name != NUMBER
                        else "works in a for_each only"
                    )
                    yield (*place, field), f"{{{name}}}: {where}"
                else:
                    yield from self._value_faults((*place, field), name, inside)

    def _value_faults(self, place: Place, path: str, inside: str | None) -> Iterator[_Fault]:
        """Check that a path leads to one value that can stand in a sentence."""
        try:
            kind = self._rubric.type_at(path, inside)
        except ValueError as error:
            yield place, str(error)
            return
        if kind is None:
            first = next(iter(self._rubric.field_at(path, inside).fields))
            yield place, f"'{path}' is a group: name one of its fields, such as {path}.{first}"
        elif kind == "urls":
            yield (
                place,
                f"'{path}' holds addresses: a claim takes values (addresses belong to sources)",
            )

    def _leaf_faults(self, node: RubricNode, place: Place, inside: str | None) -> Iterator[_Fault]:
        kind, given = _kind(node), node.model_dump(exclude_defaults=True).keys()
        for key in given - _OF_ALL - _OF_KIND[kind]:
            yield (*place, key), f"does not go with {kind}: leave it out, or give it another node"
        if not given & (_OF_TEST | {"children", "claim", "any_of"}):
            tests = ", ".join(sorted(_OF_TEST))
            yield place, f"'{node.id}' says nothing: give it children, claim, any_of, {tests}"
        if node.domain and node.claim is None and not node.present:
            yield (*place, "domain"), "goes with sources of a claim, or with present"
        if node.claim is not None:
            yield from self._claim_faults(node, place, inside)
        yield from self._check_faults(node, place, inside)
        for position, each in enumerate(node.any_of):
            yield from self._alternative_faults(node, each, (*place, "any_of", position), inside)

    def _alternative_faults(
        self, node: RubricNode, each: Condition, place: Place, inside: str | None
    ) -> Iterator[_Fault]:
        """Check an alternative as a leaf of its own."""
        given = {name: getattr(each, name) for name in each.model_fields_set}
        leaf = RubricNode(id=node.id, desc=node.desc, **given)
        yield from self._text_faults(leaf, place, inside)
        yield from self._leaf_faults(leaf, place, inside)

    def _claim_faults(self, node: RubricNode, place: Place, inside: str | None) -> Iterator[_Fault]:
        if not node.sources:
            yield (
                place,
                "the claim has no sources: name a field of addresses, or 'answer' for the answer "
                "alone",
            )
        if FROM_ANSWER in node.sources and len(node.sources) > 1:
            yield (
                (*place, "sources"),
                "'answer' stands alone: name it, or fields of addresses",
            )
        for path in node.sources:
            if path == FROM_ANSWER or is_address(path):
                continue
            try:
                kind = self._rubric.type_at(path, inside)
            except ValueError as error:
                yield (*place, "sources"), str(error)
                continue
            if kind != "urls":
                yield (
                    (*place, "sources"),
                    f"'{path}' holds no addresses: name a field of type urls",
                )
        for name in node.after:
            wanted = name if inside is None else numbered(name, 1)
            if wanted not in self._ids or wanted in _item_ids(node.id, self._rubric, inside):
                yield (
                    (*place, "after"),
                    f"no earlier node '{name}'{nearest(name, self._ids)}",
                )

    def _check_faults(self, node: RubricNode, place: Place, inside: str | None) -> Iterator[_Fault]:
        for path in node.present:
            try:
                self._rubric.field_at(path, inside)
            except ValueError as error:
                if not (path == ITEM and inside is not None):
                    yield (*place, "present"), str(error)
        if node.distinct is not None:
            yield from self._distinct_faults(node.distinct, (*place, "distinct"), inside)
        if node.equals is not None:
            yield from self._equals_faults(node.equals, (*place, "equals"), inside)
        if node.limit is not None:
            yield from self._limit_faults(node.limit, (*place, "limit"), inside)

    def _limit_faults(self, limit: Limit, place: Place, inside: str | None) -> Iterator[_Fault]:
        given = list(filter(None, (limit.field, limit.sum_of, limit.count_of)))
        count_of = limit.count_of
        yield from _those_that_hold(
            place,
            (len(given) != 1, "", "needs exactly one of field, sum_of and count_of"),
            (
                not limit.numbers and not limit.days,
                "",
                "needs a bound: at_least, at_most, after or before",
            ),
            (
                limit.days and (limit.numbers or limit.field is None),
                "",
                "after and before are for the day of one field",
            ),
            (
                count_of and count_of not in self._lists,
                "count_of",
                f"'{count_of}' is not a list of the extraction",
            ),
        )
        for path in filter(None, (limit.field, *limit.sum_of)):
            yield from self._value_faults(place, path, inside)
        for key, bound in {**limit.numbers, **limit.days}.items():
            if isinstance(bound, str) and not self._is_bound(bound, limit, inside):
                kind = "day, such as 2025-09-01," if limit.days else "number"
                yield (*place, key), f"'{bound}' is neither a {kind} nor a field"

    def _is_bound(self, bound: str, limit: Limit, inside: str | None) -> bool:
        if not any(self._value_faults((), bound, inside)):
            return True
        return is_day(bound) if limit.days else number_of(bound) is not None

    def _distinct_faults(self, path: str, place: Place, inside: str | None) -> Iterator[_Fault]:
        names = path.split(".")
        listed = self._rubric.extract.get(names[0])
        if names[0] == ITEM:
            yield from self._value_faults(place, path, inside)
        elif listed is None or listed.list is None:
            yield (
                place,
                f"'{path}' is not a field of a list: write LIST.FIELD, or item.FIELD within a "
                "for_each",
            )
        else:
            yield from self._value_faults(place, ".".join((ITEM, *names[1:])), names[0])

    def _equals_faults(self, equals: Equals, place: Place, inside: str | None) -> Iterator[_Fault]:
        given = [
            name
            for name in ("value", "same_as", "sum_of")
            if getattr(equals, name) not in (None, ())
        ]
        if len(given) != 1:
            cure = (
                ""
                if given or "value" not in equals.model_fields_set
                else ": put a value such as null or ~ in quotes"
            )
            yield place, f"needs exactly one of value, same_as and sum_of{cure}"
        if equals.within and equals.compare != "number":
            yield (*place, "within"), "works with compare: number only"
        if equals.sum_of and equals.compare != "number":
            yield (*place, "compare"), "a sum is a number: write compare: number"
        others = [equals.same_as] if equals.same_as else []
        wrong_fields = [
            fault
            for path in (equals.field, *others, *equals.sum_of)
            for fault in self._value_faults(place, path, inside)
        ]
        yield from wrong_fields
        if equals.value is not None and not wrong_fields:
            try:
                self._rubric.expected(equals, inside)
            except ValueError as error:
                yield (*place, "value"), str(error)


def _kind(node: RubricNode) -> str:
    if node.children:
        return "a node with children"
    if node.claim is not None:
        return "a claim"
    return "any_of" if node.any_of else "a leaf that code decides"


def _item_ids(node_id: str, rubric: RubricFile, inside: str | None) -> list[str]:
    numbers = range(1, rubric.items_of(inside) + 1)
    return list(dict.fromkeys(numbered(node_id, number) for number in numbers))


def _those_that_hold(place: Place, *faults: tuple[object, str, str]) -> Iterator[_Fault]:
    """Yield the faults that hold, each at a key of the place, or at the place itself."""
    for holds, key, message in faults:
        if holds:
            yield (*place, key) if key else place, message
