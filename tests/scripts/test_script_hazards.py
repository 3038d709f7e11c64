"""What in a script's syntax leaves no choice but program order."""

import ast

import pytest
from projects import REPOSITORY

from mind2web2.scripts.rewrite import imports_own_modules, needs_program_order


def in_order(source):
    """Tell whether a script with this in it keeps program order."""
    return needs_program_order(ast.parse(f"{source}\nasync def f():\n    await e.verify('c', n)\n"))


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasyncio.create_task(x)",
        "import asyncio as a\na.wait_for(x, 1)",
        "from asyncio import TaskGroup",
        "from asyncio import gather as together",
        "import asyncio.tasks",
        "import threading",
        "from concurrent.futures import ThreadPoolExecutor",
        "import asyncio\nx = asyncio.gather(y)",
        "import asyncio\nf(asyncio)",
        "from asyncio import gather\nx = gather",
    ],
)
def test_scripts_that_run_things_beside_are_left_alone(source):
    """What such tasks see depends on when the program waits."""
    assert in_order(source)


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasync def g():\n    x = await asyncio.gather(y)",
        "from asyncio import gather, sleep\nasync def g():\n    return await gather(y)",
        "import asyncio\nLOCK = asyncio.Semaphore(3)\nasyncio.run(x)",
    ],
)
def test_awaited_gathering_is_no_reason(source):
    """It is over when the program goes on."""
    assert not in_order(source)


@pytest.mark.parametrize(
    "source",
    [
        "def store(c):\n    c.put_web(u, t, None)",
        "put = cache.put_pdf",
        "getattr(cache, 'put_web')(u, t, None)",
        "class Cache:\n    def get_web(self, url): ...",
        "class Client:\n    async def async_response(self, **k): ...",
        "class Browser:\n    async def capture_page(self, url, logger): ...",
        "class Wrapper:\n    def __getattr__(self, name): ...",
        "import math\nmath.runs = 1",
        "from a.b import c\nc.seen['x'] += 1",
        "import a.b as d\ndel d.x",
        "from os import environ\nenviron['X'] = 'y'",
        "import math\nsetattr(math, 'runs', 1)",
        "client.runs = 1",
        "cache.notes['x'] = 1",
    ],
)
def test_what_another_attempt_would_find_keeps_program_order(source):
    """Stored pages, things of its own that are asked, and state outside of its module."""
    assert in_order(source)


@pytest.mark.parametrize(
    "source",
    [
        "cache['x'] = 1",
        "COUNTS = {}\nCOUNTS['x'] = 1",
        "import math\nx = math.pi",
        "class Template:\n    def total(self): ...",
        "evaluator.note = 1",
    ],
)
def test_what_goes_with_the_module_is_no_reason(source):
    """Another attempt has a module of its own."""
    assert not in_order(source)


@pytest.mark.parametrize(
    "path", sorted((REPOSITORY / "eval_scripts" / "example").glob("*.py")), ids=lambda path: path.stem
)
def test_examples_are_deferred(path):
    """They are written as published scripts are."""
    assert not needs_program_order(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import json, re\nfrom dateutil.relativedelta import relativedelta", False),
        ("from mind2web2.evaluator import Evaluator\nimport pydantic.fields", False),
        ("import no_such_helper", True),
        ("from no_such_helper import first_use", True),
        ("from . import helper", True),
        ("import importlib\nhelper = importlib.import_module('helper')", True),
        ("helper = __import__('helper')", True),
    ],
)
def test_modules_from_outside_the_installation_are_noticed(source, expected):
    """They keep their state for another attempt in the same process."""
    assert imports_own_modules(ast.parse(source)) is expected
