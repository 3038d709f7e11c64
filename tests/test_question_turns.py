"""One process at a time asks a question."""

import asyncio
import signal
import subprocess
import sys

import pytest
from projects import Project, claim_in, clean_environment
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.judgments import FILE_NAME
from mind2web2.question_turns import QuestionTurns

KEY, OTHER = "a" * 64, "b" * 64
BEAT_S, SILENCE_S = 0.1, 1.0
HOLDER = """
import asyncio, sys
from pathlib import Path
from mind2web2.question_turns import QuestionTurns

async def hold(key):
    async with QuestionTurns(Path(sys.argv[1]), beat_s=float(sys.argv[3])).turn(key):
        print("taken", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(hold(sys.argv[2]))
"""


@pytest.fixture
def path(tmp_path):
    """Return where the turns are."""
    return tmp_path / ".turns"


def started_holder(path, key):
    """Start a process that has a question's turn until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), key, str(BEAT_S)],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "taken\n"
    return process


async def is_free(turns, key, within_s=0.05):
    """Tell whether a turn comes at once, or soon."""
    try:
        async with asyncio.timeout(within_s), turns.turn(key):
            return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("end", ["line", "kill"])
async def test_a_question_waits_for_the_process_that_asks_it(path, end):
    """Others do not; it ends with the turn, or with the process."""
    turns = QuestionTurns(path)
    with started_holder(path, KEY) as holder:
        assert not await is_free(turns, KEY)
        assert await is_free(turns, OTHER)
        if end == "kill":
            holder.kill()
        else:
            holder.stdin.write("\n")
            holder.stdin.flush()
        async with asyncio.timeout(30), turns.turn(KEY):
            assert path.read_bytes() == b""
    turns.close()


async def test_who_lives_is_waited_for_however_long_it_takes(path, caplog):
    """And one that is stopped only until it has shown no life for a while."""
    turns = QuestionTurns(path, beat_s=BEAT_S, longest_silence_s=SILENCE_S)
    with started_holder(path, KEY) as holder:
        assert not await is_free(turns, KEY, within_s=3 * SILENCE_S)
        assert caplog.text == ""
        holder.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(60), turns.turn(KEY):
            assert "has shown no life for" in caplog.text
        holder.kill()
    assert await is_free(turns, KEY)
    turns.close()


async def test_a_turn_that_is_given_back_leaves_no_sign_of_life(path):
    """Neither does one of a store that was closed meanwhile."""
    turns, others = QuestionTurns(path, beat_s=0.0), QuestionTurns(path)
    async with turns.turn(KEY):
        assert not await is_free(others, KEY)
    async with others.turn(KEY):
        pass
    async with turns.turn(OTHER):
        assert not await is_free(others, OTHER)
        turns.close()
        assert await is_free(others, OTHER)
    assert path.read_bytes() == b""
    others.close()


async def test_two_stores_of_one_process_are_two(path):
    """As when a caller evaluates several tasks at once; closing one leaves the turns of the other."""
    first, second, third = QuestionTurns(path), QuestionTurns(path), QuestionTurns(path)
    async with first.turn(KEY):
        assert not await is_free(second, KEY)
        assert await is_free(second, OTHER)
        second.close()
        assert not await is_free(third, KEY)
    assert await is_free(third, KEY)


@pytest.mark.parametrize("place", [None, "no/such/folder"])
async def test_where_there_is_nothing_to_share_everybody_has_a_turn(tmp_path, place):
    """A store in memory, and a folder that cannot be written: the store itself will tell."""
    path = None if place is None else tmp_path / place
    async with QuestionTurns(path).turn(KEY), QuestionTurns(path).turn(KEY):
        assert list(tmp_path.iterdir()) == []


def test_equal_answers_are_paid_for_once(tmp_path):
    """Two processes judge two answers of the same words: what one has asked, the other takes over."""
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_answer("answer_2")
    claims = {f"leaf{number}": (f"The lake has {number} islands.", None) for number in range(8)}
    project.add_script(claims)
    with JudgeServer() as server:
        command = ["evaluate", "bot", "--judge_base_url", server.base_url, "--max_concurrent_answers", "1"]
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", "from mind2web2.cli import main; raise SystemExit(main())", *command],
                cwd=tmp_path,
                env=clean_environment(OPENAI_API_KEY="dummy"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        printed = [process.communicate(timeout=120) for process in processes]
        asked = sorted(claim_in(prompt_text(body)) for body in server.requests)
    assert [process.returncode for process in processes] == [0, 0], printed
    assert asked == sorted(2 * [claim for claim, _ in claims.values()])
    assert all(len(project.result_paths(stem)) == 1 for stem in ("answer_1", "answer_2"))
    assert (project.results / f".{FILE_NAME}.turns").read_bytes() == b""
