"""A run whose key is refused finds that out once."""

import asyncio
import re
from dataclasses import replace

import pytest
from projects import KEY_VARIABLES, QUICK_RETRY, Project, call
from servers.judge_server import JudgeServer, context_too_long, status

from mind2web2.claim_judging import BinaryEvalResult
from mind2web2.cli import evaluate_main
from mind2web2.errors import JudgeError
from mind2web2.judge import Subject
from mind2web2.judgments import JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.recorded_judge import JudgeSettings, RecordedJudge

REQUEST = ChatRequest("o4-mini", [], BinaryEvalResult)
QUOTA = status(429, "You exceeded your current quota", code="insufficient_quota")
AT_ONCE = 3


async def asked(faults):
    """Ask a question for each of these, one after the other, and tell which reached the server and failed."""
    with JudgeServer(faults=faults) as server, JudgmentStore(None) as store:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=QUICK_RETRY
        ) as client:
            run = RecordedJudge(JudgeSettings("openai", "o4-mini"), client, store)
            errors = []
            for number in range(len(faults)):
                request = replace(REQUEST, messages=[{"role": "user", "content": f"Is it {number}?"}])
                try:
                    await run.judgment(
                        request, Subject("verify"), ("lake", "answer_1.md"), asyncio.Semaphore()
                    )
                except JudgeError as error:
                    errors.append(str(error))
        assert run.totals.requests == len(server.requests)
        return len(server.requests), errors


@pytest.mark.parametrize("denial", [status(401, "bad"), status(403, "no"), status(404, "which?"), QUOTA])
async def test_nothing_is_sent_after_a_first_denial(denial):
    """Whatever is asked then fails for the same reason."""
    sent, errors = await asked([denial, None, None])
    assert sent == 1
    assert len(errors) == 3 and len(set(errors)) == 1


@pytest.mark.parametrize("denial", [status(401, "revoked"), QUOTA])
async def test_a_key_may_be_refused_in_the_middle_of_a_run(denial):
    """From then on nothing is sent either."""
    sent, errors = await asked([None, denial, None, None])
    assert (sent, len(errors)) == (2, 3)


@pytest.mark.parametrize(
    "fault", [status(403, "forbidden words"), status(404, "no route"), status(400, "no")]
)
async def test_what_may_be_about_one_request_stops_no_run_that_was_let_in(fault):
    """Others are let in as before."""
    sent, errors = await asked([None, fault, None, fault, None])
    assert (sent, len(errors)) == (5, 2)


async def test_other_failures_deny_nobody():
    """Before any reply as well."""
    sent, errors = await asked([status(400, "bad parameter"), None])
    assert (sent, len(errors)) == (2, 1)
    sent, errors = await asked([context_too_long(), None])
    assert (sent, len(errors)) == (2, 0)


def test_a_wrong_key_costs_what_is_under_way(tmp_path, monkeypatch):
    """Those that wait for their turn are not sent, and all answers have the one reason."""
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-key")
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    for number in range(8):
        project.add_answer(f"answer_{number}", f"Text {number}.")
    project.add_script({name: (f"The lake is {name}.", None) for name in ("deep", "cold", "wide")})
    with JudgeServer(faults=lambda _: status(401, "Incorrect API key")) as server:
        options = ("--judge_base_url", server.base_url, "--max_llm_requests", AT_ONCE, "--no_capture")
        run = call(evaluate_main, "--agent_name", "bot", *options, "--max_concurrent_answers", "8")
        assert 1 <= len(server.requests) <= AT_ONCE
    assert run.returncode == 1
    [reason] = re.findall(r"^No result: .*lake/answer_7\.md: (.+)$", run.stdout, re.M)
    assert reason.endswith("the key is refused, check OPENAI_API_KEY: 401 Incorrect API key")
