"""Requests are counted, also failed ones."""

import json

import pytest
from servers.judge_server import JudgeServer, status
from servers.local_http import Answer, LocalHttp

from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest, Retries, SentRequests, Usage


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ([], ""),
        (["503"], "1 request tried again (503: 1)"),
        (
            ["503", "429", "429", "no reply"],
            "4 requests tried again (429: 2, 503: 1, no reply: 1)",
        ),
        (
            ["1", "2", "3", "4", "5"],
            "5 requests tried again (1: 1, 2: 1, 3: 1, 4: 1, ...)",
        ),
    ],
)
def test_retries_are_listed_by_reason(reasons, words):
    retries = Retries()
    for reason in reasons:
        retries.note(reason)
    assert retries.in_words() == words


async def test_requests_are_counted_by_question(quick):
    with JudgeServer("yes", faults=[status(500), None]) as server:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=quick
        ) as client:
            first, second = (
                ChatRequest("judge-1", [{"role": "user", "content": "Is it so?"}]) for _ in "ab"
            )
            await client.chat(first)
            await client.chat(second)
    assert first.sent.usage == Usage(100, 60, 10, requests=2)
    assert second.sent.usage == Usage(100, 60, 10, requests=1)
    assert SentRequests(requests=7, reported=5).usage == Usage(requests=7, unreported_requests=2)


REPLY = json.dumps(
    {
        "choices": [{"message": {"content": "yes"}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }
).encode()


@pytest.mark.parametrize(
    ("first", "unreported"),
    [
        (Answer(drops=True), 1),
        (Answer(REPLY[:20], promised_bytes=len(REPLY)), 1),
        (Answer(b"no JSON"), 1),
        (Answer(b"{}", 500), 0),
    ],
)
async def test_a_request_whose_reply_is_lost_may_be_billed(quick, first, unreported):
    """The server has the question; of an error it says itself that there is no reply."""
    answers = iter([first])
    question = ChatRequest("judge-1", [{"role": "user", "content": "Is it so?"}])
    with LocalHttp(lambda _: next(answers, Answer(REPLY))) as server:
        client = AsyncOpenAIClient(base_url=f"{server.url}/v1", api_key="key", retry=quick)
        async with client:
            await client.chat(question)
    assert question.sent.usage == Usage(100, 0, 10, requests=2, unreported_requests=unreported)
