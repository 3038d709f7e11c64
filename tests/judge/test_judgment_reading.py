"""Judgments looked up in files that stay as they are."""

import hashlib

import pytest

from mind2web2.errors import JudgmentStoreError
from mind2web2.judge.store import FILE_NAME, JudgeIdentity, Judgment, JudgmentStore
from mind2web2.judge.transfer import latest_served_model

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


def test_looking_up_leaves_no_trace(path):
    """Neither in the store nor beside it, though its folder could be written."""
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    assert latest_served_model(path, JUDGE) == "judge-1-2026"
    assert [entry.name for entry in path.parent.iterdir()] == [FILE_NAME]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_a_store_in_use_is_read_as_it_is(path):
    """With what a run has added just now."""
    with JudgmentStore(path) as store:
        store.add([judgment("new", served="judge-1-2027", created="2027-01-01")])
        assert latest_served_model(path, JUDGE) == "judge-1-2027"


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
