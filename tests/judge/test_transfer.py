"""Judgments exported, read again, and opened to answer from."""

import hashlib
import random

import pytest
from stored_judgments import judgment

from mind2web2.errors import UsageError
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge.transfer import (
    export_judgments,
    latest_served_model,
    open_for_replay,
    read_judgments,
)


@pytest.fixture
def path(tmp_path):
    """Return where a store may be made."""
    return tmp_path / "bot" / FILE_NAME


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
            r"bad\.jsonl is no \.jsonl file: a file of judgments is one that ",
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
    """Both hold the same; an export is not written to."""
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


def served(key, model="judge-1-2026", created="2026-01-01", endpoint="openai http://a", **more):
    """Return a judgment of a judge whose server reported this model."""
    return judgment(key=key, endpoint=endpoint, served_model=model, created=created, **more)


@pytest.fixture
def filled(tmp_path):
    """Return a store with many judgments, one of them from two servers."""
    with JudgmentStore(tmp_path / FILE_NAME) as store:
        store.add([served(f"key {number}") for number in range(1200)])
        store.add([served("key 7", endpoint="openai http://b", claim="c", page="p", trial=2)])
    return tmp_path / FILE_NAME


def test_looking_up_leaves_no_trace(filled):
    """Neither in the store nor beside it, though its folder could be written."""
    before = hashlib.sha256(filled.read_bytes()).hexdigest()
    assert latest_served_model(filled, JUDGE) == "judge-1-2026"
    assert [entry.name for entry in filled.parent.iterdir()] == [FILE_NAME]
    assert hashlib.sha256(filled.read_bytes()).hexdigest() == before


def test_a_store_in_use_is_read_as_it_is(filled):
    """With the newest judgments of a run."""
    with JudgmentStore(filled) as store:
        store.add([served("new", "judge-1-2027", "2027-01-01")])
        assert latest_served_model(filled, JUDGE) == "judge-1-2027"


@pytest.mark.parametrize(
    ("later", "model"),
    [
        ({"model": "judge-1-2027", "created": "2027-01-01"}, "judge-1-2027"),
        (
            {
                "model": "judge-1-2027",
                "created": "2027-01-01",
                "endpoint": "openai http://b",
            },
            "judge-1-2026",
        ),
        (
            {"model": "judge-1-2027", "created": "2027-01-01", "temperature": 1.0},
            "judge-1-2026",
        ),
        (
            {"model": "judge-1-2027", "created": "2027-01-01", "purpose": "gate"},
            "judge-1-2026",
        ),
        ({"model": None, "created": "2027-01-01"}, "judge-1-2026"),
        ({"model": "judge-1-2025", "created": "2025-01-01"}, "judge-1-2026"),
    ],
)
def test_the_newest_judgment_of_the_very_judge_tells_how_it_is_served(filled, later, model):
    """Judgments of another server, or with other parameters, do not count."""
    with JudgmentStore(filled) as store:
        store.add([served("later", **later)])
    assert latest_served_model(filled, JUDGE) == model


def test_no_store_has_no_served_model(tmp_path):
    """Where there is no file, nothing is known."""
    assert latest_served_model(tmp_path / FILE_NAME, JUDGE) is None
