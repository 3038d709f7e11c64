"""Reading replies into templates."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from mind2web2.llm_client.schema import schema_of
from mind2web2.llm_client.structured import (
    InvalidOutputError,
    json_text,
    read_template,
    read_text,
    repair_messages,
    schema_text,
)
from mind2web2.llm_client.transport import Completion


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


class Place(BaseModel):
    """All optional."""

    name: str | None = None
    url: str | None = None


class Places(BaseModel):
    """Nested, all optional."""

    places: list[Place] = []
    best: Place = Place()


class Names(RootModel[list[str]]):
    """No object."""


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
        f"Here you are:\n```json\n{VALID}\n```\nAnything else?",
        f"<think>first {{ I think }}</think>\n{VALID}",
        f"\n  {VALID}  \n",
    ],
)
def test_json_is_found_in_its_wrapping(reply):
    """Code fences and thinking aloud do not make a reply invalid."""
    text, value = read_template(Completion(reply), Verdict)
    assert (text, value) == (VALID, Verdict(reasoning="r", result=False))


def test_a_fence_inside_a_string_stays():
    """Code fences within a JSON text are part of it."""
    reply = '{"reasoning": "see\\n```\\ncode\\n```", "result": true}'
    assert json_text(reply) == reply


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
    ],
)
def test_what_is_not_the_template_is_invalid(reply):
    """No reply is bent into a verdict."""
    with pytest.raises(InvalidOutputError):
        read_template(Completion(reply), Verdict)


def test_a_truncated_reply_is_invalid_even_where_it_parses():
    """A reply cut at the limit may lack its end."""
    with pytest.raises(InvalidOutputError, match="cut off"):
        read_template(Completion(VALID, is_truncated=True), Verdict)


@pytest.mark.parametrize(
    ("reply", "template"),
    [
        ('{"extraction": {"name": "A"}}', Place),
        ("{}", Place),
        ('{"places": [{"name": "A"}, {"title": "B"}]}', Places),
    ],
)
def test_another_object_does_not_pass_as_an_empty_one(reply, template):
    """A template of optional fields is not filled by an object that has none of them."""
    with pytest.raises(InvalidOutputError, match="none of the properties of Place"):
        read_template(Completion(reply), template)


@pytest.mark.parametrize(
    ("reply", "template", "expected"),
    [
        ('{"name": null}', Place, Place(name=None)),
        ('{"places": []}', Places, Places()),
        ('{"places": [{"name": "A"}]}', Places, Places(places=[Place(name="A")])),
        ('["a", "b"]', Names, Names(["a", "b"])),
        ("[]", Names, Names([])),
        ('{"fullName": "A"}', Aliased, Aliased(fullName="A")),
        ('{"other": 1}', Aliased, Aliased(other=1)),
    ],
)
def test_nothing_found_is_a_valid_reply(reply, template, expected):
    """Nulls, empty lists, defaults, aliases and welcome extra keys fill a template."""
    assert read_template(Completion(reply), template)[1] == expected


def test_a_repair_shows_the_reply_and_the_error():
    """The model sees what it wrote and which field is wrong."""
    completion = Completion('{"reasoning": "r", "result": "perhaps"}')
    with pytest.raises(InvalidOutputError) as caught:
        read_template(completion, Verdict)
    assistant, user = repair_messages(completion, caught.value)
    assert assistant == {"role": "assistant", "content": completion.text}
    assert user["role"] == "user" and "result: " in user["content"]


def test_a_repair_of_nothing_has_no_empty_turn():
    """Providers refuse empty assistant messages."""
    assert [turn["role"] for turn in repair_messages(Completion(""), InvalidOutputError("it was empty"))] == [
        "user"
    ]


def test_a_runaway_reply_is_shown_in_part():
    """A repair request is not longer than it needs to be."""
    assistant, _ = repair_messages(Completion("x" * 1_000_000), InvalidOutputError("no JSON"))
    assert len(assistant["content"]) < 21_000


def test_the_schema_is_shown_as_pydantic_says_it():
    """A model without schema mode reads the same schema, and the word JSON that JSON modes ask for."""
    text = schema_text(schema_of(Verdict))
    assert "JSON object" in text and '"required": ["reasoning", "result"]' in text


def test_free_text_may_be_cut_but_not_missing():
    """Text is given as it came; an empty reply is not an answer."""
    assert read_text(Completion("half a sen", is_truncated=True)) == "half a sen"
    with pytest.raises(InvalidOutputError):
        read_text(Completion(" \n"))
