"""A decision model's client: questions on one text go together, and each caller has its own answer."""

import asyncio
import json
from contextlib import asynccontextmanager, nullcontext, suppress

import pytest
from projects import QUICK_RETRY
from pydantic import TypeAdapter
from servers.decision_server import DecisionServer
from servers.local_http import Answer

from mind2web2.errors import (
    JudgeAccessError,
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.judge.budget import Budget
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.cascade import ASKED_ALONE
from mind2web2.judge.decision_client import DecisionClient
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.settings import JudgeSettings
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.decisions import DecisionTransport
from mind2web2.llm_client.prices import OwnPrice
from mind2web2.verification.messages import (
    BinaryEvalResult,
    ClaimProbability,
    decision_messages,
)

PROVIDERS = ("openai_decisions", "systemone")
SETTINGS = JudgeSettings("openai_decisions", "gpt-6-luna")
SOURCE = ("lake", "answer_1.md")
# Longer than a loaded machine takes for the questions of one test.
QUIET_S = 0.5


def question(claim, answer="The lake is deep.", template=ClaimProbability):
    """Return the question whether a claim is correct."""
    messages = decision_messages("Find a lake.", answer, None, claim, None)
    return ChatRequest("gpt-6-luna", messages, template)


@asynccontextmanager
async def connected(server, monkeypatch, provider="openai_decisions", quiet_s=QUIET_S):
    """Yield a client of a server."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    transport = DecisionTransport(provider, server.base_url)
    async with DecisionClient(transport, QUICK_RETRY, quiet_s=quiet_s) as client:
        yield client


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_questions_on_one_text_are_one_request(provider, monkeypatch):
    """Another text is another request; a question has its own answer, ``None`` where the model gave none."""
    given = {"a": 0.1, "b": None, "c": 1}
    with DecisionServer(lambda claim: given.get(claim, 0.7)) as server:
        async with connected(server, monkeypatch, provider) as client:
            asked = [question(claim) for claim in "cab"] + [question("d", "Another.")]
            replies = await asyncio.gather(*map(client.chat, asked))
    assert [reply.value.probability for reply in replies] == [1, 0.1, None, 0.7]
    assert sorted(server.asked_together) == [["a", "b", "c"], ["d"]]
    assert [reply.together for reply in replies] == [3, 3, 3, 1]
    assert sum(reply.attempts for reply in replies) == 2
    assert sum(reply.usage.input_tokens for reply in replies) == 1003 + 1001


@pytest.mark.parametrize(
    ("provider", "most"), [("openai_decisions", 400), ("systemone", 64)]
)
async def test_a_request_has_no_more_questions_than_the_protocol_allows(
    provider, most, monkeypatch
):
    """The rest go into the next one."""
    with DecisionServer(lambda _claim: 0.5) as server:
        async with connected(server, monkeypatch, provider) as client:
            asked = [question(f"claim {number}") for number in range(most + 3)]
            await asyncio.gather(*map(client.chat, asked))
    assert list(map(len, server.asked_together)) == [most, 3]


async def test_a_question_may_be_asked_alone(monkeypatch):
    """The wish is no parameter of the request, but part of the judgment's key."""
    with DecisionServer(lambda _claim: 0.5) as server, JudgmentStore(None) as store:
        async with connected(server, monkeypatch) as client:
            alone = JudgeSettings(
                "openai_decisions", "gpt-6-luna", extra_body=ASKED_ALONE
            )
            for settings in (alone, SETTINGS):
                judge = CachingJudge(settings, client, store)
                await asyncio.gather(
                    judgment(judge, "a"),
                    judgment(judge, "b"),
                )
    assert sorted(server.asked_together) == [["a"], ["a", "b"], ["b"]]
    assert not any("asked" in request.body for request in server.requests)


async def test_the_others_have_their_answers_when_one_caller_is_gone(monkeypatch):
    """All tokens are theirs then; without any caller nothing is sent."""
    with DecisionServer(lambda _claim: 0.5) as server:
        async with connected(server, monkeypatch) as client:
            gone, stays = (
                asyncio.create_task(client.chat(question(claim))) for claim in "ab"
            )
            await asyncio.sleep(0)
            gone.cancel()
            assert (await stays).usage.input_tokens == 1001
            assert server.claims == ["b"]
            gone = asyncio.create_task(client.chat(question("c")))
            await asyncio.sleep(0)
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
            await client.chat(question("c"))
    assert server.claims == ["b", "c"]


BAD_REPLIES = {
    "no JSON": b"oops",
    "no answers": b'{"model": "m"}',
    "above 1": b'{"answers": [{"type": "predicate", "name": "question_1", "probability": 1.5}]}',
    "no number": b'{"answers": [{"type": "predicate", "name": "question_1", "probability": NaN}]}',
    "a text": b'{"answers": [{"type": "predicate", "name": "question_1", "probability": "0.5"}]}',
    "not asked": b'{"answers": [{"type": "predicate", "name": "question_7", "probability": 0.5}]}',
    "twice": b'{"answers": [{"type": "predicate", "name": "question_1", "probability": 0.5}, '
    b'{"type": "refusal", "name": "question_1"}]}',
    "two numbers": b'{"answers": [{"type": "predicate", "name": "question_1", "probability": 0.1, '
    b'"probability": 0.99}]}',
    "unnamed": b'{"answers": [{"type": "refusal"}, {"type": "refusal"}]}',
}


async def test_a_malformed_probability_is_named_first(monkeypatch):
    """Where it stands and what is wrong, however long the reply is; of its text only the start."""
    answers = [
        {"type": "predicate", "name": f"question_{number}", "probability": 1.5}
        for number in range(1, 100)
    ]
    bad = [Answer(json.dumps({"answers": answers}).encode())] * 3
    with DecisionServer(lambda _claim: 0.5, faults=bad) as server:
        async with connected(server, monkeypatch, quiet_s=0) as client:
            with pytest.raises(JudgeOutputError) as raised:
                await client.chat(question("a"))
    shown = str(raised.value)
    assert (
        "3 times: answers.0.predicate.probability: Input should be less than or equal to 1, "
        "not 1.5 (and 98 more); the reply begins with '{"
    ) in shown
    assert not shown.endswith("...")


BAD_NOULS = {
    "unknown name": b'{"answers": {"question_7": {"noul": 0.5}}}',
    "twice": b'{"answers": {"question_1": {"noul": 0.1}, "question_1": {"noul": 0.99}}}',
    "twice, once refused": b'{"answers": {"question_1": {"noul": 0.1}, "question_1": null}}',
    "two numbers": b'{"answers": {"question_1": {"noul": 0.1, "noul": 0.99}}}',
    "two lists": b'{"answers": {}, "answers": {"question_1": {"noul": 0.99}}}',
}


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        *(("openai_decisions", body) for body in BAD_REPLIES.values()),
        *(("systemone", body) for body in BAD_NOULS.values()),
    ],
    ids=[*BAD_REPLIES, *BAD_NOULS],
)
async def test_a_reply_that_cannot_be_read_is_no_answer(provider, body, monkeypatch):
    """It is asked for again, and is a failure in the end."""
    for faults in (1, 3):
        bad = [Answer(body)] * faults
        with DecisionServer(lambda _claim: 0.5, faults=bad) as server:
            async with connected(server, monkeypatch, provider, quiet_s=0) as client:
                if faults == 1:
                    reply = await client.chat(question("a"))
                    assert (reply.value.probability, reply.attempts) == (0.5, 2)
                else:
                    with pytest.raises(JudgeOutputError, match="could not be read, 3"):
                        await client.chat(question("a"))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Answer(b'{"error": {"message": "bad key"}}', 401), JudgeAccessError),
        (Answer(b'{"error": {"message": "no questions"}}', 422), JudgeRequestError),
        (Answer(b'{"error": {"message": "down"}}', 500), JudgeUnavailableError),
    ],
)
async def test_a_failure_of_the_server_is_that_of_all_questions(
    fault, error, monkeypatch
):
    """None of them has a verdict."""
    with DecisionServer(lambda _claim: 0.5, faults=[fault] * 20) as server:
        async with connected(server, monkeypatch) as client:
            replies = await asyncio.gather(
                *(client.chat(question(claim)) for claim in "ab"),
                return_exceptions=True,
            )
    assert [type(reply) for reply in replies] == [error, error]


async def test_a_filtered_request_leaves_all_questions_without_an_answer(monkeypatch):
    """As a refusal of each of them does."""
    fault = Answer(b'{"error": {"message": "no", "code": "content_filter"}}', 400)
    with DecisionServer(lambda _claim: 0.5, faults=[fault]) as server:
        async with connected(server, monkeypatch) as client:
            reply = await client.chat(question("a"))
    assert reply.value.probability is None


async def test_it_writes_no_text_and_fills_no_form(monkeypatch):
    """Whatever asks for that fails with a reason."""
    with DecisionServer(lambda _claim: 0.5) as server:
        async with connected(server, monkeypatch) as client:
            for template in (None, BinaryEvalResult):
                with pytest.raises(JudgeRequestError, match="is a decision model"):
                    await client.chat(question("a", template=template))


async def judgment(judge, claim, limits=None):
    """Return a judge's judgment on a claim."""
    subject = QuestionContext("verify", claim=claim)
    limits = limits or AnswerLimits(nullcontext(), lambda: None)
    return await judge.judgment(question(claim), subject, SOURCE, limits)


async def test_a_question_of_a_failed_answer_is_not_sent_with_the_others(monkeypatch):
    """Whether it would have led the request or followed another question."""

    def failed():
        raise JudgeError("nothing more is asked")

    with DecisionServer(lambda _claim: 0.5) as server, JudgmentStore(None) as store:
        async with connected(server, monkeypatch) as client:
            judge = CachingJudge(SETTINGS, client, store)
            limits = AnswerLimits(nullcontext(), failed)
            replies = await asyncio.gather(
                judgment(judge, "a", limits),
                judgment(judge, "b"),
                judgment(judge, "c", limits),
                return_exceptions=True,
            )
    assert [isinstance(reply, JudgeError) for reply in replies] == [True, False, True]
    assert server.asked_together == [["b"]]


async def test_one_place_and_one_reservation_are_taken_for_a_request(monkeypatch):
    """The dollars spent are those of the tokens billed, and the judgments' shares add up to them."""
    places = asyncio.Semaphore(1)
    with (
        DecisionServer(lambda _claim: 0.5, tokens=999) as server,
        JudgmentStore(None) as store,
    ):
        async with connected(server, monkeypatch) as client:
            price = OwnPrice(1000.0, 0.0)
            budget = Budget(100.0, "gpt-6-luna", price=price)
            judge = CachingJudge(
                SETTINGS,
                client,
                store,
                budget=budget,
                price=price,
            )
            limits = AnswerLimits(places, lambda: None)
            found = await asyncio.gather(
                *(judgment(judge, claim, limits) for claim in "abcd")
            )
    assert server.asked_together == [["a", "b", "c", "d"]]
    assert [each.together for each in found] == [4] * 4
    assert sum(each.input_tokens for each in found) == 1003
    assert sum(each.attempts for each in found) == 1
    assert budget.spent_usd == pytest.approx(1.003)
    asked = judge.usage.total().asked
    assert (asked.judgments, asked.requests, asked.input_tokens) == (4, 1, 1003)
    assert asked.cost_usd == pytest.approx(1.003)
    assert places._value == 1


async def test_requests_have_the_form_of_openais_sdk(monkeypatch):
    """Its types are the published description of the protocol, with text and image."""
    from openai.types.decision_create_params import DecisionCreateParams

    asked = question("a")
    parts = asked.messages[1]["content"]
    image = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/"}}
    asked.messages[1]["content"] = [parts[0], image, parts[1]]
    with DecisionServer(lambda _claim: 0.5) as server:
        async with connected(server, monkeypatch, quiet_s=0) as client:
            await client.chat(asked)
    (request,) = server.requests
    typed = TypeAdapter(DecisionCreateParams).validate_python(request.body)
    assert typed["model"] == "gpt-6-luna"
    assert request.body.keys() <= DecisionCreateParams.__annotations__.keys()
    assert request.images == 1


class Places(asyncio.Semaphore):
    """Places that tell when one is waited for."""

    def __init__(self):
        super().__init__(0)
        self.wanted = asyncio.Event()

    async def acquire(self):
        """Wait for a place."""
        self.wanted.set()
        return await super().acquire()


@pytest.mark.parametrize("order", ["ab", "ba"])
async def test_a_place_is_free_again_though_its_caller_is_gone(order, monkeypatch):
    """Whichever of the two has the permit by which both are sent, the other one has its answer."""
    places = Places()
    limits = AnswerLimits(places, lambda: None)
    with DecisionServer(lambda _claim: 0.5) as server, JudgmentStore(None) as store:
        async with connected(server, monkeypatch) as client:
            price = OwnPrice(1000.0, 0.0)
            budget = Budget(100.0, "gpt-6-luna", price=price)
            judge = CachingJudge(SETTINGS, client, store, budget=budget, price=price)
            led, other = (
                asyncio.create_task(judgment(judge, claim, limits)) for claim in order
            )
            await places.wanted.wait()
            led.cancel()
            await asyncio.wait({led})
            places.release()
            assert (await other).text == '{"probability":0.5}'
            async with asyncio.timeout(20):
                await judgment(judge, "c", limits)
                await budget.all_read()
    assert not places.locked()
    tokens = sum(1000 + len(claims) for claims in server.asked_together)
    assert budget.spent_usd == pytest.approx(tokens / 1000)
