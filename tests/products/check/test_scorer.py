"""Checks by a ``Scorer``, and the tools that agents use."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checked_reports import REPORT, judged, page
from mcp import Client, StdioServerParameters, stdio_client
from projects import clean_environment
from servers.judge_server import Fault, JudgeServer
from servers.local_http import LocalHttp

from mind2web2 import Judge, Scorer
from mind2web2_check.mcp.server import Tools
from mind2web2_check.scoring import check_report


@pytest.fixture
def servers() -> Iterator[tuple[JudgeServer, LocalHttp]]:
    with JudgeServer(reply=judged) as judge, LocalHttp(page) as site:
        yield judge, site


async def test_a_scorer_checks_a_report(
    servers: tuple[JudgeServer, LocalHttp], tmp_path: Path
) -> None:
    judge, site = servers
    scorer = Scorer(
        judge=Judge(model="o4-mini", base_url=judge.base_url),
        scripts=tmp_path,
        missing_pages="capture",
        allow_private_network=True,
    )
    async with scorer:
        found = await check_report(scorer, REPORT.format(site.url))
    assert [each.verdict for each in found.statements][:4] == [
        "supported",
        "contradicted",
        "not there",
        "supported",
    ]
    assert found.figures["precision"].value == 0.5


async def test_a_judge_that_fails_leaves_each_claim_named(tmp_path: Path) -> None:
    with JudgeServer(faults=lambda _: Fault(status=401)) as judge:
        scorer = Scorer(judge=Judge(model="o4-mini", base_url=judge.base_url), scripts=tmp_path)
        async with scorer:
            found = await Tools(scorer, tmp_path).check_report("It snows (https://a.example/x).")
    assert found["error"]
    assert found["not_judged"] == ["It snows."]
    assert found["statements"][0]["claims"][0]["change"].startswith("Not verified")


async def test_an_agent_verifies_a_claim(
    servers: tuple[JudgeServer, LocalHttp], tmp_path: Path
) -> None:
    judge, site = servers
    words = [
        "-m",
        "mind2web2",
        "mcp",
        "--judge_base_url",
        judge.base_url,
        "--judge_model",
        "m",
        "--allow_private_network",
    ]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=words,
        cwd=tmp_path,
        env=clean_environment(OPENAI_API_KEY="dummy"),
    )
    async with Client(stdio_client(parameters)) as client:
        tools = await client.list_tools()
        assert {tool.name for tool in tools.tools} == {
            "check_report",
            "verify_claim",
            "show",
        }
        arguments = {
            "claim": "The Ayr Dam was built in 1940.",
            "url": f"{site.url}/dam",
        }
        reply = await client.call_tool("verify_claim", arguments)
    found = json.loads(reply.content[0].text)
    assert found["verdict"] == "contradicted"
    assert found["claims"][0]["change"].startswith("Correct the claim by the quotation")
