"""The key under which a judgment is kept."""

from dataclasses import replace

import pytest
from pydantic import BaseModel

from mind2web2.judge.judgment import judgment_key
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.prompts import HashedText


# Its description is part of the schema, and so of the key below.
class Verdict(BaseModel):
    """What is asked for."""

    reasoning: str
    result: bool


class OtherVerdict(BaseModel):
    """The same, with one more field."""

    reasoning: str
    result: bool
    confidence: float


IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/jpeg;base64,AAAA", "detail": "high"},
}


def messages(text="Is it so?", image=IMAGE, role="user"):
    """Return a conversation."""
    return [
        {"role": "system", "content": "Judge."},
        {"role": role, "content": [{"type": "text", "text": text}, image]},
    ]


REQUEST = ChatRequest(model="judge-1", messages=messages(), template=Verdict)


# Stored judgments of earlier versions are found under it: it may never change.
KEY = "f9d5d4b68623343522fbcf8ac3754375683db6806eb2b4a8438d58fdb060907e"


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "judge-2"},
        {"temperature": 0.0},
        {"reasoning_effort": "low"},
        {"extra": {"seed": 1}},
        {"template": None},
        {"template": OtherVerdict},
        {"messages": messages()[1:]},
        {"messages": messages(text="Is it so ?")},
        {"messages": messages(role="assistant")},
        {
            "messages": messages(
                image={**IMAGE, "image_url": {**IMAGE["image_url"], "detail": "low"}}
            )
        },
        {
            "messages": messages(
                image={
                    "type": "image_url",
                    "image_url": {"url": "data:image/jpeg;base64,AAAB"},
                }
            )
        },
    ],
)
def test_each_thing_that_determines_a_reply_changes_the_key(changes):
    """A judgment on anything else is never taken for this one's."""
    assert judgment_key(replace(REQUEST, **changes), 1) != judgment_key(REQUEST, 1)


def test_each_trial_has_a_key_of_its_own():
    """Votes are independent requests."""
    assert len({judgment_key(REQUEST, trial) for trial in range(1, 6)}) == 5


def test_pieces_of_a_message_do_not_run_together():
    parts = [{"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]
    others = [{"type": "text", "text": "a"}, {"type": "text", "text": "bc"}]
    keys = [
        judgment_key(replace(REQUEST, messages=[{"role": "user", "content": content}]), 1)
        for content in (parts, others)
    ]
    assert keys[0] != keys[1]


def test_nothing_else_changes_the_key():
    """Three things say nothing.

    They are the order of a part's fields, how a text is held, and parameters at their defaults.
    """
    image = {
        "image_url": dict(reversed(IMAGE["image_url"].items())),
        "type": "image_url",
    }
    same = ChatRequest(
        model="judge-1",
        messages=messages(text=HashedText("Is it so?"), image=image),
        template=Verdict,
        temperature=None,
        reasoning_effort=None,
        extra={},
    )
    assert judgment_key(same, 1) == judgment_key(REQUEST, 1) == KEY


def test_a_text_is_the_same_as_a_list_of_one_text():
    """Providers take both for the same message."""
    as_text = replace(REQUEST, messages=[{"role": "user", "content": "hm"}])
    as_list = replace(
        REQUEST,
        messages=[{"role": "user", "content": [{"type": "text", "text": "hm"}]}],
    )
    assert judgment_key(as_text, 1) == judgment_key(as_list, 1)
