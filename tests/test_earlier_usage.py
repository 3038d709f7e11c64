"""What earlier evaluations took is read without a trace."""

import asyncio
import json
import shutil

import pytest

from mind2web2.earlier_usage import AnswerUsage, StoredUsage, agent_usage, stored_usage, task_usage
from mind2web2.errors import JudgmentStoreError
from mind2web2.judgment import Judgment
from mind2web2.judgments import JudgmentStore
from mind2web2.llm_client.chat import TokenUsage
from mind2web2.recorded_judge import JudgeSettings

SETTINGS = JudgeSettings("openai", "o4-mini")
USAGE = {"judgments": 4, "input_tokens": 100, "cached_tokens": 60, "output_tokens": 10, "cost_usd": 0.1}


def add_result(root, name, content, stamp="20250101_000000"):
    """Write a result file of an answer, named as task/answer."""
    folder = root / "bot" / name / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stamp}_{name.split('/')[-1]}.md.json").write_text(json.dumps(content))


def judgment(number, **changes):
    """Return a stored judgment."""
    fields = {
        "key": str(number),
        "endpoint": "a server",
        "model": "o4-mini",
        "outcome": "reply",
        "text": "so",
        "input_tokens": 10,
        "cached_tokens": 5,
        "output_tokens": 1,
        "attempts": 2,
        "created": "2025",
        "task_id": "lake",
        "answer_name": "answer_1.md",
        "purpose": "verify",
    }
    return Judgment(**fields | changes)


@pytest.fixture
def path(tmp_path):
    """Return a store with two judgments that count and others that do not."""
    path = tmp_path / "store" / "judgments.sqlite3"
    with JudgmentStore(path) as store:
        store.add([judgment(1), judgment(2), judgment(3, answer_name="answer_2.md", endpoint="another")])
        store.add([judgment(4, model="gpt-4o"), judgment(5, temperature=0.5), judgment(6, purpose="gate")])
    return path


def test_the_newest_result_of_each_answer_counts(tmp_path):
    """Whatever the judge was."""
    add_result(tmp_path, "lake/answer_1", {"judge_model": "old", "judge_usage": USAGE}, "20240101_000000")
    add_result(tmp_path, "lake/answer_1", {"judge_model": "new", "judge_usage": USAGE | {"judgments": 5}})
    add_result(tmp_path, "hill/answer_1", {"judge_model": "new", "judge_usage": USAGE})
    tokens = TokenUsage(100, 60, 10)
    assert task_usage(tmp_path, "bot", "lake") == [AnswerUsage("new", 5, tokens)]
    assert agent_usage(tmp_path, "bot") == [AnswerUsage("new", 4, tokens), AnswerUsage("new", 5, tokens)]
    assert task_usage(tmp_path, "bot", "none") == agent_usage(tmp_path, "nobody") == []


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"judge_model": "o4-mini"},
        {"judge_model": "o4-mini", "judge_usage": {"judgments": "many"}},
        {"judge_model": "o4-mini", "judge_usage": USAGE | {"input_tokens": 0}},
    ],
)
def test_results_that_tell_no_tokens_are_passed_over(tmp_path, content):
    """Other tools', or of clients that do not count."""
    add_result(tmp_path, "lake/answer_1", content)
    assert task_usage(tmp_path, "bot", "lake") == []


def test_stored_judgments_of_the_judge_count(path):
    """By answer; of one server, or of any."""
    first = StoredUsage("lake", "answer_1.md", 2, 4, TokenUsage(20, 10, 2))
    second = StoredUsage("lake", "answer_2.md", 1, 2, TokenUsage(10, 5, 1))
    assert stored_usage(path, SETTINGS, "a server") == [first]
    assert stored_usage(path, SETTINGS, None) == [first, second]


def test_a_closed_store_is_left_as_it_is(path):
    """No file appears beside it, and none changes."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert stored_usage(path, SETTINGS, "a server")
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


async def test_a_store_in_use_or_left_by_a_killed_process_is_read_up_to_the_last_judgment(path, tmp_path):
    """Also what is in its log only."""
    with JudgmentStore(path) as store:
        await store.put(judgment(7))
        await asyncio.to_thread(shutil.copytree, path.parent, tmp_path / "killed")
        for place in (path, tmp_path / "killed" / path.name):
            [usage] = await asyncio.to_thread(stored_usage, place, SETTINGS, "a server")
            assert usage.judgments == 3


def test_there_may_be_no_store(tmp_path):
    """And none is made."""
    assert stored_usage(tmp_path / "none" / "judgments.sqlite3", SETTINGS, None) == []
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_is_named(tmp_path):
    """As the run itself would."""
    path = tmp_path / "judgments.sqlite3"
    path.write_text("not a database, and long enough to be none " * 100)
    with pytest.raises(
        JudgmentStoreError, match=r"judgments\.sqlite3 cannot be read: file is not a database"
    ):
        stored_usage(path, SETTINGS, None)
