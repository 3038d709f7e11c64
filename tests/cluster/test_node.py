"""Nodes share the dollars of a run, the limits of a judge's server, and the captures of each host."""

import asyncio
import logging
import subprocess
import sys
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from projects import clean_environment
from servers.judge_server import JudgeServer, rate_limited
from servers.postgres_server import PostgresServer
from stored_judgments import judgment

from mind2web2.cluster.node import (
    BudgetTerms,
    CaptureReply,
    ClusterCaptures,
    ClusterNews,
    LeasedBudget,
    NodeStore,
    pauses_of,
    share_limits,
)
from mind2web2.errors import BudgetReachedError, CaptureError
from mind2web2.judge.shared_store import JudgmentDatabase
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.pages.cache import CacheFileSys
from mind2web2.utils.process_lock import ProcessLock

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


async def test_a_judgment_is_collected_once(server):
    """By the node that was first and by the other one; also in place of one that does not count."""
    old, first, second = (judgment(text=text) for text in ("old", "first", "second"))
    with NodeStore(server.url) as one, NodeStore(server.url) as other:
        assert await one.keep(old) == await other.keep(second) == old
        assert one.collected() == other.collected() == [old]
        assert await one.keep(first, old) == await other.keep(second, old) == first
        assert one.collected() == other.collected() == [first]


async def test_a_budget_is_enough_for_many_nodes(server):
    """None is refused because others have leased dollars that they do not need."""
    terms = BudgetTerms("many", max_usd=1.0, model=MODEL)
    with closing(JudgmentDatabase(server.url)) as database:
        for _ in range(60):
            budget = LeasedBudget(terms, database)
            budget.nodes = 60
            await budget.enter(PROMPT_TOKENS)
            assert budget.refusal is None


async def test_nodes_pause_while_a_server_refuses_one_of_them():
    """Each keeps to its share, and a node that was told of a pause does not report it as its own."""
    request = ChatRequest(model="m", messages=[{"role": "user", "content": "hello"}])
    with (
        JudgeServer("hi", faults=[rate_limited(retry_after="30")] * 8) as judge,
        JudgeServer("hi") as willing,
    ):
        refused = LLMClient(
            "openai", is_async=True, base_url=judge.base_url, api_key="k"
        )
        other = LLMClient(
            "openai", is_async=True, base_url=willing.base_url, api_key="k"
        )
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


class Browser:
    """Notes the URLs that it captures; pages of one host fail."""

    def __init__(self):
        self.urls = []

    async def capture_page(self, url, _logger):
        """Return a page's text."""
        self.urls.append(url)
        if "broken" in url:
            raise CaptureError("HTTP 404")
        return None, f"text of {url}"


def nodes_with(browsers, root):
    """Return the captures of two nodes that reach each other."""
    nodes = [ClusterCaptures.by(browser) for browser in browsers]

    def capture_by(node):
        async def capture(url, folder, is_retry):
            error = None
            try:
                await capture_here(node, url, CacheFileSys(root / folder), is_retry)
            except CaptureError as failed:
                error = failed
            return CaptureReply(error, node.is_refused_as_private(url))

        return capture

    for node, other, name, other_name in ((*nodes, "a", "b"), (*nodes[::-1], "b", "a")):
        node.cache_root, node.own_name, node.peers = (
            root,
            name,
            {other_name: capture_by(other)},
        )
    return nodes


async def capture_here(node, url, cache, is_retry=False):
    """Capture a page by one node."""
    await node.capture_here(
        url, cache, asyncio.Semaphore(5), logging.getLogger("test"), is_retry=is_retry
    )


async def capture(node, url, cache):
    """Capture a page for an answer that a node evaluates."""
    await node.capture_into(url, cache, asyncio.Semaphore(5), logging.getLogger("test"))


async def test_each_host_is_captured_by_one_node(tmp_path):
    """Each page once, whichever nodes want it; a failure reaches them all, and a lost node is replaced."""
    browsers = [Browser(), Browser()]
    nodes = nodes_with(browsers, tmp_path)
    caches = [CacheFileSys(tmp_path / "lake"), CacheFileSys(tmp_path / "lake")]
    urls = [
        f"https://host{number}.example/{page}" for number in range(8) for page in "xy"
    ]
    wanted = [
        (node, url, cache)
        for node, cache in zip(nodes, caches, strict=True)
        for url in urls
    ]
    await asyncio.gather(*(capture(*each) for each in wanted))
    assert all(cache.has(url) == "web" for cache in caches for url in urls)
    assert sorted(browsers[0].urls + browsers[1].urls) == urls
    hosts = [{urlsplit(url).hostname for url in browser.urls} for browser in browsers]
    assert all(hosts)
    assert not hosts[0] & hosts[1]
    for node, cache in zip(nodes, caches, strict=True):
        with pytest.raises(CaptureError, match="404"):
            await capture(node, "https://broken.example/", cache)

    async def lost(*_):
        raise RuntimeError("the actor died")

    nodes[0].peers = {"b": lost}
    more = [f"{url}z" for url in urls]
    await asyncio.gather(*(capture(nodes[0], url, caches[0]) for url in more))
    assert set(more) <= set(browsers[0].urls)


CUT_OFF = """
import asyncio, sys
from pathlib import Path
from mind2web2.cluster import node
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.process_lock import ProcessLock

async def serve(judgments, root):
    node.SILENT_AFTER_S = 2
    folders = ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")
    settings = RunSettings(judgments=judgments, no_capture=True, **dict.fromkeys(folders, Path(root)))
    actor = node.NodeActor()
    problem = await actor.open(node.NodeSetup.of(settings, "bot", None, None))
    assert problem is None, problem
    assert ProcessLock(Path(root) / "answer.lock").take()
    for _ in range(4 * node.SILENT_AFTER_S):
        await actor.report(node.ClusterNews())
        await asyncio.sleep(0.5)
    print("reported", flush=True)
    await asyncio.Event().wait()

asyncio.run(serve(*sys.argv[1:]))
"""


def test_a_node_that_is_cut_off_ends_by_itself(server, tmp_path):
    """Other nodes, where its answers start again, need its locks; while reports are asked of it, it stays."""
    (tmp_path / "bot").mkdir()
    command = [sys.executable, "-c", CUT_OFF, server.url, tmp_path]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(OPENAI_API_KEY="dummy"),
    )
    assert (process.returncode, process.stdout) == (1, "reported\n"), process.stderr
    assert ProcessLock(tmp_path / "answer.lock").take()
