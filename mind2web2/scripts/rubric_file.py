"""Rubric files: a task's question, extraction and rubric tree as data in YAML (docs/rubric-files.md).

``read_rubric`` returns the model; ``mind2web2.scripts.rubric_script`` turns it into the script that runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from keyword import iskeyword
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from mind2web2.errors import EvalScriptError
from mind2web2.utils.files import read_regular_file

RUBRIC_SUFFIX = ".yaml"
# The name under which the answer's own extraction is recorded.
ANSWER_EXTRACTION = "answer"
ITEM = "item"
NUMBER = "number"
FROM_ANSWER = "answer"
MOST_BYTES = 2 * 1024**2

FieldType = Literal["text", "number", "integer", "yes_no", "urls"]
Comparison = Literal["exact", "text", "number", "date"]
Strategy = Literal["parallel", "sequential"]

_NAME = r"^[A-Za-z][A-Za-z0-9_]*$"


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Names = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_list),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    ),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FieldSpec(_Part):
    """A value to extract; a plain text stands for ``ask``."""

    ask: str = Field(description="what to extract", examples=["the name of the museum"])
    type: FieldType | None = Field(
        None,
        description="default: urls for a name that ends in urls, else text",
        examples=["text"],
    )
    list: int | None = Field(
        None,
        ge=1,
        le=200,
        description="a list: the number of its items that count",
        examples=[3],
    )
    fields: dict[Annotated[str, Field(pattern=_NAME)], FieldSpec] = Field(
        default_factory=dict,
        description="the parts of a group, or of each item of a list",
        examples=[{"name": "the name of the museum"}],
    )
    page: str | None = Field(
        None,
        pattern="^https?://",
        description="read it from this page instead of the answer (top level only)",
        examples=["https://example.org/figures"],
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"ask": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema of both forms."""
        own = handler.resolve_ref_schema(handler(schema))
        return {
            "anyOf": [{"type": "string"}, own],
            "description": own.pop("description"),
        }


class Equals(_Part):
    """A comparison of an extracted field, without a judge."""

    field: str = Field(description="the field to compare", examples=["museum.founded"])
    value: str | int | float | bool | None = Field(
        None, description="the right value", examples=[1911]
    )
    same_as: str | None = Field(
        None, description="another field", examples=["figures.founded"]
    )
    sum_of: _Names = Field(
        (), description="fields whose sum it must be", examples=[["ferry", "tour"]]
    )
    compare: Comparison = Field(
        description="exact; text (letter case, spaces and punctuation do not count); number; date",
        examples=["text"],
    )
    within: float | Annotated[str, Field(pattern=r"^\d+(\.\d+)?%$")] = Field(
        0.0, description="how far a number may be off", examples=[0.5, "1%"]
    )


class RubricNode(_Part):
    """A node of the tree: with ``children`` an inner node, without them a leaf."""

    id: str = Field(
        min_length=1, description="unique in the tree", examples=["museum_founded"]
    )
    desc: str = Field(
        min_length=1, description="one line for readers", examples=["The year is right"]
    )
    critical: bool = Field(
        False, description="a gate: if it fails, its parent counts 0", examples=[True]
    )
    tags: _Names = Field((), description="for metrics by tag", examples=[["existence"]])
    weight: float | None = Field(
        None,
        description="for the weighted figure beside the score (imports)",
        examples=[5],
    )
    for_each: str | None = Field(
        None,
        description="repeat for each item of this list, as {item} with {number}",
        examples=["museums"],
    )
    strategy: Strategy | None = Field(
        None, description="of an inner node", examples=["parallel"]
    )
    children: tuple[RubricNode, ...] = Field(
        (), description="the nodes below", examples=[[]]
    )
    claim: str | None = Field(
        None,
        min_length=1,
        description="a sentence to judge, with {fields} of the extraction",
        examples=["{museum.name} was founded in {museum.founded}."],
    )
    sources: _Names = Field(
        (),
        description="fields of addresses to judge the claim on, or answer for the answer alone",
        examples=["museum.urls"],
    )
    instruction: str | None = Field(
        None,
        description="what the judge must know beside the claim",
        examples=["Accept a rounded number."],
    )
    after: _Names = Field(
        (), description="ids of earlier nodes that must not fail", examples=[["ferry"]]
    )
    votes: int | None = Field(
        None, ge=1, le=15, description="votes at most, an odd number", examples=[3]
    )
    present: _Names = Field(
        (), description="fields that must not be empty", examples=[["museum.name"]]
    )
    equals: Equals | None = Field(
        None,
        description="a field against a value",
        examples=[{"field": "museum.founded", "value": 1911, "compare": "number"}],
    )
    distinct: str | None = Field(
        None,
        description="a list's field, whose values must differ",
        examples=["museums.name"],
    )

    @property
    def is_leaf(self) -> bool:
        """Tell whether the node has no children."""
        return not self.children

    def walk(self) -> Iterator[RubricNode]:
        """Yield the node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


class Root(_Part):
    """The root of the tree."""

    strategy: Strategy = Field(
        "parallel", description="of the root", examples=["parallel"]
    )
    children: tuple[RubricNode, ...] = Field(
        min_length=1, description="the nodes below", examples=[[]]
    )

    def walk(self) -> Iterator[RubricNode]:
        """Yield all nodes, each before its children."""
        for child in self.children:
            yield from child.walk()


class RubricFile(_Part):
    """A task's question, extraction and rubric tree."""

    task: str = Field(
        pattern=r"^[\w.-]+$", description="the task's id", examples=["museum_saturday"]
    )
    question: str = Field(
        min_length=1, description="the question to the agent", examples=["Which ...?"]
    )
    drafted: Literal["unreviewed", "reviewed"] | None = Field(
        None,
        description="written by a model; reviewed once a person has read it",
        examples=["reviewed"],
    )
    extract: dict[Annotated[str, Field(pattern=_NAME)], FieldSpec] = Field(
        default_factory=dict,
        description="the values to extract from the answer",
        examples=[{"year": "the year of the opening"}],
    )
    root: Root = Field(description="the rubric tree", examples=[{"children": []}])

    def field_at(self, path: str, inside: str | None = None) -> FieldSpec:
        """Return the field that a dotted path names.

        Args:
            inside: the list of the ``for_each`` around it, which ``item`` stands for.

        Raises:
            ValueError: there is none; the text says which names there are.
        """
        known: Mapping[str, FieldSpec] = self.extract
        names, found = path.split("."), None
        if names[0] == ITEM:
            if inside is None:
                raise ValueError(
                    f"'{path}' stands outside of for_each: name the field from the top"
                )
            found, known = self.extract[inside], self.extract[inside].fields
            names = names[1:]
        for position, name in enumerate(names):
            if (
                position
                and found is not None
                and found.list is not None
                and not path.startswith(f"{ITEM}.")
            ):
                raise ValueError(
                    f"'{path}' goes through a list: use for_each, and {{item.{name}}} within it"
                )
            if name not in known:
                raise ValueError(f"no field '{path}'{_nearest(name, known)}")
            found = known[name]
            known = found.fields
        if found is None:
            raise ValueError(f"no field '{path}'")
        return found


def last_name(path: str) -> str:
    """Return the last name of a dotted path."""
    return path.rpartition(".")[2]


def field_type(name: str, spec: FieldSpec) -> FieldType:
    """Return the type of a field without parts."""
    if spec.type is not None:
        return spec.type
    return "urls" if name == "urls" or name.endswith("_urls") else "text"


@dataclass(frozen=True, order=True)
class Problem:
    """A fault of a rubric file.

    Args:
        line: from 1.
        field: where it stands, such as ``root.children[0].claim``.
        message: what is wrong and what would be right.
    """

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        """Return one line without the file's name."""
        return (
            f"line {self.line}, {self.field}: {self.message}"
            if self.field
            else f"line {self.line}: {self.message}"
        )


class RubricFileError(EvalScriptError):
    """A rubric file cannot be used; ``problems`` has all faults, the text the first of them."""

    _MOST_SHOWN = 5

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = "; ".join(str(problem) for problem in self.problems[: self._MOST_SHOWN])
        more = len(self.problems) - self._MOST_SHOWN
        super().__init__(f"{path}, {shown}{f'; and {more} more' if more > 0 else ''}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts, as a script's process sends its errors to the run."""
        return type(self), (self.path, self.problems)


@dataclass(frozen=True)
class ReadRubric:
    """A rubric file with the lines of its parts.

    Args:
        lines: the line, from 1, of each part by its keys and positions, such as ``("root", "children", 0)``.
    """

    path: Path
    rubric: RubricFile
    lines: Mapping[tuple[str | int, ...], int]

    def line_of(self, *part: str | int) -> int:
        """Return the line of a part, or of what is around it."""
        return line_of(self.lines, part)

    def nodes(self) -> Iterator[tuple[tuple[str | int, ...], RubricNode]]:
        """Yield each node with its place, each before its children."""
        yield from _placed(self.rubric.root.children, ("root",))


def _placed(
    nodes: Sequence[RubricNode], above: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], RubricNode]]:
    for position, node in enumerate(nodes):
        place = (*above, "children", position)
        yield place, node
        yield from _placed(node.children, place)


def read_rubric(path: str | Path) -> ReadRubric:
    """Read and check a rubric file.

    Raises:
        FileNotFoundError: no such file.
        RubricFileError: it is no proper rubric file; the text names line, field and cure.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"no rubric file {path}: check the task id and the eval scripts folder"
        )
    return parsed_rubric(read_regular_file(file), file)


def parsed_rubric(content: bytes, path: Path) -> ReadRubric:
    """Return the rubric of a file's content; as ``read_rubric``."""
    plain, lines = parsed_yaml(content, path)
    try:
        rubric = RubricFile.model_validate(plain)
    except ValidationError as error:
        raise RubricFileError(path, sorted(_problems(error, lines))) from None
    read = ReadRubric(path, rubric, lines)
    problems = [
        Problem(read.line_of(*place), field_name(place), message)
        for place, message in _Checks(read).faults()
    ]
    if problems:
        raise RubricFileError(path, sorted(problems))
    return read


def rubric_schema() -> dict[str, Any]:
    """Return the JSON Schema of rubric files, as editors read it."""
    schema = RubricFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


# YAML


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml may be missing
    """Leaves dates as the text that the author wrote."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as the base class has it)
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag != "tag:yaml.org,2002:timestamp"
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_CURES = (
    (
        "mapping values are not allowed",
        "put a text that contains ': ' in quotes, or begin it with | on a line",
    ),
    (
        "expected <block end>",
        'check the indentation, and put a text that begins with { or " in quotes',
    ),
    ("found character '\\t'", "indent with spaces"),
    ("expected ',' or '}'", "put a text that begins with { in quotes"),
    ("while parsing a flow", "put a text that begins with { or [ in quotes"),
)


def parsed_yaml(
    content: bytes, path: Path
) -> tuple[object, dict[tuple[str | int, ...], int]]:
    """Return plain values, and the line of each by its keys and positions.

    Raises:
        RubricFileError: no proper YAML.
    """
    if len(content) > MOST_BYTES:
        raise RubricFileError(
            path, [Problem(1, "", f"larger than {MOST_BYTES // 1024**2} MB")]
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RubricFileError(
            path, [Problem(line, "", "not UTF-8: save it as UTF-8")]
        ) from error
    try:
        loader = _Loader(text)
        top = loader.get_single_node()
        lines: dict[tuple[str | int, ...], int] = {}
        faults = [] if top is None else list(_noted_lines(top, (), lines, set()))
        if faults:
            raise RubricFileError(path, faults)
        return (None if top is None else loader.construct_document(top)), lines
    except yaml.MarkedYAMLError as error:
        raise RubricFileError(path, [_yaml_problem(error)]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RubricFileError(
            path, [Problem(1, "", f"no proper YAML: {reason}")]
        ) from error


def _yaml_problem(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    reason = " ".join(part for part in (error.context, error.problem) if part)
    cure = next(
        (cure for sign, cure in _CURES if sign in reason),
        "check quotes and indentation",
    )
    return Problem(
        1 if mark is None else mark.line + 1, "", f"no proper YAML ({reason}): {cure}"
    )


def _noted_lines(
    node: yaml.Node,
    place: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    seen: set[int],
) -> Iterator[Problem]:
    lines.setdefault(place, node.start_mark.line + 1)
    if not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        return
    if id(node) in seen:
        yield Problem(
            node.start_mark.line + 1,
            field_name(place),
            "anchors and aliases do not work here",
        )
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _noted_lines(item, (*place, position), lines, seen)
        return
    for key, value in node.value:
        name = str(key.value)
        line = key.start_mark.line + 1
        if (*place, name) in lines:
            first = lines[(*place, name)]
            yield Problem(
                line,
                field_name((*place, name)),
                f"stands twice, first in line {first}: keep one",
            )
        lines[(*place, name)] = line
        yield from _noted_lines(value, (*place, name), lines, seen)


def field_name(place: Sequence[str | int]) -> str:
    """Return a place as text, such as ``root.children[0].claim``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def line_of(
    lines: Mapping[tuple[str | int, ...], int], place: Sequence[str | int]
) -> int:
    """Return the line of a place, or of what is around it."""
    for length in range(len(place), -1, -1):
        if line := lines.get(tuple(place[:length])):
            return line
    return 1


# Faults of single fields


def _problems(
    error: ValidationError, lines: Mapping[tuple[str | int, ...], int]
) -> Iterator[Problem]:
    for fault in error.errors(include_url=False):
        place = tuple(part for part in fault["loc"] if part != "[key]")
        while place and place not in lines and fault["type"] != "missing":
            place = place[:-1]  # the branch of a union
        model, name = _model_at(place)
        yield Problem(
            line_of(lines, place), field_name(place), _message(fault, model, name)
        )


_KINDS: dict[str, type[BaseModel]] = {
    "root": Root,
    "children": RubricNode,
    "equals": Equals,
}


def _model_at(place: Sequence[str | int]) -> tuple[type[BaseModel], str]:
    """Return the model that the last name of a place belongs to, and that name; of a field, none."""
    model: type[BaseModel] = RubricFile
    is_field = False
    for part in place[:-1]:
        if is_field:
            model, is_field = FieldSpec, False
        elif part in ("extract", "fields"):
            is_field = True
        elif isinstance(part, str):
            model = _KINDS.get(part, model)
    if not place or is_field:
        return FieldSpec if is_field else model, ""
    return model, str(place[-1])


def _message(fault: Any, model: type[BaseModel], name: str) -> str:
    # Any: the error dictionaries of pydantic.
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"unknown field '{name}'{_nearest(name, model.model_fields)}"
    example = _example(model, name)
    if kind == "missing":
        return f"'{name}' is missing{example}"
    said = fault["msg"].replace("Input should", "should")
    shown = (
        "" if isinstance(fault["input"], dict | list) else f", not {fault['input']!r}"
    )
    return f"{said}{shown}{example}"


def _example(model: type[BaseModel], name: str) -> str:
    if model is FieldSpec and not name:
        return " (what to extract, such as: the name of the museum)"
    field = model.model_fields.get(name)
    if (
        field is None
        or not field.examples
        or field.examples[0] in ([], {"children": []})
    ):
        return "" if field is None else f" ({field.description})"
    return f" ({field.description}; such as {field.examples[0]!r})"


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(name, known, n=1)
    if close:
        return f": did you mean '{close[0]}'?"
    return f": there is {', '.join(known)}" if known else ""


# Faults that concern several parts


_Fault = tuple[tuple[str | int, ...], str]
_LEAF_KINDS = ("claim", "present", "equals", "distinct")
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
            or not re.fullmatch(
                r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*", name
            )
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
        self._ids: dict[str, tuple[str | int, ...]] = {}
        extract = read.rubric.extract
        self._lists = [
            name
            for name, field in extract.items()
            if field.list is not None and field.fields
        ]

    def faults(self) -> Iterator[_Fault]:
        """Yield the faults with their places."""
        for name, spec in self._rubric.extract.items():
            yield from self._field_faults(("extract", name), name, spec, depth=0)
        yield from self._children_faults(
            self._rubric.root.children, ("root",), None, None
        )

    def _field_faults(
        self, place: tuple[str | int, ...], name: str, spec: FieldSpec, depth: int
    ) -> Iterator[_Fault]:
        if name in _RESERVED:
            yield place, f"'{name}' has a meaning of its own here: choose another name"
        if (
            name.startswith("model_")
            or name in dir(BaseModel)
            or name in _TYPE_NAMES
            or iskeyword(name)
        ):
            yield (
                place,
                f"'{name}' is a name of Python's or pydantic's: choose another one",
            )
        if spec.page is not None and spec.list is not None:
            yield (
                (*place, "list"),
                "a page gives no list: leave it out, and give the group its parts as fields",
            )
        if spec.page is not None and depth:
            yield (
                (*place, "page"),
                "only a field of the top level can have a page: move it there",
            )
        if spec.fields and spec.type is not None:
            yield (*place, "type"), "a group has no type: give types to its fields"
        if spec.list is not None and not spec.fields:
            yield (
                (*place, "list"),
                "a list needs fields: say what each item has (fields: {name: ...})",
            )
        if spec.list is not None and depth:
            yield (*place, "list"), "a list stands at the top level: move it there"
        if spec.page is not None and not spec.fields:
            yield (
                (*place, "page"),
                "a page needs fields: say what to read from it (fields: {year: ...})",
            )
        for part, below in spec.fields.items():
            yield from self._field_faults(
                (*place, "fields", part), part, below, depth + 1
            )

    def _children_faults(
        self,
        nodes: Sequence[RubricNode],
        above: tuple[str | int, ...],
        parent: RubricNode | None,
        inside: str | None,
    ) -> Iterator[_Fault]:
        for position, node in enumerate(nodes):
            place = (*above, "children", position)
            if parent is not None and parent.critical and not node.critical:
                yield (
                    place,
                    f"'{node.id}' is not critical under the critical '{parent.id}': add critical: true",
                )
            around = inside
            if node.for_each is not None:
                yield from self._loop_faults(node.for_each, place, inside)
                around = node.for_each if node.for_each in self._lists else None
            yield from self._id_faults(node, place, around)
            yield from self._text_faults(node, place, around)
            if node.is_leaf:
                yield from self._leaf_faults(node, place, around)
            else:
                yield from self._inner_faults(node, place)
            yield from self._children_faults(node.children, place, node, around)

    def _loop_faults(
        self, name: str, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
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
                f"'{name}' is no list of the extraction: {there}",
            )

    def _id_faults(
        self, node: RubricNode, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
        for node_id in _expanded(node.id, self._rubric, inside):
            if node_id == "root":
                yield (
                    (*place, "id"),
                    "the tree's root has the id 'root': choose another one",
                )
            elif node_id in self._ids:
                first = self._read.line_of(*self._ids[node_id], "id")
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

    def _text_faults(
        self, node: RubricNode, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
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

    def _value_faults(
        self, place: tuple[str | int, ...], path: str, inside: str | None
    ) -> Iterator[_Fault]:
        """Check that a path leads to one value that can stand in a sentence."""
        try:
            spec = self._rubric.field_at(path, inside)
        except ValueError as error:
            yield place, str(error)
            return
        if spec.fields:
            yield (
                place,
                f"'{path}' is a group: name one of its fields, such as {path}.{next(iter(spec.fields))}",
            )
        elif field_type(last_name(path), spec) == "urls":
            yield (
                place,
                f"'{path}' holds addresses: a claim takes values (addresses belong to sources)",
            )

    def _inner_faults(
        self, node: RubricNode, place: tuple[str | int, ...]
    ) -> Iterator[_Fault]:
        for field in (
            *_LEAF_KINDS,
            "sources",
            "instruction",
            "after",
            "votes",
            "weight",
        ):
            if getattr(node, field) not in (None, ()):
                yield (
                    (*place, field),
                    "belongs to a leaf, and this node has children: move it to one of them",
                )

    def _leaf_faults(
        self, node: RubricNode, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
        kinds = [kind for kind in _LEAF_KINDS if getattr(node, kind) not in (None, ())]
        if not kinds:
            yield (
                place,
                f"'{node.id}' says nothing: give it children, or one of {', '.join(_LEAF_KINDS)}",
            )
        if "claim" in kinds and len(kinds) > 1:
            yield (
                place,
                f"a claim stands alone: move {' and '.join(kinds[1:])} to a leaf of its own",
            )
        if node.strategy is not None:
            yield (*place, "strategy"), "belongs to a node with children: leave it out"
        if node.claim is not None:
            yield from self._claim_faults(node, place, inside)
        else:
            for field in ("sources", "instruction", "after", "votes"):
                if getattr(node, field) not in (None, ()):
                    yield (*place, field), "belongs to a claim: leave it out"
        yield from self._check_faults(node, place, inside)

    def _claim_faults(
        self, node: RubricNode, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
        if not node.sources:
            yield (
                place,
                "the claim has no sources: name a field of addresses, or 'answer' for the answer alone",
            )
        if FROM_ANSWER in node.sources and len(node.sources) > 1:
            yield (
                (*place, "sources"),
                "'answer' stands alone: name it, or fields of addresses",
            )
        for path in node.sources if FROM_ANSWER not in node.sources else ():
            try:
                spec = self._rubric.field_at(path, inside)
            except ValueError as error:
                yield (*place, "sources"), str(error)
                continue
            if spec.fields or field_type(last_name(path), spec) != "urls":
                yield (
                    (*place, "sources"),
                    f"'{path}' holds no addresses: name a field of type urls",
                )
        if node.votes is not None and node.votes % 2 == 0:
            yield (*place, "votes"), f"{node.votes} is even: take {node.votes + 1}"
        for name in node.after:
            wanted = name if inside is None else name.replace("{number}", "1")
            if wanted not in self._ids or wanted in _expanded(
                node.id, self._rubric, inside
            ):
                yield (
                    (*place, "after"),
                    f"no earlier node '{name}'{_nearest(name, self._ids)}",
                )

    def _check_faults(
        self, node: RubricNode, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
        for path in node.present:
            try:
                self._rubric.field_at(path, inside)
            except ValueError as error:
                if not (path == ITEM and inside is not None):
                    yield (*place, "present"), str(error)
        if node.distinct is not None:
            yield from self._distinct_faults(
                node.distinct, (*place, "distinct"), inside
            )
        if node.equals is not None:
            yield from self._equals_faults(node.equals, (*place, "equals"), inside)

    def _distinct_faults(
        self, path: str, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
        names = path.split(".")
        listed = self._rubric.extract.get(names[0])
        if names[0] == ITEM:
            yield from self._value_faults(place, path, inside)
        elif listed is None or listed.list is None:
            yield (
                place,
                f"'{path}' is no field of a list: write LIST.FIELD, or item.FIELD within a for_each",
            )
        else:
            yield from self._value_faults(place, ".".join((ITEM, *names[1:])), names[0])

    def _equals_faults(
        self, equals: Equals, place: tuple[str | int, ...], inside: str | None
    ) -> Iterator[_Fault]:
        given = [
            name
            for name in ("value", "same_as", "sum_of")
            if getattr(equals, name) not in (None, ())
        ]
        if len(given) != 1:
            yield place, "needs exactly one of value, same_as and sum_of"
        if equals.within and equals.compare != "number":
            yield (*place, "within"), "works with compare: number only"
        if equals.sum_of and equals.compare != "number":
            yield (*place, "compare"), "a sum is a number: write compare: number"
        if equals.compare == "number" and isinstance(equals.value, str | bool):
            yield (
                (*place, "value"),
                f"{equals.value!r} is no number: write digits, without quotes",
            )
        others = [equals.same_as] if equals.same_as else []
        for path in (equals.field, *others, *equals.sum_of):
            yield from self._value_faults(place, path, inside)


def _expanded(node_id: str, rubric: RubricFile, inside: str | None) -> list[str]:
    count = (rubric.extract[inside].list or 1) if inside is not None else 1
    return list(
        dict.fromkeys(
            node_id.replace("{number}", str(number)) for number in range(1, count + 1)
        )
    )
