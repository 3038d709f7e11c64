"""A run's budget: the size of requests, reservations, refusals, and the dollars spent."""

import asyncio
import base64
import random
from collections import Counter
from contextlib import nullcontext

import pytest
from evaluations import image
from projects import QUICK_RETRY
from servers.judge_server import JudgeServer, status

from mind2web2.errors import BudgetReachedError, UsageError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.permit import AnswerLimits, CircuitBreaker
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.tokens import PART_SIZE_PX, request_tokens, text_tokens
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.prices import image_tokens, price_usd

MODEL = "gpt-4o"
# $2.50 for the tokens in, $10 for those out, per million.
USAGE = Usage(input_tokens=2000, output_tokens=500)
PRICE_USD = 0.01


def question(text="Is it so?"):
    """Return a request."""
    return ChatRequest(model=MODEL, messages=[{"role": "user", "content": text}])


def taught(max_usd):
    """Return a budget that has learned the cost of a request: a hundredth of a dollar."""
    budget = Budget(max_usd, MODEL)
    for _ in range(5):
        budget.learn(request_tokens(question()), USAGE)
    return budget


async def reserved(budget, limit=None):
    """Return a permit whose request is in flight."""
    limits = AnswerLimits(limit or nullcontext(), lambda: None)
    permit = budget.permit(question(), limits, CircuitBreaker())
    await permit.__aenter__()
    return permit


async def ended(permit, error=None, usage=USAGE):
    """End a permit's request; its reply is stored."""
    await permit.__aexit__(None if error is None else type(error), error, None)
    if error is None:
        permit.settle([usage])
    await permit.aclose()


async def started(*coroutines):
    """Return tasks that have come as far as they can."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@pytest.fixture
def store(tmp_path):
    """Return an open store."""
    with JudgmentStore(tmp_path / "judgments.sqlite3") as store:
        yield store


def test_a_price_list_gives_the_price_of_the_tests():
    """The numbers below rest on it."""
    assert price_usd(USAGE, MODEL) == pytest.approx(PRICE_USD)


def test_an_unknown_price_is_a_usage_error():
    with pytest.raises(UsageError, match="no price is known for model judge-1; write the price"):
        Budget(20, "judge-1")


@pytest.mark.parametrize(
    ("usages", "expected_usd"),
    [
        # Replies of 0 and 1,000 tokens: half of them are longer than their mean of 500.
        ([(2000, 0), (2000, 1000)] * 3, 0.015),
        # A tokenizer that counts one prompt four times as long as another.
        ([(8000, 500), *[(2000, 500)] * 5], 0.025),
    ],
)
async def test_varied_replies_are_expected_to_be_long(usages, expected_usd):
    """A request is refused where a reply like the long ones would exceed the dollars left."""
    for share, is_refused in ((0.95, True), (1.05, False)):
        budget = Budget(share * expected_usd, MODEL)
        for tokens in usages:
            budget.learn(request_tokens(question()), Usage(*tokens[:1], output_tokens=tokens[1]))
        if is_refused:
            with pytest.raises(BudgetReachedError):
                await reserved(budget)
        else:
            await ended(await reserved(budget))


async def test_a_request_waits_for_room_while_others_are_in_flight():
    """One that costs less than reserved makes it."""
    budget = taught(3.95 * PRICE_USD)
    running = [await reserved(budget) for _ in range(3)]
    [waiting] = await started(reserved(budget))
    assert not waiting.done()
    await ended(running.pop(), usage=Usage(input_tokens=2000))
    permit = await waiting
    for other in (*running, permit):
        await ended(other)
    assert budget.spent_usd == pytest.approx(3.5 * PRICE_USD)


async def test_a_request_is_refused_once_the_dollars_spent_leave_no_room():
    """Waiting and later requests are refused."""
    budget = taught(2.4 * PRICE_USD)
    running = [await reserved(budget) for _ in range(2)]
    waiting = await started(reserved(budget), reserved(budget))
    for permit in running:
        await ended(permit)
    for task in waiting:
        with pytest.raises(BudgetReachedError, match=r"^max_cost 0\.024 is reached"):
            await task
    assert budget.is_reached
    with pytest.raises(BudgetReachedError):
        await reserved(budget)


async def test_a_refusal_waits_until_the_replies_in_flight_are_read():
    """The refusal cancels the other questions of its answer.

    The next run would pay again for their replies.
    """
    budget = taught(2.4 * PRICE_USD)
    slow, dear = [await reserved(budget) for _ in range(2)]
    limit = asyncio.Semaphore(1)
    [refused] = await started(reserved(budget, limit))
    await ended(dear, usage=USAGE + USAGE)
    await started()
    assert (budget.is_reached, refused.done(), limit.locked()) == (True, False, False)
    await slow.__aexit__(None, None, None)
    await started()
    assert not refused.done()
    slow.settle([USAGE])
    with pytest.raises(BudgetReachedError):
        await refused


async def test_refused_repairs_do_not_wait_for_each_other():
    budget = taught(2.4 * PRICE_USD)
    repaired = [await reserved(budget) for _ in range(2)]
    for permit in repaired:
        await permit.__aexit__(None, None, None)
    async with asyncio.timeout(20):
        entering = (permit.__aenter__() for permit in repaired)
        errors = await asyncio.gather(*entering, return_exceptions=True)
    assert [type(error) for error in errors] == [BudgetReachedError] * 2


async def test_a_first_request_above_the_whole_budget_has_its_own_message():
    """The same command would never get any further."""
    with pytest.raises(
        BudgetReachedError, match=r"more than all of max_cost 0\.001: give a higher one"
    ):
        await reserved(taught(0.001))


async def test_until_replies_are_in_estimates_are_distrusted():
    """A budget that is many times the estimate lets all go at once, a small one only some."""
    many = await started(*(reserved(Budget(20, MODEL)) for _ in range(50)))
    assert all(task.done() for task in many)
    small = Budget(1, MODEL)
    tasks = await started(*(reserved(small) for _ in range(50)))
    at_once = [task for task in tasks if task.done()]
    assert 1 <= len(at_once) <= 5
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    ("error", "spent"),
    [
        (RequestFailedError("rate limited", status=429), 0.0),
        (asyncio.CancelledError(), PRICE_USD),
    ],
)
async def test_requests_that_may_be_billed_count(error, spent):
    """A server's refusal costs nothing, a cancelled request may."""
    budget = taught(1)
    await ended(await reserved(budget), error)
    assert budget.spent_usd == pytest.approx(spent)


async def test_a_timeout_may_be_billed():
    """The provider may have answered by then."""
    budget = taught(1)
    error = RequestFailedError("no answer within 300 s", is_timeout=True)
    permit = await reserved(budget)
    await ended(permit, error)
    await permit.__aenter__()
    await ended(permit)
    assert budget.spent_usd == pytest.approx(2 * PRICE_USD)


async def test_a_server_that_reports_no_tokens_is_not_free():
    """The estimate counts then."""
    budget = taught(1)
    await ended(await reserved(budget), usage=Usage())
    assert budget.spent_usd == pytest.approx(PRICE_USD)


async def test_a_repair_counts_with_the_first_request():
    """Two HTTP requests of one question are settled together."""
    budget = taught(1)
    permit = await reserved(budget)
    await permit.__aexit__(None, None, None)
    await permit.__aenter__()
    await ended(permit, usage=USAGE + USAGE)
    assert budget.spent_usd == pytest.approx(2 * PRICE_USD)


async def test_a_waiting_request_can_be_cancelled():
    """The permit that was held goes back."""
    budget = taught(1.4 * PRICE_USD)
    await reserved(budget)
    limit = asyncio.Semaphore(1)
    [waiting] = await started(reserved(budget, limit))
    assert limit.locked()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not limit.locked()


class Provider:
    """A judge whose replies are of very different lengths."""

    endpoint = "a judge"

    def __init__(self):
        """Begin without cost."""
        self.cost_usd = 0.0
        self.dearest_usd = 0.0
        self._random = random.Random(7)

    async def chat(self, _request, limit=None):
        """Answer at length, at times at great length."""
        async with limit or nullcontext():
            for _ in range(self._random.randrange(1, 20)):
                await asyncio.sleep(0)
        usage = Usage(30_000, 0, round(self._random.lognormvariate(6, 1)))
        price = price_usd(usage, MODEL)
        self.cost_usd += price
        self.dearest_usd = max(self.dearest_usd, price)
        return ChatReply(text="so", usage=usage)


async def outcomes(run, count, limit=None):
    """Ask many questions at once, each for an answer of its own, and count the outcomes."""

    async def ask(number):
        judge = AnswerJudge(run, ("task", f"answer_{number}.md"), limit or nullcontext())
        try:
            await judge.ask(question(f"Is {number} so?"), QuestionContext("verify", node="leaf"))
        except BudgetReachedError:
            assert isinstance(judge.failure, BudgetReachedError)
            return "refused"
        return "answered"

    return Counter(await asyncio.gather(*(ask(number) for number in range(count))))


async def test_many_at_once_exceed_the_budget_by_a_request_at_most(store):
    """Two hundred in flight, with replies of unknown length."""
    provider, budget = Provider(), Budget(20, MODEL)
    run = CachingJudge(JudgeSpec(MODEL), provider, store, budget=budget)
    found = await outcomes(run, 600, asyncio.Semaphore(200))
    assert set(found) == {"answered", "refused"}
    assert budget.spent_usd == pytest.approx(provider.cost_usd)
    assert 20 - 2 * provider.dearest_usd < provider.cost_usd < 20 + provider.dearest_usd
    assert len(store.all()) == found["answered"]


async def test_a_server_far_dearer_than_expected_does_not_exceed_the_budget(store):
    """The server's tokens are a hundred times those of the estimate."""
    usage = Usage(input_tokens=20_000, cached_tokens=0, output_tokens=2000)
    price = price_usd(usage, MODEL)
    with JudgeServer("so", input_tokens=20_000, cached_tokens=0, output_tokens=2000) as server:
        async with LLMClient(
            "openai", is_async=True, base_url=server.base_url, api_key="x"
        ) as client:
            budget = Budget(30.5 * price, MODEL)
            run = CachingJudge(JudgeSpec(MODEL), client, store, budget=budget)
            found = await outcomes(run, 200)
        assert found == {"answered": 30, "refused": 170}
        assert len(server.calls) == 30
    assert budget.spent_usd == pytest.approx(30 * price)
    assert run.usage.total().asked.cost_usd == pytest.approx(30 * price)


async def test_waiting_retries_hold_neither_permit_nor_dollars(store):
    with JudgeServer(
        "so", faults=[status(503)] * 3, input_tokens=2000, output_tokens=500
    ) as server:
        client = LLMClient(
            "openai",
            is_async=True,
            base_url=server.base_url,
            api_key="x",
            retry=QUICK_RETRY,
        )
        async with client:
            budget = taught(3.4 * PRICE_USD)
            run = CachingJudge(JudgeSpec(MODEL), client, store, budget=budget)
            found = await outcomes(run, 6, asyncio.Semaphore(1))
    assert found == {"answered": 3, "refused": 3}
    assert len(server.calls) == 6


EMPTY = request_tokens(ChatRequest("gpt-4o", []))


def image_part(url):
    """Return an image as messages hold it."""
    return {"type": "image_url", "image_url": {"url": url, "detail": "high"}}


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd" * 25, 25), ("水" * 100, 75)]
)
def test_scripts_with_more_bytes_have_more_tokens(text, tokens):
    assert text_tokens(text) == tokens


def test_all_messages_count():
    """Texts as they are and in parts."""
    messages = [
        {"role": "system", "content": "abcd" * 10},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "abcd" * 7},
                {"type": "text", "text": ""},
            ],
        },
    ]
    assert request_tokens(ChatRequest("gpt-4o", messages)) == EMPTY + 17


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_image_counts_by_its_size(kind):
    """Read from its header alone; whatever cannot be read counts as a part of a screenshot."""
    data = base64.b64encode(image(600, 300, kind)).decode()
    for url, size_px in (
        (f"data:image/x;base64,{data}", (600, 300)),
        ("data:image/x;base64,AAAA", PART_SIZE_PX),
        ("data:image/x;base64,!", PART_SIZE_PX),
        ("https://lake.example/map.png", PART_SIZE_PX),
    ):
        request = ChatRequest("gpt-4o", [{"role": "user", "content": [image_part(url)]}])
        assert request_tokens(request) == EMPTY + image_tokens("gpt-4o", *size_px)
