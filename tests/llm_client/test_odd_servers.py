"""Servers with habits of their own: what they write still counts, or the message says why not."""

import json

import pytest
from pydantic import BaseModel
from servers.judge_server import VERDICT, Fault, JudgeServer, content, status
from servers.local_http import Answer, LocalHttp

from mind2web2.errors import ContextTooLongError, JudgeAccessError, JudgeError, JudgeRequestError
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
    """It is refused once: the client remembers."""
    request = ChatRequest("m", [SYSTEM, *QUESTION.messages, *QUESTION.messages], template=Verdict)
    with JudgeServer(faults=refuses) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            for _ in range(2):
                assert (await client.chat(request)).value == Verdict(**VERDICT)
    assert len(server.requests) == 3


async def test_an_empty_reply_leads_to_no_second_turn_of_the_user(quick):
    with JudgeServer(faults=[content("")]) as server:
        assert (await reply_of(server.base_url, quick)).value == Verdict(**VERDICT)
    assert [roles(body) for body in server.requests] == [["system", "user"]] * 2


async def test_a_model_whose_json_its_server_refuses_is_asked_again(quick):
    refused = status(400, "Failed to generate JSON.", code="json_validate_failed")
    with JudgeServer(faults=[refused]) as server:
        assert (await reply_of(server.base_url, quick)).value == Verdict(**VERDICT)


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


def body_of(text=None, finish="stop", **more):
    """Return a completion as JSON."""
    text = json.dumps(VERDICT) if text is None else text
    message = {"role": "assistant", "content": text, **more.pop("message", {})}
    return {"choices": [{"message": message, "finish_reason": finish}], "model": "m", **more}


@pytest.mark.parametrize(
    ("usage", "input_tokens"),
    [
        ({"prompt_tokens": 100, "prompt_tokens_details": []}, 100),
        ([], 0),
        (None, 0),
        ({"prompt_tokens": 12.5}, 0),
        ({"prompt_tokens": -1}, 0),
        ({"prompt_tokens": 10**30}, 0),
        ({"prompt_tokens": True}, 0),
    ],
)
async def test_a_count_that_cannot_be_right_is_unknown(quick, usage, input_tokens):
    with JudgeServer(faults=[Fault(body=body_of(usage=usage))]) as server:
        reply = await reply_of(server.base_url, quick)
    assert (reply.value, reply.usage.input_tokens) == (Verdict(**VERDICT), input_tokens)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("\ufeff" + json.dumps(body_of()), {}),
        (json.dumps(body_of(message={"refusal": False})), {}),
        (json.dumps(body_of('{"reasoning": "\ud83d", "result": true}')), {}),
        (json.dumps(body_of(r'{"reasoning": "\ud83d", "result": true}')), {}),
        (
            json.dumps(
                body_of(
                    [
                        {"type": "thinking", "thinking": []},
                        {"text": '{"reasoning": '},
                        {"text": '"r", "result": true}'},
                    ]
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
    body = json.dumps(body_of(json.dumps(said, ensure_ascii=False)), ensure_ascii=False)
    headers = {"Content-Type": "application/json; charset=ISO-8859-1"}
    with LocalHttp(lambda _: Answer(body.encode("latin-1"), headers=headers)) as server:
        assert (await reply_of(f"{server.url}/v1", quick)).value == Verdict(**said)


LENGTH = "This model's maximum context length is 10 tokens"


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ({"detail": "top up your balance"}, JudgeError, "top up your balance"),
        ({"base_resp": {"status_msg": "insufficient balance"}}, JudgeError, "insufficient balance"),
        ({"object": "error", "message": LENGTH, "code": 400}, ContextTooLongError, LENGTH),
        ({"error": "Unexpected endpoint or method."}, JudgeAccessError, "no such model or address"),
        (
            body_of("", message={"reasoning_content": json.dumps(VERDICT)}),
            JudgeError,
            "not its reasoning_content .*: start it without a parser",
        ),
        (body_of("", message={"tool_calls": [{"id": "1"}]}), JudgeError, "for a tool call"),
        (body_of("", "length", message={"reasoning": "so"}), JudgeError, "max_tokens"),
        (body_of('{"reasoning": "so', "length"), JudgeError, "max_tokens"),
        ('data: {"choices": []}', JudgeError, "sends its reply as an event stream"),
        ("<html>Login</html>", JudgeError, "no completion but '<html>Login"),
    ],
)
async def test_a_reply_that_cannot_count_says_why(quick, body, error, words):
    with (
        JudgeServer(faults=lambda _: Fault(body=body)) as server,
        pytest.raises(error, match=words),
    ):
        await reply_of(server.base_url, quick)


async def test_an_address_without_v1_is_corrected(quick):
    with (
        JudgeServer(faults=lambda _: status(404, "Not Found")) as server,
        pytest.raises(JudgeAccessError, match=f"did you mean {server.base_url}"),
    ):
        await reply_of(server.url, quick)


@pytest.mark.parametrize(
    "body",
    [
        body_of(None, "SAFETY"),
        body_of("", "content_filter: PROHIBITED_CONTENT"),
        body_of("", "RECITATION"),
        {"choices": [], "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
    ],
)
async def test_what_a_filter_stopped_is_declined(quick, body):
    with JudgeServer(faults=lambda _: Fault(body=body)) as server:
        assert (await reply_of(server.base_url, quick)).declined.startswith("content filter (")


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
    body = body_of(usage={"prompt_tokens": counted})
    with JudgeServer(faults=lambda _: Fault(body=body)) as server:
        if is_read:
            assert (await reply_of(server.base_url, quick, request)).value
        else:
            with pytest.raises(JudgeRequestError, match=f"{counted:,} tokens .* OLLAMA_CONTEXT_"):
                await reply_of(server.base_url, quick, request)
