"""Replies that no client can use.

The tests say what is final, what is tried again, and how much of a reply is read.
"""

import gzip
import json
import zlib

import pytest
from servers.judge_server import JudgeServer, status
from servers.local_http import Answer, LocalHttp

from mind2web2.errors import JudgeAccessError, JudgeUnavailableError
from mind2web2.llm_client.base_client import (
    AsyncAzureOpenAIClient,
    AsyncOpenAIClient,
    LLMClient,
)
from mind2web2.llm_client.chat import ChatRequest

QUESTION = ChatRequest(model="m", messages=[{"role": "user", "content": "q"}])
KEY = "sk-secret-key"
REPLIES = {
    True: b'{"choices": [{"message": {"content": "yes"}}]}',
    False: b'{"content": [{"type": "text", "text": "yes"}]}',
}


def openai(address, retry):
    """Build the client of a compatible server."""
    return AsyncOpenAIClient(base_url=f"{address}/v1", api_key=KEY, retry=retry)


def azure(address, retry):
    """Build the client of Azure."""
    return AsyncAzureOpenAIClient(base_url=address, api_key=KEY, api_version="1", retry=retry)


def anthropic(address, retry):
    """Build the client of Anthropic, whose SDK composes the requests."""
    return LLMClient("anthropic", is_async=True, base_url=address, api_key=KEY, retry=retry)


def bedrock(address, retry):
    """Build the client of Bedrock, whose requests are signed."""
    return LLMClient("bedrock_anthropic", is_async=True, base_url=address, retry=retry)


@pytest.fixture(params=[openai, azure, anthropic, bedrock])
def client_of(request, monkeypatch):
    """Build the client of each protocol."""
    for name in ("ACCESS_KEY", "SECRET_KEY", "REGION"):
        monkeypatch.setenv(f"AWS_{name}", "us-east-1")
    return request.param


def reply_for(request):
    """Return a reply in the protocol of the request."""
    return REPLIES[request.path.endswith("/chat/completions")]


async def ask(address, client_of, retry):
    """Return the reply to one question."""
    async with client_of(address, retry) as client:
        return await client.chat(QUESTION)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        *(
            (
                Answer(b"", code, {"Location": "http://a:b@other.example/x?key=1"}),
                "to other.example/x: give",
            )
            for code in (301, 302, 303, 307, 308)
        ),
        (Answer(b"", 304), "304 the server redirects to nowhere"),
        (
            Answer(
                gzip.compress(b" " * 65_000_000, 1),
                headers={"Content-Encoding": "gzip"},
            ),
            "larger than 64 MB",
        ),
    ],
)
async def test_a_reply_that_will_not_change_is_asked_for_once(quick, client_of, answer, words):
    with (
        LocalHttp(lambda _: answer) as server,
        pytest.raises(JudgeAccessError, match=words) as caught,
    ):
        await ask(server.url, client_of, quick)
    assert len(server.requests) == 1
    assert ": check the" in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"{}", headers={"no header": "x"}), "the reply is not HTTP: "),
        (Answer(b"xx", headers={"Content-Encoding": "snappy"}), "the reply is not a completion"),
    ],
)
async def test_a_damaged_reply_is_no_outage(quick, client_of, answer, words):
    with (
        LocalHttp(lambda _: answer) as server,
        pytest.raises(JudgeUnavailableError, match=words) as caught,
    ):
        await ask(server.url, client_of, quick)
    assert len(server.requests) == quick.tries
    assert not caught.value.is_outage


@pytest.mark.parametrize("encoding", ["utf-8", "none", "gzip"])
@pytest.mark.parametrize("promised_bytes", [None, 1000])
async def test_an_error_status_says_what_its_body_cannot(
    quick, client_of, encoding, promised_bytes
):
    """The body may be cut short, or packed otherwise than its header says."""

    def error(code):
        headers = {"Content-Encoding": encoding}
        return Answer(b"slow down", code, headers, promised_bytes)

    answers = iter([error(429), error(503)])
    with LocalHttp(lambda it: next(answers, None) or Answer(reply_for(it))) as server:
        async with client_of(server.url, quick) as client:
            assert (await client.chat(QUESTION)).text == "yes"
            assert sorted(client.retries.reasons) == ["429", "503"]
    with (
        LocalHttp(lambda _: error(401)) as server,
        pytest.raises(JudgeAccessError, match="the key is refused"),
    ):
        await ask(server.url, client_of, quick)
    assert len(server.requests) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "none"])
async def test_an_encoding_that_is_no_compression_is_none(quick, client_of, encoding):
    """Some servers name there what the text is written in."""

    def answer(request):
        return Answer(reply_for(request), headers={"Content-Encoding": encoding})

    with LocalHttp(answer) as server:
        assert (await ask(server.url, client_of, quick)).text == "yes"


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, None])
async def test_a_reply_is_asked_for_in_what_can_be_read(quick, client_of, pack):
    name = {gzip.compress: "gzip", zlib.compress: "deflate"}.get(pack, "identity")

    def answer(request):
        body = reply_for(request)
        return Answer(pack(body) if pack else body, headers={"Content-Encoding": name})

    with LocalHttp(answer) as server:
        assert (await ask(server.url, client_of, quick)).text == "yes"
    headers = server.requests[0].headers
    accepted = {name.lower(): value for name, value in headers.items()}
    assert {"gzip", "deflate"} <= set(accepted["accept-encoding"].split(", "))


async def test_of_an_error_only_the_start_is_read(quick, client_of):
    """An endless one is the error that its status says."""
    packed = gzip.compress(b" " * 65_000_000, 1)
    answers = iter([Answer(packed, 503, {"Content-Encoding": "gzip"})])
    with LocalHttp(lambda it: next(answers, None) or Answer(reply_for(it))) as server:
        assert (await ask(server.url, client_of, quick)).text == "yes"
    assert len(server.requests) == 2


async def test_a_long_header_is_read(quick):
    """Gateways put long ones on their error pages."""
    long = status(503, headers={"Content-Security-Policy": "a" * 20_000})
    with JudgeServer("yes", faults=[long]) as server:
        assert (await ask(server.url, openai, quick)).text == "yes"
    assert len(server.requests) == 2


def chat_body(**more):
    """Return a completion in OpenAI's protocol."""
    return {"choices": [{"message": {"content": "yes"}}]} | more


TWO = [{"index": 1, "message": {"content": "no"}}, {"message": {"content": "yes"}}]
AMBIGUOUS = [
    (json.dumps(chat_body(choices=TWO)), "2 choices instead of one"),
    (
        '{"choices": [{"message": {"content": "yes"}}], "choices": []}',
        "'choices' more than once",
    ),
    ('{"choices": [{"message": {"content": "a", "content": "b"}}]}', "more than once"),
]


@pytest.mark.parametrize(("body", "words"), AMBIGUOUS)
async def test_an_ambiguous_reply_is_an_error_of_that_reply(quick, body, words):
    with (
        LocalHttp(lambda _: Answer(body.encode())) as server,
        pytest.raises(JudgeUnavailableError, match=words),
    ):
        await ask(server.url, openai, quick)


DRAFT = {"type": "reasoning", "text": '{"reasoning": "r", "result": true}'}


async def test_a_draft_in_a_part_with_reasoning_is_no_answer(quick):
    """Such parts have text, too; a verdict in one has not been given."""
    content = [DRAFT, {"type": "text", "text": "no"}]
    body = json.dumps({"choices": [{"message": {"content": content}}]})
    with LocalHttp(lambda _: Answer(body.encode())) as server:
        assert (await ask(server.url, openai, quick)).text == "no"


CALL = {"type": "tool_use", "input": {"result": True}}
CLAUDE = [
    ({"content": [CALL, CALL]}, "2 values instead of one"),
    ({"role": "assistant"}, "assistant"),
]


@pytest.mark.parametrize(("body", "words"), CLAUDE)
async def test_claudes_ambiguous_reply_is_an_error_of_that_reply(quick, body, words):
    with (
        LocalHttp(lambda _: Answer(json.dumps(body).encode())) as server,
        pytest.raises(JudgeUnavailableError, match=words),
    ):
        await ask(server.url, anthropic, quick)


@pytest.mark.parametrize("place", ["model", "system_fingerprint", "choices"])
async def test_a_key_that_a_good_reply_echoes_is_removed(quick, place):
    value = [{"message": {"content": f"yes {KEY}"}}] if place == "choices" else KEY
    body = json.dumps(chat_body(**{place: value}))
    with LocalHttp(lambda _: Answer(body.encode())) as server:
        reply = await ask(server.url, openai, quick)
    assert KEY not in repr(reply)
    assert reply.text in ("yes", "yes ***")
