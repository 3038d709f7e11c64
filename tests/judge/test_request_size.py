"""How large a request is, before it is sent."""

import base64

import pytest
from evaluations import image

from mind2web2.judge.budget import PART_SIZE_PX, request_tokens, text_tokens
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.prices import image_tokens

EMPTY = request_tokens(ChatRequest("gpt-4o", []))


def image_part(url):
    """Return an image as messages hold it."""
    return {"type": "image_url", "image_url": {"url": url, "detail": "high"}}


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd" * 25, 25), ("水" * 100, 75)])
def test_scripts_with_more_bytes_have_more_tokens(text, tokens):
    """A quarter of the bytes."""
    assert text_tokens(text) == tokens


def test_all_messages_count():
    """Texts as they are and in parts."""
    messages = [
        {"role": "system", "content": "abcd" * 10},
        {"role": "user", "content": [{"type": "text", "text": "abcd" * 7}, {"type": "text", "text": ""}]},
    ]
    assert request_tokens(ChatRequest("gpt-4o", messages)) == EMPTY + 17


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_image_counts_by_its_size(kind):
    """Read from its header alone; whatever cannot be read counts as a part of a screenshot."""
    data = base64.b64encode(image(600, 300, kind)).decode()
    for url, size_px in (
        (f"data:image/x;base64,{data}", (600, 300)),
        ("data:image/x;base64,AAAA", PART_SIZE_PX),
        ("data:image/x;base64,!", PART_SIZE_PX),
        ("https://lake.example/map.png", PART_SIZE_PX),
    ):
        request = ChatRequest("gpt-4o", [{"role": "user", "content": [image_part(url)]}])
        assert request_tokens(request) == EMPTY + image_tokens("gpt-4o", *size_px)
