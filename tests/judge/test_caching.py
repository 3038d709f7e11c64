"""A run's judge: judgments are requested once, stored and reused; failures are not stored."""

import asyncio
import contextlib
import resource
import signal
import sqlite3
from collections import Counter
from dataclasses import replace

import pytest
from pydantic import BaseModel

from mind2web2.errors import (
    ContextTooLongError,
    JudgeDeclinedError,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
    JudgmentMissingError,
    JudgmentStoreError,
)
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.judge.services import answer_service
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.chat import ChatReply, ChatRequest, OwnPrice, Usage
from mind2web2.rubric.verdicts import Rejection

SETTINGS = JudgeSpec("gpt-4o", temperature=0.5, reasoning_effort="low")
USAGE = Usage(input_tokens=100, cached_tokens=60, output_tokens=10)


class Verdict(BaseModel):
    """The template."""

    reasoning: str = "read"
    result: bool = True


class Provider:
    """A chat provider whose replies come from a function; it counts requests."""

    def __init__(self, reply=None, endpoint="openai http://localhost/v1"):
        """Answer every request with ``reply(text)``, which may raise."""
        self.endpoint = endpoint
        self.requests = []
        self.arrived = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self._reply = reply or (lambda _text: verdict())

    @property
    def texts(self):
        """Return how often each question was asked."""
        return Counter(request.messages[0]["content"] for request in self.requests)

    async def chat(self, request, limit=None):
        """Answer one request once the gate is open."""
        async with limit or contextlib.nullcontext():
            self.requests.append(request)
            self.arrived.set()
            await self.gate.wait()
            return self._reply(request.messages[0]["content"])


def verdict(result=True, **more):
    """Return a reply with a verdict."""
    value = Verdict(result=result)
    return ChatReply(text=value.model_dump_json(), value=value, usage=USAGE, **more)


def declined(reason="not this"):
    """Return a reply that declines the content."""
    return ChatReply(text="", declined=reason, usage=USAGE)


def question(text="Is it so?", template=Verdict):
    """Return a request as an evaluator makes it, with the model that its script names."""
    return ChatRequest(
        model="named-by-script",
        messages=[{"role": "user", "content": text}],
        template=template,
    )


def subject(trial=1, node="leaf"):
    """Return the subject of a question."""
    return QuestionContext(
        "verify", node=node, claim="It is so.", page="https://a.example/x", trial=trial
    )


OWN = QuestionContext("script")


def own(text, template=None):
    """Return a request of a script's own."""
    return ChatRequest("o9", [{"role": "user", "content": text}], template)


def answer_judge(run, limit=None):
    """Return the judge of one answer."""
    return AnswerJudge(run, ("task", "answer_1.md"), limit or contextlib.nullcontext())


@pytest.fixture
def store(tmp_path):
    """Return an open store."""
    with JudgmentStore(tmp_path / "judgments.sqlite3") as store:
        yield store


async def test_a_question_is_asked_once_and_kept_with_all_about_it(store):
    """The second time the stored judgment answers, in this run or a later one."""
    provider = Provider(
        lambda _: verdict(served_model="gpt-4o-2024", system_fingerprint="fp", attempts=2)
    )
    run = CachingJudge(SETTINGS, provider, store)
    first = await answer_judge(run).ask(question(), subject())
    again = await answer_judge(run).ask(question(), subject())
    later = await answer_judge(CachingJudge(SETTINGS, provider, store)).ask(question(), subject())
    assert first == again == later
    assert first.value == Verdict()
    assert len(provider.requests) == 1
    cost_usd = pytest.approx((40 * 2.5 + 60 * 1.25 + 10 * 10) / 1e6)
    assert run.usage.total().asked == replace(USAGE, judgments=1, requests=2, cost_usd=cost_usd)
    assert run.usage.total().reused.judgments == 1
    [kept] = store.all()
    assert kept.model_dump(exclude={"key", "created", "seconds"}) == {
        "endpoint": "openai http://localhost/v1",
        "model": "gpt-4o",
        "temperature": 0.5,
        "reasoning_effort": "low",
        "max_images": None,
        "extra_body": None,
        "outcome": "reply",
        "text": '{"reasoning":"read","result":true}',
        "served_model": "gpt-4o-2024",
        "system_fingerprint": "fp",
        "input_tokens": 100,
        "cached_tokens": 60,
        "cache_write_tokens": 0,
        "output_tokens": 10,
        "images": None,
        "attempts": 2,
        "cost_usd": pytest.approx(0.000275),
        "batch": None,
        "task_id": "task",
        "answer_name": "answer_1.md",
        "purpose": "verify",
        "node": "leaf",
        "claim": "It is so.",
        "page": "https://a.example/x",
        "trial": 1,
        "reused_from": None,
    }


@pytest.mark.parametrize(
    "changed",
    [
        JudgeSpec("gpt-4o-mini", temperature=0.5, reasoning_effort="low"),
        JudgeSpec("gpt-4o", temperature=0.6, reasoning_effort="low"),
        JudgeSpec("gpt-4o", temperature=0.5, reasoning_effort="high"),
    ],
)
async def test_another_judge_is_asked_again(store, changed):
    """Judgments belong to one model and its parameters."""
    provider = Provider()
    for settings in (SETTINGS, changed):
        await answer_judge(CachingJudge(settings, provider, store)).ask(question(), subject())
    assert len(provider.requests) == 2


async def test_equal_questions_at_the_same_time_are_asked_once(store):
    """Two answers wait for one reply; each counts it as a judgment of its own."""
    provider = Provider()
    provider.gate.clear()
    run = CachingJudge(SETTINGS, provider, store)
    judges = [answer_judge(run), answer_judge(run)]
    asking = [asyncio.ensure_future(judge.ask(question(), subject())) for judge in judges]
    await provider.arrived.wait()
    provider.gate.set()
    assert await asyncio.gather(*asking) == [verdict(), verdict()]
    assert len(provider.requests) == 1
    assert [judge.ledger.usage.judgments for judge in judges] == [1, 1]


async def test_a_caller_that_waits_for_a_cancelled_one_asks_itself(store):
    """The first caller was cancelled; the second does not fail with it."""
    provider = Provider()
    provider.gate.clear()
    run = CachingJudge(SETTINGS, provider, store)
    first = asyncio.ensure_future(answer_judge(run).ask(question(), subject()))
    await provider.arrived.wait()
    second = asyncio.ensure_future(answer_judge(run).ask(question(), subject()))
    first.cancel()
    provider.gate.set()
    assert await second == verdict()
    assert first.cancelled()
    assert len(provider.requests) == 2


async def test_overwrite_asks_each_question_once_more(store):
    await answer_judge(CachingJudge(SETTINGS, Provider(), store)).ask(question(), subject())
    provider = Provider(lambda _: verdict(result=False))
    run = CachingJudge(SETTINGS, provider, store, overwrite=True)
    for _ in range(3):
        reply = await answer_judge(run).ask(question(), subject())
        assert reply.value.result is False
    assert len(provider.requests) == 1
    assert [kept.text for kept in store.all()] == ['{"reasoning":"read","result":false}']


async def test_another_server_is_asked_again(store):
    """Two servers may call different models by one name; a replay is of one of them."""
    for endpoint, result in (("a", True), ("b", False)):
        provider = Provider(lambda _, result=result: verdict(result), endpoint)
        await answer_judge(CachingJudge(SETTINGS, provider, store)).ask(question(), subject())
        assert len(provider.requests) == 1
    for endpoint, result in (("a", True), ("b", False)):
        replay = CachingJudge(replace(SETTINGS, replayed_endpoint=endpoint), None, store)
        assert replay.endpoint == "replay"
        reply = await answer_judge(replay).ask(question(), subject())
        assert reply.value.result is result
        assert (
            replay.usage.total().asked.judgments,
            replay.usage.total().reused.judgments,
        ) == (0, 1)


async def test_a_judgment_of_the_flex_tier_costs_half(store):
    flex = replace(SETTINGS, extra_body={"service_tier": "flex"})
    run = CachingJudge(flex, Provider(), store)
    await answer_judge(run).ask(question(), subject())
    [kept] = store.all()
    assert (kept.batch, kept.cost_usd) == (True, pytest.approx(0.000275 / 2))
    assert run.usage.tasks["task"].asked.cost_usd == pytest.approx(0.000275 / 2)


async def test_a_reused_judgment_without_dollars_has_the_judges_own_price(store):
    settings = replace(SETTINGS, model="own-model")
    ask = (question(), subject())
    await answer_judge(CachingJudge(settings, Provider(), store)).ask(*ask)
    priced = CachingJudge(replace(settings, price=OwnPrice(1.0, 2.0)), Provider(), store)
    await answer_judge(priced).ask(*ask)
    assert priced.usage.tasks["task"].reused.cost_usd == pytest.approx(120 / 1e6)


async def test_a_replay_asks_no_service(store):
    """A run does, and its answer is replayed."""
    request = ServiceRequest("arxiv", "by_id", ["2506.21506"])
    source = ("task", "answer_1.md")

    async def ask():
        return "a paper"

    replay = CachingJudge(SETTINGS, None, store)
    with pytest.raises(JudgmentMissingError, match=r"2506\.21506"):
        await answer_service(replay, request, ask, source)
    run = CachingJudge(SETTINGS, Provider(), store)
    assert (await answer_service(run, request, ask, source))[0] == "a paper"
    assert (await answer_service(replay, request, ask, source))[0] == "a paper"


async def test_a_replay_without_the_judgment_fails_clearly(store):
    judge = answer_judge(CachingJudge(SETTINGS, None, store))
    with pytest.raises(JudgmentMissingError) as caught:
        await judge.ask(question(), subject(trial=2))
    for part in (
        "'It is so.'",
        "https://a.example/x",
        "'leaf'",
        "trial 2",
        "task/answer_1.md",
    ):
        assert part in str(caught.value)
    assert judge.failure is None


async def test_a_missing_extraction_is_named(store):
    judge = answer_judge(CachingJudge(SETTINGS, None, store))
    with pytest.raises(JudgmentMissingError, match="no stored judgment on extract 'facts' "):
        await judge.ask(question(), QuestionContext("extract", node="facts"))
    judge = answer_judge(CachingJudge(SETTINGS, None, store))
    with pytest.raises(JudgmentMissingError) as caught:
        await judge.ask(question(), QuestionContext("verify", node="leaf", claim="so " * 500))
    assert len(str(caught.value)) < 300


async def test_declined_once_is_asked_again(store):
    """The second reply counts, and the cost of both."""
    replies = iter([declined(), verdict()])
    judge = answer_judge(CachingJudge(SETTINGS, Provider(lambda _: next(replies)), store))
    reply = await judge.ask(question(), subject())
    assert (reply.value, reply.declined, reply.attempts) == (Verdict(), None, 2)
    assert judge.ledger.usage.input_tokens == 2 * USAGE.input_tokens
    assert judge.ledger.rejections == []


async def test_declined_twice_is_a_judgment_of_its_own(store):
    provider = Provider(lambda _: declined())
    ledgers = []
    for _ in range(2):
        judge = answer_judge(CachingJudge(SETTINGS, provider, store))
        reply = await judge.ask(question(), subject())
        assert (reply.value, reply.declined) == (None, "not this")
        assert judge.failure is None
        ledgers.append(judge.ledger)
    assert ledgers[0] == ledgers[1]
    assert ledgers[0].rejections == [Rejection("leaf", "https://a.example/x", "not this")]
    assert len(provider.requests) == 2


async def test_too_long_is_kept_too(store):
    """The evaluator shows less of the page; the long request is not sent a second time."""

    def too_long(_):
        raise ContextTooLongError("too long")

    provider = Provider(too_long)
    for _ in range(2):
        judge = answer_judge(CachingJudge(SETTINGS, provider, store))
        with pytest.raises(ContextTooLongError, match="too long"):
            await judge.ask(question(), subject())
        assert judge.failure is None
    assert len(provider.requests) == 1


async def test_a_ledger_is_the_same_from_stored_judgments(store):
    """A result must not depend on whether a judgment was paid for in this run."""
    ledgers = []
    provider = Provider()
    for _ in range(2):
        judge = answer_judge(CachingJudge(SETTINGS, provider, store))
        for text in ("a", "b"):
            await judge.ask(question(text), subject())
        ledgers.append(judge.ledger)
    assert ledgers[0] == ledgers[1]
    assert (ledgers[0].usage.judgments, ledgers[0].usage.output_tokens) == (2, 20)


async def test_the_log_has_the_traceback_of_an_unforeseen_error(store, caplog):
    """The answer's reason is one line."""

    def stumble(_):
        raise RuntimeError("a bug")

    caplog.set_level("INFO")
    judge = answer_judge(CachingJudge(SETTINGS, Provider(stumble), store))
    with pytest.raises(JudgeError, match="RuntimeError: a bug"):
        await judge.ask(question("any"), subject())
    assert "in stumble" in caplog.text


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (JudgeUnavailableError("out of reach"), JudgeUnavailableError, "out of reach"),
        (JudgeRequestError("wrong key"), JudgeRequestError, "wrong key"),
        (RuntimeError("a bug"), JudgeError, "RuntimeError: a bug"),
        (JudgeDeclinedError("no"), JudgeDeclinedError, "no"),
    ],
)
async def test_after_a_failure_nothing_more_is_asked_for_the_answer(store, error, kind, words):
    """The failure is not stored, and other answers continue."""

    def fail(text):
        if text == "bad":
            raise error
        return verdict()

    provider = Provider(fail)
    run = CachingJudge(SETTINGS, provider, store)
    judge, other = answer_judge(run), answer_judge(run)
    with pytest.raises(kind, match=words) as caught:
        await judge.ask(question("bad"), subject())
    assert judge.failure is caught.value
    with pytest.raises(JudgeError, match=f"nothing more is asked after a failure: .*{words}"):
        await judge.ask(question("good"), subject())
    assert judge.failure is caught.value
    assert provider.texts == {"bad": 1}
    assert store.all() == []
    assert (await other.ask(question("good"), subject())).value == Verdict()


async def test_questions_that_wait_for_their_turn_are_not_sent_after_a_failure(store):
    def fail(_):
        raise JudgeUnavailableError("out of reach")

    provider = Provider(fail)
    limit = asyncio.Semaphore(1)
    judge = answer_judge(CachingJudge(SETTINGS, provider, store), limit)
    asking = [judge.ask(question(text), subject()) for text in "abcde"]
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert all(isinstance(outcome, JudgeError) for outcome in outcomes)
    assert len(provider.requests) == 1
    async with limit:
        assert limit.locked()


async def test_a_reply_that_cannot_be_kept_decides_nothing(store):
    """The store was damaged from outside while the run went on."""
    connection = sqlite3.connect(store.path)
    connection.execute("DROP TABLE judgments")
    connection.close()
    judge = answer_judge(CachingJudge(SETTINGS, Provider(), store))
    with pytest.raises(JudgmentStoreError, match=r"judgments\.sqlite3 cannot be used"):
        await judge.ask(question(), subject())
    assert isinstance(judge.failure, JudgmentStoreError)


@pytest.fixture
def limit_file_size():
    """Return a function that limits the size of this process's files.

    Without a number, the function lifts the limit.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit(size=before[0]):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    limit()
    signal.signal(signal.SIGXFSZ, handler)


async def test_a_reply_that_a_full_disk_refuses_is_written_once_there_is_room(
    store, limit_file_size
):
    provider = Provider(lambda text: ChatReply(text=text * 9000))
    run = CachingJudge(SETTINGS, provider, store)
    limit_file_size(2000)
    for text in "ab":
        with pytest.raises(JudgmentStoreError, match=r"judgments\.sqlite3 cannot be used: .*room"):
            await answer_judge(run).ask(question(text, None), subject())
    with pytest.raises(JudgmentStoreError, match="1 judge reply not stored"):
        await run.write_rest()
    limit_file_size()
    await run.write_rest()
    assert provider.texts == {"a": 1}
    assert [kept.text for kept in store.all()] == ["a" * 9000]


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_reply_that_waits_for_room_is_not_asked_for_again(
    store, limit_file_size, overwrite
):
    """The same question in the same run has it, once there is room."""
    provider = Provider(lambda text: ChatReply(text=text * 9000))
    run = CachingJudge(SETTINGS, provider, store, overwrite=overwrite)
    limit_file_size(2000)
    for _ in range(2):
        with pytest.raises(JudgmentStoreError, match="room"):
            await answer_judge(run).ask(question("a", None), subject())
    limit_file_size()
    reply = await answer_judge(run).ask(question("a", None), subject())
    assert reply.text == "a" * 9000
    assert provider.texts == {"a": 1}
    assert run.usage.total().asked.judgments == 1


async def test_a_judgment_that_does_not_fit_does_not_survive_a_full_disk(store, limit_file_size):
    """The paid reply replaces it once there is room, and the next run asks nothing."""
    provider = Provider()
    await answer_judge(CachingJudge(SETTINGS, provider, store)).ask(question(), subject())
    [kept] = store.all()
    await store.put(kept.model_copy(update={"text": '{"result": "perhaps"}'}))
    run = CachingJudge(SETTINGS, provider, store)
    limit_file_size(2000)
    with pytest.raises(JudgmentStoreError, match="room"):
        await answer_judge(run).ask(question(), subject())
    limit_file_size()
    await run.write_rest()
    reply = await answer_judge(CachingJudge(SETTINGS, provider, store)).ask(question(), subject())
    assert (reply.value, len(provider.requests)) == (Verdict(), 2)


async def test_a_paid_reply_is_stored_although_its_caller_is_cancelled(tmp_path):
    """Cancelled while the reply is being written."""
    writing = asyncio.Event()

    class Watched(JudgmentStore):
        async def keep(self, judgment, instead_of=None):
            writing.set()
            return await super().keep(judgment, instead_of)

    with Watched(tmp_path / "judgments.sqlite3") as store:
        run = CachingJudge(SETTINGS, Provider(), store)
        asking = asyncio.create_task(answer_judge(run).ask(question(), subject()))
        await writing.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(store.all()) == 1


async def test_a_request_is_in_flight_until_its_reply_is_stored(tmp_path):
    """A process that dies loses no more replies than it may have requests in flight."""
    unstored, limit = [], asyncio.Semaphore(2)

    class Counted(JudgmentStore):
        stored = 0

        async def keep(self, judgment, instead_of=None):
            kept = await super().keep(judgment, instead_of)
            self.stored += 1
            return kept

    def reply(text):
        unstored.append(len(provider.texts.keys() - {"c"}) - store.stored)
        return declined() if text == "c" else verdict()

    provider = Provider(reply)
    with Counted(tmp_path / "judgments.sqlite3") as store:
        judge = answer_judge(CachingJudge(SETTINGS, provider, store), limit)
        asking = [judge.ask(question(text), subject()) for text in "abcdef"]
        await asyncio.gather(*asking, return_exceptions=True)
        assert (store.stored, max(unstored), provider.texts["c"]) == (6, 2, 2)
    async with limit, limit:
        assert limit.locked()


async def test_a_stored_text_that_does_not_fit_is_no_verdict(store):
    """A replay fails with a clear error; a judge is asked again."""
    provider = Provider()
    await answer_judge(CachingJudge(SETTINGS, provider, store)).ask(question(), subject())
    [kept] = store.all()
    await store.put(kept.model_copy(update={"text": '{"result": "perhaps"}'}))
    judge = answer_judge(CachingJudge(SETTINGS, None, store))
    with pytest.raises(JudgmentMissingError, match="does not fill Verdict; run with --overwrite"):
        await judge.ask(question(), subject())
    reply = await answer_judge(CachingJudge(SETTINGS, provider, store)).ask(question(), subject())
    assert (reply.value, len(provider.requests)) == (Verdict(), 2)
    assert [again.text for again in store.all()] == [kept.text]


async def test_a_scripts_own_requests_are_kept_too(store):
    replies = {"text": ChatReply(text="Zürich", usage=USAGE), "class": verdict()}
    run = CachingJudge(SETTINGS, Provider(lambda text: replies[text]), store)
    for judge in (answer_judge(run), answer_judge(run)):
        reply = await judge.ask(own("text"), OWN)
        assert (reply.text, reply.usage) == ("Zürich", USAGE)
        assert (await judge.ask(own("class", template=Verdict), OWN)).value == Verdict()
    assert run.usage.total().asked.judgments == 2
    assert {kept.purpose for kept in store.all()} == {"script"}


async def test_a_further_trial_of_a_scripts_request_is_asked_again(store):
    """A script that takes votes of its own gets independent ones.

    It gets the same ones when it runs again.
    """
    replies = iter("abc")
    run = CachingJudge(SETTINGS, Provider(lambda _: ChatReply(text=next(replies))), store)
    for _ in range(2):
        judge = answer_judge(run)
        asked = [await judge.ask(own("x"), replace(OWN, trial=trial)) for trial in (1, 2, 3)]
        assert [reply.text for reply in asked] == ["a", "b", "c"]
