"""Requests are counted, also failed ones."""

import pytest
from servers.judge_server import JudgeServer, status

from mind2web2.llm_client import LLMClient
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
    """The most frequent first, and a few of them only."""
    retries = Retries()
    for reason in reasons:
        retries.note(reason)
    assert retries.in_words() == words


async def test_requests_are_counted_by_question(quick):
    """With retries and with the tokens of replies; one that may be billed and reports none stands apart."""
    with JudgeServer("yes", faults=[status(500), None]) as server:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=quick
        ) as client:
            first, second = (
                ChatRequest("judge-1", [{"role": "user", "content": "Is it so?"}])
                for _ in "ab"
            )
            await client.chat(first)
            await client.chat(second)
    assert first.sent.usage == Usage(100, 60, 10, requests=2)
    assert second.sent.usage == Usage(100, 60, 10, requests=1)
    assert SentRequests(requests=7, reported=5).usage == Usage(
        requests=7, unreported_requests=2
    )
