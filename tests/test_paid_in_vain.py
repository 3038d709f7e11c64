"""A run's totals tell what was asked in vain: it is paid for, and shows how the judge is doing."""

import asyncio
import json

import pytest
from projects import QUICK_RETRY
from servers.judge_server import JudgeServer, content, context_too_long, refusal, status

from mind2web2.claim_judging import BinaryEvalResult
from mind2web2.cli.display import totals_text
from mind2web2.cli.usage_report import FILE_NAME, write_usage
from mind2web2.errors import ContextTooLongError, JudgeOutputError, JudgeUnavailableError
from mind2web2.judge import Subject
from mind2web2.judgments import JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.recorded_judge import AnswerJudge, JudgeSettings, RecordedJudge

REQUEST = ChatRequest("any", [{"role": "user", "content": "Is it so?"}], BinaryEvalResult)


async def asked(server, expected=None):
    """Ask one question of a run and return its judge."""
    with JudgmentStore(None) as store:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=QUICK_RETRY
        ) as client:
            run = RecordedJudge(JudgeSettings("openai", "o4-mini"), client, store)
            question = AnswerJudge(run, "lake", "answer_1.md").ask(REQUEST, Subject("verify"), None)
            if expected is None:
                await question
            else:
                with pytest.raises(expected):
                    await question
            return run


async def test_an_outage_shows_in_the_table():
    """No judgment, but requests, and why they were sent again."""
    with JudgeServer(faults=[status(503)] * 9) as server:
        run = await asked(server, JudgeUnavailableError)
    assert (run.totals.asked, run.totals.requests) == (0, len(server.requests)) == (0, QUICK_RETRY.tries)
    assert run.usage.of("lake").asked.requests == QUICK_RETRY.tries
    assert totals_text(run.totals).endswith("; 2 requests sent again (503: 2)")


async def test_unusable_output_is_paid_for():
    """Tokens and dollars of both replies, though neither is a judgment."""
    with JudgeServer(faults=[content("I think so."), content("Yes, I do.")]) as server:
        run = await asked(server, JudgeOutputError)
    assert (run.totals.asked, run.totals.requests, run.totals.usage.input_tokens) == (0, 2, 200)
    assert run.totals.cost_usd > 0


async def test_a_refusal_before_an_outage_is_paid_for():
    """The first answer is the last that anything is known of."""
    with JudgeServer(faults=[refusal(), *[status(500)] * 9]) as server:
        run = await asked(server, JudgeUnavailableError)
    assert run.totals.requests == 1 + QUICK_RETRY.tries
    assert run.totals.usage.input_tokens == 100


async def test_a_question_that_is_too_long_tells_its_requests():
    """Also those before the answer that it is too long, which is kept."""
    with JudgeServer(faults=[status(503), context_too_long()]) as server:
        run = await asked(server, ContextTooLongError)
    assert (run.totals.asked, run.totals.requests) == (1, 2)


async def test_a_question_that_nobody_waits_for_is_counted():
    """Its request is with the judge, who will send a bill."""
    loop, arrived, gone = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def hold(_body):
        loop.call_soon_threadsafe(arrived.set)
        asyncio.run_coroutine_threadsafe(gone.wait(), loop).result()
        return {"reasoning": "read", "result": True}

    with JudgeServer(hold) as server, JudgmentStore(None) as store:
        async with LLMClient("openai", True, base_url=server.base_url, api_key="key") as client:
            run = RecordedJudge(JudgeSettings("openai", "o4-mini"), client, store)
            question = asyncio.ensure_future(
                AnswerJudge(run, "lake", "answer_1.md").ask(REQUEST, Subject("verify"), None)
            )
            await arrived.wait()
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)
            gone.set()
    assert (run.totals.asked, run.totals.requests) == (0, 1)


async def test_a_good_reply_is_counted_once(tmp_path):
    """With its retries, also in the file beside the results."""
    with JudgeServer(faults=[status(503), content("Yes.")]) as server:
        run = await asked(server)
    write_usage(tmp_path, run)
    assert (run.totals.asked, run.totals.requests, run.totals.usage.input_tokens) == (1, 3, 200)
    newest = json.loads((tmp_path / FILE_NAME).read_text(encoding="utf-8"))["newest_run"]
    assert (newest["asked"]["requests"], newest["sent_again"]) == (3, {"503": 1, "unusable output": 1})
