"""The store of judge replies."""

import asyncio
import sqlite3
import subprocess
import sys
from functools import partial

import pytest
from projects import clean_environment
from stored_judgments import judgment

from mind2web2.errors import JudgmentStoreError, Mind2Web2Error
from mind2web2.judge import store
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import (
    export_judgments,
    open_for_replay,
    read_judgments,
    reading,
)
from mind2web2.utils.machine import network_file_system


@pytest.fixture
def path(tmp_path):
    """Return where a store may be made."""
    return tmp_path / "bot" / STORE_NAME


@pytest.mark.parametrize(
    "text",
    [
        "",
        "schön 日本 🐟",
        "a\u2028b\u2029c\x85d",
        'quotes " and \\ and \n\r\n\t',
        "nul \0 within",
        "x" * 5_000_000,
    ],
    ids=["empty", "unicode", "separators", "escapes", "nul", "big"],
)
async def test_any_text_comes_back_as_it_was(path, tmp_path, text):
    kept = judgment(text=text, claim=text[:1000], page="https://a.example/ü", node="leaf")
    with JudgmentStore(path) as store:
        await store.put(kept)
    with JudgmentStore(path) as store:
        assert await store.get("k1") == kept
        assert export_judgments(store, tmp_path / "out.jsonl") == ["k1"]
    assert list(read_judgments(tmp_path / "out.jsonl")) == [kept]


async def test_a_store_with_a_limit_drops_the_oldest():
    """A process that judges for weeks keeps its size."""
    with JudgmentStore(None, most=10) as store:
        for number in range(42):
            await store.put(judgment(key=f"k{number}", created=f"2026-01-01T00:00:{number:02}"))
        kept = [each.key for each in store.all()]
    assert kept == [f"k{number}" for number in range(33, 42)]


async def test_every_field_comes_back(path):
    """Nothing is lost."""
    kept = judgment(
        temperature=0.5,
        reasoning_effort="low",
        outcome="declined",
        served_model="judge-1-2025",
        system_fingerprint="fp",
        input_tokens=1,
        cached_tokens=2,
        cache_write_tokens=3,
        output_tokens=4,
        attempts=5,
        seconds=6.5,
        task_id="t",
        answer_name="answer_1.md",
        node="n",
        claim="c",
        page="p",
        trial=7,
    )
    with JudgmentStore(path) as store:
        await store.put(kept)
        assert await store.get("k1") == kept
        assert await store.get("k2") is None


async def test_each_endpoint_has_its_own_judgment(path):
    """A key with an endpoint gives that one's judgment; a key alone gives the newest."""
    old = judgment(endpoint="a", text="old", created="2025-01-01T00:00:00.000+00:00")
    new = judgment(endpoint="b", text="new", created="2026-01-01T00:00:00.000+00:00")
    with JudgmentStore(path) as store:
        await store.put(new)
        await store.put(old)
        assert await store.get("k1", "a") == old
        assert await store.get("k1", "b") == new
        assert await store.get("k1") == new
        assert await store.get("k1", "c") is None


async def test_a_new_judgment_replaces_and_an_imported_one_does_not(path):
    """Imported judgments never replace one's own."""
    with JudgmentStore(path) as store:
        await store.put(judgment(text="first"))
        await store.put(judgment(text="second"))
        assert store.add([judgment(text="third"), judgment(key="k2")]) == 1
        assert store.add([judgment(key="k2")]) == 0
        assert [kept.text for kept in store.all()] == ["second", "yes"]


async def test_a_judgment_that_is_kept_replaces_none(path):
    """The stored one comes back, also where many are kept at once."""
    with JudgmentStore(path) as store:
        assert await store.keep(judgment(text="first")) == judgment(text="first")
        kept = await asyncio.gather(
            store.keep(judgment(text="second")), store.keep(judgment(key="k2"))
        )
        assert kept == [judgment(text="first"), judgment(key="k2")]
        assert store.all() == kept


async def test_a_judgment_replaces_the_one_that_was_read(path):
    old = judgment(text="nul \0 and 日本", temperature=0.1, batch=True, cost_usd=1e-7, seconds=2)
    first, second = judgment(text="first"), judgment(text="second")
    with JudgmentStore(path) as store:
        await store.put(old)
        read = await store.get("k1")
        assert await store.keep(first, instead_of=judgment(text="another")) == old
        kept = await asyncio.gather(
            store.keep(first, instead_of=read), store.keep(second, instead_of=read)
        )
        assert kept == [first, first] == 2 * store.all()


def test_the_judges_in_a_store(path):
    with JudgmentStore(path) as store:
        store.add(
            [
                judgment(endpoint="a"),
                judgment(endpoint="a", key="k2"),
                judgment(endpoint="b", key="k2"),
                judgment(
                    endpoint="a",
                    key="k3",
                    model="judge-2",
                    temperature=0.5,
                    reasoning_effort="low",
                ),
            ]
        )
        judges = store.identities()
    assert judges == [
        JudgeIdentity(model="judge-1", endpoint="a"),
        JudgeIdentity(model="judge-1", endpoint="b"),
        JudgeIdentity(model="judge-2", endpoint="a", temperature=0.5, reasoning_effort="low"),
    ]
    assert judges[2].in_words() == [
        "judge-2",
        "temperature=0.5",
        "reasoning_effort=low",
        "at a",
    ]


async def test_a_store_in_memory_is_its_own(tmp_path, monkeypatch):
    """Two of them share nothing, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    with JudgmentStore(None) as first, JudgmentStore(None) as second:
        await first.put(judgment())
        assert await second.get("k1") is None
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_kept_in_wal_mode(path):
    JudgmentStore(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


WRITER = """
import asyncio, os, signal, sys
from pathlib import Path
from mind2web2.judge.store import Judgment, JudgmentStore

async def write(store, name):
    for number in range(100):
        await store.put(Judgment(
            key=f"{name}{number}", endpoint="e", model="m", outcome="reply", text="yes", created="now",
            purpose="verify",
        ))

store = JudgmentStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(write(store, sys.argv[2]))
if sys.argv[3] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
store.close()
"""


def started_writer(path, name, end):
    """Start a process that writes a hundred judgments on a signal."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, end],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_writers_at_the_same_time_lose_nothing(path):
    """Two processes and a reader, and one of the writers is killed right after its last reply."""
    with (
        started_writer(path, "a", "close") as one,
        started_writer(path, "b", "die") as other,
    ):
        for process in (one, other):
            assert process.stdout.readline() == "ready\n"
        for process in (one, other):
            process.stdin.write("go\n")
            process.stdin.flush()
        with JudgmentStore(path) as store:
            store.add([judgment(key=f"c{number}") for number in range(100)])
        assert (one.wait(60), other.wait(60)) == (0, -9)
    with JudgmentStore(path) as store:
        kept = {judgment.key for judgment in store.all()}
    assert kept == {f"{name}{number}" for name in "abc" for number in range(100)}


CROWD = """
import asyncio, os, signal, sys
from pathlib import Path
from mind2web2.judge.store import Judgment, JudgmentStore

async def put(store, number):
    await store.put(Judgment(
        key=f"k{number}", endpoint="e", model="m", outcome="reply", text="yes", created="now",
        purpose="verify",
    ))
    os.write(1, f"k{number}\\n".encode())
    if number == 700:
        os.kill(os.getpid(), signal.SIGKILL)

async def crowd(store):
    first = asyncio.gather(*(put(store, number) for number in range(500)))
    await asyncio.sleep(0)
    await asyncio.gather(first, *(put(store, number) for number in range(500, 1500)))

asyncio.run(crowd(JudgmentStore(Path(sys.argv[1]))))
"""


def test_stored_judgments_survive_a_killed_run(path):
    """Hundreds share a transaction, and none counts before it is committed."""
    command = [sys.executable, "-c", CROWD, str(path)]
    killed = subprocess.run(
        command, env=clean_environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    relied_on = set(killed.stdout.split())
    assert (killed.returncode, len(relied_on) >= 500) == (-9, True)
    with JudgmentStore(path) as store:
        assert relied_on <= {judgment.key for judgment in store.all()}


async def test_hundreds_at_once_share_transactions(path):
    """Each comes back, whatever else gathered with it."""
    with JudgmentStore(path) as store:
        keys = [f"k{number}" for number in range(500)]
        await asyncio.gather(*(store.put(judgment(key=key, text=key)) for key in keys))
        found = await asyncio.gather(*(store.get(key, judgment().endpoint) for key in keys))
        assert [kept.text for kept in found] == keys


async def test_one_that_cannot_be_kept_costs_no_other(path):
    """A text that no database takes fails alone, though it shares a transaction."""
    with JudgmentStore(path) as store:
        wanted = [
            judgment(key="k1"),
            judgment(key="k2", text="half a pair: \ud83d"),
            judgment(key="k3"),
        ]
        wanted += [judgment(key="k4", text="half a pair: \ud83d"), judgment(key="k5")]
        outcomes = await asyncio.gather(
            *(store.put(each) for each in wanted), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes[1::2]] == [UnicodeEncodeError] * 2
        assert outcomes[::2] == [None] * 3
        assert sorted(kept.key for kept in store.all()) == ["k1", "k3", "k5"]


def garbage(path):
    """Write other content into the file."""
    path.write_bytes(b"no database at all " * 200)


def malformed(path):
    """Overwrite the pages of the table, as a failing disk does."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def foreign_table(path):
    """Put another program's database into its place."""
    path.unlink()
    changed(path, "CREATE TABLE judgments (title, verdict)")


def with_a_view(path):
    """Add a view, which no store has."""
    changed(path, "CREATE VIEW extra AS SELECT 1")


def changed(path, statement):
    """Execute a statement on a file."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def read_by_a_run(path):
    """Read all judgments as a run with a judge does."""
    with JudgmentStore(path) as store:
        store.all()


def read_by_a_replay(path):
    """Read all judgments as a replay does."""
    with open_for_replay(path) as store:
        store.all()


def read_only(path):
    """Read a store as a command does that changes nothing."""
    with reading(path) as connection:
        connection.execute("SELECT key, text FROM judgments").fetchall()


@pytest.mark.parametrize(
    ("read", "cure"),
    [
        (
            read_by_a_run,
            "move the file away; judgments that are missing then are requested, ",
        ),
        (
            read_by_a_replay,
            "name another file with --judgments, such as an export, or evaluate with a judge",
        ),
        (read_only, "move the file away; "),
    ],
)
@pytest.mark.parametrize("damage", [garbage, malformed, foreign_table, with_a_view])
def test_an_error_of_a_damaged_file_names_the_cure(path, damage, read, cure):
    """The cure depends on how the file is used; the file stays as it is."""
    with JudgmentStore(path) as store:
        store.add([judgment()])
    damage(path)
    before = path.read_bytes()
    with pytest.raises(Mind2Web2Error) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"judgments in {path} cannot be used: ")
    assert f"; {cure}" in message
    assert "\n" not in message
    if damage is garbage:
        assert path.read_bytes() == before


def test_a_file_of_an_earlier_version(path):
    with JudgmentStore(path) as store:
        store.add([judgment()])
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE judgments DROP COLUMN batch")
    connection.close()
    for _ in range(2):
        with JudgmentStore(path) as store:
            assert store.all() == [judgment()]


def test_a_network_file_system_is_refused(tmp_path, monkeypatch):
    """One line names the place and the way out; nothing is written there."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"40 22 0:35 / {tmp_path.resolve()} rw - nfs4 server:/export rw\n")
    monkeypatch.setattr(store, "network_file_system", partial(network_file_system, mounts=mounts))
    with pytest.raises(
        JudgmentStoreError,
        match=r"network file system \(nfs4\).*--eval_results_root.*--shard",
    ):
        JudgmentStore(tmp_path / "bot" / STORE_NAME)
    assert list(tmp_path.rglob("*.sqlite3*")) == []


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(JudgmentStoreError, match="folder cannot be used: unable to open"):
        JudgmentStore(tmp_path / "folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(JudgmentStoreError, match=r"cannot make folder .*file: "):
        JudgmentStore(tmp_path / "file" / STORE_NAME)


async def test_an_outcome_of_an_earlier_version_is_no_reply(path):
    with JudgmentStore(path) as store:
        await store.put(judgment(outcome="fewer_images"))
        assert await store.get("k1") is None
        reply = judgment()
        assert await store.keep(reply) == reply
        assert await store.get("k1") == reply
