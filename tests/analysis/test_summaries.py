"""The files that sum up results, from folders of ours and of other tools."""

import json

import pytest

from mind2web2.analysis.summaries import (
    generate_result_summary,
    merge_all_results,
    write_task_summary,
)
from mind2web2.errors import ResultWriteError
from mind2web2.results.known_answers import agent_answers, task_answers

OLD, NEW, NEWEST = "20240101_000000", "20250714_120000", "20250714_120001"


def result(root, answer, score, stamp=NEW, **more):
    """Write a result file as older tools do, for ``agent/task/answer_1``."""
    content = {
        "answer_name": f"{answer.split('/')[-1]}.md",
        "final_score": score,
        "judge_model": "o4-mini",
    }
    return raw_result(root, answer, json.dumps(content | more).encode(), stamp)


def raw_result(root, answer, content, stamp=NEW):
    """Write these bytes as a result file."""
    path = root / answer / "results" / f"{stamp}_{answer.split('/')[-1]}.md.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def summary(root, task, entries):
    """Write a task's summary as it stands."""
    path = root / task / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries))


def read(path):
    """Return a JSON file's content."""
    return json.loads(path.read_text(encoding="utf-8"))


def scores(answers):
    """Return the scores of answers by name."""
    return {answer.answer_name: answer.score for answer in answers}


def test_a_tasks_summary_has_the_published_form(tmp_path):
    """Natural order.

    Above 0 is a success in status, 1 a success; without a result it is neither.
    """
    for answer, score in [("answer_10", 1), ("answer_2", 0.5), ("answer_1", 0.0)]:
        result(tmp_path, f"bot/t/{answer}", score)
    names = {"answer_1.md", "answer_2.md", "answer_10.md"}
    written = write_task_summary(tmp_path, "bot", "t", {"answer_3.md": "not UTF-8"}, names, {})
    entries = read(tmp_path / "bot" / "t" / "summary.json")
    assert entries[0] == {
        "answer_name": "answer_1.md",
        "score": 0.0,
        "status": "failed",
        "success": False,
    }
    assert entries[1] == {
        "answer_name": "answer_2.md",
        "score": 0.5,
        "status": "success",
        "success": False,
    }
    assert entries[2] == {
        "answer_name": "answer_10.md",
        "score": 1.0,
        "status": "success",
        "success": True,
    }
    assert read(tmp_path / "bot" / "t" / "unscored.json") == [
        {
            "answer_name": "answer_3.md",
            "score": None,
            "status": "unscored",
            "success": False,
            "reason": "not UTF-8",
        }
    ]
    assert scores(written) == {
        "answer_1.md": 0.0,
        "answer_2.md": 0.5,
        "answer_3.md": None,
        "answer_10.md": 1.0,
    }
    write_task_summary(tmp_path, "bot", "t", {}, names, {})
    assert not (tmp_path / "bot" / "t" / "unscored.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"final_score": 1.0',
        b"\xff\xfe",
        b"[1.0]",
        b"{}",
        b'{"final_score": null}',
        b'{"final_score": "1.0"}',
        b'{"final_score": true}',
        b'{"final_score": NaN}',
        b'{"final_score": 1.5}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_newest_result_is_no_score(tmp_path, caplog, content):
    """The older result does not stand in: it may have judged another text."""
    result(tmp_path, "bot/t/answer_1", 1.0, stamp=OLD)
    raw_result(tmp_path, "bot/t/answer_1", content)
    [answer] = agent_answers(tmp_path, "bot")
    assert answer.score is None
    assert f"{NEW}_answer_1.md.json" in answer.reason
    assert f"{NEW}_answer_1.md.json" in caplog.text


def test_an_agents_summary_from_the_folders_of_another_tool(tmp_path):
    """Result files and copies of the answers are all it takes."""
    result(tmp_path, "bot/a/answer_1", 1, time_seconds=30)
    result(tmp_path, "bot/a/answer_2", 0.5)
    result(tmp_path, "bot/b/answer_1", 0.0)
    (tmp_path / "bot" / "a" / "answer_1" / "answer_1.md").write_text(
        "Zürich is\na town.\n", encoding="utf-8"
    )
    (tmp_path / "bot" / "logs").mkdir()
    (tmp_path / "bot" / "a" / "logs").mkdir()
    content = generate_result_summary(tmp_path, "bot")
    assert content == read(tmp_path / "bot" / "summary.json")
    assert (content["num_tasks"], content["num_runs"], content["avg_score"]) == (
        2,
        2,
        0.5,
    )
    assert (content["pass_at_2"], content["avg_answer_word_count"]) == (0.5, 4.0)
    assert content["avg_time_seconds"] == 30
    assert content["judge_models"] == {"o4-mini": 3}
    assert content["missing"][0]["task_id"] == "b"


@pytest.mark.parametrize("folder", ["", "bot", "bot/t", "bot/t/logs"])
def test_no_results_no_summary(tmp_path, folder):
    """Nothing is written for an agent that nothing is known of."""
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    assert generate_result_summary(tmp_path, "bot") is None
    assert not list(tmp_path.rglob("summary.json"))


def test_scores_handed_on_without_result_files_are_read(tmp_path):
    """A summary alone, with or without the suffix in its names, gives the scores.

    Results go first.
    """
    result(tmp_path, "bot/t/answer_1", 0.25)
    (tmp_path / "bot" / "t" / "answer_2" / "results").mkdir(parents=True)
    entries = [
        {"answer_name": name, "score": 1, "status": "success"}
        for name in ("answer_1.md", "answer_2")
    ]
    summary(
        tmp_path,
        "bot/t",
        [*entries, {"answer_name": "answer_3.md", "score": None, "status": "failed"}],
    )
    found = {"answer_1.md": 0.25, "answer_2.md": 1.0, "answer_3.md": None}
    assert scores(task_answers(tmp_path, "bot", "t")) == found


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"answer_name": "x"}',
        '[3, {"score": 1}, {"answer_name": "x", "score": "1"}, {"answer_name": "x"}]',
    ],
)
def test_a_damaged_summary_is_ignored_with_a_warning(tmp_path, caplog, content):
    """The result files still count."""
    result(tmp_path, "bot/t/answer_1", 1.0)
    (tmp_path / "bot" / "t" / "summary.json").write_text(content)
    assert scores(task_answers(tmp_path, "bot", "t")) == {"answer_1.md": 1.0}
    assert "summary.json" in caplog.text


def test_an_answer_that_failed_now_does_not_keep_its_old_score(tmp_path):
    earlier = result(tmp_path, "bot/t/answer_1", 1.0, stamp=NEW)
    [answer] = write_task_summary(
        tmp_path, "bot", "t", {"answer_1.md": "the judge was out of reach"}, (), {}
    )
    assert read(tmp_path / "bot" / "t" / "summary.json") == []
    assert read(tmp_path / "bot" / "t" / "unscored.json")[0]["earlier_result"] == earlier.name
    assert (answer.score, answer.judge_model) == (None, None)
    assert task_answers(tmp_path, "bot", "t") == [answer]
    result(tmp_path, "bot/t/answer_1", 0.5, stamp=NEWEST)
    assert scores(task_answers(tmp_path, "bot", "t")) == {"answer_1.md": 0.5}


def test_results_of_answers_that_are_gone_are_not_counted(tmp_path):
    for k in (1, 2):
        result(tmp_path, f"bot/t/answer_{k}", 1.0, stamp=OLD)
    current = write_task_summary(
        tmp_path, "bot", "t", {}, answer_names=["answer_1.md", "answer_3.md"], failed={}
    )
    assert scores(current) == {"answer_1.md": 1.0, "answer_3.md": None}
    entries = {
        entry["answer_name"]: entry for entry in read(tmp_path / "bot" / "t" / "unscored.json")
    }
    assert entries["answer_2.md"]["status"] == "removed"
    assert task_answers(tmp_path, "bot", "t") == current
    result(tmp_path, "bot/t/answer_2", 0.5, stamp=NEWEST)
    assert scores(task_answers(tmp_path, "bot", "t"))["answer_2.md"] == 0.5


def test_all_results_by_task_and_agent(tmp_path):
    """Task summaries as they stand; a task without one is summed up from its results."""
    result(tmp_path, "zed/t10/answer_1", 1.0)
    entries = [
        {
            "answer_name": "answer_1.md",
            "score": 0.5,
            "status": "success",
            "success": False,
        }
    ]
    summary(tmp_path, "bot/t10", entries)
    summary(tmp_path, "bot/t2", entries)
    (tmp_path / "bot" / "t3").mkdir()
    merged = merge_all_results(str(tmp_path))
    path = tmp_path / "all_results.json"
    assert merged == read(path)
    assert list(merged) == ["t2", "t10"]
    assert merged["t10"] == {
        "bot": entries,
        "zed": [
            {
                "answer_name": "answer_1.md",
                "score": 1.0,
                "status": "success",
                "success": True,
            }
        ],
    }


def test_nothing_to_merge_is_an_empty_file(tmp_path):
    """A run without results leaves no stale numbers of an earlier one."""
    (tmp_path / "all_results.json").write_text('{"t": {}}')
    assert merge_all_results(tmp_path) == {}
    assert read(tmp_path / "all_results.json") == {}


def test_text_is_readable_and_always_json(tmp_path):
    """Letters of any script stay as they are; half a character becomes its escape."""
    write_task_summary(tmp_path, "bot", "t", {"answer_1.md": "日本 \udc80"}, (), {})
    text = (tmp_path / "bot" / "t" / "unscored.json").read_text(encoding="utf-8")
    assert "日本 \\udc80" in text
    assert json.loads(text)[0]["reason"] == "日本 \udc80"


def test_a_results_folder_that_cannot_be_written_is_one_line(tmp_path):
    """The message names the folder."""
    (tmp_path / "results").write_text("a file")
    with pytest.raises(ResultWriteError, match=r"cannot write to .*results/bot/t: "):
        write_task_summary(tmp_path / "results", "bot", "t", {"answer_1.md": "x"}, (), {})
