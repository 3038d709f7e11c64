"""Judgments looked up in files that stay as they are."""

import hashlib
import shutil
import sqlite3

import pytest

from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judgment import JudgeIdentity, Judgment
from mind2web2.judgment_files import export_judgments
from mind2web2.judgment_reading import ExportLookup, StoreLookup, latest_served_model
from mind2web2.judgments import FILE_NAME, JudgmentStore

JUDGE = JudgeIdentity(model="judge-1", endpoint="openai http://a")


def judgment(key, endpoint="openai http://a", served="judge-1-2026", created="2026-01-01", **more):
    """Return a judgment."""
    given = {"model": "judge-1", "outcome": "reply", "text": "{}", "purpose": "verify", **more}
    return Judgment(key=key, endpoint=endpoint, served_model=served, created=created, **given)


@pytest.fixture
def path(tmp_path):
    """Return a store with 1200 judgments, one of them from two servers."""
    with JudgmentStore(tmp_path / FILE_NAME) as store:
        store.add([judgment(f"key {number}") for number in range(1200)])
        store.add([judgment("key 7", "openai http://b", claim="c", page="p", trial=2)])
    return tmp_path / FILE_NAME


def test_all_that_is_stored_is_found(path, tmp_path):
    """More than a statement takes at once, every server's, in a store or in what it was exported to."""
    with JudgmentStore(path) as store:
        export_judgments(store, tmp_path / "out.jsonl")
    keys = {f"key {number}" for number in range(1200)}
    for lookup in (StoreLookup(path), ExportLookup(tmp_path / "out.jsonl")):
        found = lookup.replies([*keys, "unknown", "key 7"])
        assert found.keys() == keys
        assert {len(replies) for key, replies in found.items() if key != "key 7"} == {1}
        assert {(reply.endpoint, reply.trial) for reply in found["key 7"]} == {
            ("openai http://a", 1),
            ("openai http://b", 2),
        }


def test_a_store_of_the_first_version_has_no_dollars(path):
    """It lacks their column, which is added when it is opened to be written."""
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE judgments DROP COLUMN cost_usd")
    connection.close()
    [reply] = StoreLookup(path).replies(["key 1"])["key 1"]
    assert (reply.cost_usd, reply.attempts, reply.served_model) == (None, 1, "judge-1-2026")


def test_a_row_that_is_no_judgment_is_an_error_with_the_file_s_name(path):
    """Whoever reads on would compare what cannot be compared."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE judgments SET created = NULL WHERE key = 'key 1'")
    connection.close()
    assert StoreLookup(path).replies(["key 2"]).keys() == {"key 2"}
    with pytest.raises(JudgmentStoreError, match=f"judgments in {path} cannot be read"):
        StoreLookup(path).replies(["key 1"])


def test_looking_up_leaves_no_trace(path):
    """Neither in the store nor beside it, though its folder could be written."""
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert StoreLookup(path).replies(["key 1"]).keys() == {"key 1"}
    assert latest_served_model(path, JUDGE) == "judge-1-2026"
    assert [entry.name for entry in path.parent.iterdir()] == [FILE_NAME]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_a_store_in_use_is_read_as_it_is(path):
    """With what a run has added just now."""
    with JudgmentStore(path) as store:
        store.add([judgment("new")])
        assert StoreLookup(path).replies(["new"]).keys() == {"new"}


@pytest.mark.parametrize(
    ("later", "model"),
    [
        ({"served": "judge-1-2027", "created": "2027-01-01"}, "judge-1-2027"),
        ({"served": "judge-1-2027", "created": "2027-01-01", "endpoint": "openai http://b"}, "judge-1-2026"),
        ({"served": "judge-1-2027", "created": "2027-01-01", "temperature": 1.0}, "judge-1-2026"),
        ({"served": "judge-1-2027", "created": "2027-01-01", "purpose": "gate"}, "judge-1-2026"),
        ({"served": None, "created": "2027-01-01"}, "judge-1-2026"),
        ({"served": "judge-1-2025", "created": "2025-01-01"}, "judge-1-2026"),
    ],
)
def test_the_newest_judgment_of_the_very_judge_tells_how_it_is_served(path, later, model):
    """Not another server's, nor one with other parameters."""
    with JudgmentStore(path) as store:
        store.add([judgment("later", **later)])
    assert latest_served_model(path, JUDGE) == model


def test_files_that_are_none(tmp_path):
    """Nothing is known where there is no store; a damaged one is an error in one line."""
    assert latest_served_model(tmp_path / FILE_NAME, JUDGE) is None
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 100)
    with pytest.raises(JudgmentStoreError, match=r"cannot be read"):
        latest_served_model(tmp_path / FILE_NAME, JUDGE)
    with pytest.raises(JudgmentStoreError, match=r"cannot be read"):
        StoreLookup(tmp_path / FILE_NAME).replies(["a"])
    shutil.copy(tmp_path / FILE_NAME, tmp_path / "out.jsonl")
    with pytest.raises(UsageError, match=r"out.jsonl:1 is not a judgment"):
        ExportLookup(tmp_path / "out.jsonl")
