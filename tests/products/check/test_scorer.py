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
from mind2web2.plugin import RunSettings
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


async def test_what_was_judged_before_the_judge_failed_keeps_its_verdict(tmp_path: Path) -> None:
    snow, dam = "It snows (<{0}/mill>).", "The Ayr Dam was built in 1936 (<{0}/dam>)."

    def fault(body: dict) -> Fault | None:
        return Fault(status=401) if "221 m" in str(body) else None

    with JudgeServer(reply=judged, faults=fault) as judge, LocalHttp(page) as site:
        settings = RunSettings(judge_base_url=judge.base_url, allow_private_network=True)
        tools = Tools(settings, tmp_path, tmp_path / "own")
        async with tools.scorer:
            await tools.check_report(snow.format(site.url))
            found = await tools.check_report(f"{snow} {dam}".format(site.url))
    assert "401" in found["error"]
    statements = found["statements"]
    assert [each["verdict"] for each in statements] == ["not there", "not judged"]
    assert found["not_judged"] == ["The Ayr Dam was built in 1936."]
    assert statements[1]["claims"][0]["change"].startswith("Not verified")
    assert statements[1]["claims"][0]["sources"][0]["reason"] == found["error"]


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


async def test_the_tools_say_of_pages_what_the_command_says(
    servers: tuple[JudgeServer, LocalHttp], tmp_path: Path
) -> None:
    judge, site = servers
    settings = RunSettings(judge_base_url=judge.base_url, allow_private_network=True)
    tools = Tools(settings, tmp_path, tmp_path / "own")
    report = (
        f"Gold was found (https://no-such-host.invalid/a).\n\nIt rained twice ({site.url}/gone)."
    )
    async with tools.scorer:
        found = await tools.check_report(report)
        claim = await tools.verify_claim("Gold was found", "https://no-such-host.invalid/a")
        two = await tools.verify_claim("It rained. It snowed a lot.", f"{site.url}/dam")
        loud = await tools.verify_claim("The Ayr Dam is old!", f"{site.url}/gone")
        empty = await tools.check_report("# Dams\n")
    reasons = [each["claims"][0]["sources"][0]["reason"] for each in (*found["statements"], claim)]
    assert [reason.partition(":")[0] for reason in reasons] == ["not opened", "dead", "not opened"]
    assert two["error"].startswith("give one sentence")
    assert loud["verdict"] == "page unavailable"
    assert empty["error"] == "the report says nothing to check"


def test_a_check_that_is_not_there_is_answered_by_the_names_of_those_that_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "dams/answers/dams/report").mkdir(parents=True)
    (tmp_path / "dams/answers/dams/report/answer_1.md").write_text("Rain fell.")
    tools = Tools(RunSettings(), tmp_path, tmp_path / "own")
    for name in ("mills", "../dams", ""):
        assert tools.show(name).endswith("Found: dams")
    assert "no claim was found" in tools.show("dams")


async def test_a_claim_that_a_page_limits_is_qualified_and_has_the_reason_alone(
    tmp_path: Path,
) -> None:
    def limited(body: dict) -> dict:
        reply = judged(body)
        return reply | {"reasoning": "**QUALIFIED**: of one dam."} if "result" in reply else reply

    with JudgeServer(reply=limited) as judge, LocalHttp(page) as site:
        settings = RunSettings(judge_base_url=judge.base_url, allow_private_network=True)
        tools = Tools(settings, tmp_path, tmp_path / "own")
        async with tools.scorer:
            found = await tools.verify_claim("The Ayr Dam was built in 1940", f"{site.url}/dam")
    assert found["verdict"] == "qualified"
    assert found["claims"][0]["sources"][0]["reason"] == "of one dam."
