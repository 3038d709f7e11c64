"""Chat messages are checked before they cost anything."""

import pytest

from mind2web2.llm_client.messages import checked_messages, with_text_at_end

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "non-empty list"),
        ("hello", "non-empty list"),
        ({"role": "user", "content": "x"}, "non-empty list"),
        (["hello"], r"messages\[0\] must be"),
        ([{"role": "judge", "content": "x"}], "role 'judge'"),
        ([{"role": "user"}], r"messages\[0\]\['content'\]"),
        ([{"role": "user", "content": None}], "a text or a non-empty list"),
        ([{"role": "user", "content": []}], "a text or a non-empty list"),
        (
            [{"role": "user", "content": "x"}, {"role": "user", "content": ["x"]}],
            r"messages\[1\]\['content'\]\[0\]",
        ),
        ([{"role": "user", "content": [{"type": "text", "text": 1}]}], "part"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png;base64,x"}]}],
            "data:image",
        ),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "aGk="}}]}], "data:image"),
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
    """A final part is added without touching what was given."""
    before = str(messages)
    assert with_text_at_end(messages, "more")[-1] == expected_last
    assert str(messages) == before
