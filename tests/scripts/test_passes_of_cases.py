"""Scripts whose score once depended on how they were run.

The command runs them, and all ways come to the same.
"""

import gc
import hashlib
import shutil
import sys
import threading
import warnings
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from projects import (
    AGENT,
    KEY_VARIABLES,
    REPOSITORY,
    Project,
    block_in,
    call,
    messages_text,
    read_json,
)
from script_checks import plausible
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main
from mind2web2.runs import session

FIXTURES = REPOSITORY / "tests" / "fixtures" / "scheduler"
# Scripts that read, delay, copy or combine verdicts in their own ways, and those with tasks of
# their own.
OTHERS = [
    path
    for folder in ("idioms", "own_tasks")
    for path in sorted((FIXTURES.parent / folder).glob("*.py"))
]
# These two versions of Python write JSON and pickles of at most 1,500 levels, whatever the
# recursion limit is; a node takes up to four.
DEEP = 300 if sys.version_info[:3] in ((3, 12, 0), (3, 12, 1)) else 1000
# Scores of the scripts there; ``None`` for one that has no result, with its reason below.
FIXTURE_SCORES = {
    "bare_except": 1.0,
    "blocked_as": 0.0,
    "blocking_leaf": None,
    "client_namespace": 1.0,
    "file_state": 1.0,
    "helper_state": 0.75,
    "helper_timeout": 1.0,
    "kw_method": None,
    "log_count": 1.0,
    "second_evaluator": 1.0,
    "set_order": 0.0,
}
REASONS = {
    "blocking_leaf": "imports mind2web2.preconditions in line 1, which the toolkit does not have",
    "kw_method": "with arguments that it does not take: unknown keyword 'method'",
}

HEADER = """\
import logging, math, operator, os, pathlib, subprocess, sys
sys.path.insert(0, str(pathlib.Path(__file__).parent / "helpers"))
from mind2web2 import Evaluator
from mind2web2.rubric.node import VerificationNode, blocks


class Count(logging.Handler):
    seen = 0
    all = 0

    def emit(self, record):
        self.seen += "supported=True" in record.getMessage()
        self.all += record.getMessage().startswith("extracted")


class Item:
    def __init__(self, node):
        self.node = node

    score = property(lambda self: self.node.score)


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    ev = Evaluator()
    given = {"answer": answer, "global_cache": cache, "global_semaphore": semaphore, "logger": logger}
    root = ev.initialize(task_id="t", client=client, **given)
    statuses = lambda: [operator.attrgetter("status")(node) for node in root.children]
    # Hidden, as it comes and goes while the run looks at the folder.
    seen = pathlib.Path(__file__).with_suffix(".seen")
    seen = seen.with_name("." + seen.name)
"""
FOUR = """\
    nodes = [ev.add_leaf(f"l{i}", f"leaf {i}", root) for i in range(4)]
    for i, n in enumerate(nodes):
        await ev.verify(f"Claim {i} WANTED", n, f"https://www.example.org/page/{i}")
"""
END = "    return ev.get_summary()\n"
TRUE, FALSE = (
    FOUR.replace("WANTED", "ALWAYSTRUE"),
    FOUR.replace("WANTED", "ALWAYSFALSE"),
)
GOOD = '    ev.add_custom_node({}, "good", "as in sequential execution", root, critical=True)\n'
# The script's body and its score.
CASES = {
    "blocks": (
        f"{FALSE}    free = not list(blocks(VerificationNode(id='x', desc='x'), [root]))\n"
        '    ev.add_custom_node(free, "ok", "none blocks", root, critical=False)\n',
        0.0,
    ),
    "own_property": (
        f"{TRUE}    nodes[0].desc = 'described later'\n"
        '    ev.add_custom_node(Item(nodes[0]).score, "own", "a property of its own", root)\n',
        1.0,
    ),
    "log_count_later": (
        f"{TRUE}    count = Count(); logger.addHandler(count)\n"
        '    await ev.verify("More ALWAYSTRUE", ev.add_leaf("more", "more"))\n'
        + GOOD.format("count.seen == 1"),
        1.0,
    ),
    "log_filter": (
        "    lines = []\n    logger.addFilter(lambda record: lines.append(record.getMessage()) or "
        "True)\n" + TRUE + GOOD.format('sum("supported=True" in line for line in lines) == 4'),
        1.0,
    ),
    "own_logger": (
        "    count = Count(); own = logging.getLogger('own'); own.addHandler(count); "
        "own.setLevel(10)\n"
        '    root = ev.initialize(task_id="t", client=client, **{**given, "logger": own})\n'
        + TRUE
        + GOOD.format("count.seen == 4"),
        1.0,
    ),
    "replaced_log_method": (
        "    lines, info = [], logger.info\n"
        "    logger.info = lambda *words, **more: (lines.append(words), info(*words, **more))\n"
        + TRUE
        + GOOD.format("len(lines) >= 4"),
        1.0,
    ),
    "deep_tree": (
        f"    for i in range({DEEP}):\n"
        "        root = ev.add_sequential(f'd{i}', 'd', root)\n"
        '    await ev.verify("At the end ALWAYSTRUE", ev.add_leaf("leaf", "leaf", root))\n',
        1.0,
    ),
    # Changes outside, while verdicts are pending.
    "file_later": (
        f'{TRUE}    is_new = not seen.exists()\n    seen.write_text("x")\n    statuses()\n'
        + GOOD.format("is_new")
        + "    seen.unlink()\n",
        1.0,
    ),
    "thread_later": (
        f"    import threading\n{TRUE}    is_new = not seen.exists()\n"
        '    thread = threading.Thread(target=seen.write_text, args=("x",)); thread.start(); '
        "thread.join()\n"
        "    statuses()\n" + GOOD.format("is_new") + "    seen.unlink()\n",
        1.0,
    ),
    "program_later": (
        f'{TRUE}    is_new = not seen.exists()\n    subprocess.run(["touch", str(seen)], '
        "check=True)\n"
        "    statuses()\n"
        + GOOD.format("is_new")
        + '    subprocess.run(["rm", str(seen)], check=True)\n',
        1.0,
    ),
    "variable_later": (
        f'{TRUE}    is_new = "M2W2_SEEN" not in os.environ\n    os.environ.update(M2W2_SEEN="y")\n'
        "    statuses()\n" + GOOD.format("is_new") + '    os.environ.pop("M2W2_SEEN")\n',
        1.0,
    ),
    "module_attribute": (
        f'    math.runs = getattr(math, "runs", 0) + 1\n{TRUE}    statuses()\n'
        + GOOD.format("math.runs == 1")
        + "    del math.runs\n",
        1.0,
    ),
}
EXTRACTS = """\
    from pydantic import BaseModel, field_validator
    calls = []

    class Town(BaseModel):
        name: str = ""
        towns: list[str] = []

    class Checked(Town):
        @field_validator("name")
        @classmethod
        def checked(cls, name):
            calls.append(name)
            return name

    first = await ev.extract("The first", Town, "first")
    second = await ev.extract("The second", Town, "second", source="https://www.example.org/page/1")
"""
# The script's body while extractions are pending; each adds a leaf, so that its claims depend on
# them.
WITH_EXTRACTIONS = {
    "extract_results": 'seen = [each["type"] for each in ev._extraction_results]\n'
    + GOOD.format('seen == ["first", "second"]'),
    "extract_records": "seen = [each.name for each in ev.extractor.records]\n"
    + GOOD.format('seen == ["first", "second"]'),
    "extract_copy": "import copy\n    seen = copy.copy(ev)._extraction_results\n"
    + GOOD.format("len(seen) == 2"),
    "extract_ledger": "seen = client.ledger.usage.judgments\n" + GOOD.format("seen == 2"),
    "extract_pages": 'seen = cache.has_web("https://www.example.org/page/1")\n'
    + GOOD.format("seen"),
    "extract_type": GOOD.format("type(first) is Town and type(second) is Town").lstrip(),
    "extract_again": 'ev.initialize(task_id="t", client=client, **given)\n    root = ev.root\n'
    + GOOD.format("ev._extraction_results == []"),
    "extract_validator": 'third = await ev.extract("The third", Checked, "third")\n'
    '    seen = len(calls)\n    more = await ev.extract("More", Checked, "more")\n'
    + GOOD.format("seen > 0 and len(calls) == 2 * seen"),
    "extract_checked": "import annotated_types, typing\n"
    "    is_seen = annotated_types.Predicate(lambda name: calls.append(name) or True)\n"
    "    class Seen(Town):\n        name: typing.Annotated[str, is_seen] = ''\n"
    '    third = await ev.extract("The third", Seen, "third")\n    seen = len(calls)\n'
    '    more = await ev.extract("More", Seen, "more")\n'
    + GOOD.format("seen > 0 and len(calls) == 2 * seen"),
    "extract_no_prompt": "try:\n"
    '        third = await ev.extract(None, Town, "third")\n        calls.append(1)\n'
    "    except AttributeError:\n        pass\n" + GOOD.format("not calls"),
    "extract_in_try": "third = None\n    try:\n"
    '        third = await ev.extract("The third", Town, "third")\n        raise KeyError\n'
    "    except KeyError:\n        pass\n" + GOOD.format("third.towns is not None"),
    "extract_in_loop": "names = []\n    for n in range(3):\n"
    '        item = await ev.extract(f"Number {n}", Town, f"item {n}")\n'
    '        leaf = ev.add_leaf(f"item{n}", "item", root)\n'
    "        if n == 1:\n            continue\n        names.append(item.towns)\n"
    "        await ev.verify(f'Item {n} {item.name} ALWAYSTRUE', leaf)\n"
    + GOOD.format("len(names) == 2"),
    "extract_closure": "def seen():\n        return late.towns\n"
    '    late = await ev.extract("Late", Town, "late")\n    towns = seen()\n'
    + GOOD.format("towns is not None"),
    "extract_first_of_two": 'third = await ev.extract(f"After {first.name}", Town, "third")\n'
    '    fourth = await ev.extract("The fourth", Town, "fourth")\n    statuses()\n'
    '    await ev.verify(f"{third.name} ALWAYSTRUE", ev.add_leaf("l", "l", root))\n'
    + GOOD.format("len(ev._extraction_results) == 4"),
    # Changes of a template after the call do not matter.
    "extract_rebuilt": """class Lake(BaseModel):
        \"\"\"A lake.\"\"\"
        depth: str = ""

    lake = await ev.extract("The lake", Lake, "lake", source="https://www.example.org/page/2")
    Lake.__doc__ = "A sea."
    Lake.model_fields["depth"].annotation = int
    Lake.model_rebuild(force=True)
    sea = await ev.extract("The sea", Lake, "sea", source="https://www.example.org/page/3")
"""
    + GOOD.format("type(lake.depth) is str and type(sea.depth) is int"),
    "extract_with_other_defaults": """class Lake(BaseModel):
        depth: str = "unknown"

    lake = await ev.extract("The lake", Lake, "lake", source="https://www.example.org/none")
    Lake.model_fields["depth"].default = "deep"
    Lake.model_dump = None
"""
    + GOOD.format('lake.depth == "unknown"'),
    "extract_log": "count = Count(); logger.addHandler(count)\n"
    '    third = await ev.extract("The third", Town, "third")\n    lines = count.all\n'
    + GOOD.format("lines == 1"),
}
CASES |= {
    name: (f"{EXTRACTS}    {body}", 2 / 3 if name == "extract_in_loop" else 1.0)
    for name, body in WITH_EXTRACTIONS.items()
}
OTHER_NAMES = [path.stem for path in OTHERS]
# How far scripts go ahead; ``None`` is program order, in one run of the script.
WAYS = ("values", "gates", None)
# All run by the default and in program order; some of the scripts above cover the other ways.
WAYS_OF_ALL = ("values", None)


def run_ahead(way):
    """Let commands run scripts in a way; no option of theirs asks for program order."""
    parts = session.RunParts
    return patch.object(session, "RunParts", lambda **given: parts(**{**given, "ahead": way}))


def names_of(way, others):
    """Return the scripts that are run in a way."""
    own = [*FIXTURE_SCORES, *CASES]
    if way in WAYS_OF_ALL:
        return [*own, *others]
    return own if others == OTHER_NAMES else own[len(way) % 3 :: 3]


def verdict(body):
    """Return a verdict that any two runs have alike: a hash of the claim, unless that names it."""
    claim = block_in(messages_text(body["messages"]), "claim")
    if claim is None:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        return "a reply" if schema is None else plausible(schema)
    is_odd = hashlib.sha256(claim.encode()).digest()[0] % 2
    supported = "ALWAYSTRUE" in claim or ("ALWAYSFALSE" not in claim and is_odd)
    return {"reasoning": "as the claim says", "result": bool(supported), "quote": ""}


def project_with(folder, bodies):
    """Return a project with one task for each script."""
    project = Project(folder)
    for name, body in bodies.items():
        project.add_answer("answer_1", f"An answer to {name}.", name)
        script = project.add_raw_script(body, name)
        for number in range(8):
            project.cache(name).put_web(
                f"https://www.example.org/page/{number}", f"page {number}", None
            )
    shutil.copytree(FIXTURES / "helpers", script.parent / "helpers")
    return project


@contextmanager
def environment(folder):
    """Stand in the project's folder with a key that no provider knows.

    The folder contains a folder for scripts' files.
    """
    (folder / "hand").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in KEY_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.chdir(folder)
        yield


def run(server, *options):
    """Run the command."""
    given = (
        "--agent_name",
        AGENT,
        "--no_capture",
        "--judge_base_url",
        server.base_url,
        *options,
    )
    return call(evaluate_main, *given)


def run_in_all_ways(tmp_path_factory, others):
    """Return each script's result and the output, by the way in which it was run.

    The result is ``None`` if the script has none.
    """
    scripts = {path.stem: path.read_text() for path in FIXTURES.glob("*.py")}
    scripts |= {name: HEADER + body + END for name, (body, _) in CASES.items()}
    scripts |= {path.stem: path.read_text() for path in OTHERS}
    found = {}
    for way in WAYS:
        folder = tmp_path_factory.mktemp("project")
        names = names_of(way, others)
        project = project_with(folder, {name: scripts[name] for name in names})
        with (
            environment(folder),
            JudgeServer(reply=verdict) as server,
            run_ahead(way),
        ):
            printed = run(server).stdout
        paths = {name: project.result_paths(task=name) for name in names}
        found[way] = (
            {name: read_json(path[0]) if path else None for name, path in paths.items()},
            printed,
        )
    return found


def test_every_script_has_an_expected_score():
    """None is left out."""
    assert {path.stem for path in FIXTURES.glob("*.py")} == FIXTURE_SCORES.keys()


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(OTHER_NAMES[::12], id="a few idioms"),
        pytest.param(OTHER_NAMES, id="all idioms", marks=pytest.mark.scripts),
    ],
)
def test_all_ways_give_the_same_tree_or_no_result(tmp_path_factory, others):
    """One test, so that one process of the suite runs all scripts once in each way."""
    with warnings.catch_warnings():
        # Scripts that end early leave coroutines, whose warning would fail the test.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited")
        gc.collect()
        found = run_in_all_ways(tmp_path_factory, others)
        gc.collect()
    in_order, _ = found[None]
    differing = {
        (way, name): problem
        for way, (results, printed) in found.items()
        for name in names_of(way, others)
        if (problem := difference(name, results[name], in_order[name], printed))
    }
    assert differing == {}


def difference(name, result, expected, printed):
    """Return what a script's result has otherwise than in program order.

    ``None`` if it is the same.
    """
    if result is None:
        lines = printed.splitlines()
        line = next(line for line in lines if f"{name}/answer_1.md" in line)
        return None if REASONS.get(name, "-") in line else line
    score = FIXTURE_SCORES.get(name, CASES.get(name, (None, None))[1])
    if name not in OTHER_NAMES and result["final_score"] != score:
        return f"score {result['final_score']}"
    if expected is None:
        return None
    for part in ("final_score", "eval_breakdown", "extractions", "second"):
        if result.get(part) != expected.get(part):
            return part
    judgments = [each["judge_usage"]["judgments"] for each in (result, expected)]
    return None if judgments[0] == judgments[1] else f"judgments {judgments}"


LIMITED = (
    "    import adv_timeout\n"
    '    await ev.verify("First ALWAYSTRUE", ev.add_leaf("first", "first", root, critical=True))\n'
    '    leaf = ev.add_leaf("last", "last", root)\n'
    '    ok = await adv_timeout.within(0.5, ev.verify("Last ALWAYSTRUE", leaf))\n'
    "    if not ok:\n        leaf.score, leaf.status = 0.0, 'failed'\n" + END
)


@pytest.mark.parametrize(
    ("slow", "way", "is_cut_off"),
    [
        ("First", "values", False),
        ("Last", "values", False),
        ("Last", None, True),
    ],
)
def test_a_time_limit_of_the_scripts_own_that_runs_out_is_no_result(
    tmp_path, way, slow, is_cut_off
):
    project = project_with(tmp_path, {"limited": HEADER + LIMITED})
    is_over = threading.Event()

    def reply(body):
        if slow in messages_text(body["messages"]):
            # Longer than the script's own limit; the run waits for a request that is paid for.
            is_over.wait(2)
        return verdict(body)

    with (
        environment(tmp_path),
        JudgeServer(reply=reply) as server,
        run_ahead(way),
    ):
        try:
            printed = run(server).stdout
        finally:
            is_over.set()
    assert (
        "the script stopped waiting for the judge on 'last' (a time limit" in printed
    ) is is_cut_off
    assert bool(project.result_paths(task="limited")) is not is_cut_off


ENDLESS = {
    "verifies": (
        # Lower than it is, in the script's own process.
        "    import mind2web2.scripts.isolation.answer_client as answer_client\n"
        "    answer_client.MAX_QUESTIONS = 300\n"
        "    while True:\n        try:\n            await ev.verify('x', None, "
        "'https://www.example.org/none')\n"
        "        except Exception:\n            pass\n",
        "was stopped: it asked for more than 300 verifications",
    ),
    "logs": (
        "    while True:\n        logger.info('x' * 100_000)\n",
        "was stopped: it logged more than 20 MB",
    ),
}


def test_a_script_that_loops_for_ever_ends(tmp_path):
    project = project_with(tmp_path, {name: HEADER + body for name, (body, _) in ENDLESS.items()})
    with environment(tmp_path), JudgeServer(reply=verdict) as server:
        printed = run(server).stdout
    for name, (_, reason) in ENDLESS.items():
        assert f"script {name}.py {reason}" in printed
        assert project.result_paths(task=name) == []
