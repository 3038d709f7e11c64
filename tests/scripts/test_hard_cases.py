"""Scripts whose next question rests on replies in an odd way: passes are as program order."""

import json
import re
import time

import pytest
from projects import QUICK_RETRY, REPOSITORY, Project, evaluate, messages_text
from servers.judge_server import JudgeServer

from mind2web2.llm_client import LLMClient

PAGE = "https://www.example.org/page/"
FORMS = (
    "from pydantic import BaseModel\n"
    "class Found(BaseModel):\n    count: int = 0\n    items: list[str] = []\n"
    "    shots: list[str] | None = None\n"
    "async def fill(values):\n"
    "    return await evaluator.extract(f'Fill in <<{values}>>.', Found)\n"
    "async def verify(claim, page=None, **more):\n"
    "    leaf = evaluator.add_leaf(claim[:9], 'd')\n"
    f"    source = None if page is None else f'{PAGE}{{page}}'\n"
    "    return await evaluator.verify(claim, leaf, source, **more)\n"
)
PUT = "cache.put_web('https://www.example.org/page/1', 'ALWAYSFALSE', None)\n"
COUNT = "found = await fill('{\"count\": 3}')\n"
ITEMS = 'found = await fill(\'{"items": ["one", "two"]}\')\n'

FOLDER = REPOSITORY / "tests" / "fixtures" / "passes"
# Scripts of others, and bodies of scripts, each with the most questions asked for nothing.
FILES = {
    "put_if_failed": 1,
    "range_count": 0,
    "pages_until_empty": 0,
    "uuid_stagger": 3,
    "thread_by_low_name": 2,
    "task_beside_question": 0,
    "shared_memory": 2,
    "number_like_mark": 0,
    "random_module": 0,
}
CASES = {
    "a page stored for a value that is missing": (
        'found = await fill(\'{"shots": ["a"]}\')\n'
        f"for each in found.shots or []:\n    {PUT}await verify('claim ALWAYSTRUE', 1)\n",
        1,
    ),
    "a page stored between equal claims": (
        "await verify('claim ALWAYSTRUE', 1)\n"
        f"evaluator.add_custom_node(True, 'now', 'd', critical=False)\n{PUT}"
        "await verify('claim ALWAYSTRUE', 1)\n",
        0,
    ),
    "from one to what is counted": (
        f"{COUNT}for n in range(1, found.count + 1):\n    await verify(f'item {{n}}', n)\n",
        0,
    ),
    "at most ten of what is counted": (
        f"{COUNT}checks = [verify(f'item {{n}}', n) for n in range(min(found.count, 10))]\n"
        "await asyncio.gather(*checks)\n",
        0,
    ),
    "while claims hold": (
        "n = 0\nwhile await verify(f'entry {n}' + ' ALWAYSFALSE' * (n > 2), n):\n    n += 1\n",
        0,
    ),
    "at most a hundred times": (
        "for n in range(100):\n"
        '    found = await fill(\'{"items": ["a"]}\' if n < 3 else \'{"items": []}\')\n'
        "    if not found.items:\n        break\nawait verify(f'{n} pages')\n",
        0,
    ),
    "until the model says so": (
        "said, n = '', 0\nwhile 'GOOD' not in said:\n    n += 1\n"
        "    said = await client.async_response(\n"
        "        model=model, messages=[{'role': 'user', 'content': f'GOOD? {n // 3}'}])\n"
        "await verify(f'good after {n}')\n",
        0,
    ),
    "calls itself": (
        "async def step(n):\n"
        '    found = await fill(\'{"items": ["a"]}\' if n < 3 else \'{"items": []}\')\n'
        "    if found.items:\n        await step(n + 1)\nawait step(0)\n",
        60,
    ),
    "an item where there is one": (
        f"{ITEMS}for n in range(4):\n"
        "    item = found.items[n] if n < len(found.items) else None\n"
        "    await verify(f'item {n} is {item}')\n",
        0,
    ),
    "an item unless there is none": (
        f"{ITEMS}for n in range(4):\n"
        "    try:\n        item = found.items[n]\n    except IndexError:\n        item = None\n"
        "    await verify(f'item {n} is {item}')\n",
        0,
    ),
    "while there are more": (
        f"{COUNT}n = 0\nwhile n < found.count:\n    await verify(f'item {{n}}', n)\n    n += 1\n",
        0,
    ),
    "counted in a class": (
        f"{COUNT}class Walk:\n    async def run(self):\n        for n in range(found.count):\n"
        "            await verify(f'item {n}', n)\n"
        "        while await verify(f'entry {n}' + ' ALWAYSFALSE' * (n > 3), n):\n"
        "            n += len([self]) if hasattr(self, 'run') else 0\n"
        "await Walk().run()\n",
        0,
    ),
    "in two loops": (
        f"{COUNT}for n in range(found.count):\n    for m in range(found.count):\n"
        "        if not await verify(f'item {n} {m}' + ' ALWAYSFALSE' * (m > n)):\n"
        "            break\n",
        0,
    ),
    "filtered and filled up": (
        f"{ITEMS}items = [each for each in found.items if each]\n"
        "while len(items) < 4:\n    items.append('none')\n"
        "for n, item in enumerate(items):\n    await verify(f'item {n} is {item}')\n",
        0,
    ),
    "filled up for certain": (
        f"{ITEMS}items = (list(found.items) + ['none'] * 4)[:4]\n"
        "for n, item in enumerate(items):\n    await verify(f'item {n} is {item}')\n",
        0,
    ),
    "a pipe with a name": (
        "import os\npath = f'{answer_name}.pipe'\nos.mkfifo(path)\nos.remove(path)\n"
        "await verify('first')\n",
        1,
    ),
    "a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor\nurls = []\n"
        f"with ThreadPoolExecutor() as pool:\n    pool.submit(urls.append, '{PAGE}1')\n"
        "await evaluator.verify('first', evaluator.add_leaf('a', 'd'), urls)\n",
        1,
    ),
    "a timer beside a question": (
        f"urls = []\nasyncio.get_running_loop().call_later(0.05, urls.append, '{PAGE}1')\n"
        "await verify('first SLOW')\n"
        "await evaluator.verify('second', evaluator.add_leaf('b', 'd'), urls)\n",
        0,
    ),
    "a number of the system each time": (
        "import secrets\nawait verify('quick')\n"
        "await verify(f'run {secrets.token_hex(4)} SLOW', 2)\n",
        3,
    ),
    "memory that forks share": (
        "SHARED[0] += 1\nawait verify('first')\nawait verify(f'seen {SHARED[0]}')\n",
        0,
    ),
    "a validator that depends on an order": (
        "from pydantic import field_validator\nseen = []\n"
        "class Ordered(Found):\n    @field_validator('count')\n    @classmethod\n"
        "    def check(cls, count):\n        seen.append(count)\n"
        "        assert count != 2 or 1 in seen\n        return count\n"
        "await verify('first')\n"
        "for n in (1, 2):\n    await evaluator.extract('Fill in <<{\"count\": %d}>>.%s' % (n, "
        "' SLOW' * (n == 1)), Ordered)\n",
        2,
    ),
    "two classes of one form": (
        "from pydantic import field_validator\nclass Loose(Found): pass\n"
        "Strict = type('Loose', (Found,), {'__annotations__': {}, 'check': field_validator('count')"
        "(classmethod(lambda cls, count: count + 1))})\n"
        "for kind in (Loose, Strict):\n"
        "    found = await evaluator.extract('Fill in <<{\"count\": 1}>>.', kind)\n"
        "    await verify(f'{found.count} of them')\n",
        0,
    ),
    "a validator that takes time": (
        "from pydantic import field_validator\n"
        "class Slow(Found):\n    @field_validator('count')\n    @classmethod\n"
        "    def check(cls, count):\n        end = time.process_time() + 0.3\n"
        "        while time.process_time() < end: pass\n        return count\n"
        "await asyncio.gather(*(evaluator.extract('Fill in <<{\"count\": %d}>>.' % n, Slow)\n"
        "    for n in range(9)))\n",
        0,
    ),
}
TOP = (
    "import mmap, random\nfrom _thread import start_new_thread as go\n"
    "SHARED = mmap.mmap(-1, 8)\nPICK = random.random()\n"
)
LINES_OF_RANDOM = {"uuid_stagger", "a number of the system each time"}


def reply(body):
    """Return what a prompt asks for."""
    text = messages_text(body["messages"])
    if delay := re.search(r"DELAY<<([\d.]+)>>", text):
        time.sleep(float(delay[1]))
    if "SLOW" in text:
        time.sleep(0.3)
    if wish := re.search(r"<<(\{.*?\})>>", text):
        return {"count": 0, "items": [], "shots": None} | json.loads(wish[1])
    if "GOOD?" in text:
        return "GOOD" if "GOOD? 1" in text else "bad"
    return {"reasoning": "r", "quote": "", "result": "ALWAYSFALSE" not in text}


async def evaluated(folder, body, ahead):
    """Return tree and extractions of a script, and the texts that were asked."""
    outcome, asked = await outcome_of(folder, body, ahead)
    assert outcome.result is not None, outcome.reason
    document = outcome.result.document
    return (outcome.score, document["eval_breakdown"]), asked


async def outcome_of(folder, body, ahead="values"):
    """Return the outcome of a script, and the texts that were asked."""
    project = Project(folder)
    project.add_answer()
    for number in range(10):
        project.cache().put_web(f"{PAGE}{number}", f"Page {number}.", None)
    if "async def evaluate_answer" in body:
        project.add_raw_script(body)
    else:
        script = project.add_script_body(f"{FORMS}{body}return evaluator.get_summary()\n")
        script.write_text(TOP + script.read_text())
    asked = []

    def noted(body):
        asked.append(messages_text(body["messages"]))
        return reply(body)

    with JudgeServer(noted) as server:
        async with LLMClient(
            "openai", is_async=True, base_url=server.base_url, api_key="none", retry=QUICK_RETRY
        ) as client:
            [outcome] = await evaluate(project, client, ahead=ahead)
    return outcome, asked


CASES |= {name: ((FOLDER / f"{name}.py").read_text(), most) for name, most in FILES.items()}


def test_every_script_of_others_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(FILES)


@pytest.mark.parametrize("name", CASES)
async def test_passes_come_to_what_program_order_comes_to(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    body, for_nothing = CASES[name]
    expected, asked_in_order = await evaluated(tmp_path / "in order", body, None)
    for ahead in ("values", "gates"):
        found, asked = await evaluated(tmp_path / ahead, body, ahead)
        if name not in LINES_OF_RANDOM:
            assert str(found) == str(expected)
        assert len(asked) - len(asked_in_order) <= 2 * for_nothing


async def test_random_numbers_of_a_module_are_the_same_each_time(tmp_path):
    body = "await verify(f'number {PICK}')\n"
    (_, first), (_, second) = [
        await evaluated(tmp_path / str(number), body, "values") for number in range(2)
    ]
    claims = [[re.search(r"number 0\.\d+", text)[0] for text in asked] for asked in (first, second)]
    assert claims[0] == claims[1]


@pytest.mark.parametrize("place", ["cache", "type(cache)", "type(cache.task_cache)"])
async def test_a_replaced_method_of_the_cache_has_no_score(tmp_path, place):
    body = f"{place}.get_web = lambda *_: ('ALWAYSFALSE', None)\nawait verify('claim', 1)\n"
    outcome, asked = await outcome_of(tmp_path, body)
    assert (outcome.score, asked) == (None, [])
    assert "replaces methods of its cache: pass a cache of its own" in outcome.reason
