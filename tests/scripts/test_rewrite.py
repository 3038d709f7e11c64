"""Where eval scripts' syntax is changed, and where it is left alone."""

import ast

import pytest

from mind2web2.scripts.rewriting import defer_extractions, defer_verifications


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


def with_extractions(*lines):
    """Return the lines of a function as they run: E defers, V waits."""
    tree = ast.parse("\n    ".join(["async def f(e, given):", *lines]))
    defer_extractions(tree)
    places = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert places <= set(range(1, len(lines) + 2))
    text = ast.unparse(tree).replace("__mind2web2_deferred_value__", "E")
    text = text.replace("__mind2web2_value_of__", "V").partition("\n")[2]
    return [line.removeprefix("    ") for line in text.splitlines()]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "a = await e.extract(1); b = await e.extract(2); a.x + b.x",
            "a = await E(e.extract, 1); b = await e.extract(2); a = await V(a); a.x + b.x",
        ),
        (
            "a: T = await e.extract(1); b(); if a.x:;     c()",
            "a: T = await E(e.extract, 1); b(); a = await V(a); if a.x:;     c()",
        ),
        ("a = await e.extract(1); b()", "a = await E(e.extract, 1); b()"),
        (
            "for n in m:;     a = await e.extract(1);     b();     a.x",
            "for n in m:;     a = await E(e.extract, 1);     b();     a = await V(a);     a.x",
        ),
    ],
)
def test_extractions_are_deferred_until_they_are_read(lines, expected):
    """The value is in its place before the first statement that mentions it."""
    assert with_extractions(*lines.split("; ")) == expected.split("; ")


@pytest.mark.parametrize(
    "lines",
    [
        "a = await e.extract(1); a.x",
        # Another value may reach the statement that reads it.
        "for n in m:;     a = await e.extract(1);     b(); a.x",
        "for n in m:;     a.x;     a = await e.extract(1);     b()",
        "try:;     a = await e.extract(1);     b(); except KeyError:;     a.x",
        # Something else may read it, or give it a value.
        "given = await e.extract(1); b()",
        "a = await e.extract(1); b(); c(lambda: a.x)",
        "global a; a = await e.extract(1); b()",
        "a = await e.extract(1); b(); locals()",
        "a = await e.extract(1); b(); vars()",
        "a = await e.extract(1); b(); import inspect",
        # No name of its own, or no method.
        "o.a = await e.extract(1); b()",
        "a, b = await e.extract(1); b()",
        "a = [await e.extract(1)]; b()",
        "a = await extract(1); b()",
    ],
)
def test_other_extractions_stay_as_they_are(lines):
    """Read at once, by another way than a mention, or where two values may come together."""
    assert with_extractions(*lines.split("; ")) == lines.split("; ")
