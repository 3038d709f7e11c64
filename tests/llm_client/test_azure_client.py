"""The Azure client against a judge on loopback that speaks Azure's paths."""

import pytest
from pydantic import BaseModel
from servers.judge_server import VERDICT, JudgeServer, status

from mind2web2.errors import JudgeRequestError, UsageError
from mind2web2.llm_client.base_client import AsyncAzureOpenAIClient
from mind2web2.llm_client.chat import ChatRequest


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


REQUEST = ChatRequest(
    model="judge-deployment",
    messages=[{"role": "user", "content": "q"}],
    template=Verdict,
)


@pytest.fixture
def azure(monkeypatch, quick):
    """Build a client from the environment, as a run does."""

    def build(server):
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT_URL", f"{server.url}/")
        monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2024-10-21")
        return AsyncAzureOpenAIClient(retry=quick)

    return build


async def test_the_deployment_and_version_are_in_the_path(azure):
    """The model names a deployment; key and version come from the environment."""
    with JudgeServer() as server:
        async with azure(server) as client:
            reply = await client.chat(REQUEST)
            assert client.endpoint == f"azure_openai {server.url}"
    (call,) = server.calls
    assert reply.value == Verdict(**VERDICT)
    assert (
        call.path == "/openai/deployments/judge-deployment/chat/completions?api-version=2024-10-21"
    )
    assert call.headers["api-key"] == "azure-key"


async def test_the_address_may_be_copied_with_its_query(azure, monkeypatch):
    """The version that is set takes the place of the one in it."""
    with JudgeServer() as server:
        address = f"{server.url}/?api-version=2023-05-15&region=eu"
        azure(server)
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT_URL", address)
        async with AsyncAzureOpenAIClient() as client:
            await client.chat(REQUEST)
    assert server.calls[0].path == (
        "/openai/deployments/judge-deployment/chat/completions?region=eu&api-version=2024-10-21"
    )


async def test_a_missing_deployment_names_the_variable(azure):
    """The error says which deployment and which address."""
    fault = status(
        404,
        "The API deployment for this resource does not exist.",
        code="DeploymentNotFound",
    )
    with JudgeServer(faults=[fault]) as server:
        async with azure(server) as client:
            with pytest.raises(
                JudgeRequestError, match=r"judge-deployment.*AZURE_OPENAI_ENDPOINT_URL"
            ):
                await client.chat(REQUEST)


@pytest.mark.parametrize(
    "missing",
    ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT_URL", "AZURE_OPENAI_API_VERSION"],
)
def test_a_missing_variable_is_named(monkeypatch, missing):
    """Each of the three variables is needed, and only the missing one is complained about."""
    names = {
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT_URL",
        "AZURE_OPENAI_API_VERSION",
    }
    for name in names - {missing}:
        monkeypatch.setenv(name, "https://judge.example")
    with pytest.raises(UsageError) as caught:
        AsyncAzureOpenAIClient()
    assert [name for name in names if name in str(caught.value)] == [missing]
