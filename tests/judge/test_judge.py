"""A judge as the toolkit asks it: any client, a failure remembered, refusals listed."""

import asyncio
from dataclasses import dataclass

import pytest
from pydantic import BaseModel, RootModel
from scripted_judge import ScriptedJudge

from mind2web2.errors import (
    ContextTooLongError,
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
    JudgeUnavailableError,
)
from mind2web2.judge.client_judge import ClientProvider, as_provider
from mind2web2.judge.protocol import QuestionContext
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Usage
from mind2web2.rubric.verdicts import Rejection
from mind2web2.verification.run_questions import BinaryEvalResult
from mind2web2.verification.script_access import as_judge

SUBJECT = QuestionContext("verify", node="leaf", claim="claim", page="https://lake.example")
MESSAGES = [
    {"role": "system", "content": "judge"},
    {"role": "user", "content": "claim"},
]
VERDICT = ChatRequest(model="judge-1", messages=MESSAGES, template=BinaryEvalResult)
TEXT = ChatRequest(model="judge-1", messages=MESSAGES)


class Pairs(RootModel[dict[str, int]]):
    """A template without fields."""


class Provider:
    """A provider that answers from a list."""

    endpoint = "somewhere"

    def __init__(self, *outcomes):
        self.outcomes, self.limits = list(outcomes), []

    async def chat(self, _request, limit=None):
        """Return or raise the next outcome, inside of the limit."""
        async with limit:
            self.limits.append(limit)
            outcome = self.outcomes.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome


def reply(text="yes", **fields):
    """Return a provider's reply."""
    return ChatReply(text, usage=Usage(10, 2, 3, 1), attempts=2, **fields)


# Clients and judges


async def test_a_client_receives_the_published_keywords():
    """Model, messages, and the template only where there is one."""
    client = ScriptedJudge([True, "free text"])
    provider = as_provider(client)
    assert (await provider.chat(VERDICT)).value == BinaryEvalResult(
        reasoning="scripted True", result=True
    )
    assert (await provider.chat(TEXT)).text == "free text"
    first, second = client.questions
    assert (first.model, first.messages, first.template) == (
        "judge-1",
        MESSAGES,
        BinaryEvalResult,
    )
    assert (second.messages, second.template) == (MESSAGES, None)


def test_clients_providers_and_judges_are_distinguished():
    """Judges and providers stay as they are, clients are wrapped, other objects are refused."""
    client, provider = ScriptedJudge(), Provider()
    assert isinstance(as_provider(client), ClientProvider)
    assert as_provider(provider) is provider
    judge = as_judge(client)
    assert as_judge(judge) is judge
    assert judge.model_for("any") == "any"
    for stranger in (object(), "o4-mini", None):
        with pytest.raises(TypeError, match="async_response"):
            as_judge(stranger)


def test_two_clients_are_two_judges():
    """A client without an address gets an id of its own."""
    first, second = ScriptedJudge(), ScriptedJudge()
    assert as_provider(first).endpoint == as_provider(first).endpoint
    assert as_provider(first).endpoint != as_provider(second).endpoint
    assert "ScriptedJudge" in as_provider(first).endpoint


@dataclass
class Plain:
    """A verdict of a client's own."""

    reasoning: str
    result: bool


@pytest.mark.parametrize(
    ("template", "result", "expected"),
    [
        (
            BinaryEvalResult,
            Plain("r", True),
            BinaryEvalResult(reasoning="r", result=True),
        ),
        (
            BinaryEvalResult,
            {"reasoning": "r", "result": False},
            BinaryEvalResult(reasoning="r", result=False),
        ),
        (Pairs, {"a": 1}, Pairs({"a": 1})),
        (Pairs, Pairs({"a": 1}), Pairs({"a": 1})),
    ],
)
async def test_replies_fill_the_template(template, result, expected):
    """Instances, dicts and objects with the same fields; the text is their JSON."""
    request = ChatRequest("judge-1", MESSAGES, template)
    answered = await as_provider(ScriptedJudge([result])).chat(request)
    assert answered.value == expected
    assert answered.text == expected.model_dump_json()


@pytest.mark.parametrize(
    "result", [None, "yes", True, 1, [], {"result": True}, Plain("r", None), object()]
)
async def test_other_replies_are_failures(result):
    class Returning:
        async def async_response(self, **_keywords):
            return result

    with pytest.raises(JudgeOutputError, match=rf"{type(result).__name__}.*BinaryEvalResult"):
        await as_provider(Returning()).chat(VERDICT)


# Ledger and failure


async def test_the_ledger_counts_questions_and_tokens():
    judge = as_judge(Provider(reply(), reply(declined="no"), reply()))
    await judge.ask(VERDICT, SUBJECT)
    second = await judge.ask(VERDICT, SUBJECT)
    assert judge.ledger.usage == Usage(30, 6, 9, 3, judgments=2, cost_usd=None)
    assert (second.usage, second.attempts, second.declined) == (
        Usage(20, 4, 6, 2),
        4,
        None,
    )
    assert (judge.ledger.rejections, judge.failure) == ([], None)


async def test_a_twice_declined_question_is_listed():
    judge = as_judge(Provider(reply(declined="first"), reply(declined="second")))
    answered = await judge.ask(VERDICT, SUBJECT)
    assert (answered.declined, answered.value) == ("second", None)
    assert judge.ledger.rejections == [Rejection("leaf", "https://lake.example", "second")]
    assert judge.failure is None


async def test_a_client_may_decline_by_raising():
    """Direct callers of a client see the refusal as an error; a judge takes it as a reply."""
    judge = as_judge(ScriptedJudge([JudgeDeclinedError("filter"), JudgeDeclinedError("filter")]))
    assert (await judge.ask(VERDICT, SUBJECT)).declined == "filter"


async def test_the_first_failure_is_for_good():
    failure = JudgeUnavailableError("outage")
    provider = Provider(failure)
    judge = as_judge(provider)
    with pytest.raises(JudgeUnavailableError) as caught:
        await judge.ask(VERDICT, SUBJECT)
    assert caught.value is judge.failure is failure
    with pytest.raises(JudgeError, match="nothing more is asked after a failure: outage"):
        await judge.ask(VERDICT, SUBJECT)
    assert len(provider.limits) == 1


async def test_a_failure_is_checked_before_the_limit_too():
    """Some providers ignore the limit."""

    class Unlimited(Provider):
        async def chat(self, request, _limit=None):
            return await super().chat(request, asyncio.Semaphore(1))

    provider = Unlimited(JudgeError("outage"), reply())
    judge = as_judge(provider)
    for _ in range(2):
        with pytest.raises(JudgeError, match="outage"):
            await judge.ask(VERDICT, SUBJECT)
    assert len(provider.outcomes) == 1


async def test_a_question_too_long_is_no_failure_yet():
    """A shorter one may pass."""
    judge = as_judge(Provider(ContextTooLongError("too long"), reply()))
    with pytest.raises(ContextTooLongError):
        await judge.ask(VERDICT, SUBJECT)
    assert judge.failure is None
    assert (await judge.ask(VERDICT, SUBJECT)).text == "yes"


@pytest.mark.parametrize("error", [RuntimeError("boom"), TimeoutError("late")])
async def test_unforeseen_errors_are_failures_of_the_judge(error):
    for client in (ScriptedJudge(error), Provider(error)):
        judge = as_judge(client)
        with pytest.raises(
            JudgeError, match=f"client failed: {type(error).__name__}: {error}"
        ) as caught:
            await judge.ask(VERDICT, SUBJECT)
        assert (caught.value.__cause__, judge.failure) == (error, caught.value)


async def test_cancellation_is_no_failure():
    judge = as_judge(ScriptedJudge(asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        await judge.ask(VERDICT, SUBJECT)
    assert judge.failure is None


# Limits


async def test_each_request_enters_the_limit():
    limit = asyncio.Semaphore(1)
    outcomes = [reply(declined="a"), reply(), ContextTooLongError("x"), JudgeError("y")]
    judge = as_judge(Provider(*outcomes), limit)
    await judge.ask(VERDICT, SUBJECT)
    for expected in (ContextTooLongError, JudgeError):
        with pytest.raises(expected):
            await judge.ask(VERDICT, SUBJECT)
        assert not limit.locked()


class Loose(BaseModel):
    """A template in which everything may be absent."""

    name: str | None = None


async def test_an_object_without_any_of_the_fields_is_no_empty_template():
    request = ChatRequest("judge-1", MESSAGES, Loose)
    with pytest.raises(JudgeOutputError, match="Plain"):
        await as_provider(ScriptedJudge([Plain("r", True)])).chat(request)
    assert (await as_provider(ScriptedJudge([{}])).chat(request)).value == Loose()
