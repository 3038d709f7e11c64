"""Inputs that once crashed a parser, hung it or got past it."""

import sqlite3

import pytest
from inputs.parsers import PARSERS

from mind2web2.errors import CacheWriteError, JudgmentStoreError, UsageError
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import open_for_replay
from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.structured_output import InvalidOutputError, read_reply
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.known_answers import task_answers
from mind2web2.urls.markdown import URLs

STEM = "0123456789abcdef0123456789abcdef"
STORE = PARSERS["stored judgments"].seeds[0]
DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cache index", b'{"http://a.example": "web", "other": "\\ud800"}'),
        ("note of a replaced page", b'{"%s.txt": ".writing-\\ud800"}' % STEM.encode()),
        (
            "note of a replaced page",
            b'{"%s.txt": ".writing-%s"}' % (STEM.encode(), b"x" * 300),
        ),
        ("cache index", DEEP),
        ("task summary", b'[{"answer_name": "%s", "score": 1}]' % (b"x" * 300)),
        ("task summary", b'[{"answer_name": "\\u0000", "score": 1}]'),
        (
            "stored judgments",
            STORE.replace(b"CREATE TABLE judgments", b"CREATE TABLE judgm\xbents"),
        ),
        (
            "stored judgments",
            STORE.replace(b'{"reasoning"', b"\xff\xff\n\n\xff\xff\xff\xff\xff\xff\xff\xff"),
        ),
        ("judge reply", b'{"error": ' * 5000),
        ("judge address", b"first line\nsecond line"),
        ("document", b"text/plain; charset=undefined\ntext\xff"),
        ("document", b"text/plain; charset=\0\ntext\xff"),
        ("document", b"attachment; filename*=idna''xn--a%ff\ntext"),
        ("document", b"Fri, 31 Dec 99999999999999999999 23:59:59 GMT\ntext"),
        ("document", b"\n" + b"<!-- -->" * 500 + b"x"),
        ("arxiv feed", b"<feed>" * 1_000_000),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:30].decode("ascii", "replace"),
)
def test_they_do_no_harm_any_more(name, content, tmp_path):
    assert PARSERS[name].fault(content, tmp_path) is None


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW judgments AS WITH RECURSIVE x(key) AS (SELECT 1 UNION ALL SELECT key + 1 "
        "FROM x) SELECT * FROM x",
        "CREATE TABLE other (a); CREATE TRIGGER t AFTER INSERT ON other BEGIN SELECT RAISE(FAIL, "
        "'no'); END",
    ],
)
def test_a_store_holds_no_programs(statement, tmp_path):
    """A view without end would be read for ever."""
    path = tmp_path / "judgments.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.executescript(statement)
    connection.close()
    with pytest.raises(UsageError, match="not a table of judgments"):
        open_for_replay(path)


async def test_a_number_beyond_all_measure_keeps_no_judgment(tmp_path):
    """The answer then has no result; the others go on."""
    path = tmp_path / "judgments.sqlite3"
    path.write_bytes(STORE)
    sound = {
        "key": "a",
        "endpoint": "e",
        "model": "m",
        "outcome": "reply",
        "text": "",
        "created": "",
        "purpose": "verify",
    }
    with JudgmentStore(path) as store:
        with pytest.raises(JudgmentStoreError, match="too large to convert"):
            await store.put(Judgment(**sound, input_tokens=10**30))
        await store.put(Judgment(**sound))
        assert (await store.get("a")).input_tokens == 0


@pytest.mark.parametrize(
    "text",
    [
        '{"urls": ["a"], "urls": []}',
        '{"urls": [], "more": {"a": 1, "a": 1}}',
        '{"urls": [], "\\u0075rls": []}',
    ],
)
def test_a_property_given_twice_is_no_answer(text):
    """The last one would win, although the model may have meant the first."""
    with pytest.raises(InvalidOutputError, match="more than once"):
        read_reply(Completion(text=text), URLs)


def test_a_summary_leads_to_no_other_folder(tmp_path):
    """An entry's name is the name of an answer, whatever else it may look like."""
    (tmp_path / "agent/task").mkdir(parents=True)
    entries = ", ".join(
        f'{{"answer_name": "{name}", "score": 1}}'
        for name in ("../other", "/etc", "..", "answer_1.md")
    )
    (tmp_path / "agent/task/summary.json").write_text(f"[{entries}]")
    assert [answer.answer_name for answer in task_answers(tmp_path, "agent", "task")] == [
        "answer_1.md"
    ]


def test_a_page_that_nobody_could_read_back_is_not_stored(tmp_path):
    """Told when it is written, rather than in the middle of a later run."""
    cache = CacheFileSys(tmp_path)
    with pytest.raises(CacheWriteError, match="67,108,864"):
        cache.put_web("http://a.example", "x" * (64 * 1024**2 + 1), None)
    assert cache.has("http://a.example") is None
