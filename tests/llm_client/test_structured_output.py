"""Filling templates: schemas for strict modes, and replies read into them."""

import json
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel, model_validator

from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.structured_output import (
    InvalidOutputError,
    json_text,
    read_reply,
    repair_messages,
    schema_of,
    schema_text,
)


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """A part with a default."""

    name: str | None = None
    price: float = Field(default=1.5, ge=0)


class Rich(BaseModel):
    """The usual features."""

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


def test_strict_schemas_drop_advisory_keywords():
    """Keywords that strict modes refuse are left to pydantic."""
    text = json.dumps(schema_of(Rich).strict)
    assert not any(
        f'"{word}"' in text for word in ("default", "minLength", "maxLength", "uri", "oneOf")
    )
    assert schema_of(Rich).strict["properties"]["title"]["description"] == "the title"


def test_strict_schemas_keep_references_alone():
    """A reference with a description stands as the only alternative."""
    first = schema_of(Rich).strict["properties"]["first"]
    assert first == {
        "description": "the first one",
        "anyOf": [{"$ref": "#/$defs/Item"}],
    }


@pytest.mark.parametrize("template", [FreeDict, Anything, BareList, Pair, Open, Names])
def test_free_forms_have_no_strict_schema(template):
    """A schema is strict as a whole or not at all."""
    assert schema_of(template).strict is None


def test_only_objects_count_as_objects():
    """JSON mode and tools need an object at the root."""
    assert schema_of(Tree).is_object
    assert not schema_of(Names).is_object


def test_names_are_fit_for_providers():
    """Other characters are replaced."""
    template = type("Prüfung[int]", (Item,), {"__module__": __name__})
    assert schema_of(template).name == "Pr_fung_int_"


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


class Place(BaseModel):
    """All optional."""

    name: str | None = None
    url: str | None = None


class Places(BaseModel):
    """Places within places, all optional."""

    places: list[Place] = []
    best: Place = Place()


class Maybe(BaseModel):
    """One of several kinds."""

    pet: Place | str | None = None


class ByName(BaseModel):
    """Objects under free keys."""

    values: dict[str, Place]


class Aliased(BaseModel):
    """A field under another name."""

    model_config = ConfigDict(extra="allow")
    name: str | None = Field(default=None, alias="fullName")


VALID = '{"reasoning": "r", "result": false}'


@pytest.mark.parametrize(
    "reply",
    [
        VALID,
        f"```json\n{VALID}\n```",
        f"```\n{VALID}```",
        f"\ufeff{VALID}",
        f"<think>first {{ I think }}</think>\n{VALID}",
        f"the tag was opened by the template</think>\n\n```json\n{VALID}\n```",
        f"<think></think><reasoning>so</reasoning>{VALID}",
        f"\n  {VALID}  \n",
        f"```json\r\n{VALID}\r\n```",
        f"```json {VALID} ```",
        f"```json\n{VALID}",
        f"<think>so</think>\n<answer>\n{VALID}\n</answer>",
        f"[THINK]so[/THINK]{VALID}",
        f"<seed:think>so</seed:think>{VALID}",
        f"<|begin_of_thought|>so<|end_of_thought|>\n{VALID}",
        f"<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>{VALID}",
        f"<|channel|>final <|constrain|>json<|message|>{VALID}",
    ],
)
def test_json_is_found_in_its_wrapping(reply):
    """Code fences and thinking aloud do not make a reply invalid."""
    text, value = read_reply(Completion(reply), Verdict)
    assert (text, value) == (VALID, Verdict(reasoning="r", result=False))


def test_a_fence_inside_a_string_stays():
    """Code fences within a JSON text are part of it."""
    reply = '{"reasoning": "see\\n```\\ncode\\n```", "result": true}'
    assert json_text(reply) == reply


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\ud83d cut", "\ufffd cut"),
        (r"\ud83d\ude00 whole", "\U0001f600 whole"),
        (r"\\ud83d a path", r"\ud83d a path"),
    ],
)
def test_half_a_character_is_replaced(written, read):
    text, value = read_reply(Completion(f'{{"reasoning": "{written}", "result": true}}'), Verdict)
    assert value == Verdict.model_validate_json(text) == Verdict(reasoning=read, result=True)


def test_a_reply_that_ends_in_its_thinking_was_cut_off():
    with pytest.raises(InvalidOutputError, match="cut off in its thinking"):
        json_text(f"<think>```json\n{VALID}\n```")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n",
        "I think it is true.",
        '{"reasoning": "r"}',
        '{"reasoning": "r", "result": "perhaps"}',
        '{"reasoning": "r", "result": null}',
        '[{"reasoning": "r", "result": true}]',
        '{"verdict": {"reasoning": "r", "result": true}}',
        f"{VALID} {VALID}",
        f"```json\n{VALID}\n```\nor\n```json\n{VALID}\n```",
        '{"reasoning": "r", "result": tr',
        f"Here you are:\n```json\n{VALID}\n```\nAnything else?",
        f"<think>\nDraft:\n```json\n{VALID}\n```\nWait, that is wrong",
        f"<think>\n```json\n{VALID}\n```",
        f"<think>so</think>\n```json\n{VALID}\n```\nOn reflection, the opposite holds.",
        f"<think>so</think><think>again: ```json\n{VALID}\n```",
        f"<|channel|>analysis<|message|>```json\n{VALID}\n```<|end|>",
        f"[THINK]{VALID}",
        f"<answer>{VALID}</answer> or {VALID}",
        f"{VALID}\n<think>wait",
    ],
)
def test_replies_that_do_not_fill_the_template_are_invalid(reply):
    """No reply is bent into a verdict."""
    with pytest.raises(InvalidOutputError):
        read_reply(Completion(reply), Verdict)


def test_a_truncated_reply_is_invalid_even_where_it_parses():
    """A reply cut at the limit may lack its end."""
    with pytest.raises(InvalidOutputError, match="cut off"):
        read_reply(Completion(VALID, is_truncated=True), Verdict)


@pytest.mark.parametrize(
    ("reply", "template", "missing"),
    [
        (
            '{"extraction": {"name": "A", "url": "B"}}',
            Place,
            "name: Field required; url: Field required",
        ),
        ("{}", Place, "name: Field required; url: Field required"),
        ('{"name": "A"}', Place, "url: Field required"),
        (
            '{"places": [{"name": "A", "url": null}, {"title": "B"}], "best": {}}',
            Places,
            "places.1.name: ",
        ),
        ('{"places": [], "best": {"name": null}}', Places, "best.url: Field required"),
        ('{"other": 1}', Aliased, "fullName: Field required"),
        (
            '{"name": "a", "children": [{"name": "b", "children": []}], "best": null}',
            Tree,
            "children.0.best: ",
        ),
        ('{"pet": {}}', Maybe, "pet.name: Field required"),
        ('{"values": {"a": {"name": "A"}}}', ByName, "values.a.url: Field required"),
        ("null", Place, "reply: Input should be an object"),
    ],
)
def test_every_property_has_to_be_given(reply, template, missing):
    """A default of the template does not replace a missing property."""
    with pytest.raises(InvalidOutputError) as caught:
        read_reply(Completion(reply), template)
    assert str(caught.value).startswith(missing) or missing in str(caught.value)


def test_a_validator_may_leave_out_what_the_reply_gives():
    """A script drops nulls, so that its defaults stand."""

    class Hotel(Place):
        stars: int = 3

        @model_validator(mode="before")
        @classmethod
        def without_nulls(cls, given: dict[str, object]) -> dict[str, object]:
            return {name: value for name, value in given.items() if value is not None}

    class Hotels(BaseModel):
        found: list[Hotel]

    reply = '{"found": [{"name": "A", "url": null, "stars": null}, {"name": "B"%s}]}'
    _, hotels = read_reply(Completion(reply % ', "url": "b", "stars": 5'), Hotels)
    assert hotels == Hotels(found=[Hotel(name="A"), Hotel(name="B", url="b", stars=5)])
    with pytest.raises(InvalidOutputError, match=r"found\.1\.url: Field required; found\.1\.stars"):
        read_reply(Completion(reply % ""), Hotels)


@pytest.mark.parametrize(
    ("reply", "template", "expected"),
    [
        ('{"name": null, "url": null}', Place, Place()),
        ('{"places": [], "best": {"url": null, "name": null}}', Places, Places()),
        ('["a", "b"]', Names, Names(["a", "b"])),
        ("[]", Names, Names([])),
        ('{"fullName": "A", "other": 1}', Aliased, Aliased(fullName="A", other=1)),
        ('{"pet": null}', Maybe, Maybe()),
        ('{"pet": "a cat"}', Maybe, Maybe(pet="a cat")),
        ('{"values": {}}', ByName, ByName(values={})),
    ],
)
def test_nothing_found_is_a_valid_reply(reply, template, expected):
    """Nulls, empty lists, aliases and welcome extra keys fill a template."""
    assert read_reply(Completion(reply), template)[1] == expected


def test_a_repair_shows_the_reply_and_the_error():
    """The model sees its reply and the wrong field."""
    completion = Completion('{"reasoning": "r", "result": "perhaps"}')
    with pytest.raises(InvalidOutputError) as caught:
        read_reply(completion, Verdict)
    assistant, user = repair_messages(completion, caught.value)
    assert assistant == {"role": "assistant", "content": completion.text}
    assert user["role"] == "user" and "result: " in user["content"]


def test_an_empty_reply_is_asked_for_again_without_a_repair():
    """Providers refuse empty assistant messages, and some two turns of the user."""
    assert not repair_messages(Completion(""), InvalidOutputError("it was empty"))


def test_a_runaway_reply_is_shown_in_part():
    """A repair request is not longer than it needs to be."""
    assistant, _ = repair_messages(Completion("x" * 1_000_000), InvalidOutputError("no JSON"))
    assert len(assistant["content"]) < 21_000


def test_the_schema_is_shown_as_pydantic_says_it():
    """A model without schema mode reads the same schema.

    It also reads the word JSON, which JSON modes ask for.
    """
    text = schema_text(schema_of(Verdict))
    assert "JSON object" in text and '"required": ["reasoning", "result"]' in text


def test_free_text_may_be_cut_but_not_missing():
    """Text is given as it came; an empty reply is not an answer."""
    assert read_reply(Completion("half a sen", is_truncated=True), None) == ("half a sen", None)
    with pytest.raises(InvalidOutputError):
        read_reply(Completion(" \n"), None)
