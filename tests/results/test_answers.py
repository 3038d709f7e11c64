"""The work of a run, and how an answer is read."""

import json
import logging
import os

import pytest

from mind2web2.benchmark.task_lists import read_task_list
from mind2web2.errors import AnswerError, UsageError
from mind2web2.results.answers import (
    MAX_ANSWER_BYTES,
    agent_names,
    read_answer,
    select_answers,
    select_work,
)
from mind2web2.utils.path_config import PathConfig


def write(path, content=b"An answer.\n"):
    """Write a file with its folders and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def project(tmp_path, answers=("t/answer_1.md",), scripts=("example/t.py",)):
    """Return the paths of a project with these answers of the agent ``bot`` and these scripts."""
    for answer in answers:
        write(tmp_path / "answers" / "bot" / answer)
    for script in scripts:
        write(tmp_path / "eval_scripts" / script)
    return PathConfig(tmp_path)


def answer_names(task):
    """Return the names of a task's answers in their order."""
    return [answer.name for answer in task.answers]


def test_numbers_of_runs_begin_at_1_and_have_no_leading_zero(tmp_path):
    files = [f"t/answer_{k}.md" for k in ("0", "1", "01", "2")]
    [task] = select_work(project(tmp_path, files), "bot")
    assert answer_names(task) == ["answer_1.md", "answer_2.md"]
    assert "ignored answer_0.md, answer_01.md" in task.problems[0]


def test_tasks_and_answers_come_in_natural_order(tmp_path):
    """The tenth comes after the second, and each task says which script judges it."""
    answers = [f"task_{task}/answer_{k}.md" for task in (10, 2, 1) for k in (10, 2, 1)]
    scripts = ["2025_07_14/task_1.py", "2025_10_02/task_2.py", "example/task_10.py"]
    tasks = select_work(project(tmp_path, answers, scripts), "bot")
    assert [(task.task_id, task.script_version) for task in tasks] == [
        ("task_1", "2025_07_14"),
        ("task_2", "2025_10_02"),
        ("task_10", "example"),
    ]
    assert all(
        answer_names(task) == ["answer_1.md", "answer_2.md", "answer_10.md"] for task in tasks
    )
    assert tasks[0].script_path == tmp_path / "eval_scripts" / "2025_07_14" / "task_1.py"
    assert tasks[0].answers[2].stem == "answer_10"
    assert [(task.unscored_reason, task.problems) for task in tasks] == [(None, ())] * 3


def test_one_task_may_be_named(tmp_path):
    """The others are left alone."""
    paths = project(tmp_path, ["a/answer_1.md", "b/answer_1.md"], ["example/a.py", "example/b.py"])
    assert [task.task_id for task in select_work(paths, "bot", ["b"])] == ["b"]


def test_answers_to_a_task_without_a_script_are_listed(tmp_path):
    paths = project(
        tmp_path,
        ["a/answer_1.md", "t/answer_1.md"],
        ["2025_07_14/t.py", "example/x.py"],
    )
    unscored, scored = select_work(paths, "bot")
    assert answer_names(unscored) == ["answer_1.md"]
    assert unscored.script_path is None
    assert "no script for task a" in unscored.unscored_reason
    assert "(versions searched: 2025_07_14, example)" in unscored.unscored_reason
    assert scored.unscored_reason is None


@pytest.mark.parametrize(
    ("agent", "task", "message"),
    [
        ("nobody", None, "no agent nobody under .*\\. Found: bot, other$"),
        ("bot/../bot", None, "agent 'bot/../bot' contains"),
        ("..", None, "agent '..' begins with a dot"),
        ("", None, "agent '' is empty"),
        (".bot", None, r"agent '\.bot' begins with a dot"),
        ("bot", "t/../t", "task 't/../t' contains"),
        ("bot", "t\0", r"task 't\\x00' contains a character"),
        (
            "bot",
            "missing",
            "no answers to task missing under .*\\. Found: empty, t, without_script$",
        ),
        (
            "bot",
            "empty",
            r"no answers to empty under .*bot: expected <task_id>/answer_<k>\.md$",
        ),
        (
            "other",
            None,
            r"no answers under .*other: expected <task_id>/answer_<k>\.md$",
        ),
        (
            "bot",
            "without_script",
            "no script for task without_script under .*: add <version>/without_script.py or "
            "<version>/",
        ),
    ],
)
def test_a_run_that_cannot_start_says_what_to_do(tmp_path, agent, task, message):
    paths = project(tmp_path, ["t/answer_1.md", "without_script/answer_1.md"])
    (tmp_path / "answers" / "other").mkdir()
    (tmp_path / "answers" / "bot" / "empty").mkdir()
    with pytest.raises(UsageError, match=message) as caught:
        select_work(paths, agent, [] if task is None else [task])
    assert "\n" not in str(caught.value)


def test_no_folders_at_all(tmp_path):
    with pytest.raises(UsageError, match=r"no answers folder .*answers"):
        select_work(PathConfig(tmp_path), "bot")
    with pytest.raises(
        UsageError,
        match=r"there is no folder .*eval_scripts",
    ):
        select_work(project(tmp_path, ["a/answer_1.md", "b/answer_1.md"], []), "bot")


def test_a_pinned_version_that_is_missing_stops_the_run(tmp_path):
    with pytest.raises(UsageError, match="no eval version 2030_01_01"):
        select_work(project(tmp_path).apply_overrides(eval_version="2030_01_01"), "bot")


def test_files_of_other_names_are_ignored_with_a_note(tmp_path, caplog):
    """One line for a task; hidden files and times are not worth a word."""
    others = [
        "notes.txt",
        "answer_two.md",
        "Answer_1.md",
        "answer_1.md.bak",
        "answer_٣.md",
    ]
    quiet = [".DS_Store", "answer_1.meta.json", "answer_9.meta.json"]
    paths = project(tmp_path, [f"t/{name}" for name in ["answer_1.md", *others]])
    for name in quiet:
        write(tmp_path / "answers" / "bot" / "t" / name, b"{}")
    [task] = select_work(paths, "bot")
    [problem] = task.problems
    assert answer_names(task) == ["answer_1.md"]
    assert all(name in problem for name in others)
    assert [record.getMessage() for record in caplog.records] == [f"task t: {problem}"]


def test_an_oddly_named_task_costs_its_own_answers_only(tmp_path):
    answers = ["t/answer_1.md", "a..b/answer_1.md", ".git/answer_1.md"]
    odd, fine = select_work(project(tmp_path, answers), "bot")
    assert (odd.task_id, answer_names(odd)) == ("a..b", ["answer_1.md"])
    assert "contains '..'" in odd.unscored_reason
    assert fine.unscored_reason is None


def test_everything_with_the_name_of_an_answer_is_listed(tmp_path):
    paths = project(tmp_path)
    (tmp_path / "answers" / "bot" / "t" / "answer_2.md").mkdir()
    (tmp_path / "answers" / "bot" / "t" / "answer_3.md").symlink_to("gone.md")
    [task] = select_work(paths, "bot")
    assert answer_names(task) == ["answer_1.md", "answer_2.md", "answer_3.md"]
    with pytest.raises(AnswerError, match="cannot be read: Is a directory"):
        read_answer(task.answers[1].path)
    with pytest.raises(AnswerError, match="cannot be read: it is a link"):
        read_answer(task.answers[2].path)


def test_a_task_without_answers_says_so(tmp_path):
    paths = project(tmp_path)
    (tmp_path / "answers" / "bot" / "empty").mkdir()
    assert "no answers in" in select_work(paths, "bot")[0].problems[0]


@pytest.mark.parametrize(
    ("meta", "expected", "warned"),
    [
        (b'{"time_seconds": 512.3}', 512.3, False),
        (b'{"time_seconds": 7, "mood": "x"}', 7.0, True),
        (b'{"mood": "x"}', None, True),
        (b'{"time_seconds": "512"}', None, True),
        (b'{"time_seconds": true}', None, True),
        (b'{"time_seconds": -1}', None, True),
        (b'{"time_seconds": NaN}', None, True),
        (b'{"time_seconds": 1' + b"0" * 400 + b"}", None, True),
        (b"[512.3]", None, True),
        (b"{", None, True),
        (b"\xff", None, True),
    ],
)
def test_the_time_an_agent_took(tmp_path, caplog, meta, expected, warned):
    """A time that cannot be read or an unknown key is a warning, never the loss of the answer."""
    paths = project(tmp_path)
    write(tmp_path / "answers" / "bot" / "t" / "answer_1.meta.json", meta)
    with caplog.at_level(logging.WARNING):
        [task] = select_work(paths, "bot")
    assert task.answers[0].time_s == expected
    assert bool(caplog.records) is warned


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Zürich 日本\n".encode(), "Zürich 日本\n"),
        (b"\xef\xbb\xbf# Title\r\n\r\nold\rmac\n", "# Title\n\nold\nmac\n"),
        (b"x" * MAX_ANSWER_BYTES, "x" * MAX_ANSWER_BYTES),
    ],
)
def test_an_answer_is_its_text(tmp_path, content, text):
    assert read_answer(write(tmp_path / "answer_1.md", content)) == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \r\n\t\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"caf\xe9", r"is not UTF-8 \(byte 0xe9 at offset 3\)"),
        (b"\xef\xbb\xbfcaf\xe9", r"byte 0xe9 at offset 6"),
        ("text".encode("utf-16"), r"byte 0xff at offset 0"),
        (
            b"x" * (MAX_ANSWER_BYTES + 1),
            r"it has more than 1,000,000 bytes",
        ),
    ],
)
def test_an_answer_that_cannot_be_judged(tmp_path, content, message):
    path = write(tmp_path / "answer_1.md", content)
    with pytest.raises(AnswerError, match=message) as caught:
        read_answer(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pipe_named_like_an_answer_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "answer_1.md")
    with pytest.raises(AnswerError, match="not a regular file"):
        read_answer(tmp_path / "answer_1.md")


def test_links_may_not_carry_other_files_to_the_judge(tmp_path):
    secret = write(tmp_path / "secret.txt", b"password")
    task = tmp_path / "answers" / "bot" / "t"
    task.mkdir(parents=True)
    (task / "answer_2.md").symlink_to(secret)
    (task / "answer_3.md").symlink_to("answer_3.md")
    with pytest.raises(AnswerError, match="it is a link"):
        read_answer(task / "answer_2.md")
    with pytest.raises(AnswerError, match="cannot be read"):
        read_answer(task / "answer_3.md")


def test_whole_folders_may_be_links(tmp_path):
    """An agent's or a task's folder may be kept elsewhere."""
    write(tmp_path / "disk" / "t" / "answer_1.md", json.dumps("text").encode())
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "bot").symlink_to(tmp_path / "disk")
    [task] = select_work(project(tmp_path, []), "bot")
    assert [read_answer(answer.path) for answer in task.answers] == ['"text"']


def test_answers_may_be_selected_without_scripts(tmp_path):
    """All of them, or those to some tasks; a task without answers is left out."""
    paths = project(
        tmp_path,
        ["b/answer_1.md", "a/answer_10.md", "a/answer_2.md", "c/notes.txt"],
        (),
    )
    selected = select_answers(paths, "bot")
    assert {
        task_id: [answer.name for answer in answers] for task_id, answers in selected.items()
    } == {
        "a": ["answer_2.md", "answer_10.md"],
        "b": ["answer_1.md"],
    }
    assert list(select_answers(paths, "bot", ["b"])) == ["b"]
    with pytest.raises(UsageError, match="no answers to c under"):
        select_answers(paths, "bot", ["c"])
    with pytest.raises(UsageError, match="no answers to task d"):
        select_answers(paths, "bot", ["a", "d"])


def test_agents_are_those_with_answers(tmp_path):
    paths = project(tmp_path, ["t/answer_1.md"], ())
    for agent in ("bot_10", "bot_2"):
        write(tmp_path / "answers" / agent / "t" / "answer_1.md")
    write(tmp_path / "answers" / "empty" / "t" / "notes.txt")
    assert agent_names(paths) == ["bot", "bot_2", "bot_10"]
    with pytest.raises(UsageError, match="no answers under"):
        agent_names(PathConfig(tmp_path / "elsewhere"))


def test_a_case_of_a_rehearsal_is_no_answer(tmp_path):
    """A case's header would tell the judge what the author expects."""
    note = "# the answer that deserves 1"
    text = f"---\n{note}\nexpect: 1.0\nextract: {{}}\n---\n\nThe lake is deep.\n"
    path = write(tmp_path / "answer_1.md", text.encode())
    with pytest.raises(AnswerError, match="keep only the text below the second line"):
        read_answer(path)
    for sound in ("---\ntitle: lakes\n---\n", "---\nWe expect: 1\n"):
        assert read_answer(write(tmp_path / "answer_2.md", sound.encode())) == sound


def test_a_script_directly_under_the_root_is_found(tmp_path):
    paths = project(tmp_path, scripts=("t.py", "example/u.py"))
    [task] = select_work(paths, "bot")
    assert task.script_path == tmp_path / "eval_scripts" / "t.py"


def test_a_folder_of_scripts_is_a_task_list(tmp_path):
    project(tmp_path, scripts=("example/u10.py", "example/u2.yaml", "example/x.txt"))
    listed = read_task_list(tmp_path / "eval_scripts" / "example")
    assert [task.task_id for task in listed] == ["u2", "u10"]
