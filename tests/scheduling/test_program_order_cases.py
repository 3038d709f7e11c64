"""Scripts whose score once depended on how they were run: by the command, all ways come to the same."""

import hashlib
import threading
from contextlib import contextmanager

import pytest
from projects import AGENT, KEY_VARIABLES, Project, block_in, call, messages_text, read_json
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main

HEADER = """\
import operator, pathlib, sys, types
sys.path.insert(0, str(pathlib.Path(__file__).parent / "helpers"))
from mind2web2 import Evaluator
from mind2web2.rubric.preconditions import possible_blocks


class Item:
    def __init__(self, node):
        self.node = node

    score = property(lambda self: self.node.score)


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    ev = Evaluator()
    given = {"answer": answer, "global_cache": cache, "global_semaphore": semaphore, "logger": logger}
    root = ev.initialize(task_id="t", client=client, **given)
"""
FOUR = """\
    nodes = [ev.add_leaf(f"l{i}", f"leaf {i}", root) for i in range(4)]
    for i, n in enumerate(nodes):
        await ev.verify(f"Claim {i} WANTED", n, f"https://www.example.org/page/{i}")
"""
END = "    return ev.get_summary()\n"
TRUE, FALSE = FOUR.replace("WANTED", "ALWAYSTRUE"), FOUR.replace("WANTED", "ALWAYSFALSE")
HELPERS = {
    "common": """\
_used = set()
def first_use(name):
    if name in _used: return False
    _used.add(name); return True
def all_passed(nodes): return all(n.status == "passed" for n in nodes)
""",
    "limits": """\
import asyncio
async def within(seconds, coroutine):
    try:
        async with asyncio.timeout(seconds):
            return await coroutine
    except TimeoutError:
        return False
""",
}
# What the script does, and its score.
CASES = {
    "helper_state": (
        """\
    import common
    nodes = []
    for name in ["Alpha", "Beta", "Alpha", "Gamma"]:
        leaf = ev.add_leaf("item", f"{name} is new and right", root)
        if not common.first_use(name):
            leaf.score, leaf.status = 0.0, "failed"
            continue
        await ev.verify(f"{name} is right ALWAYSTRUE", leaf, "https://www.example.org/page/1")
        nodes.append(leaf)
    ev.add_custom_info({"all": common.all_passed(nodes)})
"""
        + END,
        0.75,
    ),
    "client_namespace": (
        """\
    calls = []
    async def ask(**kw):
        calls.append(1)
        return await client.async_response(**kw)
    root = ev.initialize(task_id="t", client=types.SimpleNamespace(async_response=ask), **given)
"""
        + TRUE
        + '    ev.add_custom_node(len(calls) > 0, "asked", "it was asked", root, critical=True)\n'
        + END,
        1.0,
    ),
    "blocked_as": (
        f"{FALSE}    free = not any(operator.attrgetter('blocked_as')(n) for n in nodes)\n"
        '    ev.add_custom_node(free, "ok", "none blocks", root, critical=False)\n' + END,
        0.0,
    ),
    "possible_blocks": (
        f"{FALSE}    free = not list(possible_blocks(None, [root]))\n"
        '    ev.add_custom_node(free, "ok", "none blocks", root, critical=False)\n' + END,
        0.0,
    ),
    "bare_except": (
        TRUE
        + """\
    try:
        status = operator.attrgetter("status")(nodes[0])
    except:
        status = await client.async_response(model=model, messages=[{"role": "user", "content": "what now"}])
"""
        + END,
        1.0,
    ),
    "second_evaluator": (
        TRUE
        + """\
    other = Evaluator()
    leaves = other.initialize(task_id="part2", client=client, **given)
    for i in range(4):
        await other.verify(f"Second {i}", other.add_leaf(f"s{i}", "s", leaves))
    nodes[0].desc = "told better"
    ev.add_custom_node(Item(nodes[0]).score, "own", "a property of its own", root)
    return {**ev.get_summary(), "second": other.get_summary()["final_score"]}
""",
        1.0,
    ),
}
WAYS = {"default": [], "again": [], "sequential": ["--sequential"], "in the run": ["--no_isolate"]}


def verdict(body):
    """Return a verdict that any two runs have alike: a hash of the claim, unless that names it."""
    claim = block_in(messages_text(body["messages"]), "claim") or ""
    is_odd = hashlib.sha256(claim.encode()).digest()[0] % 2
    supported = "ALWAYSTRUE" in claim or ("ALWAYSFALSE" not in claim and is_odd)
    return {"reasoning": "as the claim says", "result": bool(supported), "quote": ""}


def project_with(folder, bodies):
    """Return a project with one task for each script."""
    project = Project(folder)
    for name, body in bodies.items():
        project.add_answer("answer_1", f"An answer to {name}.", name)
        script = project.add_raw_script(HEADER + body, name)
        for number in range(4):
            project.cache(name).put_web(f"https://www.example.org/page/{number}", f"page {number}", None)
    (script.parent / "helpers").mkdir()
    for name, text in HELPERS.items():
        (script.parent / "helpers" / f"{name}.py").write_text(text)
    return project


@contextmanager
def environment(folder):
    """Stand in the project's folder with a key that no provider knows."""
    with pytest.MonkeyPatch.context() as patch:
        for name in KEY_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.chdir(folder)
        yield


def run(server, *options):
    """Run the command."""
    given = ("--agent_name", AGENT, "--no_capture", "--judge_base_url", server.base_url, *options)
    return call(evaluate_main, *given)


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    """Return each case's result and the number of its requests, by the way in which it was run."""
    found = {}
    for way, options in WAYS.items():
        folder = tmp_path_factory.mktemp("project")
        project = project_with(folder, {name: body for name, (body, _) in CASES.items()})
        with environment(folder), JudgeServer(reply=verdict) as server:
            printed = run(server, *options).stdout
        results = {name: project.result_paths(task=name) for name in CASES}
        missing = [name for name, paths in results.items() if not paths]
        assert not missing, printed
        found[way] = {name: read_json(path) for name, [path] in results.items()}, len(server.requests)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_all_ways_come_to_the_same_tree(ways, name, way):
    """To the last word of the evidence."""
    result, expected = ways[way][0][name], ways["sequential"][0][name]
    assert result["eval_breakdown"] == expected["eval_breakdown"]
    assert result.get("second") == expected.get("second")
    assert result["final_score"] == CASES[name][1]


def test_no_way_asks_more_than_program_order(ways):
    """Also where an attempt is given up: its replies are stored, and it asks nothing afterwards."""
    assert {way: count for way, (_, count) in ways.items()} == dict.fromkeys(WAYS, ways["sequential"][1])


LIMITED = (
    "    import limits\n"
    '    await ev.verify("First ALWAYSTRUE", ev.add_leaf("first", "first", root, critical=True))\n'
    '    leaf = ev.add_leaf("last", "last", root)\n'
    '    ok = await limits.within(0.5, ev.verify("Last ALWAYSTRUE", leaf))\n'
    "    if not ok:\n        leaf.score, leaf.status = 0.0, 'failed'\n" + END
)


@pytest.mark.parametrize(
    ("slow", "options"), [("First", []), ("Last", []), ("Last", ["--sequential"]), ("Last", ["--no_isolate"])]
)
def test_a_time_limit_of_the_scripts_own_that_runs_out_is_no_result(tmp_path, options, slow):
    """Whatever the script makes of it; also while it waits for an earlier verdict that is deferred."""
    project = project_with(tmp_path, {"limited": LIMITED})
    is_over = threading.Event()

    def reply(body):
        if slow in messages_text(body["messages"]):
            is_over.wait(60)
        return verdict(body)

    with environment(tmp_path), JudgeServer(reply=reply) as server:
        try:
            printed = run(server, *options).stdout
        finally:
            is_over.set()
    assert "the script stopped waiting for the judge on 'last' (a time limit of its own" in printed
    assert project.result_paths(task="limited") == []


ENDLESS = {
    "verifies": (
        "    while True:\n        try:\n            await ev.verify('x', None, 'https://www.example.org/none')\n"
        "        except Exception:\n            pass\n",
        "was stopped: it asked for more than 10,000 verifications",
    ),
    "logs": (
        "    while True:\n        logger.info('x' * 100_000)\n",
        "was stopped: it logged more than 20 MB",
    ),
}


@pytest.mark.parametrize("options", [[], ["--sequential"], ["--no_isolate"]])
def test_a_script_that_loops_for_ever_ends(tmp_path, options):
    """By bounds that no rubric comes near, each with a reason."""
    project = project_with(tmp_path, {name: body for name, (body, _) in ENDLESS.items()})
    with environment(tmp_path), JudgeServer(reply=verdict) as server:
        printed = run(server, *options).stdout
    for name, (_, reason) in ENDLESS.items():
        assert f"script {name}.py {reason}" in printed
        assert project.result_paths(task=name) == []
