"""Several evaluations of one agent at the same time.

One judges an answer, and the others wait for its result.
"""

import asyncio

import pytest
from projects import ClaimJudge, Project, evaluate, outcomes_by_name, read_json

from mind2web2.errors import JudgeUnavailableError, ResultWriteError
from mind2web2.results.known_answers import agent_answers
from mind2web2.runs.answer import answer_locked, until_unlocked
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress

LOCK = ".judging.lock"


@pytest.fixture
def project(tmp_path):
    """Return a project with two answers and a claim."""
    project = Project(tmp_path)
    project.add_answer("answer_1", "The lake is deep.")
    project.add_answer("answer_2", "The lake is cold.")
    project.add_script({"deep": ("The lake is deep.", None)})
    return project


class HeldJudge(ClaimJudge):
    """Answers when ``may_answer`` is set."""

    def __init__(self, verdict=lambda _claim: True):
        """Hold from the start."""
        super().__init__(self._held)
        self.reached, self.may_answer = asyncio.Event(), asyncio.Event()
        self._then = verdict

    async def _held(self, claim):
        self.reached.set()
        await self.may_answer.wait()
        return self._then(claim)


async def until(condition):
    """Let others run until something has come about."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (a progress has no event)
            await asyncio.sleep(0)


def unavailable(_claim):
    """Fail for good."""
    raise JudgeUnavailableError("the judge is out of reach")


async def test_other_processes_evaluate_the_remaining_answers_and_then_wait(project):
    first, second, progress = HeldJudge(), ClaimJudge(), RunProgress()
    one_at_a_time = Concurrency(1, 1)
    running = asyncio.create_task(evaluate(project, first, concurrency=one_at_a_time))
    await first.reached.wait()
    waiting = asyncio.create_task(
        evaluate(project, second, concurrency=one_at_a_time, progress=progress)
    )
    await until(lambda: progress.waiting)
    assert list(progress.waiting) == ["lake/answer_1"]
    assert [outcome.answer_name for outcome in progress.outcomes] == ["answer_2.md"]
    first.may_answer.set()
    outcomes = outcomes_by_name(await waiting)
    assert {name: (outcome.score, outcome.reused) for name, outcome in outcomes.items()} == {
        "answer_1.md": (1.0, True),
        "answer_2.md": (1.0, False),
    }
    assert {outcome.answer_name: outcome.reused for outcome in await running}["answer_2.md"]
    assert len(first.claims) == len(second.claims) == 2
    assert [len(project.result_paths(stem)) for stem in ("answer_1", "answer_2")] == [
        1,
        1,
    ]
    assert list(project.root.rglob("*.lock")) == []


async def test_a_waiting_process_judges_the_answer_if_the_other_one_fails(project):
    """The summary has the score, independent of the order of writing."""
    failing, second, progress = HeldJudge(unavailable), ClaimJudge(), RunProgress()
    running = asyncio.create_task(evaluate(project, failing, concurrency=Concurrency(1, 1)))
    await failing.reached.wait()
    waiting = asyncio.create_task(
        evaluate(project, second, concurrency=Concurrency(1, 1), progress=progress)
    )
    await until(lambda: progress.waiting)
    failing.may_answer.set()
    assert all(outcome.score == 1.0 for outcome in await waiting)
    await running
    assert [answer.score for answer in agent_answers(project.results.parent, "bot")] == [1.0, 1.0]


async def test_a_failure_does_not_undo_a_later_result_of_another_process(project):
    failing = HeldJudge(unavailable)
    failing.may_answer.set()
    may_end = project.root / "may_end"
    project.add_script_body(f"""
        import os
        if answer_name == "answer_2.md":
            while not os.path.exists({str(may_end)!r}):
                await asyncio.sleep(0.01)
        await evaluator.verify("The lake is deep.", evaluator.add_leaf("deep", "deep"))
        return evaluator.get_summary()
        """)
    progress = RunProgress()
    running = asyncio.create_task(evaluate(project, failing, progress=progress))
    await until(lambda: progress.outcomes)
    assert progress.outcomes[0].reason is not None
    (project.root / "answers" / "bot" / "lake" / "answer_2.md").rename(project.root / "aside.md")
    await evaluate(project, ClaimJudge())
    may_end.touch()
    await running
    assert project.task_summary()["answer_1.md"]["score"] == 1.0
    assert project.task_summary()["answer_2.md"]["score"] is None


async def test_the_lock_file_of_a_killed_process_blocks_nothing(project):
    for stem in ("answer_1", "answer_2"):
        project.folder(stem).mkdir(parents=True)
        (project.folder(stem) / LOCK).write_text("")
    (project.folder() / ".writing-0123").write_text("half a resu")
    await evaluate(project, ClaimJudge())
    assert list(project.root.rglob("*.lock")) == list(project.root.rglob(".writing-*")) == []


async def test_results_written_at_once_have_stamps_of_their_own(project):
    runs = [evaluate(project, ClaimJudge(), reuse=False, overwrite=True) for _ in range(3)]
    for outcomes in await asyncio.gather(*runs):
        assert [outcome.score for outcome in outcomes] == [1.0, 1.0]
    for stem in ("answer_1", "answer_2"):
        paths = project.result_paths(stem)
        assert len(paths) == 3
        assert all(read_json(path)["final_score"] == 1.0 for path in paths)


async def test_a_cancelled_wait_takes_no_lock(tmp_path):
    async with answer_locked(tmp_path) as is_ours:
        assert is_ours
        waiting = asyncio.create_task(until_unlocked(tmp_path))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        async with answer_locked(tmp_path) as is_theirs:
            assert not is_theirs
    await until_unlocked(tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_cannot_be_written(tmp_path):
    """Taking the lock raises an error with the folder's name; waiting for it does not."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultWriteError, match=r"cannot write to .*file"):
        async with answer_locked(tmp_path / "file"):
            pass
    await until_unlocked(tmp_path / "file")
