"""Servers with habits of their own: what they write still counts, or the message says why not."""

import json

import pytest
from pydantic import BaseModel
from servers.judge_server import VERDICT, Fault, JudgeServer, completion, content, status
from servers.local_http import Answer, LocalHttp

from mind2web2.errors import JudgeRequestError
from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


SYSTEM = {"role": "system", "content": "Judge."}
QUESTION = ChatRequest("m", [SYSTEM, {"role": "user", "content": "Is it?"}], template=Verdict)
LONG = "Nothing else of interest is written on this line of the page. " * 400


async def reply_of(base_url, retry, request=QUESTION):
    """Return the reply to one question."""
    async with AsyncOpenAIClient(base_url=base_url, retry=retry) as client:
        return await client.chat(request)


def roles(body):
    """Return who speaks in a request."""
    return [message["role"] for message in body["messages"]]


def without_system(body):
    """Refuse a system's turn, as Gemma's chat template does."""
    return status(400, "System role not supported") if "system" in roles(body) else None


def two_users(body):
    """Refuse two turns of one side, as Mistral's chat template does."""
    sides = roles(body)
    if any(sides[n] == sides[n + 1] for n in range(len(sides) - 1)):
        return status(400, "Conversation roles must alternate user/assistant/user/assistant/...")
    return None


def wrapped_temperature(body):
    """Refuse a temperature as LiteLLM wraps it."""
    words = "litellm.APIError: BadRequestError - Unsupported value: 'temperature' is not supported"
    return status(500, words) if "temperature" in body else None


@pytest.mark.parametrize("refuses", [without_system, two_users, wrapped_temperature])
async def test_a_form_that_is_refused_is_asked_in_another_one(quick, refuses):
    request = ChatRequest("m", [SYSTEM, *QUESTION.messages, *QUESTION.messages], template=Verdict)
    with JudgeServer(faults=refuses) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            for _ in range(2):
                assert (await client.chat(request)).value == Verdict(**VERDICT)
    assert len(server.requests) == 3


async def test_a_schema_is_in_the_text_once_a_server_has_ignored_it(quick):
    with JudgeServer(
        faults=lambda body: None if "JSON schema" in str(body["messages"]) else content("Yes.")
    ) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            for _ in range(3):
                assert (await client.chat(QUESTION)).value == Verdict(**VERDICT)
    assert len(server.requests) == 4


@pytest.mark.parametrize("code", [425, 499])
async def test_what_passes_is_tried_again(quick, code):
    with JudgeServer(faults=[status(code)]) as server:
        assert (await reply_of(server.base_url, quick)).value == Verdict(**VERDICT)


async def test_another_version_of_http_is_asked_for_once(quick):
    with (
        JudgeServer(faults=[status(505, "HTTP/2 required")] * 9) as server,
        pytest.raises(JudgeRequestError, match="HTTP/2 required"),
    ):
        await reply_of(server.base_url, quick)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("usage", "input_tokens"),
    [
        ([], 0),
        ({"prompt_tokens": 12.5}, 0),
        ({"prompt_tokens": -1}, 0),
        ({"prompt_tokens": 10**30}, 0),
        ({"prompt_tokens": True}, 0),
    ],
)
async def test_a_count_that_cannot_be_right_is_unknown(quick, usage, input_tokens):
    with JudgeServer(faults=[Fault(body=completion(VERDICT, usage=usage))]) as server:
        reply = await reply_of(server.base_url, quick)
    assert (reply.value, reply.usage.input_tokens) == (Verdict(**VERDICT), input_tokens)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("\ufeff" + json.dumps(completion(VERDICT)), {}),
        (json.dumps(completion(VERDICT, message={"refusal": False})), {}),
        (json.dumps(completion('{"reasoning": "\ud83d", "result": true}')), {}),
        (json.dumps(completion(r'{"reasoning": "\ud83d", "result": true}')), {}),
        (
            json.dumps(
                completion(
                    "",
                    message={
                        "content": [
                            {"type": "thinking", "thinking": []},
                            {"text": '{"reasoning": '},
                            {"text": '"r", "result": true}'},
                        ]
                    },
                )
            ),
            {},
        ),
    ],
)
async def test_what_a_server_writes_oddly_is_read(quick, body, headers):
    with LocalHttp(lambda _: Answer(body.encode(), headers=headers)) as server:
        assert (await reply_of(f"{server.url}/v1", quick)).value.result is True


async def test_the_encoding_that_a_server_names_counts(quick):
    said = {"reasoning": "Zürich", "result": True}
    body = json.dumps(completion(json.dumps(said, ensure_ascii=False)), ensure_ascii=False)
    headers = {"Content-Type": "application/json; charset=ISO-8859-1"}
    with LocalHttp(lambda _: Answer(body.encode("latin-1"), headers=headers)) as server:
        assert (await reply_of(f"{server.url}/v1", quick)).value == Verdict(**said)


@pytest.mark.parametrize(
    ("text", "counted", "is_read"),
    [
        (LONG, 2050, False),
        (LONG, 4090, False),
        (LONG, 6000, True),
        (LONG, 100, True),
        ("A short question. " * 400, 600, True),
        ("漢字" * 20_000, 2050, False),
        ("漢字" * 20_000, 20_000, True),
    ],
)
async def test_a_request_that_was_not_read_as_a_whole_has_no_verdict(quick, text, counted, is_read):
    request = ChatRequest("m", [{"role": "user", "content": text}], template=Verdict)
    body = completion(VERDICT, usage={"prompt_tokens": counted})
    with JudgeServer(faults=lambda _: Fault(body=body)) as server:
        if is_read:
            assert (await reply_of(server.base_url, quick, request)).value
        else:
            with pytest.raises(JudgeRequestError, match=f"{counted:,} tokens .* OLLAMA_CONTEXT_"):
                await reply_of(server.base_url, quick, request)
