"""Values for templates that nothing fills yet, or nothing can fill."""

from collections import deque
from collections.abc import Generator, Iterable, Mapping, MutableMapping, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Literal, NewType

import pytest
from pydantic import Field, create_model
from typing_extensions import TypeAliasType

from mind2web2.verification.stand_ins import empty_instance, has_mark, marked_instance

Address = NewType("Address", str)
Year = NewType("Year", int)
Names = TypeAliasType("Names", Sequence[str])
# Annotations of a required field, each with what is empty of it.
EMPTY = [
    (Sequence[str], []),
    (Iterable[str], []),
    (Generator[str, None, None], []),
    (Sequence, []),
    (Mapping[str, int], {}),
    (MutableMapping[str, Sequence[str]], {}),
    (AbstractSet[str], frozenset()),
    (MutableSet[str], set()),
    (frozenset[str], frozenset()),
    (deque[str], deque()),
    (Annotated[Sequence[str], Field(max_length=9)] | int, []),
    (Names, []),
    (NewType("Links", list[Address]), []),
    (Address, ""),
    (Year, None),
    (Literal["open", "closed"], None),
    (Sequence[str] | None, None),
    (NewType("Note", Names) | None, None),
]


@pytest.mark.parametrize(("annotation", "empty"), EMPTY)
def test_abstract_and_named_types_are_empty_like_those_they_stand_for(annotation, empty):
    value = empty_instance(create_model("Form", field=(annotation, ...))).field
    assert (type(value), value) == (type(empty), empty)


@pytest.mark.parametrize("annotation", [annotation for annotation, _ in EMPTY])
def test_stand_ins_fit_the_types_that_they_stand_for(annotation):
    form = create_model("Form", field=(annotation, ...))
    form.model_validate({"field": marked_instance(form).field})


@pytest.mark.parametrize("annotation", [Sequence[Address], Names, Address, Year, Address | None])
def test_a_question_made_of_a_stand_in_has_its_mark(annotation):
    form = create_model("Form", field=(annotation, ...))
    assert has_mark(f"How good is {marked_instance(form).field}?")
