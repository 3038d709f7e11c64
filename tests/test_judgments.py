"""The store of judge replies, and the key under which each is kept."""

import asyncio
import random
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from projects import clean_environment
from pydantic import BaseModel

from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judgments import (
    FILE_NAME,
    JudgeIdentity,
    Judgment,
    JudgmentStore,
    export_judgments,
    judgment_key,
    open_for_replay,
    read_judgments,
)
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.prompts import HashedText


class Verdict(BaseModel):
    """What is asked for."""

    reasoning: str
    result: bool


class OtherVerdict(BaseModel):
    """The same, with one more field."""

    reasoning: str
    result: bool
    confidence: float


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA", "detail": "high"}}


def messages(text="Is it so?", image=IMAGE, role="user"):
    """Return a conversation."""
    return [
        {"role": "system", "content": "Judge."},
        {"role": role, "content": [{"type": "text", "text": text}, image]},
    ]


REQUEST = ChatRequest(model="judge-1", messages=messages(), template=Verdict)
# Stored judgments of earlier versions are found under it: it may never change.
KEY = "f9d5d4b68623343522fbcf8ac3754375683db6806eb2b4a8438d58fdb060907e"


def judgment(**changes):
    """Return a judgment."""
    fields = {
        "key": "k1",
        "endpoint": "openai http://localhost/v1",
        "model": "judge-1",
        "outcome": "reply",
        "text": "yes",
        "created": "2026-01-01T00:00:00.000+00:00",
        "purpose": "verify",
    }
    return Judgment(**{**fields, **changes})


@pytest.fixture
def path(tmp_path):
    """Return where a store may be made."""
    return tmp_path / "bot" / FILE_NAME


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "judge-2"},
        {"temperature": 0.0},
        {"reasoning_effort": "low"},
        {"extra": {"seed": 1}},
        {"template": None},
        {"template": OtherVerdict},
        {"messages": messages()[1:]},
        {"messages": messages(text="Is it so ?")},
        {"messages": messages(role="assistant")},
        {"messages": messages(image={**IMAGE, "image_url": {**IMAGE["image_url"], "detail": "low"}})},
        {
            "messages": messages(
                image={"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAB"}}
            )
        },
    ],
)
def test_each_thing_that_determines_a_reply_changes_the_key(changes):
    """A judgment on anything else is never taken for this one's."""
    assert judgment_key(replace(REQUEST, **changes), 1) != judgment_key(REQUEST, 1)


def test_each_trial_has_a_key_of_its_own():
    """Votes are independent requests."""
    assert len({judgment_key(REQUEST, trial) for trial in range(1, 6)}) == 5


def test_pieces_of_a_message_do_not_run_together():
    """Where one part ends and the next begins matters."""
    parts = [{"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]
    others = [{"type": "text", "text": "a"}, {"type": "text", "text": "bc"}]
    keys = [
        judgment_key(replace(REQUEST, messages=[{"role": "user", "content": content}]), 1)
        for content in (parts, others)
    ]
    assert keys[0] != keys[1]


def test_nothing_else_changes_the_key():
    """The order of a part's fields, how a text is held, and parameters at their defaults say nothing."""
    image = {"image_url": dict(reversed(IMAGE["image_url"].items())), "type": "image_url"}
    same = ChatRequest(
        model="judge-1",
        messages=messages(text=HashedText("Is it so?"), image=image),
        template=Verdict,
        temperature=None,
        reasoning_effort=None,
        extra={},
    )
    assert judgment_key(same, 1) == judgment_key(REQUEST, 1) == KEY


def test_a_text_is_the_same_as_a_list_of_one_text():
    """Providers take both for the same message."""
    as_text = replace(REQUEST, messages=[{"role": "user", "content": "hm"}])
    as_list = replace(REQUEST, messages=[{"role": "user", "content": [{"type": "text", "text": "hm"}]}])
    assert judgment_key(as_text, 1) == judgment_key(as_list, 1)


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
    """From the file, and from an export of it."""
    kept = judgment(text=text, claim=text[:1000], page="https://a.example/ü", node="leaf")
    with JudgmentStore(path) as store:
        await store.put(kept)
    with JudgmentStore(path) as store:
        assert await store.get("k1") == kept
        assert export_judgments(store, tmp_path / "out.jsonl") == 1
    assert list(read_judgments(tmp_path / "out.jsonl")) == [kept]


async def test_every_field_comes_back(path):
    """None of what a reader wants to know is lost."""
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
    """Asked for by endpoint it is that one's; asked for by key alone it is the newest."""
    old = judgment(endpoint="a", text="old", created="2025-01-01T00:00:00.000+00:00")
    new = judgment(endpoint="b", text="new", created="2026-01-01T00:00:00.000+00:00")
    with JudgmentStore(path) as store:
        await store.put(new)
        await store.put(old)
        assert await store.get("k1", "a") == old
        assert await store.get("k1", "b") == new
        assert await store.get("k1") == new
        assert await store.get("k1", "c") is None


async def test_asked_anew_replaces_and_imported_does_not(path):
    """What somebody else's file says never displaces one's own."""
    with JudgmentStore(path) as store:
        await store.put(judgment(text="first"))
        await store.put(judgment(text="second"))
        assert store.add([judgment(text="third"), judgment(key="k2")]) == 1
        assert store.add([judgment(key="k2")]) == 0
        assert [kept.text for kept in store.all()] == ["second", "yes"]


def test_the_judges_in_a_store(path):
    """Each model with its parameters and its server once."""
    with JudgmentStore(path) as store:
        store.add(
            [
                judgment(endpoint="a"),
                judgment(endpoint="a", key="k2"),
                judgment(endpoint="b", key="k2"),
                judgment(endpoint="a", key="k3", model="judge-2", temperature=0.5, reasoning_effort="low"),
            ]
        )
        judges = store.identities()
    assert judges == [
        JudgeIdentity(model="judge-1", endpoint="a"),
        JudgeIdentity(model="judge-1", endpoint="b"),
        JudgeIdentity(model="judge-2", endpoint="a", temperature=0.5, reasoning_effort="low"),
    ]
    assert judges[2].in_words() == ["judge-2", "temperature=0.5", "reasoning_effort=low", "at a"]


def test_an_export_is_the_same_whatever_the_order_of_arrival(tmp_path):
    """Byte for byte, also where key and moment are alike."""
    judgments = [
        judgment(
            key=f"k{number % 7}",
            endpoint=f"e{number}{task}",
            task_id=task,
            answer_name=f"answer_{number % 2}.md",
        )
        for number in range(20)
        for task in ("t1", None)
    ]
    exports = set()
    for seed in range(4):
        random.Random(seed).shuffle(judgments)
        with JudgmentStore(None) as store:
            store.add(judgments)
            export_judgments(store, tmp_path / "out.jsonl")
        exports.add((tmp_path / "out.jsonl").read_bytes())
    assert len(exports) == 1


def test_nothing_exported_is_nothing_read(tmp_path):
    """An empty store goes there and back."""
    with JudgmentStore(None) as store:
        assert export_judgments(store, tmp_path / "out.jsonl") == 0
    assert list(read_judgments(tmp_path / "out.jsonl")) == []


async def test_a_store_in_memory_is_its_own(tmp_path, monkeypatch):
    """Two of them share nothing, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    with JudgmentStore(None) as first, JudgmentStore(None) as second:
        await first.put(judgment())
        assert await second.get("k1") is None
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_kept_in_wal_mode(path):
    """So that a reader never waits for a writer."""
    JudgmentStore(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


WRITER = """
import asyncio, os, signal, sys
from pathlib import Path
from mind2web2.judgments import Judgment, JudgmentStore

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
    """Start a process that writes a hundred judgments once it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, end],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_writers_at_the_same_time_lose_nothing(path):
    """Two processes and a reader, and one of the writers is killed right after its last reply."""
    with started_writer(path, "a", "close") as one, started_writer(path, "b", "die") as other:
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
from mind2web2.judgments import Judgment, JudgmentStore

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


def test_what_a_killed_run_relied_on_is_kept(path):
    """Hundreds share a transaction, and none counts before it is committed."""
    command = [sys.executable, "-c", CROWD, str(path)]
    killed = subprocess.run(command, env=clean_environment(), stdout=subprocess.PIPE, text=True, check=False)
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
        wanted = [judgment(key="k1"), judgment(key="k2", text="half a pair: \ud83d"), judgment(key="k3")]
        wanted += [judgment(key="k4", text="half a pair: \ud83d"), judgment(key="k5")]
        outcomes = await asyncio.gather(*(store.put(each) for each in wanted), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[1::2]] == [UnicodeEncodeError] * 2
        assert outcomes[::2] == [None] * 3
        assert sorted(kept.key for kept in store.all()) == ["k1", "k3", "k5"]


def test_a_file_that_is_no_database(path):
    """One line that names it; the file stays as it is."""
    path.parent.mkdir()
    path.write_text("My notes on judgments, far longer than a header of a database would be. " * 10)
    with pytest.raises(JudgmentStoreError, match=rf"{FILE_NAME} cannot be kept: file is not a database$"):
        JudgmentStore(path)
    assert path.read_text().startswith("My notes")


def test_a_database_of_something_else(path):
    """A table of that name with other columns is not taken for judgments."""
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE judgments (title, verdict)")
    connection.commit()
    connection.close()
    with JudgmentStore(path) as store, pytest.raises(JudgmentStoreError, match=FILE_NAME):
        store.all()


def test_a_file_of_an_earlier_version(path):
    """It gets the columns that it lacks, and its judgments stay."""
    with JudgmentStore(path) as store:
        store.add([judgment()])
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE judgments DROP COLUMN batch")
    connection.close()
    for _ in range(2):
        with JudgmentStore(path) as store:
            assert store.all() == [judgment()]


def test_a_place_where_nothing_can_be_written(tmp_path):
    """A folder in place of the file, or a file in place of the folder."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(JudgmentStoreError, match="folder cannot be kept: unable to open"):
        JudgmentStore(tmp_path / "folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(JudgmentStoreError, match=r"cannot make folder .*file: "):
        JudgmentStore(tmp_path / "file" / FILE_NAME)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"bad\.jsonl:1 is not a judgment: line: "),
        (b"[]", r"bad\.jsonl:1 is not a judgment: line: "),
        (b'{"key": "k"}', r"bad\.jsonl:1 is not a judgment: endpoint: Field required$"),
        (judgment().model_dump_json().encode() + b"\n{}\n", r"bad\.jsonl:2 is not a judgment: key: Field"),
        (
            judgment(outcome="too_long").model_dump_json().replace("too_long", "x").encode(),
            ":1 .*: outcome: ",
        ),
        (b"\xff\xfe", r"cannot read judgments from .*bad\.jsonl: "),
    ],
)
def test_a_damaged_export_names_the_line(tmp_path, content, message):
    """The message is one line, and nothing of the file is replayed."""
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        open_for_replay(path)
    assert "\n" not in str(caught.value)


async def test_a_replay_opens_stores_and_exports(path, tmp_path):
    """Both hold the same; an export is not written to."""
    with JudgmentStore(path) as store:
        store.add([judgment()])
        export_judgments(store, tmp_path / "out.jsonl")
    before = (tmp_path / "out.jsonl").read_bytes()
    for source in (path, tmp_path / "out.jsonl"):
        with open_for_replay(source) as store:
            assert await store.get("k1") == judgment()
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_replay_of_what_is_not_there(tmp_path):
    """The message says where judgments come from; nothing is made."""
    with pytest.raises(UsageError, match=r"no judgments at .*gone\.sqlite3; evaluate with a judge first"):
        open_for_replay(tmp_path / "gone.sqlite3")
    (tmp_path / "notes.sqlite3").write_text("no database at all, but long enough to be looked at. " * 10)
    with pytest.raises(UsageError, match="file is not a database"):
        open_for_replay(tmp_path / "notes.sqlite3")
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.sqlite3"]
