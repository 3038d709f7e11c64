"""Templates that are filled without code of a script may be filled at any time."""

from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Lt, Predicate
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    HttpUrl,
    StringConstraints,
    Tag,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

from mind2web2.llm_client.kept_templates import kept
from mind2web2.verification.plain_templates import is_plain


class Town(BaseModel):
    """A town."""

    name: str | None = None
    urls: list[str] = Field(default_factory=list, description="links", max_length=9)
    page: HttpUrl | None = None
    kind: Literal["old", "new"] | None = None
    counts: dict[str, list[int]] = {}
    other: Any = None

    def is_named(self):
        """Tell whether it has a name."""
        return bool(self.name)


class Towns(BaseModel):
    """Towns of towns."""

    model_config = ConfigDict(extra="ignore")
    first: Town = Town()
    more: "list[Towns]" = []


class Level(int):
    """A bound, or a value, that compares by a function of the script."""

    def __lt__(self, other):
        """Tell whether it is below any other one."""
        return True


class Lake(BaseModel):
    """A lake with a field that has no default."""

    depth: str


def with_members(**members):
    """Return a template with these members."""
    return type("Made", (BaseModel,), {"__module__": __name__, **members})


def with_field(annotation, default=None):
    """Return a template with one field."""
    return with_members(__annotations__={"field": annotation}, field=default)


TAGGED = Annotated[Town, Tag("town")] | Annotated[Towns, Tag("towns")]
CHECKED = with_members(
    __annotations__={"name": str},
    check=field_validator("name")(lambda cls, name: name),  # noqa: ARG005 (as pydantic calls it)
)


@pytest.mark.parametrize(
    "template",
    [
        Town,
        Towns,
        with_field(Towns | None),
        with_field(Annotated[int, Field(ge=1, lt=9)]),
        with_field(Annotated[str, StringConstraints(min_length=2)]),
        with_field(Town, Field(default_factory=Town)),
    ],
)
def test_plain_ones(template):
    """Fields of JSON's types, with constraints and methods of their own."""
    assert is_plain(template)


@pytest.mark.parametrize(
    "template",
    [
        CHECKED,
        with_field(CHECKED | None),
        with_field(dict[str, list[CHECKED]]),
        with_members(check=model_validator(mode="after")(lambda self: self)),
        with_members(
            __annotations__={"name": str},
            shown=field_serializer("name")(lambda self, name: name),  # noqa: ARG005
        ),
        with_members(size=computed_field(return_type=int)(property(lambda self: 1))),  # noqa: ARG005
        with_field(Annotated[str, BeforeValidator(str.strip)]),
        with_field(Annotated[str, Predicate(str.islower)]),
        with_field(list[Annotated[str, Predicate(str.islower)]]),
        with_field(Annotated[TAGGED, Discriminator(lambda _: "town")]),
        with_field(list[str], Field(default_factory=lambda: ["x"])),
        with_members(model_dump=lambda self, **_: {}),  # noqa: ARG005
        with_members(__init__=lambda self, **_: None),  # noqa: ARG005
        with_members(__getattr__=lambda self, name: name),  # noqa: ARG005
        with_members(model_post_init=lambda self, _: None),  # noqa: ARG005
        with_members(model_config=ConfigDict(json_encoders={str: repr})),
        with_field(object, object()),
        with_field(Annotated[Any, Gt(Level())]),
        with_field(Annotated[Any, Ge(Level())]),
        with_field(list[Annotated[Any, Lt(Level())]]),
        with_field(list[Any], [Level()]),
        # An empty instance cannot be made.
        with_field(Lake, Field(default_factory=Lake)),
    ],
)
def test_what_runs_functions_of_the_script(template):
    """Validators, hooks, factories, conditions, bounds, methods that pydantic or the toolkit calls."""
    assert not is_plain(template)


def test_a_kept_template_stays_as_it_was():
    """By schema and by what it reads, whatever becomes of the class; it is the same one until then."""

    class Pond(BaseModel):
        depth: str

    before = kept(Pond)
    schema = Pond.model_json_schema()
    assert kept(Pond) is before
    Pond.__doc__ = "Deep."
    Pond.model_fields["depth"].annotation = int
    Pond.model_rebuild(force=True)
    assert before.model_json_schema() == schema != kept(Pond).model_json_schema()
    values = [
        each.model_validate_json('{"depth": "3"}') for each in (before, kept(Pond))
    ]
    assert [(type(value), value.depth) for value in values] == [(Pond, "3"), (Pond, 3)]
