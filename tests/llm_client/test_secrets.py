"""Passwords and keys in an address stay out of messages, logs and records."""

import base64
import html
import json
import logging
import re
import traceback
from urllib.parse import quote

import pytest
from servers.http_proxy import http_proxy
from servers.local_http import Answer, LocalHttp

from mind2web2.errors import JudgeError, UsageError
from mind2web2.llm_client.base_client import (
    AsyncAzureOpenAIClient,
    AsyncOpenAIClient,
    LLMClient,
)
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.openai_protocol import openai_connection
from mind2web2.llm_client.settings import check_address
from mind2web2.llm_client.structured_output import InvalidOutputError
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.shown_text import start_of

QUESTION = ChatRequest(model="m", messages=[{"role": "user", "content": "q"}])
KEY, SESSION_TOKEN = "sk-the-key", "the-session-token"
SECRETS = (
    KEY,
    "pass%21word",
    "pass!word",
    "query-key",
    SESSION_TOKEN,
    base64.b64encode(b"reader:pass!word").decode(),
    "proxy-password",
    base64.b64encode(b"reader:proxy-password").decode(),
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("AWS_ACCESS_KEY", KEY)
    monkeypatch.setenv("AWS_SECRET_KEY", KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION_TOKEN)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    # This proxy is for another scheme, so it is not used.
    monkeypatch.setenv("HTTPS_PROXY", "http://reader:proxy-password@127.0.0.1:9")


def secret_address(server):
    """Return the server's address with a password and a key in it."""
    return f"{server.url}/v1?key=query-key".replace("//", "//reader:pass%21word@", 1)


async def ask(client):
    """Ask one question."""
    async with client:
        await client.chat(QUESTION)


async def ask_openai(address, quick):
    """Ask a compatible server."""
    await ask(AsyncOpenAIClient(base_url=address, retry=quick))


async def ask_azure(address, quick):
    """Ask Azure."""
    await ask(AsyncAzureOpenAIClient(base_url=address, retry=quick))


async def ask_anthropic(address, quick):
    """Ask Anthropic."""
    await ask(LLMClient("anthropic", is_async=True, base_url=address, api_key=KEY, retry=quick))


async def ask_bedrock(address, quick):
    """Ask Bedrock."""
    await ask(LLMClient("bedrock_anthropic", is_async=True, base_url=address, retry=quick))


WAYS = [
    ask_openai,
    ask_azure,
    ask_anthropic,
    ask_bedrock,
]


def repeated(request):
    """Return all that a server knows of secrets, from the request itself and otherwise."""
    known = [secret for secret in SECRETS if secret != SESSION_TOKEN]
    return " ".join([*known, *request.headers.values(), *request.query.values()])


def refused(request):
    """Refuse with an error text."""
    error = {"error": {"message": repeated(request)}}
    return Answer(json.dumps(error).encode(), 400)


def no_completion(request):
    """Reply with something that is not a completion."""
    return Answer(repeated(request).encode())


def cut_within_a_secret(_):
    """Reply with a text that a message shows the start of."""
    text = "".join(f"{'x' * 190} {secret} " for secret in SECRETS)
    return Answer(text.encode())


def moved(request):
    """Redirect elsewhere."""
    address = "http://reader:pass%21word@other.example/v1?key=query-key"
    return Answer(repeated(request).encode(), 307, {"Location": address})


def moved_nowhere(_):
    """Redirect to something that is not an address."""
    return Answer(b"", 307, {"Location": "http://pass!word@[/query-key"})


def no_http(_):
    """Reply with a header that is none."""
    return Answer(b"", 200, {"pass!word query-key": KEY})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "answer",
    [refused, no_completion, cut_within_a_secret, moved, moved_nowhere, no_http],
)
async def test_no_error_repeats_a_secret(quick, caplog, way, answer):
    """Whatever the server sends back; nor do the error's causes, which logs show."""
    failures = (JudgeError, RequestFailedError, InvalidOutputError)
    with LocalHttp(answer) as server, pytest.raises(failures) as caught:
        await way(secret_address(server), quick)
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert [secret for secret in SECRETS if secret in shown] == []
    assert [secret for secret in SECRETS if secret[:8] in shown] == []


@pytest.mark.parametrize("way", [ask_openai, ask_anthropic, ask_bedrock])
async def test_no_reply_leads_to_a_line_with_a_secret(quick, caplog, way):
    """The libraries that send a question log its address."""
    caplog.set_level(logging.INFO)
    message = {"choices": [{"message": {"content": "yes"}}]}
    block = {"content": [{"type": "text", "text": "yes"}]}
    reply = Answer(json.dumps(message | block).encode())
    with LocalHttp(lambda _: reply) as server:
        await way(secret_address(server), quick)
    assert [secret for secret in SECRETS if secret in caplog.text] == []


@pytest.mark.parametrize("secret", ["tok/en+with/slash==", 'a&b<key"more', "s\u00e9cret"])
@pytest.mark.parametrize(
    "written",
    [
        json.dumps,
        html.escape,
        quote,
        lambda secret: json.dumps(secret).replace("/", "\\/"),
        lambda secret: re.sub("%..", lambda it: it[0].lower(), quote(secret, safe="")),
    ],
)
def test_a_secret_is_known_in_the_forms_that_servers_write(secret, written):
    shown = start_of(f"you sent {written(secret)}", (secret,)).replace('"', "")
    assert shown == "you sent ***"


@pytest.mark.parametrize("way", WAYS)
async def test_no_lost_connection_repeats_a_secret(quick, caplog, way):
    with LocalHttp(no_completion) as server:
        address = secret_address(server)
    with pytest.raises((JudgeError, RequestFailedError)) as caught:
        await way(address, quick)
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize("way", WAYS)
async def test_no_proxy_repeats_a_secret(quick, caplog, way, monkeypatch):
    """One that refuses the password."""
    judge = "https://reader:pass%21word@judge.invalid/v1"
    async with http_proxy({}) as proxy:
        address = proxy.url.replace("//", "//reader:proxy-password@")
        monkeypatch.setenv("HTTPS_PROXY", address)
        with pytest.raises((JudgeError, RequestFailedError)) as caught:
            await way(judge, quick)
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "407 Proxy Authentication Required" in shown
    assert [secret for secret in SECRETS if secret in shown] == []


def test_a_version_of_azure_is_no_secret():
    """Errors are about it."""
    service = openai_connection(
        "https://judge.example/v1?api-version=2024-10-21&key=query-key"
    ).service
    assert start_of(b"2024-10-21 query-key", service.secrets) == "2024-10-21 ***"


def test_a_secret_within_another_one_leaves_no_rest():
    """The longer one is removed first."""
    assert start_of(b"secret-and-more", ("secret", "secret-and-more")) == "***"


@pytest.mark.parametrize(
    "address", ["reader:pass!word@judge.example", "ftp://judge.example/?key=query-key"]
)
def test_an_address_that_is_none_is_not_repeated(address):
    with pytest.raises(UsageError, match="is not an http") as refused:
        check_address(address, "OPENAI_BASE_URL")
    assert str(refused.value) == "OPENAI_BASE_URL is not an http(s) address"
    with pytest.raises(UsageError, match=r"address: judge\.example"):
        check_address("judge.example", "OPENAI_BASE_URL")


def test_settings_show_no_secret():
    address = "https://reader:pass!word@judge.example/v1?key=query-key"
    settings = RunSettings(judge_base_url=address)
    assert [secret for secret in SECRETS if secret in repr(settings)] == []


def test_an_account_that_no_header_can_carry_is_named(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org\u201d")
    with pytest.raises(UsageError, match="OPENAI_ORG_ID contains characters"):
        AsyncOpenAIClient()
