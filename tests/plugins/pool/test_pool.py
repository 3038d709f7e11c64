"""A pool of judge servers on loopback, asked through the real SDK."""

import asyncio
import logging
import threading
from types import SimpleNamespace

import aiohttp  # noqa: F401 (loaded by the first request, which would then look slow)
import pytest
from pydantic import BaseModel
from servers.judge_server import VERDICT, JudgeServer, broken_body, status
from virtual_time import run_virtually

from mind2web2.errors import (
    JudgeAccessError,
    JudgeUnavailableError,
    JudgeUnusableError,
    UsageError,
)
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.llm_client.transport import Completion
from mind2web2.plugins.pool import pool
from mind2web2.plugins.pool.pool import PoolSource

MESSAGES = [{"role": "user", "content": "Is it so?"}]
REQUEST = ChatRequest("judge-1", MESSAGES)


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


@pytest.fixture
def start():
    """Start servers that end with the test."""
    running = []

    def one(*arguments, **keywords):
        running.append(JudgeServer(*arguments, **keywords).__enter__())
        return running[-1]

    def stop(server):
        running.remove(server)
        server.__exit__()

    one.stop = stop
    yield one
    for server in running:
        server.__exit__()


@pytest.fixture
async def client_of(quick):
    """Build clients of pools."""
    clients = []

    def build(*servers, file=None, aliases=()):
        urls = tuple(server.base_url for server in servers)
        source = PoolSource(file=file, base_urls=urls, model="judge-1", aliases=aliases)
        clients.append(LLMClient("openai", is_async=True, base_url=source, retry=quick))
        return clients[-1]

    yield build
    for client in clients:
        await client.close()


async def asked(client, count, at_once=8, request=REQUEST):
    """Return the texts of so many replies, in order of the requests."""
    limit = asyncio.Semaphore(at_once)
    async with asyncio.timeout(60):
        return [
            reply.text
            for reply in await asyncio.gather(*(client.chat(request, limit) for _ in range(count)))
        ]


def together(count):
    """Answer only once so many requests are there, so that each is in flight with the others."""
    barrier = threading.Barrier(count)

    def reply(_):
        barrier.wait(20)
        return "yes"

    return reply


def used(server):
    """Return the number of questions that a server received."""
    return len(server.requests)


async def test_the_least_loaded_server_is_asked(start, client_of):
    reply = together(8)
    servers = [start(reply) for _ in range(4)]
    assert await asked(client_of(*servers), 8) == ["yes"] * 8
    assert [used(server) for server in servers] == [2] * 4


async def test_a_server_takes_as_much_as_its_weight_says(start, client_of, tmp_path):
    """A file may give one; requests carry the server's own key."""
    reply = together(8)
    light, heavy = start(reply), start(reply)
    file = tmp_path / "pool.txt"
    file.write_text(
        f"# ours\n{light.base_url}\n\n{heavy.base_url} weight=3  # new\n",
        encoding="utf-8",
    )
    await asked(client_of(file=file), 8)
    assert (used(light), used(heavy)) == (2, 6)


async def test_a_slow_server_does_not_slow_the_others(start, client_of):
    """Its share shrinks while it does not answer."""
    others_are_done = threading.Event()

    def late(_):
        others_are_done.wait(30)
        return "late"

    slow, *fast = start(late), start("yes"), start("yes")
    client = client_of(slow, *fast)
    async with asyncio.timeout(30):
        limit = asyncio.Semaphore(9)
        asking = [asyncio.ensure_future(client.chat(REQUEST, limit)) for _ in range(60)]
        while sum(task.done() for task in asking) < 60 - used(slow) or not used(slow):
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
        others_are_done.set()
        replies = [reply.text for reply in await asyncio.gather(*asking)]
    assert replies.count("late") == used(slow) < 9


async def test_a_server_that_dies_and_comes_back_loses_nothing(start, client_of, caplog):
    """Its requests go to the others at once, and the pool uses it again.

    The log says which server is left out.
    """
    may_answer = threading.Event()
    may_answer.set()

    def reply(_):
        may_answer.wait(30)
        return "yes"

    mortal, other = start("yes"), start(reply)
    port = int(mortal.url.rpartition(":")[2])
    client = client_of(mortal, other)
    await asked(client, 10)

    async def asked_until(is_done):
        # While the other server does not answer, the pool prefers this one, however fast each was
        # before.
        may_answer.clear()
        asking = []
        async with asyncio.timeout(30):
            while not is_done():
                asking.append(asyncio.ensure_future(client.chat(REQUEST)))
                await asyncio.wait(asking, timeout=0.02)
            may_answer.set()
            return [reply.text for reply in await asyncio.gather(*asking)]

    def warnings():
        return [
            record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
        ]

    start.stop(mortal)
    assert set(await asked_until(warnings)) == {"yes"}
    assert await asked(client, 40) == ["yes"] * 40
    [left_out] = warnings()
    assert left_out.startswith(f"Judge server {mortal.base_url} unavailable, it is left out: ")
    again = start("yes", port=port)
    assert set(await asked_until(lambda: used(again) >= 5)) == {"yes"}


@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (status(401, "wrong key"), 8),
        (status(404, "no such model"), 8),
        (status(429, "You exceeded your current quota", code="insufficient_quota"), 8),
        (status(500, "out of memory"), 12),
        (status(503, "starting"), 12),
        (broken_body(), 12),
    ],
)
async def test_a_server_that_fails_is_left_out(start, client_of, fault, most):
    """Only the requests in flight at the first failures reach it, and the others answer them."""
    faulty, other = start(faults=lambda _: fault), start("yes")
    assert await asked(client_of(faulty, other), 60) == ["yes"] * 60
    assert used(faulty) <= most


async def test_a_rejection_does_not_count_while_another_server_is_busy(start, client_of):
    """A wrong key of one server costs no question and ends no run."""
    tries = iter([status(429, "busy", headers={"Retry-After": "0"})])
    busy, wrong = (
        start("yes", faults=lambda _: next(tries, None)),
        start(faults=lambda _: status(401, "wrong")),
    )
    assert await asked(client_of(busy, wrong), 1) == ["yes"]
    assert (used(busy), used(wrong)) == (2, 1)


async def test_a_server_that_comes_back_lists_its_models_again(
    start, client_of, monkeypatch, caplog
):
    """It may serve another model then, or the right one at last."""
    monkeypatch.setattr(pool, "_REJECTED_FOR_S", 0.0)
    server, other = start("yes", models=["judge-1"]), start("yes")
    port = int(server.url.rpartition(":")[2])
    client = client_of(server, other)
    await asked(client, 8)
    start.stop(server)
    await asked(client, 8)
    server = start("of another model", models=["judge-2"], port=port)
    async with asyncio.timeout(30):
        while "it serves judge-2, not judge-1" not in caplog.text:
            assert await asked(client, 4) == ["yes"] * 4
    assert used(server) == 0
    start.stop(server)
    server = start("yes", models=["judge-1"], port=port)
    async with asyncio.timeout(30):
        while not used(server):
            await asked(client, 4)


async def test_a_server_that_answers_as_another_model_is_an_error(start, client_of):
    """Its replies are not the judge's; the message names the server and both cures."""
    wrong = start("yes", served="judge-2")
    with pytest.raises(JudgeAccessError) as raised:
        await asked(client_of(wrong), 1)
    assert raised.value.is_for_all
    assert f"judge server {wrong.base_url} answers as judge-2, not judge-1" in str(raised.value)
    assert 'judge_alias = "judge-1=judge-2"' in str(raised.value)


@pytest.mark.parametrize(
    ("served", "aliases"),
    [
        ("judge-1", ()),
        ("judge-1-2025-01-01", ()),
        ("judge-1-20250101", ()),
        ("org/judge-one", (("org/judge-one", "judge-1"),)),
        ("org/judge-one", (("other", "else"), ("judge-1", "org/judge-one"))),
    ],
)
async def test_other_names_of_the_same_model_are_the_judge(start, client_of, served, aliases):
    """A dated version, and what the aliases say in either order."""
    assert await asked(client_of(start("yes", served=served), aliases=aliases), 1) == ["yes"]


@pytest.mark.parametrize("served", ["judge-10", "judge-1-mini", "judge-1-2025", "org/judge-1"])
async def test_a_similar_name_is_another_model(start, client_of, served):
    """Only an alias makes it the same."""
    with pytest.raises(JudgeAccessError, match=f"answers as {served}, not judge-1"):
        await asked(client_of(start("yes", served=served), aliases=(("judge-1", "else"),)), 1)


async def test_a_question_that_every_server_fails_on_does_not_stop_the_pool(start, client_of):
    """It fails as it would with one server; others are answered."""
    poison = ChatRequest("judge-1", [{"role": "user", "content": "poison"}])
    servers = [
        start(
            "yes",
            faults=lambda body: status(500, "crash") if "poison" in str(body) else None,
        )
        for _ in range(2)
    ]
    client = client_of(*servers)
    replies, failure = await asyncio.gather(
        asked(client, 30), client.chat(poison), return_exceptions=True
    )
    assert replies == ["yes"] * 30
    assert isinstance(failure, JudgeUnavailableError)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (
            status(401, "wrong"),
            JudgeAccessError,
            "the key is refused, check OPENAI_API_KEY",
        ),
        (status(503, "down"), JudgeUnavailableError, "503 down; try again later"),
    ],
)
async def test_without_a_working_server_the_error_names_one(
    start, client_of, caplog, fault, error, words
):
    """As with a single server, and the log says that all requests wait."""
    servers = [start(faults=lambda _: fault) for _ in range(2)]
    with pytest.raises(error, match=words):
        await asked(client_of(*servers), 8)
    warnings = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert sum("left out" in text for text in warnings) == 2
    assert warnings.count("No judge server is left, all requests wait") == 1


async def test_what_one_server_refuses_no_other_is_sent(start, client_of):
    """All serve the same model, so that one refusal of a form is enough."""
    servers = [start(VERDICT, refused_modes=["json_schema"]) for _ in range(3)]
    client = client_of(*servers)
    for _ in range(6):
        await client.chat(ChatRequest("judge-1", MESSAGES, Verdict))
    modes = [body["response_format"]["type"] for server in servers for body in server.requests]
    assert sorted(modes) == ["json_object"] * 6 + ["json_schema"]


async def test_one_reachable_server_is_enough(start, client_of, caplog):
    gone, there = start("yes"), start("yes")
    client = client_of(gone, there)
    start.stop(gone)
    with caplog.at_level(logging.WARNING):
        await client.check_reachable()
    [line] = [record.getMessage() for record in caplog.records]
    assert (
        line
        == f"Judge servers out of reach, asked again during the run: {gone.base_url}: connection "
        "refused"
    )
    start.stop(there)
    with pytest.raises(JudgeUnusableError) as caught:
        await client_of(gone, there).check_reachable()
    assert str(caught.value) == (
        f"cannot connect to the judge at {gone.base_url}: connection refused; {there.base_url}: "
        "connection refused. Is the server running?"
    )


async def test_all_servers_must_serve_the_model(start, client_of):
    """The client finds a server that lists other models.

    It finds it before the first request, or when it first uses the server.
    """
    right, wrong = (
        start("yes", models=["judge-1", "x"]),
        start("no", models=["judge-2"]),
    )
    with pytest.raises(
        JudgeUnusableError,
        match=f"same model, judge-1: {wrong.base_url}: it serves judge-2, not",
    ):
        await client_of(right, wrong).check_reachable()
    assert await asked(client_of(right, wrong), 20) == ["yes"] * 20
    assert used(wrong) == 0


async def test_a_server_may_list_the_model_under_its_alias(start, client_of):
    """The alias says that both names mean one model."""
    server = start("yes", models=["org/judge-one"], served="org/judge-one")
    client = client_of(server, aliases=(("judge-1", "org/judge-one"),))
    await client.check_reachable()
    assert await asked(client, 1) == ["yes"]


async def test_a_pool_is_asked_for_no_other_model(start, client_of):
    """This holds even if its servers accept any name."""
    server = start("yes")
    with pytest.raises(JudgeUnusableError, match="the judge pool serves judge-1, not judge-2"):
        await client_of(server).chat(ChatRequest("judge-2", MESSAGES))
    assert used(server) == 0


def test_a_pool_recovers_after_a_long_outage():
    """One answer makes two requests.

    The one that fails cancels the other, as in an evaluation.
    """

    async def judge():
        client = pool.PoolClient(
            PoolSource(base_urls=("http://a.example", "http://b.example"), model="judge-1"),
            RetryPolicy(outage_wait_s=5),
        )
        loop = asyncio.get_running_loop()

        async def reply(_):
            if loop.time() < 30:
                raise RequestFailedError("down", status=503)
            await asyncio.sleep(1)
            return Completion("yes")

        async def models():
            return ["judge-1"]

        for server in client.servers:
            server.transport = SimpleNamespace(
                send=reply, models=models, service=server.transport.service
            )
        while loop.time() < 90:
            try:
                async with asyncio.TaskGroup() as answer:
                    for _ in range(2):
                        answer.create_task(client.chat(REQUEST))
            except ExceptionGroup:
                await asyncio.sleep(1)
            else:
                return loop.time()
        return None

    recovered_s, _ = run_virtually(judge())
    assert 30 < recovered_s < 45


async def test_the_file_is_read_again(start, client_of, tmp_path, monkeypatch, caplog):
    """Servers join and leave during the run; a faulty file changes nothing and is reported once."""
    monkeypatch.setattr(pool, "_READ_EVERY_S", 0.0)
    first, second = start("first"), start("second")
    file = tmp_path / "pool.txt"
    file.write_text(first.base_url, encoding="utf-8")
    client = client_of(file=file)
    assert await asked(client, 2) == ["first"] * 2
    file.write_text(second.base_url, encoding="utf-8")
    assert await asked(client, 2) == ["second"] * 2
    for text in ("", "localhost:1", f"{first.base_url} model=other"):
        file.write_text(text, encoding="utf-8")
        assert await asked(client, 2) == ["second"] * 2
    warnings = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert [text.partition(": ")[0] for text in warnings] == [
        "The judge pool keeps its servers"
    ] * 3


async def test_a_pool_is_one_judge_whatever_its_servers(start, client_of):
    """So that judgments do not depend on them."""
    client = client_of(start(), start())
    source = PoolSource(base_urls=("http://a.example",), model="m")
    assert client.endpoint == endpoint_of("openai", source) == "openai pool"


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        ("", "m", "has no server: write one base URL a line"),
        ("localhost:8000", "m", "address: localhost:8000 \\(it begins with http://"),
        (
            "http://a weigth=2",
            "m",
            "pool.txt:1: after the base URL, write model=NAME, key=VARIABLE or weight=",
        ),
        ("http://a model=", "m", "pool.txt:1: after the base URL"),
        ("http://a sk-SECRET", "m", "pool.txt:1: after the base URL"),
        (
            "http://a key=sk-SECRET",
            "m",
            "pool.txt:1: key= takes the name of an environment variable",
        ),
        (
            "http://a\nhttp://b weight=0",
            "m",
            "pool.txt:2: weight=0 is not a positive number",
        ),
        ("http://a weight=heavy", "m", "weight=heavy is not a positive number"),
        (
            "http://a key=NO_SUCH_KEY",
            "m",
            "the environment variable NO_SUCH_KEY is not set",
        ),
        ("http://a\nhttp://a/v1", "m", "names a server twice: http://a/v1"),
        (
            "http://a model=x\nhttp://b model=y",
            None,
            "must serve the same model, .* name x and y",
        ),
        ("http://a model=x", "y", "must serve the same model, .* name x and y"),
        (
            "http://a\nnot a url",
            "m",
            "pool.txt:2: the base URL is not an http\\(s\\) address: not",
        ),
        (b"\xff", "m", "pool.txt: it is not UTF-8 text"),
        (None, "m", "cannot read the judge pool .*pool.txt: No such file or directory"),
    ],
)
def test_a_mistake_in_a_pool_is_named(tmp_path, text, model, message):
    """With its place in the file."""
    file = tmp_path / "pool.txt"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=message) as caught:
        PoolSource(file, model=model)
    assert "SECRET" not in str(caught.value)


def test_the_file_may_name_the_model(tmp_path, monkeypatch):
    """Once for all its servers."""
    monkeypatch.setenv("OTHER_KEY", "k")
    file = tmp_path / "pool.txt"
    file.write_text("http://a model=x key=OTHER_KEY\nhttp://b\n", encoding="utf-8")
    source = PoolSource(str(file))
    assert source.model == "x"
    assert [server.key_name for server in source.servers] == [
        "OTHER_KEY",
        "OPENAI_API_KEY",
    ]
