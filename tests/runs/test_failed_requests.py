"""A run's totals count failed requests: they are paid for, and show the state of the judge."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import count

import pytest
from projects import QUICK_RETRY
from servers.judge_server import (
    JudgeServer,
    content,
    context_too_long,
    drop_before_reply,
    rate_limited,
    refusal,
    status,
)

from mind2web2.cli.displays import unreported_text
from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeOutputError,
    JudgeUnavailableError,
)
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.prices import price_usd
from mind2web2.results.usage_file import USAGE_NAME, write_usage
from mind2web2.verification.run_questions import BinaryEvalResult

REQUEST = ChatRequest("any", [{"role": "user", "content": "Is it so?"}], BinaryEvalResult)


async def asked(server, expected=None, model="o4-mini", path=None, retry=QUICK_RETRY):
    """Ask one question of a run and return its judge."""
    with JudgmentStore(path) as store:
        async with LLMClient(
            "openai", True, base_url=server.base_url, api_key="key", retry=retry
        ) as client:
            budget = Budget(100, model)
            run = CachingJudge(JudgeSpec(model), client, store, budget=budget)
            judge = AnswerJudge(run, ("lake", "answer_1.md"), nullcontext())
            question = judge.ask(REQUEST, QuestionContext("verify"))
            if expected is None:
                await question
            else:
                with pytest.raises(expected):
                    await question
            return run


def asked_counts(run):
    """Return judgments, requests and tokens in."""
    asked = run.usage.total().asked
    return asked.judgments, asked.requests, asked.input_tokens


async def test_an_outage_shows_in_the_table():
    """No judgment, but requests, and why they were sent again."""
    with JudgeServer(faults=[status(500)] * 9) as server:
        run = await asked(server, JudgeUnavailableError)
    assert asked_counts(run)[:2] == (0, len(server.requests)) == (0, QUICK_RETRY.tries)
    assert run.usage.tasks["lake"].asked.requests == QUICK_RETRY.tries
    assert run.usage.in_words().endswith("; 2 requests tried again (500: 2)")


async def test_a_server_that_is_not_there_is_sent_nothing():
    with JudgeServer() as server:
        pass
    run = await asked(server, JudgeAccessError)
    assert run.usage.total().asked.requests == run.usage.tasks["lake"].asked.requests == 0
    assert run.usage.tasks["lake"].asked.unreported_requests == 0


async def test_a_connection_that_breaks_off_has_carried_a_request():
    """The server may have answered it."""
    with JudgeServer(faults=lambda _: drop_before_reply()) as server:
        run = await asked(server, JudgeUnavailableError)
    assert run.usage.total().asked.requests == len(server.calls) > 1
    assert "requests tried again (no reply: " in run.usage.in_words()


async def test_unusable_output_is_paid_for():
    """Tokens and dollars of all replies, though none is a judgment."""
    with JudgeServer(
        faults=[content("I think so."), content("Yes, I do."), content("It is.")]
    ) as server:
        run = await asked(server, JudgeOutputError)
    assert asked_counts(run) == (0, 3, 300)
    assert run.usage.total().asked.cost_usd > 0


async def test_a_refusal_before_an_outage_is_paid_for():
    """The first answer is the last that anything is known of."""
    with JudgeServer(faults=[refusal(), *[status(500)] * 9]) as server:
        run = await asked(server, JudgeUnavailableError)
    assert run.usage.total().asked.requests == 1 + QUICK_RETRY.tries
    assert run.usage.total().asked.input_tokens == 100


async def test_the_requests_of_a_question_that_is_too_long_are_counted():
    """Requests before the server said that the question is too long are counted too."""
    with JudgeServer(faults=[status(503), context_too_long()]) as server:
        run = await asked(server, ContextTooLongError)
    assert asked_counts(run)[:2] == (1, 2)


async def test_a_cancelled_question_is_counted():
    """The request is with the judge, who will send a bill."""
    loop, arrived, gone = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def hold(_body):
        loop.call_soon_threadsafe(arrived.set)
        asyncio.run_coroutine_threadsafe(gone.wait(), loop).result()
        return {"reasoning": "read", "result": True}

    with JudgeServer(hold) as server, JudgmentStore(None) as store:
        async with LLMClient("openai", True, base_url=server.base_url, api_key="key") as client:
            run = CachingJudge(JudgeSpec("o4-mini"), client, store)
            question = asyncio.ensure_future(
                AnswerJudge(run, ("lake", "answer_1.md")).ask(REQUEST, QuestionContext("verify"))
            )
            await arrived.wait()
            question.cancel()
            await asyncio.gather(question, return_exceptions=True)
            gone.set()
    assert asked_counts(run)[:2] == (0, 1)
    assert run.usage.tasks["lake"].asked.unreported_requests == 1


@pytest.mark.parametrize(
    ("faults", "tokens", "untold"),
    [([status(503), rate_limited(), None], 100, 0), ([None], 0, 1)],
)
async def test_requests_without_reported_tokens_are_counted(faults, tokens, untold, tmp_path):
    """A request that timed out, or a reply without a count, may be on the bill; an error is not."""
    with JudgeServer(
        faults=faults, input_tokens=tokens, cached_tokens=0, output_tokens=tokens
    ) as server:
        run = await asked(server)
    assert run.usage.tasks["lake"].asked.unreported_requests == untold
    write_usage(tmp_path, run, None)
    newest = json.loads((tmp_path / USAGE_NAME).read_text(encoding="utf-8"))["newest_run"]
    assert newest["tasks"]["lake"]["asked"]["untold_requests"] == untold
    text = unreported_text(run.usage)
    assert ("the server did not report the tokens of 1 request," in str(text)) is bool(untold)


async def test_a_request_that_timed_out_has_no_reported_tokens():
    """The judge may have read it all; the next try brings the tokens of its own only."""
    calls, gone = count(), threading.Event()

    def reply(_body):
        if not next(calls):
            gone.wait(60)
        return {"reasoning": "read", "result": True}

    with JudgeServer(reply) as server:
        run = await asked(server, retry=replace(QUICK_RETRY, request_timeout_s=2))
        gone.set()
    took = run.usage.tasks["lake"].asked
    assert (took.judgments, took.requests, took.unreported_requests) == (1, 2, 1)


async def test_each_request_has_its_own_price(tmp_path):
    """Two short prompts are not priced as one long prompt.

    All tokens of a prompt cost more from a limit on, and each of the two is below it.
    """
    with JudgeServer(faults=[content("Yes.")], input_tokens=200_000, cached_tokens=0) as server:
        run = await asked(server, model="gpt-5.4", path=tmp_path / "judgments.sqlite3")
        again = await asked(server, model="gpt-5.4", path=tmp_path / "judgments.sqlite3")
        assert len(server.requests) == 2
    one_usd = price_usd(Usage(200_000, 0, 10), "gpt-5.4")
    assert price_usd(Usage(400_000, 0, 20), "gpt-5.4") > 2.5 * one_usd
    assert run.usage.total().asked.cost_usd == pytest.approx(2 * one_usd)
    assert run.budget.spent_usd == pytest.approx(2 * one_usd)
    assert again.usage.tasks["lake"].reused.cost_usd == pytest.approx(2 * one_usd)


async def test_failed_requests_count_in_the_budget():
    with JudgeServer(faults=[content("no")] * 3, input_tokens=200_000) as server:
        run = await asked(server, JudgeOutputError)
    assert run.budget.spent_usd == pytest.approx(run.usage.total().asked.cost_usd)


def test_runs_that_end_at_the_same_time_are_all_kept(tmp_path):
    """None writes over what another has just added."""
    with JudgmentStore(None) as store:
        run = CachingJudge(JudgeSpec("o4-mini"), None, store)
    run.usage.tasks["lake"].asked += Usage(1, 0, 1, requests=1, cost_usd=0.5)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: write_usage(tmp_path, run, None), range(24)))
    assert len(json.loads((tmp_path / USAGE_NAME).read_text(encoding="utf-8"))["runs"]) == 24


async def test_a_good_reply_is_counted_once(tmp_path):
    with JudgeServer(faults=[status(503), content("Yes.")]) as server:
        run = await asked(server)
    write_usage(tmp_path, run, None)
    assert asked_counts(run) == (1, 3, 200)
    newest = json.loads((tmp_path / USAGE_NAME).read_text(encoding="utf-8"))["newest_run"]
    assert (newest["asked"]["requests"], newest["sent_again"]) == (
        3,
        {"503": 1, "unusable output": 1},
    )
