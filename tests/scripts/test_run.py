"""Running an eval script on one answer, whatever it does."""

import asyncio
import logging
import sys

import pytest
from projects import Project

from mind2web2.errors import (
    EvalScriptError,
    JudgeError,
    JudgeUnavailableError,
    JudgmentMissingError,
)
from mind2web2.scripts.isolation.messages import checked_result
from mind2web2.scripts.limits import LoopGuard, ScriptStops
from mind2web2.scripts.run import load_script, run_script

SIGNATURE = (
    "async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, "
    "logger):\n"
)
LOG = logging.getLogger("script")


def evaluation(tmp_path, body):
    """Return the path of a script that does this, and what calls it."""
    path = Project(tmp_path).add_raw_script(
        f"import asyncio, math, sys, time\n{SIGNATURE}    {body}\n", "lake"
    )
    function = load_script(path)
    names = (
        "client",
        "answer",
        "agent_name",
        "answer_name",
        "cache",
        "semaphore",
        "logger",
    )
    return path, lambda: function(**dict.fromkeys(names))


async def outcome_of(tmp_path, body):
    """Run a script with this body."""
    path, evaluate = evaluation(tmp_path, body)
    return await run_script(evaluate, path, LOG, ScriptStops())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def f(:\n",
            r"^script lake\.py has a syntax error in line 1: invalid syntax$",
        ),
        (
            "x = 1\n  y = 2\n",
            r"^script lake\.py has a syntax error in line 2: unexpected indent$",
        ),
        (
            "x = '\0'\n",
            r"^script lake\.py has a syntax error in line 1: source code contains a null byte$",
        ),
        (b"# \xff\n", r"^script lake\.py "),
        ("", r"lake\.py has no evaluate_answer: add 'async def evaluate_answer"),
        (
            "def evaluate_answer(client): pass\n",
            r"lake\.py is not a coroutine function: make it 'async def'",
        ),
        (
            "async def evaluate_answer(client): pass\n",
            r"lake\.py lacks parameters: add answer, agent_name",
        ),
        (
            "\nimport no_such_module\n",
            r"cannot be used: ModuleNotFoundError: .*no_such_module.* \(line 2\)$",
        ),
        ("1 / 0\n", r"cannot be used: ZeroDivisionError: division by zero \(line 1\)$"),
        (
            "raise ValueError('one\\ntwo')\n",
            r"cannot be used: ValueError: one two \(line 1\)$",
        ),
        (
            "raise KeyboardInterrupt\n",
            r"^script lake\.py cannot be used: KeyboardInterrupt \(line 1\)$",
        ),
        (
            "import sys\nsys.exit(3)\n",
            r"ends the program when imported \(exit status 3\)",
        ),
    ],
)
def test_a_script_that_cannot_be_loaded_is_one_line(tmp_path, text, message):
    path = Project(tmp_path).add_raw_script(text, "lake")
    loaded = set(sys.modules)
    with pytest.raises(EvalScriptError, match=message) as caught:
        load_script(path)
    assert "\n" not in str(caught.value)
    assert not [name for name in set(sys.modules) - loaded if "lake" in name]


def test_a_missing_script_is_named(tmp_path):
    with pytest.raises(
        EvalScriptError,
        match=r"script lake\.py cannot be used: FileNotFoundError: .*lake\.py",
    ):
        load_script(tmp_path / "lake.py")


async def test_a_result_comes_back_as_it_is(tmp_path):
    """Scores may be whole numbers."""
    assert await outcome_of(tmp_path, "return {'final_score': 1, 'x': ['ü']}") == {
        "final_score": 1,
        "x": ["ü"],
    }


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            "None",
            r"^script lake\.py returned NoneType; expected evaluator\.get_summary\(\)$",
        ),
        ("[]", "returned list; expected"),
        ("1.0", "returned float; expected"),
        (
            "{}",
            r"^script lake\.py returned final_score None; expected a number from 0 to 1$",
        ),
        ("{'final_score': math.nan}", "returned final_score nan; expected"),
        ("{'final_score': 2}", "returned final_score 2; expected"),
        ("{'final_score': -0.1}", r"returned final_score -0\.1; expected"),
        ("{'final_score': math.inf}", "returned final_score inf; expected"),
        ("{'final_score': '1'}", "returned final_score '1'; expected"),
        ("{'final_score': True}", "returned final_score True; expected"),
        ("{'final_score': 1, 'x': {1, 2}}", r"returned what is not JSON: .*type set"),
        ("{'final_score': 1, 'x': math.nan}", "returned what is not JSON: "),
        ("{'final_score': 1, (1, 2): 3}", "returned what is not JSON: "),
        (
            "(lambda d: d.setdefault('x', d) and d)({'final_score': 1})",
            "returned what is not JSON: Circular",
        ),
    ],
)
async def test_junk_is_no_result(tmp_path, returned, message):
    """Nothing but a summary with a score from 0 to 1 that JSON can hold."""
    with pytest.raises(EvalScriptError, match=message) as caught:
        await outcome_of(tmp_path, f"return {returned}")
    assert "\n" not in str(caught.value)


def test_a_result_nested_without_end_is_no_json(tmp_path):
    """Such a result would not come back from its file."""
    nested = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(EvalScriptError, match="not JSON"):
        checked_result({"final_score": 1, "x": nested}, tmp_path / "lake.py")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "raise ValueError('bad\\n  luck')",
            r"^script lake\.py raised ValueError: bad luck \(line 3\)$",
        ),
        ("raise KeyError", r"^script lake\.py raised KeyError \(line 3\)$"),
        ("assert False", r"^script lake\.py raised AssertionError \(line 3\)$"),
        (
            "raise KeyboardInterrupt",
            r"^script lake\.py raised KeyboardInterrupt \(line 3\)$",
        ),
        ("sys.exit(0)", r"^script lake\.py called sys\.exit\(0\)$"),
        ("sys.exit('bye')", r"^script lake\.py called sys\.exit\('bye'\)$"),
        (
            "asyncio.current_task().cancel(); await asyncio.sleep(1)",
            r"^script lake\.py cancelled itself$",
        ),
        ("raise asyncio.CancelledError", r"^script lake\.py cancelled itself$"),
        (
            "raise BaseExceptionGroup('g', [KeyError()])",
            r"^script lake\.py raised ExceptionGroup: g",
        ),
        ("raise GeneratorExit", r"^script lake\.py raised GeneratorExit"),
        (
            "await asyncio.wait_for(asyncio.sleep(9), 0)",
            r"^script lake\.py raised TimeoutError \(line 3\)$",
        ),
        (
            "def f(n): return f(n + 1)\n    f(0)",
            r"^script lake\.py raised RecursionError: ",
        ),
    ],
)
async def test_a_script_that_fails_is_one_line(tmp_path, body, message):
    with pytest.raises(EvalScriptError, match=message) as caught:
        await outcome_of(tmp_path, body)
    assert "\n" not in str(caught.value)


async def test_the_traceback_is_logged(tmp_path, caplog):
    with pytest.raises(EvalScriptError):
        await outcome_of(tmp_path, "raise ValueError('bad luck')")
    assert "lake.py" in caplog.text
    assert "line 3, in evaluate_answer" in caplog.text


@pytest.mark.parametrize(
    "error", [JudgeUnavailableError("out of reach"), JudgmentMissingError("not stored")]
)
async def test_a_judges_failure_stays_what_it_is(tmp_path, error):
    async def fail():
        raise error

    with pytest.raises(JudgeError) as caught:
        await run_script(fail, tmp_path / "lake.py", LOG, ScriptStops())
    assert caught.value is error


async def test_stopping_a_run_stops_its_script(tmp_path):
    """Cancellation goes through, and the script is over when it is."""
    started, ended = asyncio.Event(), asyncio.Event()

    async def endless():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.ensure_future(run_script(endless, tmp_path / "lake.py", LOG, ScriptStops()))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


@pytest.mark.parametrize("body", ["time.sleep(60)", "[0 for _ in iter(int, 1)]"])
async def test_a_script_that_blocks_everything_is_stopped(tmp_path, body):
    """The guard reaches what no cancellation reaches, and what swallows exceptions."""
    body = f"try: {body}\n    except Exception: pass\n    return {{'final_score': 1.0}}"
    async with LoopGuard(0.1, ScriptStops()):
        with pytest.raises(
            EvalScriptError,
            match=r"^script lake\.py was stopped: it blocked all other work for 0\.1 s",
        ):
            await outcome_of(tmp_path, body)


async def test_a_script_that_blocks_while_it_is_loaded_is_stopped(tmp_path):
    """Module code is the script's as well."""
    path = Project(tmp_path).add_raw_script("import time\ntime.sleep(60)\n", "lake")
    async with LoopGuard(0.1, ScriptStops()):
        with pytest.raises(EvalScriptError, match=r"^script lake\.py was stopped: it blocked"):
            load_script(path)
