"""Templates as JSON schemas for strict modes."""

import json
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel

from mind2web2.llm_client.schema import schema_of


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """A part with a default."""

    name: str | None = None
    price: float = Field(default=1.5, ge=0)


class Rich(BaseModel):
    """Most of what scripts use."""

    title: str = Field(description="the title", min_length=1)
    items: list[Item] = []
    first: Item = Field(description="the first one")
    colour: Colour = Colour.RED
    link: HttpUrl | None = None
    kind: Literal["a", "b"] = "a"
    amount: Decimal = Decimal(0)


class Cat(BaseModel):
    """One of two."""

    kind: Literal["cat"]


class Dog(BaseModel):
    """The other of two."""

    kind: Literal["dog"]


class Pet(BaseModel):
    """A discriminated union."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Tree(BaseModel):
    """A template that contains itself."""

    name: str
    children: list["Tree"] = []
    best: "Tree | None" = None


class FreeDict(BaseModel):
    """Free-form values."""

    values: dict[str, str]


class Anything(BaseModel):
    """Free-form value."""

    value: Any = None


class BareList(BaseModel):
    """A list of whatever."""

    values: list


class Pair(BaseModel):
    """A tuple."""

    pair: tuple[int, str]


class Open(BaseModel):
    """Further keys are welcome."""

    model_config = ConfigDict(extra="allow")
    name: str


class Names(RootModel[list[str]]):
    """No object."""


def objects_in(schema):
    """Yield every schema of an object, at any depth."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects_in(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects_in(value)


@pytest.mark.parametrize("template", [Rich, Item, Pet, Tree])
def test_strict_schemas_close_every_object(template):
    """Every object requires all its properties and allows no other, as strict modes demand."""
    strict = schema_of(template).strict
    objects = list(objects_in(strict))
    assert strict["type"] == "object"
    assert all(found["additionalProperties"] is False for found in objects)
    assert all(found["required"] == list(found["properties"]) for found in objects)


def test_strict_schemas_drop_what_only_advises():
    """Keywords that strict modes refuse are left to pydantic."""
    text = json.dumps(schema_of(Rich).strict)
    assert not any(f'"{word}"' in text for word in ("default", "minLength", "maxLength", "uri", "oneOf"))
    assert schema_of(Rich).strict["properties"]["title"]["description"] == "the title"


def test_strict_schemas_keep_references_alone():
    """A reference with a description stands as the only alternative."""
    first = schema_of(Rich).strict["properties"]["first"]
    assert first == {"description": "the first one", "anyOf": [{"$ref": "#/$defs/Item"}]}


@pytest.mark.parametrize("template", [FreeDict, Anything, BareList, Pair, Open, Names])
def test_free_forms_have_no_strict_schema(template):
    """What strict modes cannot say is not said in part."""
    assert schema_of(template).strict is None


def test_only_objects_count_as_objects():
    """JSON mode and tools need an object at the root."""
    assert schema_of(Tree).is_object
    assert not schema_of(Names).is_object


def test_names_are_fit_for_providers():
    """Generic and foreign names become what providers allow."""
    template = type("Prüfung[int]", (Item,), {"__module__": __name__})
    assert schema_of(template).name == "Pr_fung_int_"
