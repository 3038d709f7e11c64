"""What nodes share: the dollars of a run, and the limits of a judge's server."""

import asyncio
from contextlib import closing

import pytest
from servers.judge_server import JudgeServer, rate_limited
from servers.postgres_server import PostgresServer

from mind2web2.cluster.sharing import BudgetTerms, ClusterNews, LeasedBudget, pauses_of, share_limits
from mind2web2.errors import BudgetReachedError
from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest, Usage

# gpt-4o: 2,000 tokens in at $2.50 and 500 out at $10 a million.
MODEL, PROMPT_TOKENS, PRICE_USD = "gpt-4o", 2000, 0.01
USAGE = Usage(input_tokens=PROMPT_TOKENS, output_tokens=500)


@pytest.fixture(scope="module")
def server():
    """A database server."""
    with PostgresServer() as server:
        yield server


async def spend(budget):
    """Send requests as long as the budget has room, and return how many."""
    sent = 0
    try:
        while True:
            await budget.enter(PROMPT_TOKENS)
            budget.correct(PRICE_USD - budget.leave(PROMPT_TOKENS, may_be_billed=True))
            budget.learn(PROMPT_TOKENS, USAGE)
            sent += 1
    except BudgetReachedError:
        return sent


async def test_nodes_spend_one_budget(server):
    """Together no more than it has, and nearly all of it, also where one starts again with nothing spent."""
    terms = BudgetTerms("run", max_usd=1.0, model=MODEL)
    with closing(JudgmentDatabase(server.url)) as one, closing(JudgmentDatabase(server.url)) as other:
        lost = LeasedBudget(terms, one)
        await lost.enter(PROMPT_TOKENS)
        sent = await asyncio.gather(spend(LeasedBudget(terms, one)), spend(LeasedBudget(terms, other)))
        assert 0.9 <= sum(sent) * PRICE_USD + 0.02 <= 1.0
        assert all(sent)
        assert await spend(LeasedBudget(terms, one)) == 0
        assert await spend(LeasedBudget(BudgetTerms("next run", 0.1, MODEL), one)) > 0


async def test_nodes_pause_while_a_server_refuses_one_of_them():
    """Each keeps to its share, and a node that was told of a pause does not report it as its own."""
    request = ChatRequest(model="m", messages=[{"role": "user", "content": "hello"}])
    with (
        JudgeServer("hi", faults=[rate_limited(retry_after="30")] * 8) as judge,
        JudgeServer("hi") as willing,
    ):
        refused = LLMClient("openai", is_async=True, base_url=judge.base_url, api_key="k")
        other = LLMClient("openai", is_async=True, base_url=willing.base_url, api_key="k")
        async with refused, other:
            await other.chat(request)
            asking = [asyncio.create_task(refused.chat(request)) for _ in range(8)]
            while not (pauses_s := pauses_of(refused)):
                await asyncio.wait(asking, timeout=0.01)
            [wait_s] = pauses_s.values()
            [(name, limiter)] = other.limiters().items()
            share_limits(other, ClusterNews(nodes=2, pauses_s={name: wait_s}))
            now_s = asyncio.get_running_loop().time()
            assert now_s + 20 < limiter.opens_at_s(now_s) <= now_s + wait_s
            assert (limiter.share, pauses_of(other)) == (0.5, {})
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
