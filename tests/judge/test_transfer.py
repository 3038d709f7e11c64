"""Judgments exported, read again, and opened to answer from."""

import random

import pytest
from stored_judgments import judgment

from mind2web2.errors import UsageError
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import (
    export_judgments,
    open_for_replay,
    read_judgments,
)


@pytest.fixture
def path(tmp_path):
    """Return where a store may be made."""
    return tmp_path / "bot" / STORE_NAME


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
        assert export_judgments(store, tmp_path / "out.jsonl") == []
    assert list(read_judgments(tmp_path / "out.jsonl")) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", r"bad\.jsonl:1 is not a judgment: line: "),
        (b"[]", r"bad\.jsonl:1 is not a judgment: line: "),
        (b'{"key": "k"}', r"bad\.jsonl:1 is not a judgment: endpoint: Field required$"),
        (
            judgment().model_dump_json().encode() + b"\n{}\n",
            r"bad\.jsonl:2 is not a judgment: key: Field",
        ),
        (
            judgment(outcome="too_long").model_dump_json().replace("too_long", "x").encode(),
            ":1 .*: outcome: ",
        ),
        (
            b"\xff\xfe",
            r"bad\.jsonl is not a \.jsonl file: a file of judgments is one that ",
        ),
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
    with JudgmentStore(path) as store:
        store.add([judgment()])
        export_judgments(store, tmp_path / "out.jsonl")
    before = (tmp_path / "out.jsonl").read_bytes()
    for source in (path, tmp_path / "out.jsonl"):
        with open_for_replay(source) as store:
            assert await store.get("k1") == judgment()
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_replay_of_a_missing_file(tmp_path):
    """The message says where judgments come from; nothing is made."""
    with pytest.raises(
        UsageError,
        match=r"no judgments at .*gone\.sqlite3; evaluate with a judge first",
    ):
        open_for_replay(tmp_path / "gone.sqlite3")
    (tmp_path / "notes.sqlite3").write_text(
        "no database at all, but long enough to be looked at. " * 10
    )
    with pytest.raises(UsageError, match="file is not a database"):
        open_for_replay(tmp_path / "notes.sqlite3")
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.sqlite3"]


JUDGE = JudgeIdentity(model="judge-1", endpoint="openai http://a")
