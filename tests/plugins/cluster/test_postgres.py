"""Judgments that several machines share in PostgreSQL."""

import asyncio
import signal
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest
from projects import Project, call, clean_environment, evaluate_main, read_json
from servers.judge_server import JudgeServer
from servers.machines import Machines
from servers.postgres_server import PostgresServer
from stored_judgments import judgment

from mind2web2.cli import main
from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judge.store import JudgmentStore
from mind2web2.plugins.cluster import postgres
from mind2web2.plugins.cluster.postgres import JudgmentDatabase, SharedJudgmentStore

ENDPOINT = judgment().endpoint


@pytest.fixture(scope="module")
def server():
    """A database server."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def url(server):
    """The URL of a database without judgments."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS mind2web2_judgments, mind2web2_schema")
    return server.url


@pytest.fixture
def machines(url, tmp_path):
    """Two stores with a file each and the same database."""
    with (
        SharedJudgmentStore(tmp_path / "a.sqlite3", url) as one,
        SharedJudgmentStore(tmp_path / "b.sqlite3", url) as other,
    ):
        yield one, other


async def test_a_judgment_of_one_machine_is_every_machines(machines, tmp_path):
    """It is copied to the other machine's own file; a gate stays where it was made."""
    one, other = machines
    kept = judgment(text="nul \0 and 日本", claim="c\0")
    await one.put(kept)
    await one.put(judgment(key="gate", purpose="gate", outcome="asked"))
    assert await other.get("k1", ENDPOINT) == kept
    assert await other.get("gate", ENDPOINT) is None
    assert await other.get("k1", "another server") is None
    with JudgmentStore(tmp_path / "b.sqlite3") as own:
        assert own.all() == [kept]


async def test_of_two_replies_the_first_one_counts_on_every_machine(machines, tmp_path):
    """Two workers may ask one question where a connection was lost; ``put`` still replaces."""
    one, other = machines
    first, second = judgment(text="yes"), judgment(text="no")
    assert await one.keep(first) == await other.keep(second) == first
    with JudgmentStore(tmp_path / "b.sqlite3") as own:
        assert own.all() == [first]
    await other.put(second)
    assert await one.database.find("k1", ENDPOINT) == second


async def test_a_judgment_that_was_read_is_replaced_once(machines, url, tmp_path):
    """Both read it and do not count it: the first reply does.

    An earlier version wrote other fields.
    """
    one, other = machines
    old, first, second = (judgment(text=text) for text in ("old \0", "first", "second"))
    await one.put(old)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE mind2web2_judgments SET judgment = replace(judgment, '\"attempts\":1,', '')"
        )
    assert await one.get("k1", ENDPOINT) == await other.get("k1", ENDPOINT) == old
    assert await other.keep(second, instead_of=second) == old
    kept = await asyncio.gather(one.keep(first, instead_of=old), other.keep(second, instead_of=old))
    assert kept[0] == kept[1] in (first, second)
    assert await one.database.find("k1", ENDPOINT) == kept[0]
    for name in ("a", "b"):
        with JudgmentStore(tmp_path / f"{name}.sqlite3") as own:
            assert own.all() == kept[:1]


async def test_a_question_that_is_being_asked_is_waited_for(machines):
    """The second worker gets the reply of the first one; then no worker holds the question."""
    one, other = machines
    is_held, is_waiting, order = asyncio.Event(), asyncio.Event(), []

    async def ask():
        async with one.hold_question("k1", ENDPOINT) as theirs:
            assert theirs is None
            is_held.set()
            await is_waiting.wait()
            order.append("asked")
            await one.put(judgment())

    async def wait():
        await is_held.wait()
        order.append("waits")
        is_waiting.set()
        async with other.hold_question("k1", ENDPOINT) as theirs:
            order.append("has it")
            return theirs

    _, theirs = await asyncio.gather(ask(), wait())
    assert theirs == judgment()
    assert order == ["waits", "asked", "has it"]
    async with (
        one.hold_question("k2", ENDPOINT) as theirs,
        other.hold_question("k3", ENDPOINT) as theirs_too,
    ):
        assert theirs is theirs_too is None


async def test_a_worker_that_failed_or_was_cancelled_holds_nothing(machines):
    """The next one asks."""
    one, other = machines
    with pytest.raises(ZeroDivisionError):
        async with one.hold_question("k1", ENDPOINT):
            raise ZeroDivisionError
    async with other.hold_question("k1", ENDPOINT) as theirs:
        assert theirs is None
        waiting = asyncio.create_task(one.hold_question("k1", ENDPOINT).__aenter__())
        await one.get("k0", ENDPOINT)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with one.hold_question("k1", ENDPOINT) as theirs, other.hold_question("k0", ENDPOINT):
        assert theirs is None


async def test_a_database_that_restarts_is_waited_for(server, machines):
    """Replies and held questions survive; what waited goes on."""
    one, other = machines
    await one.put(judgment())
    async with one.hold_question("k2", ENDPOINT) as theirs:
        assert theirs is None
        server.stop()
        waiting = asyncio.gather(one.put(judgment(key="k2")), other.get("k1", ENDPOINT))
        await asyncio.to_thread(server.start)
        assert (await waiting)[1] == judgment()
    assert await other.get("k2", ENDPOINT) == judgment(key="k2")


async def test_a_reply_that_the_database_missed_is_added_later(server, url, tmp_path):
    """The own file has it; the next run brings it to the others.

    The message keeps the password out.
    """
    path = tmp_path / "a.sqlite3"
    with SharedJudgmentStore(path, url, outage_wait_s=0) as store:
        server.stop()
        with pytest.raises(
            JudgmentStoreError, match=r"database 127\.0\.0\.1/postgres cannot be used"
        ) as error:
            await store.put(judgment())
        assert await store.get("k1", ENDPOINT) == judgment()
    with pytest.raises(JudgmentStoreError, match="start it") as closed:
        SharedJudgmentStore(path, url)
    assert server.password not in f"{error.value} {closed.value}"
    server.start()
    with SharedJudgmentStore(path, url), closing(JudgmentDatabase(url)) as database:
        assert list(database.all()) == [judgment()]


def test_databases_that_cannot_be_used_are_named(url, server):
    """Another form, a damaged row, a wrong password, a URL that is none: one line each."""
    with closing(JudgmentDatabase(url)) as database:
        database.add([judgment()])
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE mind2web2_judgments SET judgment = '{}'")
            connection.execute("UPDATE mind2web2_schema SET version = 2")
        with pytest.raises(JudgmentStoreError, match="damaged judgment: key"):
            list(database.all())
    with pytest.raises(JudgmentStoreError, match="have the form 2, this program has 1"):
        JudgmentDatabase(url)
    with pytest.raises(JudgmentStoreError, match="authentication failed"):
        JudgmentDatabase(url.replace(server.password, "wrong"))
    for bad in (
        "localhost/x?port=1&sort=2",
        "user:p@ss@localhost/x",
        "user:p/ss@localhost/x",
    ):
        with pytest.raises(UsageError, match="postgresql://USER@HOST"):
            JudgmentDatabase(f"postgresql://{bad}")


def test_two_machines_ask_each_question_once(url, tmp_path, monkeypatch):
    """A second run with another result folder asks nothing and has the same scores."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script({"deep": ("The lake is deep.", None), "cold": ("The lake is cold.", None)})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    words = ("--agent_name", "bot", "--judgments", url, "--eval_results_root")
    with JudgeServer() as judge:
        for number in ("1", "2"):
            run = call(
                evaluate_main,
                *words,
                f"results{number}",
                "--judge_base_url",
                judge.base_url,
            )
            assert run.returncode == 0, run.stderr
            if number == "1":
                asked = len(judge.requests)
        assert len(judge.requests) == asked > 0
    assert "0 judgments asked" in run.stdout
    one, two = (
        read_json(tmp_path / f"results{n}" / "bot" / "lake" / "summary.json") for n in (1, 2)
    )
    assert one == two


def test_an_import_brings_judgments_of_the_database(url, tmp_path, monkeypatch):
    """From one agent's file, by way of the database, into another's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eval_results" / "bot").mkdir(parents=True)
    with JudgmentStore(tmp_path / "eval_results" / "bot" / "judgments.sqlite3") as store:
        store.add([judgment(key=f"k{number:04}") for number in range(1200)])
    # Opening the database adds the agent's own judgments.
    assert call(main, "judgments", "import", "bot", url).stdout == "new judgments: 0 of 1,200\n"
    assert call(main, "judgments", "import", "rob", url).stdout == "new judgments: 1,200 of 1,200\n"
    run = call(
        evaluate_main,
        "--agent_name",
        "bot",
        "--llm_provider",
        "replay",
        "--judgments",
        url,
    )
    assert (run.returncode, "judgments import" in run.stderr) == (2, True)


HOLDER = """
import asyncio, sys
from mind2web2.plugins.cluster.postgres import JudgmentDatabase

async def hold(url):
    async with JudgmentDatabase(url).hold_question("k1", "judge"):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(hold(sys.argv[1]))
"""


async def claimed_by_another(url):
    """Claim the question, and return the judgment that the holder got."""
    with closing(JudgmentDatabase(url)) as database:
        async with asyncio.timeout(60), database.hold_question("k1", "judge") as found:
            return found


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_is_killed_or_stands_still_holds_nothing(url, monkeypatch, sign):
    """Its system keeps the connection of a worker that stands still."""
    monkeypatch.setattr(postgres, "_SIGN_OF_LIFE_EVERY_S", 0.1)
    monkeypatch.setattr(postgres, "_LONGEST_SILENCE_S", 0.5)
    command = [sys.executable, "-c", HOLDER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment()) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            holder.send_signal(sign)
            assert asyncio.run(claimed_by_another(url)) is None
        finally:
            holder.kill()


def test_a_machine_that_vanishes_holds_no_question_for_long():
    """It closes no connection: the database looks whether it is still there."""
    with Machines() as machines, PostgresServer(host=machines.address) as server:
        lost = machines.add()
        command = [*lost.command, sys.executable, "-c", HOLDER, server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            try:
                assert holder.stdout.readline() == "held\n"
                lost.vanish()
                assert asyncio.run(claimed_by_another(server.url)) is None
            finally:
                holder.kill()
