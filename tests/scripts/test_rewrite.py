"""Where eval scripts' syntax is changed, and where it is left alone."""

import ast

import pytest

from mind2web2.scripts.load import defer_verifications


def changed(source):
    """Return the source as it runs, with a letter for our function."""
    tree = ast.parse(source)
    defer_verifications(tree)
    return ast.unparse(tree).replace("__mind2web2_deferred__", "D")


def body(statement):
    """Return a statement of an ``async def`` as it runs."""
    return changed(f"async def f():\n    {statement}\n").removeprefix(
        "async def f():\n    "
    )


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
        (
            "if await e.verify('c', n):\n        pass",
            "if await e.verify('c', n):\n        pass",
        ),
        ("return e.get_summary()", "return e.get_summary()"),
        ("await asyncio.gather(f(), g())", "await asyncio.gather(f(), g())"),
    ],
)
def test_statements(statement, expected):
    """A verification with an unused verdict is deferred; nothing else changes."""
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
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.expr)
    }
