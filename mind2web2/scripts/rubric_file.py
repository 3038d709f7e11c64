"""Rubric files: a task's question, extraction and rubric tree as YAML data (docs/rubric-files.md).

``mind2web2.scripts.rubric_reading`` reads and checks files; ``mind2web2.scripts.rubric_script``
turns a rubric into the script that runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from mind2web2.rubric.values import number_of
from mind2web2.rubric.vote_rule import checked_trials
from mind2web2.scripts.yaml_lines import nearest

RUBRIC_SUFFIX = ".yaml"
# The name under which the answer's own extraction is recorded.
ANSWER_EXTRACTION = "answer"
ITEM = "item"
NUMBER = "number"
FROM_ANSWER = "answer"

FieldType = Literal["text", "number", "integer", "yes_no", "urls"]
Comparison = Literal["exact", "text", "number", "date"]
Strategy = Literal["parallel", "sequential"]

_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_NAME = r"^[A-Za-z][A-Za-z0-9_]*$"


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Names = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


Value = TypeVar("Value")
_Bound = Annotated[float, Field(allow_inf_nan=False)] | str


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


_Within = (
    Annotated[float, Field(ge=0, allow_inf_nan=False)]
    | Annotated[str, Field(pattern=r"^\d+(\.\d+)?%$")]
)


class Equals(_Part):
    """A comparison of an extracted field, without a judge."""

    field: str = Field(description="the field to compare", examples=["museum.founded"])
    value: str | int | float | bool | None = Field(
        None, description="the right value", examples=[1911]
    )
    same_as: str | None = Field(None, description="another field", examples=["figures.founded"])
    sum_of: _Names = Field(
        (), description="fields whose sum it must be", examples=[["ferry", "tour"]]
    )
    compare: Comparison = Field(
        description="exact; text (letter case, spaces and punctuation do not count); number; date",
        examples=["text"],
    )
    within: _Within = Field(0.0, description="how far a number may be off", examples=[0.5, "1%"])


class Limit(_Part):
    """Bounds of a number or a day, without a judge."""

    field: str | None = Field(None, description="the field to compare", examples=["inn.price"])
    sum_of: _Names = Field((), description="or the sum of fields", examples=[["ferry", "tour"]])
    count_of: str | None = Field(
        None, description="or the number of a list's items", examples=["hostels"]
    )
    at_least: _Bound | None = Field(None, description="a number, or a field", examples=[4])
    at_most: _Bound | None = Field(None, description="a number, or a field", examples=[90])
    after: str | None = Field(None, description="a day, or a field", examples=["2025-09-01"])
    before: str | None = Field(None, description="a day, or a field", examples=["trip.end"])

    @property
    def days(self) -> dict[str, str]:
        """Return the bounds that are days, by key."""
        return _given({"after": self.after, "before": self.before})

    @property
    def numbers(self) -> dict[str, float | str]:
        """Return the bounds that are numbers, by key."""
        return _given({"at_least": self.at_least, "at_most": self.at_most})


def _given(bounds: Mapping[str, Value | None]) -> dict[str, Value]:
    return {key: bound for key, bound in bounds.items() if bound is not None}


class Condition(_Part):
    """The question or the test of a leaf."""

    claim: str | None = Field(
        None,
        min_length=1,
        description="a sentence to judge, with {fields} of the extraction",
        examples=["{museum.name} was founded in {museum.founded}."],
    )
    sources: _Names = Field(
        (),
        description="fields of addresses or addresses to judge the claim on, or answer for the "
        "answer alone",
        examples=["museum.urls"],
    )
    instruction: str | None = Field(
        None,
        description="what the judge must know beside the claim",
        examples=["Accept a rounded number."],
    )
    domain: _Names = Field(
        (),
        description="only addresses on these domains count",
        examples=[["example.org"]],
    )
    present: _Names = Field(
        (), description="fields that must not be empty", examples=[["museum.name"]]
    )
    equals: Equals | None = Field(
        None,
        description="a field against a value",
        examples=[{"field": "museum.founded", "value": 1911, "compare": "number"}],
    )
    limit: Limit | None = Field(
        None,
        description="bounds of a number or a day",
        examples=[{"field": "inn.price", "at_most": 90}],
    )


class RubricNode(Condition):
    """A node of the tree: with ``children`` an inner node, without them a leaf."""

    id: str = Field(min_length=1, description="unique in the tree", examples=["museum_founded"])
    desc: str = Field(
        min_length=1, description="one line for readers", examples=["The year is right"]
    )
    critical: bool = Field(
        False, description="a gate: if it fails, its parent counts 0", examples=[True]
    )
    tags: _Names = Field((), description="for metrics by tag", examples=[["existence"]])
    for_each: str | None = Field(
        None,
        description="repeat for each item of this list, as {item} with {number}",
        examples=["museums"],
    )
    strategy: Strategy | None = Field(None, description="of an inner node", examples=["parallel"])
    children: tuple[RubricNode, ...] = Field((), description="the nodes below", examples=[[]])
    after: _Names = Field(
        (), description="ids of earlier nodes that must not fail", examples=[["ferry"]]
    )
    votes: (
        Annotated[int, Field(strict=True, ge=1, le=15), AfterValidator(checked_trials)] | None
    ) = Field(None, description="votes at most, an odd number", examples=[3])
    distinct: str | None = Field(
        None,
        description="a list's field, whose values must differ",
        examples=["museums.name"],
    )

    any_of: tuple[Condition, ...] = Field(
        (),
        description="alternatives, of which one must pass",
        examples=[[{"present": "doi"}, {"present": "isbn"}]],
    )

    def walk(self) -> Iterator[RubricNode]:
        """Yield the node and all below it, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


def numbered(text: str, number: int | None) -> str:
    """Return a text of a ``for_each`` for one of its items; unchanged outside of it."""
    if number is None:
        return text
    return text.replace(f"{{{NUMBER}}}", str(number))


class Root(_Part):
    """The root of the tree."""

    strategy: Strategy = Field("parallel", description="of the root", examples=["parallel"])
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

    def items_of(self, name: str | None) -> int:
        """Return how many items of a list count; 1 outside of any ``for_each``."""
        if name is None:
            return 1
        return self.extract[name].list or 1

    def expected(self, equals: Equals, inside: str | None = None) -> str | float | bool:
        """Return a comparison's ``value`` as the type of its field and ``compare`` have it.

        Raises:
            ValueError: the value can never be equal; the text says why.
        """
        given = equals.value
        text = given if isinstance(given, str) else json.dumps(given)
        kind = self.type_at(equals.field, inside)
        if equals.compare == "number" or kind in ("number", "integer"):
            number = number_of(text)
            if number is None:
                raise ValueError(f"{text!r} is not a number: write digits, such as 0.5")
            return number
        if kind == "yes_no":
            if text.lower() not in _YES_NO:
                raise ValueError(f"{text!r} is neither yes nor no")
            return _YES_NO[text.lower()]
        if not text.strip():
            raise ValueError("is empty: an empty value never passes")
        return text

    def field_at(self, path: str, inside: str | None = None) -> FieldSpec:
        """Return the field that a dotted path names.

        Args:
            inside: the list of the ``for_each`` around it, which ``item`` stands for.

        Raises:
            ValueError: there is none; the text says which names there are.
        """
        known: Mapping[str, FieldSpec] = self.extract
        names, spec = path.split("."), None
        if names[0] == ITEM:
            if inside is None:
                raise ValueError(
                    f"'{path}' stands outside of for_each: name the field from the top"
                )
            spec, known = self.extract[inside], self.extract[inside].fields
            names = names[1:]
        for position, name in enumerate(names):
            if (
                position
                and spec is not None
                and spec.list is not None
                and not path.startswith(f"{ITEM}.")
            ):
                raise ValueError(
                    f"'{path}' goes through a list: use for_each, and {{item.{name}}} within it"
                )
            if name not in known:
                above = path.split(".")[: -len(names)] + names[:position]
                paths = [".".join((*above, each)) for each in known]
                raise ValueError(f"no field '{path}'{nearest(path, paths)}")
            spec = known[name]
            known = spec.fields
        if spec is None:
            raise ValueError(f"no field '{path}'")
        return spec

    def type_at(self, path: str, inside: str | None = None) -> FieldType | None:
        """Return the type of the field that a path names, ``None`` for a group; as ``field_at``."""
        spec = self.field_at(path, inside)
        return None if spec.fields else field_type(path.rpartition(".")[2], spec)


def is_address(source: str) -> bool:
    """Tell whether a source is an address itself, and names no field."""
    return source.startswith(("https://", "http://"))


def field_type(name: str, spec: FieldSpec) -> FieldType:
    """Return the type of a field without parts."""
    if spec.type is not None:
        return spec.type
    return "urls" if name == "urls" or name.endswith("_urls") else "text"
