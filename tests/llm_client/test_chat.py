"""Chat messages: checked before they cost anything, and put together as a request's body."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from servers.judge_server import JudgeServer, image_urls, prompt_text

from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.messages import checked_messages, with_text_at_end
from mind2web2.llm_client.transport import JsonBody
from mind2web2.prompts import HashedText

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "at least 1 item"),
        ("hello", "messages: Input should be a valid list"),
        ({"role": "user", "content": "x"}, "a valid list"),
        (["hello"], r"messages\.0: Input should be"),
        ([{"role": "judge", "content": "x"}], r"messages\.0\.role: Input should be 'system'"),
        ([{"role": "user"}], r"messages\.0\.content: Field required"),
        ([{"role": "user", "content": None}], "a valid list"),
        ([{"role": "user", "content": []}], "at least 1 item"),
        (
            [{"role": "user", "content": "x"}, {"role": "user", "content": ["x"]}],
            r"messages\.1\.content\.parts\.0: ",
        ),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], "part"),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": "data:image/png;base64,x"}],
                }
            ],
            "a valid dictionary",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "aGk="}}],
                }
            ],
            "data:image",
        ),
    ],
)
def test_a_wrong_shape_is_named(messages, words):
    """The error says which message or part is wrong."""
    with pytest.raises(ValueError, match=words):
        checked_messages(messages)


def test_right_messages_pass_as_they_are():
    """Texts and images stay as given, and the caller's objects are not changed."""
    messages = [
        {"role": "system", "content": "judge"},
        {"role": "user", "content": [{"type": "text", "text": "Ünïcode 😀"}, IMAGE]},
    ]
    assert checked_messages(messages) == messages


def test_half_surrogates_become_sendable():
    """A lone half of a surrogate pair is replaced, a whole pair becomes its character."""
    messages = checked_messages([{"role": "user", "content": "a\ud83db \ud83d\ude00"}])
    assert messages[0]["content"] == "a\ufffdb 😀"


@pytest.mark.parametrize(
    ("messages", "expected_last"),
    [
        ([{"role": "user", "content": "q"}], {"role": "user", "content": "q\n\nmore"}),
        (
            [{"role": "user", "content": [IMAGE]}],
            {"role": "user", "content": [IMAGE, {"type": "text", "text": "more"}]},
        ),
        ([{"role": "assistant", "content": "a"}], {"role": "user", "content": "more"}),
    ],
)
def test_text_goes_to_the_end_of_the_users_turn(messages, expected_last):
    """A final part is added to a copy."""
    before = str(messages)
    assert with_text_at_end(messages, "more")[-1] == expected_last
    assert str(messages) == before


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SHARED = TEXT | TEXT.map(HashedText) | TEXT.map(lambda text: HashedText(text).prepare())
IMAGE_PARTS = st.builds(
    lambda url, detail, is_last: {
        "type": "image_url",
        "image_url": {"detail": detail, "url": url} if is_last else {"url": url, "detail": detail},
    },
    SHARED,
    TEXT,
    st.booleans(),
)
TEXT_PARTS = st.builds(
    lambda text, is_last: (
        {"type": "text", "text": text} if is_last else {"text": text, "type": "text"}
    ),
    SHARED,
    st.booleans(),
)
MESSAGES = st.builds(
    lambda content, is_last: (
        {"role": "user", "content": content}
        if is_last
        else {"content": content, "role": "user", "name": "x"}
    ),
    SHARED | st.lists(TEXT_PARTS | IMAGE_PARTS, max_size=3),
    st.booleans(),
)


@given(
    st.lists(MESSAGES, max_size=3),
    st.dictionaries(TEXT, TEXT | st.integers() | st.none(), max_size=2),
)
def test_the_body_equals_the_messages(messages, parameters):
    body = JsonBody(parameters, messages)
    sent = bytes(body)
    assert json.loads(sent) == {**parameters, "messages": messages}
    assert b"\n" not in sent
    assert body.size_bytes == len(sent)


def test_encoded_texts_are_reused():
    """A page's text is escaped once for all requests, its images are never escaped at all."""
    text, image = (
        HashedText('"Zürich"\n' * 3).prepare(),
        HashedText("data:image/jpeg;base64,AAAA").prepare(),
    )
    assert text.json_pieces[0] is text.json_pieces[0]
    assert image.json_pieces == (b'"', b"data:image/jpeg;base64,AAAA", b'"')
    parts = [
        {"type": "text", "text": text},
        {"type": "image_url", "image_url": {"url": image}},
    ]
    body = bytes(JsonBody({}, [{"role": "user", "content": parts}]))
    assert body.count(text.json_pieces[0]) == body.count(b"".join(image.json_pieces)) == 1


class Filter(BaseModel):
    """A script's own parameter."""

    level: int = 1
    name: str | None = None


def test_parameters_may_be_models():
    assert json.loads(bytes(JsonBody({"filter": Filter(level=2)}, []))) == {
        "filter": {"level": 2},
        "messages": [],
    }


@pytest.mark.parametrize(("value", "error"), [({1}, TypeError), (float("nan"), ValueError)])
def test_values_outside_json_are_refused(value, error):
    with pytest.raises(error, match="JSON"):
        JsonBody({"seed": value}, [])


async def test_a_server_receives_large_bodies_whole():
    """Megabytes of a page, with a content length, in several requests."""
    text = HashedText('Zürich "am See" \n' * 50_000).prepare()
    image = HashedText("data:image/jpeg;base64," + "QUJD" * 300_000).prepare()
    parts = [
        {"type": "text", "text": text},
        {"type": "image_url", "image_url": {"url": image}},
    ]
    with JudgeServer(reply="yes") as server:
        async with LLMClient("openai", is_async=True, base_url=server.base_url) as client:
            for _ in range(2):
                assert await client.async_response(
                    model="m", messages=[{"role": "user", "content": parts}]
                )
    for call in server.calls:
        assert "transfer-encoding" not in call.headers
        assert prompt_text(call.body).endswith(text)
        assert image_urls(call.body) == [image]
