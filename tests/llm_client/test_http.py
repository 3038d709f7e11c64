"""The way to a judge: proxies of the environment, TLS, redirects and stray replies."""

import base64
import json
import ssl

import pytest
import trustme
from servers.http_proxy import CREDENTIALS, http_proxy
from servers.judge_server import JudgeServer, status
from servers.local_http import Answer, LocalHttp
from servers.tcp_server import silence, tcp_server

from mind2web2.errors import (
    JudgeAccessError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.llm_client.base_client import (
    AsyncAzureOpenAIClient,
    AsyncOpenAIClient,
    LLMClient,
)
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.http import Server

QUESTION = ChatRequest(model="m", messages=[{"role": "user", "content": "q"}])
# No name server knows it.
ADDRESS = "http://judge.invalid/v1"
KEY = "sk-secret-key"


async def ask(base_url, quick, times=1):
    """Return the texts of one client's replies."""
    async with AsyncOpenAIClient(base_url=base_url, api_key="sk-test", retry=quick) as client:
        return [(await client.chat(QUESTION)).text for _ in range(times)]


def openai(address, retry):
    """Build the client of a compatible server."""
    return AsyncOpenAIClient(base_url=address, api_key=KEY, retry=retry)


def azure(address, retry):
    """Build the client of Azure, whose key has a header of its own."""
    return AsyncAzureOpenAIClient(base_url=address, api_key=KEY, api_version="1", retry=retry)


def anthropic(address, retry):
    """Build the client of Anthropic."""
    return LLMClient("anthropic", is_async=True, base_url=address, api_key=KEY, retry=retry)


async def test_an_http_proxy_with_credentials(quick, monkeypatch):
    with JudgeServer("yes") as server:
        hosts = {"judge.invalid": ("127.0.0.1", server.port)}
        async with http_proxy(hosts) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url_with_credentials)
            assert await ask(ADDRESS, quick) == ["yes"]
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            assert await ask(server.base_url, quick) == ["yes"]
    assert proxy.requests == [f"{ADDRESS}/chat/completions"]


async def test_a_proxy_that_cannot_be_used_is_named_without_its_password(quick, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "socks5://user:secret@:1080")
    with pytest.raises(JudgeAccessError, match="no request can be made") as refused:
        await ask(ADDRESS, quick)
    assert "secret" not in str(refused.value)


async def test_certificates_of_the_environment_are_trusted(quick, monkeypatch, tmp_path):
    """An authority of a company's own is named by SSL_CERT_FILE; others are refused."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    body = json.dumps({"choices": [{"message": {"content": "yes"}}]}).encode()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()

    async with tcp_server(answer, ssl=context) as served:
        address = f"https://localhost:{served.port}/v1"
        with pytest.raises(JudgeUnavailableError, match="certificate verify failed"):
            await ask(address, quick)
        authority.cert_pem.write_to_path(tmp_path / "authority.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert await ask(address, quick) == ["yes"]


async def test_an_answer_that_does_not_come_in_time_is_one_to_a_request():
    """The server may work on it."""
    async with tcp_server(silence) as silent:
        with pytest.raises(RequestFailedError, match="connection error") as caught:
            await Server(f"http://127.0.0.1:{silent.port}").get("/models", 0.2)
    assert caught.value.is_sent


@pytest.mark.parametrize("client_of", [openai, azure, anthropic])
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_no_redirect_leaves_the_server(quick, client_of, code):
    """Key and question stay there; one clear error names the other address."""
    with JudgeServer("yes") as other:
        address = f"http://localhost:{other.port}/v1"
        moved = status(code, headers={"Location": f"{address}?key={KEY}"})
        with JudgeServer(faults=[moved]) as server:
            async with client_of(server.url, quick) as client:
                with pytest.raises(JudgeAccessError) as caught:
                    await client.chat(QUESTION)
    assert other.calls == []
    assert len(server.calls) == 1
    assert f"the server redirects to {address}: give that address" in str(caught.value)


async def test_a_name_of_any_script_is_the_server_itself(quick, monkeypatch):
    """Names are compared in the form in which they are sent."""
    with JudgeServer("yes") as server:
        hosts = {"xn--bcher-kva.invalid": ("127.0.0.1", server.port)}
        async with http_proxy(hosts) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url_with_credentials)
            assert await ask("http://BÜCHER.invalid/v1", quick) == ["yes"]


@pytest.mark.parametrize("client_of", [openai, azure, anthropic])
@pytest.mark.parametrize(
    "no_proxy",
    [
        "127.0.0.1:{port}",
        "127.0.0.0/8",
        "http://127.0.0.1:{port}",
        "*",
        "judge.example 127.0.0.1",
        "http://[::1, 127.0.0.1",
    ],
)
async def test_an_excluded_server_is_reached_without_the_proxy(
    quick, monkeypatch, client_of, no_proxy
):
    async with http_proxy({}) as proxy:
        with JudgeServer("yes") as server:
            monkeypatch.setenv("HTTP_PROXY", proxy.url_with_credentials)
            monkeypatch.setenv("NO_PROXY", no_proxy.format(port=server.port))
            async with client_of(server.url, quick) as client:
                assert (await client.chat(QUESTION)).text == "yes"
    assert proxy.requests == []


async def test_a_user_in_the_address_is_sent(quick):
    with JudgeServer("yes") as server:
        address = server.base_url.replace("//", f"//{CREDENTIALS}@")
        assert await ask(address, quick) == ["yes"]
    sent = server.calls[0].headers["authorization"].removeprefix("Basic ")
    assert base64.b64decode(sent).decode() == "reader:p@ss:word"


@pytest.mark.parametrize("client_of", [openai, azure, anthropic])
async def test_a_query_of_the_address_goes_with_each_request(quick, client_of):
    """Gateways have keys there; the path stands before it."""
    with JudgeServer("yes") as server:
        async with client_of(f"{server.url}/?key=1&region=eu", quick) as client:
            assert (await client.chat(QUESTION)).text == "yes"
    path, _, query = server.calls[0].path.partition("?")
    assert path.endswith(("/chat/completions", "/v1/messages"))
    assert query.startswith("key=1&region=eu")


async def test_a_reply_that_no_request_asked_for_answers_none(quick):
    """A server that replies twice to one question does not decide the next one."""
    replies = iter(["first", "second"])

    def reply(text):
        body = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    async def answer(reader, writer):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split()[0]
            await reader.readexactly(int(length))
            writer.write(reply(next(replies)) + reply("unasked"))
            await writer.drain()

    async with tcp_server(answer) as served:
        address = f"http://127.0.0.1:{served.port}/v1"
        assert await ask(address, quick, times=2) == ["first", "second"]
    assert served.connections == 2


async def test_no_error_shows_the_password_of_a_proxy(quick, monkeypatch):
    """A proxy that refuses it is named by its status alone."""
    async with http_proxy({}) as proxy:
        refused = proxy.url.replace("//", "//reader:proxy-password@")
        monkeypatch.setenv("HTTPS_PROXY", refused)
        with pytest.raises(JudgeUnavailableError) as caught:
            await ask("https://judge.invalid/v1", quick)
    text = str(caught.value)
    assert "the proxy answered 407 Proxy Authentication Required" in text
    assert "proxy-password" not in text


@pytest.mark.parametrize("charset", ["hex", "rot13", "undefined", "zzz"])
async def test_an_error_text_in_no_encoding_of_texts(quick, charset):
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    answer = Answer(b'{"error": {"message": "bad"}}', 400, headers)
    with (
        LocalHttp(lambda _: answer) as server,
        pytest.raises(JudgeRequestError, match="400 bad"),
    ):
        await ask(f"{server.url}/v1", quick)
