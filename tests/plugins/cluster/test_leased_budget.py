"""Shards share the dollars of a run."""

import asyncio
from contextlib import ExitStack, closing

import pytest
from servers.postgres_server import PostgresServer

from mind2web2.errors import BudgetReachedError
from mind2web2.llm_client.chat import Usage
from mind2web2.plugins.cluster.postgres import JudgmentDatabase
from mind2web2.plugins.cluster.shard import BudgetTerms, LeasedBudget

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


async def test_shards_spend_one_budget(server):
    """All shards together spend nearly all of the budget, and never more."""
    terms = BudgetTerms("run", max_usd=1.0, model=MODEL)
    with (
        closing(JudgmentDatabase(server.url)) as one,
        closing(JudgmentDatabase(server.url)) as other,
    ):
        lost = LeasedBudget(terms, one)
        await lost.enter(PROMPT_TOKENS)
        sent = await asyncio.gather(
            spend(LeasedBudget(terms, one)), spend(LeasedBudget(terms, other))
        )
        assert 0.9 <= sum(sent) * PRICE_USD + 0.02 <= 1.0
        assert await spend(LeasedBudget(terms, one)) == 0
        assert await spend(LeasedBudget(BudgetTerms("next run", 0.1, MODEL), one)) > 0


async def test_a_budget_is_enough_for_many_shards(server):
    """None is refused because others have leased dollars that they do not need."""
    terms = BudgetTerms("many", max_usd=1.0, model=MODEL)
    with ExitStack() as stack:
        for number in range(20):
            database = stack.enter_context(closing(JudgmentDatabase(server.url)))
            assert database.sessions == number + 1
            budget = LeasedBudget(terms, database)
            await budget.enter(PROMPT_TOKENS)
            assert budget.refusal is None
