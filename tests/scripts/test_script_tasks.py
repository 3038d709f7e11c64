"""Errors of tasks that a script starts and never awaits."""

import asyncio
import gc

import pytest
from projects import ClaimJudge, Project, evaluate

from mind2web2.errors import JudgeUnavailableError

BAD = """
async def bad(what, cause=None):
    await asyncio.sleep(0)
    raise ValueError(what)
"""


async def logged(tmp_path, body, *, judge=None, reason=None):
    """Evaluate with a script that does this, and return the messages of the answer's log."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(f"{BAD}{body}\nreturn evaluator.get_summary()")
    [outcome] = await evaluate(project, judge or ClaimJudge())
    gc.collect()
    assert outcome.reason == reason
    return [
        line
        for path in (project.folder() / "logs").glob("*.log")
        for line in path.read_text().split("\n")
    ]


async def test_an_error_that_no_task_awaits_is_one_line(tmp_path, caplog, capfd):
    body = (
        "held = asyncio.create_task(bad('a\\nstray'))\n"
        "asyncio.create_task(bad('let go'))\n"
        "await asyncio.sleep(0.01)"
    )
    lines = await logged(tmp_path, body)
    found = sorted(line.partition("a task that ")[2] for line in lines if "did not await" in line)
    beginning = "the script started and did not await raised ValueError: "
    assert [line.partition(" (line")[0] for line in found] == [
        f"{beginning}a stray",
        f"{beginning}let go",
    ]
    assert not [line for line in lines if "Traceback" in line or "never retrieved" in line]
    assert not [record for record in caplog.records if record.name == "asyncio"]
    assert capfd.readouterr() == ("", "")


async def test_errors_of_other_programs_stay_as_they_are(tmp_path, caplog):
    """A program evaluates on its own loop.

    It finds its own tasks' errors as asyncio reports them.
    """
    await logged(tmp_path, "")

    async def fail():
        raise ValueError("own")

    await asyncio.wait({asyncio.create_task(fail())})
    gc.collect()
    [record] = [record for record in caplog.records if "never retrieved" in record.getMessage()]
    assert record.name == "asyncio"
    assert "did not await" not in caplog.text


def out_of_order(_claim):
    """Fail as a judge does."""
    raise JudgeUnavailableError("out of order")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("raise EvalScriptError('no such lake')", "no such lake"),
        (
            "await evaluator.verify('The lake is deep.', evaluator.add_leaf('leaf', 'leaf'))",
            "out of order",
        ),
    ],
    ids=["by itself", "by its judge"],
)
async def test_the_failure_of_the_script_itself_is_none_of_them(tmp_path, end, reason):
    body = (
        "from mind2web2.errors import EvalScriptError\n"
        "asyncio.create_task(bad('stray'))\n"
        "await asyncio.sleep(0.01)\n"
        f"{end}"
    )
    judge = ClaimJudge(out_of_order)
    lines = await logged(tmp_path, body, judge=judge, reason=reason)
    [told] = [line for line in lines if "did not await" in line]
    assert "raised ValueError: stray" in told


async def test_an_error_that_the_script_looks_at_is_its_own_affair(tmp_path):
    """The script awaits or gathers the task, or asks for its exception."""
    body = (
        "tasks = [asyncio.create_task(bad(str(number))) for number in range(3)]\n"
        "await asyncio.wait(tasks)\n"
        "try: await tasks[0]\n"
        "except ValueError: pass\n"
        "await asyncio.gather(tasks[1], return_exceptions=True)\n"
        "tasks[2].exception()"
    )
    assert not [line for line in await logged(tmp_path, body) if "did not await" in line]
