"""Result files: their places and names, the one that counts, and checksums."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

import pytest
from projects import read_json

from mind2web2.errors import ResultWriteError
from mind2web2.results.result_file import ResultFile, with_checksum
from mind2web2.results.stored_results import (
    answer_dir,
    answer_results_dir,
    latest_result,
    latest_results,
    write_file,
    write_result,
    writing_in,
)
from mind2web2.utils.process_lock import ProcessLock


def raw_result(folder, name, content):
    """Write bytes as a result file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def test_the_folders_are_those_of_the_layout(tmp_path):
    assert answer_dir(tmp_path, "bot", "t", "answer_1.md") == tmp_path / "bot" / "t" / "answer_1"
    assert answer_results_dir(tmp_path, "bot", "t", "answer_1.md").name == "results"


def test_a_result_is_called_by_its_moment_and_answer(tmp_path):
    """``<stamp>_<answer>.md.json``, the stamp in local time; the content is read back as it was."""
    before = datetime.now().replace(microsecond=0)
    path = write_result(tmp_path / "results", "answer_1.md", ResultFile.of({"final_score": 0.5}))
    stamp = re.fullmatch(r"(\d{8}_\d{6})_answer_1\.md\.json", path.name)[1]
    assert before <= datetime.strptime(stamp, "%Y%m%d_%H%M%S") <= datetime.now()
    assert read_json(path) == {"final_score": 0.5}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_results_within_one_second_all_stay_and_the_last_one_counts(tmp_path):
    """Each gets a stamp of its own, later than those before."""
    paths = [
        write_result(tmp_path, "answer_1.md", ResultFile.of({"final_score": number / 10}))
        for number in range(5)
    ]
    assert paths == sorted(set(paths))
    assert latest_result(tmp_path).content.document == {"final_score": 0.4}


def test_results_written_at_the_same_time_share_no_stamp(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        write = partial(write_result, tmp_path, "answer_1.md")
        paths = list(
            threads.map(
                write,
                [ResultFile.of({"final_score": number / 100}) for number in range(40)],
            )
        )
    assert len(set(paths)) == 40
    assert [read_json(path)["final_score"] for path in paths] == [
        number / 100 for number in range(40)
    ]
    assert len(list(tmp_path.iterdir())) == 40


def test_one_process_at_a_time_sums_up(tmp_path):
    """Old unfinished files of killed processes are removed, and the folder is made."""
    folder = tmp_path / "bot"
    with writing_in(folder):
        (folder / ".writing-old").write_text("half")
        os.utime(folder / ".writing-old", (1, 1))
        assert not ProcessLock(folder / ".summing_up.lock").take()
    with writing_in(folder):
        pass
    assert list(folder.iterdir()) == []


def test_a_result_is_the_newest_even_if_the_clock_was_ahead(tmp_path):
    """An earlier run's clock, or the end of summer time, must not make an old result count."""
    ahead = (datetime.now() + timedelta(hours=1)).strftime("%Y%m%d_%H%M%S")
    raw_result(tmp_path, f"{ahead}_answer_1.md.json", b'{"final_score": 0.0}')
    written = write_result(tmp_path, "answer_1.md", ResultFile.of({"final_score": 1.0}))
    assert latest_result(tmp_path).path == written


def test_the_newest_stamp_counts(tmp_path):
    raw_result(tmp_path, "20250101_000001_answer_1.md.json", b'{"final_score": 1}')
    raw_result(tmp_path, "20250101_000000_answer_1.md.json", b'{"final_score": 0}')
    raw_result(tmp_path, "20260101_000000_answer_1.md.json.bak", b"{}")
    raw_result(tmp_path, ".writing-1234", b"{")
    raw_result(tmp_path, "notes.json", b"{}")
    raw_result(tmp_path, "old_20250101_000000_answer_1.md.json", b'{"final_score": 0}')
    found = latest_result(tmp_path)
    assert (found.path.name, found.content.document) == (
        "20250101_000001_answer_1.md.json",
        {"final_score": 1},
    )


@pytest.mark.parametrize(
    "content", [b"", b'{"final_score": 1', b"\xff", b"[1]", b"null", b"[" * 100_000]
)
def test_a_damaged_newest_result_counts_as_none(tmp_path, caplog, content):
    """An older one does not stand in for it; the log names the file."""
    raw_result(tmp_path, "20240101_000000_answer_1.md.json", b'{"final_score": 1}')
    raw_result(tmp_path, "20250101_000000_answer_1.md.json", content)
    assert latest_result(tmp_path) is None
    assert "20250101_000000_answer_1.md.json" in caplog.text


def test_a_damaged_result_is_reported_once(tmp_path, caplog):
    for content, warnings in ((b"{", 1), (b"[", 2)):
        raw_result(tmp_path, "20250101_000000_answer_1.md.json", content)
        assert [latest_result(tmp_path) for _ in range(3)] == [None] * 3
        assert len(caplog.records) == warnings


def test_no_results(tmp_path):
    (tmp_path / "file").write_text("")
    assert [latest_result(tmp_path / name) for name in ("", "missing", "file")] == [
        None,
        None,
        None,
    ]


def test_text_of_any_script_is_readable_and_half_a_character_is_escaped(tmp_path):
    """A page's broken text must not cost the result."""
    path = write_result(tmp_path, "answer_1.md", ResultFile.of({"text": "日本 \ud83d \u2028"}))
    assert "日本 \\ud83d" in path.read_text(encoding="utf-8")
    assert read_json(path) == {"text": "日本 \ud83d \u2028"}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_json_is_never_written(tmp_path, value):
    """Python would write ``NaN``, which other tools cannot read."""
    with pytest.raises(ValueError, match="JSON"):
        write_result(tmp_path, "answer_1.md", ResultFile.of({"x": value}))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_again_is_never_written(tmp_path):
    """Such a file would count until the next command reads it."""
    with pytest.raises(ResultWriteError, match=r"a file of 72 MB; the limit is 64 MB"):
        write_result(tmp_path, "answer_1.md", ResultFile.of({"text": "\ud83d" * 12 * 2**20}))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    """The message names the folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultWriteError, match=r"^cannot write to .*file: ") as caught:
        write_file(tmp_path / "file" / "answer_1.md", "text")
    assert "\n" not in str(caught.value)


def test_the_newest_results_of_an_agent_are_found_in_natural_order(tmp_path):
    for task, answer in (("t10", "answer_1"), ("t2", "answer_10"), ("t2", "answer_2")):
        folder = answer_results_dir(tmp_path, "bot", task, answer)
        write_result(folder, f"{answer}.md", ResultFile.of({"final_score": 0.0}))
        write_result(folder, f"{answer}.md", ResultFile.of({"final_score": 1.0}))
    raw_result(
        answer_results_dir(tmp_path, "bot", "t2", "answer_3"),
        "20250101_000000_a.md.json",
        b"{",
    )
    (tmp_path / "bot" / "batches").mkdir()
    found = [
        (task, answer, result.content.final_score)
        for task, answer, result in latest_results(tmp_path, "bot")
    ]
    assert found == [
        ("t2", "answer_2.md", 1.0),
        ("t2", "answer_10.md", 1.0),
        ("t10", "answer_1.md", 1.0),
    ]
    assert list(latest_results(tmp_path, "nobody")) == []


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"a": [1, 2.5, None, True, "日本 \ud83d"]},
        {1: "a", "b": (1, 2)},
        {"run": {"created": "now"}},
    ],
)
def test_a_checksum_holds_until_the_content_changes(content):
    result = with_checksum({"run": {}, **content})
    read = json.loads(json.dumps(result, ensure_ascii=False))
    assert not ResultFile.of(read).is_edited
    assert with_checksum(read) == read
    assert ResultFile.of({**read, "more": 1}).is_edited
    assert ResultFile.of({**read, "run": {**read["run"], "more": 1}}).is_edited


@pytest.mark.parametrize("result", [{}, {"run": {}}, {"run": 1}, {"run": {"content_sha256": None}}])
def test_a_result_without_a_checksum_is_unedited_unless_it_needs_one(result):
    """Other tools write none; results that record library versions have one."""
    assert not ResultFile.of(result).is_edited
    assert ResultFile.of({**result, "provenance": {"versions": {"python": "3.11"}}}).is_edited
