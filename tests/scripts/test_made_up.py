"""Made-up values for templates of every kind."""

from collections.abc import Sequence
from typing import Annotated, NewType

import pytest
from pydantic import BaseModel, Field

from mind2web2.scripts.made_up import Choices, FieldShape, fill_template

Address = NewType("Address", str)


class Item(BaseModel):
    """A group in a list."""

    name: str


class Abstract(BaseModel):
    """Fields whose types are abstract or have names."""

    items: Sequence[Item]
    urls: Annotated[Sequence[Address], Field(max_length=9)] | None
    count: NewType("Count", int)


class Plain(BaseModel):
    """The same fields with the types that those above stand for."""

    items: list[Item]
    urls: list[str] | None
    count: int


@pytest.mark.parametrize("template", [Plain, Abstract])
def test_values_are_made_up_for_abstract_and_named_types(template):
    filled = fill_template(template, Choices().made_up(template, "extraction", 0))
    assert [each.name for each in filled.items] == ["name Alder", "name Birch", "name Cedar"]
    assert filled.urls == ["https://alder.example/urls"]
    assert filled.count == 3
    shapes = [(shape.path, shape.kind) for shape in FieldShape.all_of(template)]
    assert shapes == [
        (("items",), "list"),
        (("items", "*", "name"), "text"),
        (("urls",), "address"),
        (("count",), "number"),
    ]
