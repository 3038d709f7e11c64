"""One process at a time asks a question."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from projects import Project, claim_in, clean_environment
from servers.judge_server import JudgeServer, prompt_text
from virtual_time import run_virtually

from mind2web2 import question_turns
from mind2web2.judgments import FILE_NAME
from mind2web2.loop_guard import LONGEST_BLOCK_S
from mind2web2.question_turns import QuestionTurns

KEY, OTHER = "a" * 64, "b" * 64
BEAT_S, HOUR_S = 5.0, 3600.0
HOLDER = """
import asyncio, sys
from pathlib import Path
from mind2web2.question_turns import QuestionTurns

async def hold(key):
    async with QuestionTurns(Path(sys.argv[1])).turn(key):
        print("taken", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(hold(sys.argv[2]))
"""


@pytest.fixture
def path(tmp_path):
    """Return where the turns are."""
    return tmp_path / ".turns"


@contextmanager
def started_holder(path, key):
    """Start a process that has a question's turn until it is told to end."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), key],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "taken\n"
            yield process
        finally:
            process.kill()


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


def test_who_lives_is_waited_for_however_long_it_takes(path, caplog):
    """It shows that it does all the time."""
    holders, others = QuestionTurns(path), QuestionTurns(path)

    async def is_free_meanwhile():
        async with holders.turn(KEY):
            return await is_free(others, KEY, within_s=HOUR_S)

    assert run_virtually(is_free_meanwhile())[0] is False
    assert caplog.text == ""
    holders.close()
    others.close()


def test_who_shows_no_life_is_waited_for_as_long_as_a_script_may_block_it(path, caplog):
    """And a beat longer, which may have been due when that began; then it is taken for dead."""
    turns = QuestionTurns(path)
    with started_holder(path, KEY) as holder:
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
        assert run_virtually(is_free(turns, KEY, within_s=LONGEST_BLOCK_S + BEAT_S))[0] is False
        assert caplog.text == ""
        assert run_virtually(is_free(turns, KEY, within_s=HOUR_S))[0] is True
        assert "has shown no life for" in caplog.text
    turns.close()


def shows_life(path, key):
    """Tell whether a sign of life is shown just now, as whoever opens the file anew sees it."""
    place = int(key[: question_turns._HASH_DIGITS], 16) + question_turns._BEATS
    with path.open("r+b") as file:
        return question_turns._is_locked(file.fileno(), place)


@pytest.mark.parametrize("is_closed", [False, True], ids=["given back", "closed meanwhile"])
def test_a_turn_that_is_over_leaves_no_sign_of_life(path, is_closed):
    """Neither the one that is shown just then, nor a later one."""
    turns = QuestionTurns(path)

    async def seen_from_beat_to_beat():
        async with turns.turn(KEY):
            yield shows_life(path, KEY)
            await asyncio.sleep(1.5 * BEAT_S)
            yield shows_life(path, KEY)
            if is_closed:
                turns.close()
        for _ in range(4):
            yield shows_life(path, KEY)
            await asyncio.sleep(BEAT_S)

    async def seen():
        return [each async for each in seen_from_beat_to_beat()], dict(turns._beats)

    assert run_virtually(seen())[0] == ([False, True, False, False, False, False], {})
    assert path.read_bytes() == b""
    turns.close()


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
