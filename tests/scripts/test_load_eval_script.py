"""Eval scripts: what is let in, and what is refused and how.

Scripts do not disturb each other.
"""

import sys
import traceback
import typing

import pytest

from mind2web2.scripts.load import load_eval_script

PARAMETERS = "client, answer, agent_name, answer_name, cache, semaphore, logger"
GOOD = (
    f"async def evaluate_answer({PARAMETERS}, model='o4-mini'):\n    return {{'final_score': "
    f"SCORE}}\n"
)


def script(folder, source, name="task.py"):
    """Write a script and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    return path


def call(function):
    """Return the coroutine of an evaluation with nothing in it."""
    return function(**dict.fromkeys(PARAMETERS.split(", ")))


def registered():
    """Return the names of the script modules that are registered."""
    return {name for name in sys.modules if name.startswith("mind2web2_eval_script_")}


async def test_scripts_of_one_file_name_do_not_clash(tmp_path):
    """Two versions of a task, and two loads of one version, each keep their own globals."""
    paths = [script(tmp_path / str(score), f"SCORE = {score}\n{GOOD}") for score in (0, 1)]
    functions = [load_eval_script(path) for path in (*paths, str(paths[0]))]
    assert [(await call(function))["final_score"] for function in functions] == [
        0,
        1,
        0,
    ]
    assert len({function.__module__ for function in functions}) == 3


async def test_types_named_by_text_are_found_when_the_script_runs(tmp_path):
    """Pydantic and dataclasses look a module's names up in ``sys.modules``.

    They do so at import and long after.
    """
    source = f"""
from __future__ import annotations
from dataclasses import dataclass, field
from typing import ClassVar
from pydantic import BaseModel

@dataclass
class Box:
    kind: ClassVar[str] = "box"
    items: list[int] = field(default_factory=list)

async def evaluate_answer({PARAMETERS}):
    class Shelf(BaseModel):
        books: list[Book]
    return Shelf.model_validate({{"books": [{{"title": "x", "next": {{"title": "y"}}}}]}})

class Book(BaseModel):
    title: str
    next: Book | None = None
"""
    function = load_eval_script(script(tmp_path, source))
    assert (await call(function)).books[0].next.title == "y"
    box = sys.modules[function.__module__].Box
    assert list(typing.get_type_hints(box)) == ["kind", "items"]


def test_no_such_file(tmp_path):
    """A missing script is a missing file, and so is a folder of its name."""
    for path in (tmp_path / "missing.py", tmp_path):
        with pytest.raises(FileNotFoundError, match="no eval script"):
            load_eval_script(path)


@pytest.mark.parametrize(
    "source",
    ["", "evaluate = 1\n", "class X:\n    async def evaluate_answer(self): ...\n"],
)
def test_no_evaluate_answer(tmp_path, source):
    """The message names the script."""
    with pytest.raises(AttributeError, match=r"task\.py has no evaluate_answer"):
        load_eval_script(script(tmp_path, source))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"def evaluate_answer({PARAMETERS}): ...\n", "async def"),
        (f"async def evaluate_answer({PARAMETERS}):\n    yield 1\n", "async def"),
        ("evaluate_answer = 3\n", "async def"),
        (
            "async def evaluate_answer(client, answer): ...\n",
            "agent_name, answer_name, cache, semaphore, logger",
        ),
        (
            f"async def evaluate_answer({PARAMETERS.replace(', cache', '')}): ...\n",
            "add cache$",
        ),
        ("async def evaluate_answer(*args, **kwargs): ...\n", "add client, answer"),
        (f"async def evaluate_answer({PARAMETERS}, /): ...\n", "add client, answer"),
    ],
)
def test_an_evaluate_answer_that_cannot_be_called(tmp_path, source, message):
    with pytest.raises(TypeError, match=message):
        load_eval_script(script(tmp_path, source))


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import json\nimport no_such_module_at_all\n", ModuleNotFoundError),
        ("from mind2web2.errors import NoSuchName\n", ImportError),
        ("1 / 0\n", ZeroDivisionError),
        ("x = (\n", SyntaxError),
        (b"x = 1\n\0\n", SyntaxError),
        (b"x = '\xff'\n", SyntaxError),
        ("def f():\nreturn 1\n", IndentationError),
    ],
)
def test_the_scripts_own_errors_come_through_with_its_path(tmp_path, source, error):
    path = script(tmp_path, source)
    before = registered()
    with pytest.raises(error) as caught:
        load_eval_script(path)
    assert str(path) in "".join(traceback.format_exception(caught.value))
    assert registered() == before


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfSCORE = 'caf\xc3\xa9'\r\n" + GOOD.encode(),
        b"# -*- coding: latin-1 -*-\nSCORE = 'caf\xe9'\n" + GOOD.encode(),
        b"from __future__ import annotations\nx: nowhere.Type\nSCORE = 'caf\xc3\xa9'\n"
        + GOOD.encode(),
        b"SCORE = 'caf\xc3\xa9'\nPATTERN = '\\d' is 'x'\n" + GOOD.encode(),
    ],
)
async def test_scripts_are_read_as_python_reads_them(tmp_path, source):
    """Byte order mark, coding line, line ends and future imports count.

    Odd escapes do not disturb.
    """
    function = load_eval_script(script(tmp_path, source, name="odd name.v2-final.py"))
    assert (await call(function))["final_score"] == "café"


def test_the_future_imports_of_the_loader_are_its_own(tmp_path):
    """A script without the import has real annotations."""
    source = f"async def evaluate_answer({PARAMETERS}) -> int: ...\n"
    assert load_eval_script(script(tmp_path, source)).__annotations__["return"] is int


def test_a_wrapped_function_shows_its_own_parameters(tmp_path):
    """Decorators with ``functools.wraps`` are looked through."""
    source = f"""
import functools
def logged(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return await function(*args, **kwargs)
    return wrapper
SCORE = 1
@logged
{GOOD}"""
    assert load_eval_script(script(tmp_path, source)).__name__ == "evaluate_answer"
