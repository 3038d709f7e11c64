"""A judge's parameters, and which of them belong to a judgment's key."""

import json

import pytest

from mind2web2.judge.spec import keyed_part

# These change when and where a request is answered, and the bill, but not the reply.
NEUTRAL = (
    "cache_salt",
    "metadata",
    "priority",
    "prompt_cache_key",
    "prompt_cache_retention",
    "request_id",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
)
KEYED = (
    "seed",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "logit_bias",
    "frequency_penalty",
    "presence_penalty",
    "verbosity",
    "chat_template_kwargs",
    "guided_json",
    "thinking",
    "modalities",
    "reasoning",
    "an_unknown_one",
)


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_changes_no_reply_belongs_to_no_key(name):
    """Judgments are found again whatever its value is."""
    assert keyed_part({name: "x"}) is None


@pytest.mark.parametrize("name", KEYED)
def test_what_may_change_a_reply_belongs_to_the_key(name):
    """A judgment under other parameters is another judgment."""
    assert keyed_part({name: 1, "user": "x"}) == f'{{"{name}":1}}'


def test_the_form_of_the_keyed_part_is_fixed():
    """Keys of stored judgments hold it."""
    given = '{"top_k": 1, "user": "x", "chat_template_kwargs": {"b": true, "a": 2}}'
    assert keyed_part(json.loads(given)) == '{"chat_template_kwargs":{"a":2,"b":true},"top_k":1}'
