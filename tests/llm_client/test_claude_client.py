"""Claude's messages protocol, as two providers have it, against a judge on loopback."""

import json
import sys

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from pydantic import BaseModel, RootModel
from servers.judge_server import (
    VERDICT,
    JudgeServer,
    broken_body,
    claude_error,
    content,
    drop_before_reply,
    prompt_text,
    refusal,
    truncated,
)
from servers.local_http import Answer, LocalHttp

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
    JudgeUnusableError,
    UsageError,
)
from mind2web2.llm_client.base_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.claude_protocol import (
    claude_messages,
    read_completion,
)

MODEL = "us.anthropic.claude-sonnet-4-20250514-v1:0"
MESSAGES = [
    {"role": "system", "content": "You judge."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "the page"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "text", "text": "the claim"},
        ],
    },
]


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


class Facts(BaseModel):
    """Free-form, which a tool takes as well."""

    facts: dict[str, str]


class Names(RootModel[list[str]]):
    """A list at the root, which a tool cannot take."""


def question(**changes):
    """Return a request for a verdict, with these fields changed."""
    return ChatRequest(**{"model": MODEL, "messages": MESSAGES, "template": Verdict, **changes})


@pytest.fixture(params=["anthropic", "bedrock"])
def provider(request):
    """Return who serves Claude."""
    return request.param


@pytest.fixture(autouse=True)
def _aws_keys(monkeypatch):
    for name, value in (
        ("ACCESS_KEY", "AKIATEST"),
        ("SECRET_KEY", "wJalr-secret"),
        ("REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.fixture
def claude(quick, provider):
    """Build a client for the server."""

    def build(server):
        if provider == "anthropic":
            return LLMClient(
                "anthropic",
                is_async=True,
                base_url=server.url,
                api_key="wJalr-secret",
                retry=quick,
            )
        return LLMClient("bedrock_anthropic", is_async=True, base_url=server.url, retry=quick)

    return build


@pytest.fixture
def ask(claude):
    """Ask the server once."""

    async def ask_once(server, request=None):
        async with claude(server) as client:
            return await client.chat(request or question())

    return ask_once


async def test_a_template_is_a_tool_that_must_be_called(ask, provider):
    """The call's input fills the template.

    The request carries the key, or is signed with the keys.
    """
    with JudgeServer() as server:
        reply = await ask(server)
    (call,) = server.calls
    assert reply.value == Verdict(**VERDICT)
    path, proof = {
        "anthropic": ("/v1/messages", "Bearer wJalr-secret"),
        "bedrock": (f"/model/{MODEL}/invoke", "Credential=AKIATEST/"),
    }[provider]
    assert call.path == path
    assert proof in call.headers["authorization"]
    assert call.body["tool_choice"] == {"type": "tool", "name": "Verdict"}
    assert call.body["tools"][0]["input_schema"]["required"] == ["reasoning", "result"]
    assert (call.body["temperature"], call.body["max_tokens"]) == (0, 8192)
    # Claude counts cached tokens apart from the input.
    assert reply.usage == Usage(input_tokens=100, cached_tokens=60, output_tokens=10)
    assert reply.served_model == "claude-served"


async def test_a_request_to_bedrock_is_signed_as_it_is_sent(quick):
    seen = []
    reply = b'{"content": [{"type": "text", "text": "yes"}]}'

    def answer(request):
        seen.append(request)
        return Answer(reply)

    model = "arn:aws:bedrock:us-east-1:1:inference-profile/a b@c"
    with LocalHttp(answer) as server:
        async with LLMClient(
            "bedrock_anthropic",
            is_async=True,
            base_url=f"{server.url}/proxy",
            retry=quick,
        ) as client:
            await client.chat(question(model=model, template=None))
        [request] = seen
        assert request.path.startswith("/proxy/model/arn:aws:bedrock")
        headers = {name.lower(): value for name, value in request.headers.items()}
        proof = signature(request, headers, server.url)
    assert proof in headers["authorization"]


def signature(request, sent, url):
    """Return the signature of the request as it arrived."""
    signed = sent["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    headers = {name: sent[name] for name in signed.split(";")}
    arrived = AWSRequest("POST", f"{url}{request.path}", headers, request.body)
    arrived.context["timestamp"] = sent["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIATEST", "wJalr-secret"), "bedrock", "us-east-1")
    canonical = signer.canonical_request(arrived)
    return signer.signature(signer.string_to_sign(arrived, canonical), arrived)


async def test_messages_are_put_as_claude_takes_them(ask):
    """System texts go apart, images become base64 blocks, and the shared part's end is marked."""
    with JudgeServer() as server:
        await ask(server)
    body = server.requests[0]
    assert body["system"] == [{"type": "text", "text": "You judge."}]
    page, image, claim = body["messages"][0]["content"]
    assert (page, claim) == (
        {"type": "text", "text": "the page"},
        {"type": "text", "text": "the claim"},
    )
    assert image["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "aGk=",
    }
    assert image["cache_control"] == {"type": "ephemeral"}


async def test_free_text_comes_without_a_tool(ask):
    with JudgeServer("just text") as server:
        reply = await ask(server, question(template=None))
    assert (reply.text, reply.value) == ("just text", None)
    assert "tools" not in server.requests[0]


@pytest.mark.parametrize(
    ("template", "reply", "expected"),
    [
        (Facts, {"facts": {"mayor": "Ada"}}, Facts(facts={"mayor": "Ada"})),
        (Names, '["Ada"]', Names(["Ada"])),
    ],
)
async def test_every_template_can_be_filled(ask, template, reply, expected):
    """Free-form templates by a tool, lists by plain text with the schema shown."""
    with JudgeServer(reply) as server:
        assert (await ask(server, question(template=template))).value == expected


async def test_parameters_are_passed_on(ask):
    """A limit, an effort and further parameters reach the server."""
    with JudgeServer() as server:
        await ask(
            server,
            question(reasoning_effort="low", extra={"max_tokens": 500, "top_k": 3}),
        )
    body = server.requests[0]
    assert (body["max_tokens"], body["top_k"], body["output_config"]) == (
        500,
        3,
        {"effort": "low"},
    )


@pytest.mark.parametrize(
    ("message", "is_left_out"),
    [
        (
            "`temperature` is deprecated for this model.",
            lambda body: "temperature" not in body,
        ),
        (
            "content.1.image.cache_control: Extra inputs",
            lambda body: "ephemeral" not in str(body),
        ),
        (
            "Thinking may not be enabled when tool_choice forces tool use.",
            lambda body: "tools" not in body,
        ),
    ],
)
async def test_refused_parameters_are_left_out_and_remembered(claude, message, is_left_out):
    """Newer models refuse a temperature, older ones cache marks: each is learned once."""
    reply = '{"reasoning": "r", "result": true}'
    with JudgeServer(reply, faults=[claude_error(400, message)]) as server:
        async with claude(server) as client:
            replies = [await client.chat(question()) for _ in range(2)]
    assert [is_left_out(body) for body in server.requests] == [False, True, True]
    assert all(reply.value == Verdict(reasoning="r", result=True) for reply in replies)


@pytest.mark.parametrize(
    "fault",
    [
        claude_error(429, "Too many requests", "rate_limit_error", retry_after="0"),
        claude_error(529, "Overloaded", "overloaded_error"),
        claude_error(503, "busy"),
        drop_before_reply(),
        broken_body(),
    ],
)
async def test_temporary_failures_are_retried(ask, fault):
    """Throttling, outages, dropped connections and broken bodies pass."""
    with JudgeServer(faults=[fault]) as server:
        reply = await ask(server)
    assert (reply.value, reply.attempts) == (Verdict(**VERDICT), 2)


@pytest.mark.parametrize(
    ("fault", "error_class", "words"),
    [
        (
            claude_error(403, "The security token is invalid: wJalr-secret"),
            JudgeRequestError,
            "AWS_SECRET_KEY|the key given",
        ),
        (
            claude_error(400, "The provided model identifier is invalid."),
            JudgeRequestError,
            "judge model",
        ),
        (
            claude_error(400, "Input is too long for requested model."),
            ContextTooLongError,
            "too long",
        ),
        (
            claude_error(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            ContextTooLongError,
            "too long",
        ),
        (
            claude_error(400, "Your credit balance is too low to access the Anthropic API."),
            JudgeAccessError,
            "quota of .* is spent",
        ),
        (
            claude_error(402, "No credit.", "billing_error"),
            JudgeAccessError,
            "quota of .* is spent",
        ),
        (
            claude_error(404, "model: claude-9", "not_found_error"),
            JudgeAccessError,
            "no such model",
        ),
    ],
)
async def test_permanent_failures_are_not_retried(ask, fault, error_class, words):
    """One request; the error names the cure, without the secret."""
    with JudgeServer(faults=[fault]) as server:
        with pytest.raises(error_class, match=words) as caught:
            await ask(server)
        assert len(server.requests) == 1
    assert "wJalr-secret" not in str(caught.value)


async def test_a_request_without_a_connection_is_not_counted(ask):
    with JudgeServer() as server:
        pass
    request = question()
    with pytest.raises(JudgeUnavailableError, match=r" unavailable: "):
        await ask(server, request)
    assert (request.sent.requests, request.sent.reported) == (0, 0)


@pytest.mark.parametrize("fault", [content({"reasoning": "r"}), truncated(), content("I think so")])
async def test_invalid_output_is_repaired_and_then_asked_afresh(ask, fault):
    """The first valid reply counts; three invalid ones never make a verdict."""
    with JudgeServer(faults=[fault]) as server:
        reply = await ask(server)
    assert (reply.value, reply.attempts) == (Verdict(**VERDICT), 2)
    assert "cannot be used" in prompt_text(server.requests[1])
    assert [turn["role"] for turn in server.requests[1]["messages"]] == [
        "user",
        "assistant",
        "user",
    ]
    with JudgeServer(faults=[fault] * 4) as server:
        with pytest.raises(JudgeOutputError):
            await ask(server)
        assert [len(body["messages"]) for body in server.requests] == [1, 3, 1]


async def test_a_refusal_is_no_error_and_no_verdict(ask):
    """Claude's refusal comes back as such, without a repair."""
    with JudgeServer(faults=[refusal("No.")]) as server:
        reply = await ask(server)
    assert reply.declined == "refusal: No."
    assert (reply.value, len(server.requests)) == (None, 1)


def test_a_refusal_without_text_has_the_explanation():
    """Newer models give it beside the reply."""
    details = {"explanation": "It is harmful."}
    body = {"content": [], "stop_reason": "refusal", "stop_details": details}
    assert read_completion(json.dumps(body)).declined == "refusal: It is harmful."


async def test_anthropic_lists_its_models(quick):
    with JudgeServer(faults=[claude_error(404, "model: claude-9")], models=["claude-8"]) as server:
        async with LLMClient(
            "anthropic", is_async=True, base_url=server.url, api_key="k", retry=quick
        ) as client:
            await client.check_reachable()
            with pytest.raises(JudgeAccessError, match="no model claude-9; did you mean claude-8"):
                await client.chat(question(model="claude-9"))


async def test_an_unreachable_server_is_found_before_the_first_request(quick):
    """The run then ends with one line."""
    with JudgeServer() as server:
        pass
    async with LLMClient(
        "anthropic", is_async=True, base_url=server.url, api_key="k", retry=quick
    ) as client:
        with pytest.raises(JudgeUnusableError, match="cannot connect to the judge at http"):
            await client.check_reachable()


def test_images_keep_their_type_and_empty_texts_go():
    """JPEG stays JPEG, its common misnomer becomes right, and Claude is sent no empty text."""
    urls = [f"data:image/{kind};base64,aGk=" for kind in ("jpeg", "jpg", "webp")]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    _, turns = claude_messages(
        [{"role": "user", "content": [{"type": "text", "text": ""}, *parts]}],
        marks_cache=False,
    )
    kinds = [block["source"]["media_type"] for block in turns[0]["content"]]
    assert kinds == ["image/jpeg", "image/jpeg", "image/webp"]


async def test_an_image_by_url_is_refused(ask):
    """The error names the accepted form."""
    image = {"type": "image_url", "image_url": {"url": "https://town.example/map.png"}}
    with JudgeServer() as server:
        with pytest.raises(JudgeRequestError, match="data URLs"):
            await ask(server, question(messages=[{"role": "user", "content": [image]}]))
        assert server.requests == []


def test_missing_keys_are_named(monkeypatch):
    """One line names only the missing ones."""
    monkeypatch.delenv("AWS_SECRET_KEY")
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(UsageError, match=r"set AWS_SECRET_KEY and AWS_REGION$"):
        LLMClient("bedrock_anthropic", is_async=True)
    with pytest.raises(UsageError, match=r"set ANTHROPIC_API_KEY$"):
        LLMClient("anthropic", is_async=True)


def test_a_missing_package_is_named(monkeypatch):
    """The error says how to install the optional extra."""
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    with pytest.raises(UsageError, match=r"pip install 'mind2web2\[bedrock\]'"):
        LLMClient("bedrock_anthropic", is_async=True)
