"""The published client: both kinds, every provider, its keywords."""

import asyncio
import subprocess
import sys

import pytest
from pydantic import BaseModel
from servers.judge_server import VERDICT, JudgeServer, refusal

import mind2web2.llm_client as package
from mind2web2.errors import JudgeDeclinedError, UsageError
from mind2web2.llm_client import AzureOpenAIClient, LLMClient, OpenAIClient
from mind2web2.llm_client.chat import ChatRequest

MESSAGES = [{"role": "user", "content": "Is it so?"}]


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


@pytest.fixture
async def asynchronous(quick):
    """Build asynchronous clients and close them."""
    clients = []

    def build(server):
        clients.append(LLMClient("openai", is_async=True, base_url=server.base_url, retry=quick))
        return clients[-1]

    yield build
    for client in clients:
        await client.close()


@pytest.mark.parametrize(
    ("reply", "keywords", "expected"),
    [
        (VERDICT, {"response_format": Verdict}, Verdict(**VERDICT)),
        ("yes", {"max_tokens": 5}, "yes"),
        (
            "yes",
            {"count_token": True},
            (
                "yes",
                {
                    "input_tokens": 100,
                    "output_tokens": 10,
                    "cached_tokens": 60,
                    "total_tokens": 110,
                },
            ),
        ),
    ],
)
async def test_a_response_has_the_requested_form(asynchronous, reply, keywords, expected):
    """A filled template, text, or a pair with the tokens; unknown keywords reach the server."""
    with JudgeServer(reply) as server:
        client = asynchronous(server)
        assert (
            await client.async_response(messages=MESSAGES, model="gpt-4o", **keywords) == expected
        )
        with pytest.raises(ValueError, match="async_response"):
            client.response(messages=MESSAGES, model="gpt-4o")
    assert server.requests[0].get("max_tokens") == keywords.get("max_tokens")


async def test_a_declined_request_raises_for_direct_callers(asynchronous):
    with JudgeServer(faults=[refusal("I can't.")]) as server:
        with pytest.raises(JudgeDeclinedError, match=r"I can't\."):
            await asynchronous(server).async_response(
                messages=MESSAGES, model="m", response_format=Verdict
            )
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"messages": MESSAGES, "model": ""}, "model"),
        (
            {
                "messages": MESSAGES,
                "model": "m",
                "response_format": {"type": "json_object"},
            },
            "pydantic class",
        ),
        (
            {"messages": MESSAGES, "model": "m", "response_format": Verdict(**VERDICT)},
            "pydantic class",
        ),
        ({"messages": MESSAGES, "model": "m", "stream": True}, "stream"),
        ({"messages": [], "model": "m"}, "at least 1 item"),
    ],
)
async def test_wrong_keywords_cost_nothing(asynchronous, keywords, words):
    """A slip is named before anything is sent."""
    with JudgeServer() as server:
        with pytest.raises(ValueError, match=words):
            await asynchronous(server).async_response(**keywords)
        assert server.requests == []


async def test_a_synchronous_client_has_no_asynchronous_call(quick):
    with JudgeServer() as server:
        async with LLMClient("openai", base_url=server.base_url, retry=quick) as client:
            with pytest.raises(ValueError, match="is_async=True"):
                await client.async_response(messages=MESSAGES, model="m")


async def test_a_synchronous_client_works_inside_a_running_loop(quick):
    """Scripts call it from their coroutines, several times, and from threads."""
    with JudgeServer() as server:
        async with LLMClient("openai", base_url=server.base_url, retry=quick) as client:
            keywords = {
                "messages": MESSAGES,
                "model": "gpt-4o",
                "response_format": Verdict,
            }
            here = client.response(**keywords)
            there = await asyncio.to_thread(client.response, **keywords)
    assert here == there == Verdict(**VERDICT)


def test_the_synchronous_classes_work_without_a_loop(quick, monkeypatch):
    """Plain code uses ``OpenAIClient`` and ``AzureOpenAIClient``."""
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2024-10-21")
    with JudgeServer("yes") as server:
        clients = [
            OpenAIClient(base_url=server.base_url, retry=quick),
            AzureOpenAIClient(base_url=server.url, api_key="k", retry=quick),
        ]
        for client in clients:
            assert client.response(messages=MESSAGES, model="m") == "yes"
    assert [call.path.partition("?")[0] for call in server.calls] == [
        "/v1/chat/completions",
        "/openai/deployments/m/chat/completions",
    ]


@pytest.mark.parametrize(
    ("provider", "variables", "path"),
    [
        ("bedrock_anthropic", ("AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_REGION"), ""),
        ("anthropic", ("ANTHROPIC_API_KEY",), ""),
        ("gemini", ("GEMINI_API_KEY",), "/v1beta/openai"),
    ],
)
async def test_other_providers_take_their_keys_from_the_environment(
    quick, monkeypatch, provider, variables, path
):
    for name in variables:
        monkeypatch.setenv(name, "us-east-1")
    with JudgeServer() as server:
        async with LLMClient(provider, True, base_url=server.url + path, retry=quick) as client:
            reply = await client.chat(
                ChatRequest("model-1", MESSAGES, Verdict), asyncio.Semaphore(1)
            )
            assert client.endpoint == f"{provider} {server.url}{path}"
    assert reply.value == Verdict(**VERDICT)
    assert "us-east-1" in server.calls[0].headers["authorization"]


def test_an_unknown_provider_is_named():
    """The error lists those there are."""
    with pytest.raises(ValueError, match="'claude', expected one of openai, azure_openai"):
        LLMClient("claude")


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("azure_openai", "AZURE_OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("bedrock_anthropic", "AWS_ACCESS_KEY"),
    ],
)
def test_a_missing_key_is_named_at_construction(provider, variable):
    """A run without a key ends before it starts."""
    with pytest.raises(UsageError, match=variable):
        LLMClient(provider, is_async=True)


def test_other_names_are_not_there():
    """A misspelt import fails as one."""
    with pytest.raises(AttributeError, match="LLMKlient"):
        _ = package.LLMKlient


def test_importing_the_clients_loads_no_sdk():
    """Heavy packages wait until a client is built."""
    code = (
        "import sys, mind2web2.llm_client.base_client, mind2web2.llm_client.prices\n"
        "print(sorted({'openai', 'botocore', 'genai_prices', 'httpx2'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_clients_serve_several_loops_and_keep_no_program_alive():
    """Each ``asyncio.run`` gets connections of its own.

    Scripts forget to close, and the program ends.
    """
    with JudgeServer("yes") as server:
        question = f"messages={MESSAGES!r}, model='m'"
        code = (
            "import asyncio\n"
            "from mind2web2.llm_client import LLMClient, OpenAIClient\n"
            f"client = LLMClient('openai', is_async=True, base_url={server.base_url!r})\n"
            "for _ in range(3):\n"
            f"    print(asyncio.run(client.async_response({question})))\n"
            f"unclosed = OpenAIClient(base_url={server.base_url!r})\n"
            f"print(unclosed.response({question}))\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert (ran.stdout.split(), ran.stderr) == (["yes"] * 4, "")
