"""Where eval scripts' syntax is changed, and where it is left alone."""

import ast

import pytest

from mind2web2.scripts.load import defer_verifications, must_be_sequential

LETTERS = {"deferred": "D", "read": "R", "settled": "S", "sequentially": "P"}


def changed(source):
    """Return the source as it runs, with letters for our functions."""
    tree = ast.parse(source)
    defer_verifications(tree)
    text = ast.unparse(tree)
    for function, letter in LETTERS.items():
        text = text.replace(f"__mind2web2_{function}__", letter)
    return text


def body(statement):
    """Return a statement of an ``async def`` as it runs."""
    return changed(f"async def f():\n    {statement}\n").removeprefix("async def f():\n    ")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("await e.verify('c', n)", "await D(e.verify, 'c', n)"),
        ("await a.b().batch_verify(*x, **y)", "await D(a.b().batch_verify, *x, **y)"),
        ("ok = await e.verify('c', n)", "ok = await D(e.verify, 'c', n)"),
        ("ok: bool = await e.verify('c', n)", "ok: bool = await D(e.verify, 'c', n)"),
        ("o.ok = await e.verify('c', n)", "o.ok = await e.verify('c', n)"),
        ("a, b = await e.verify('c', n)", "a, b = await e.verify('c', n)"),
        ("return await e.verify('c', n)", "return await e.verify('c', n)"),
        ("await verify('c', n)", "await verify('c', n)"),
        ("await e.extract('p', T)", "await e.extract('p', T)"),
        ("return e.get_summary()", "return (await R(e)).get_summary()"),
        ("n.status = 'failed'", "(await R(n)).status = 'failed'"),
        ("x = [n.score for n in m]", "x = [(await R(n)).score for n in m]"),
        ("x = sum((n.score for n in m))", "x = sum((n.score for n in await S(m)))"),
        ("x = sum((n.size for n in m))", "x = sum((n.size for n in m))"),
        ("x = sorted(m, key=lambda n: n.score)", "x = sorted(m, key=await S(lambda n: n.score))"),
        ("x: n.status = n.score", "x: n.status = (await R(n)).score"),
        ("t = asyncio.create_task(f())", "t = (await S(asyncio)).create_task(f())"),
        ("await asyncio.sleep(1)", "await asyncio.sleep(1)"),
        ("await asyncio.gather(f(), g())", "await (await S(asyncio)).gather(f(), g())"),
        ("async with lock:\n        pass", "async with P(), lock:\n        pass"),
        (
            "match x:\n        case n.status:\n            y = n.status",
            "match x:\n        case n.status:\n            y = (await R(n)).status",
        ),
        ("g = lambda: n.size", "g = lambda: n.size"),
        ("x = client.ledger.judgments", "x = (await R(client)).ledger.judgments"),
        ("x = await client.async_response(m)", "x = await client.async_response(m)"),
    ],
)
def test_statements(statement, expected):
    """A verification that stands by itself is deferred, and whatever may show a verdict waits."""
    assert body(statement) == expected


@pytest.mark.parametrize(
    "reading",
    [
        "async def g():\n    return ok",
        "def g():\n    nonlocal_ok = f'{ok}'",
        "ok += 1",
        "class A:\n    x = b.ok",
        "from m import ok",
        "def g():\n    global ok",
        "x = locals()",
        "import inspect",
    ],
)
def test_a_verdict_that_goes_to_a_name_somebody_reads_is_waited_for(reading):
    """Anywhere in the script: it might be the same name."""
    verifying = "async def f():\n    ok = await e.verify('c', n)"
    assert verifying in changed(f"{verifying}\n{reading}\n")


def test_everything_keeps_its_place():
    """Whatever is put in has the place of what it stands for."""
    source = "async def f():\n    await e.verify(n.score,\n        n)\n"
    tree = ast.parse(source)
    defer_verifications(tree)
    compile(tree, "x", "exec")
    places = {
        (node.lineno, node.col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and node.lineno
    }
    assert places <= {
        (node.lineno, node.col_offset) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr)
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import threading", True),
        ("from concurrent.futures import ThreadPoolExecutor", True),
        ("import math\nmath.runs = 1", True),
        ("from a.b import c\nc.seen['x'] += 1", True),
        ("import a.b as d\ndel d.x", True),
        ("from os import environ\nenviron['X'] = 'y'", True),
        ("import math\nsetattr(math, 'runs', 1)", True),
        ("client.runs = 1", True),
        ("cache.notes['x'] = 1", True),
        ("cache['x'] = 1", False),
        ("COUNTS = {}\nCOUNTS['x'] = 1", False),
        ("import math\nx = math.pi", False),
        ("evaluator.note = 1", False),
    ],
)
def test_a_script_whose_changes_outlive_an_attempt_is_left_unchanged(source, expected):
    """Threads count as well: they run beside the script."""
    assert must_be_sequential(list(ast.walk(ast.parse(source)))) is expected
