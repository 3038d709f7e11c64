"""Loggers of one answer: their two files, their console lines, and that nothing stays behind."""

import json
import logging
import re

import pytest

from mind2web2.errors import ResultWriteError
from mind2web2.utils.log_records import extra_fields
from mind2web2.utils.logging_setup import (
    cleanup_logger,
    create_logger,
    create_sub_logger,
)


@pytest.fixture
def logs(tmp_path):
    """Return a function that makes loggers in one folder and closes them in the end."""
    made = []

    def make(name="answer_1", console=False, **settings):
        logger, stamp = create_logger(name, tmp_path / "logs", console, **settings)
        made.append(logger)
        return logger, stamp

    yield make
    for logger in made:
        cleanup_logger(logger)


def lines(tmp_path, suffix):
    """Return the lines of the only log with this suffix."""
    [path] = (tmp_path / "logs").glob(f"*{suffix}")
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_one_file_to_read_and_one_to_parse(tmp_path, logs):
    logger, stamp = logs(context={"task": "yu_lineage", "answer": "answer_1.md"})
    logger.debug("page cached url=%s", "https://zürich.example")
    assert re.fullmatch(r"20[0-9]{6}_[0-9]{6}", stamp)
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == [f"{stamp}_answer_1.jsonl", f"{stamp}_answer_1.log"]
    assert lines(tmp_path, ".log")[0].endswith(
        "DEBUG   answer_1: page cached url=https://zürich.example"
    )
    entry = json.loads(lines(tmp_path, ".jsonl")[0])
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", entry.pop("time"))
    assert entry == {
        "level": "DEBUG",
        "logger": "answer_1",
        "message": "page cached url=https://zürich.example",
        "task": "yu_lineage",
        "answer": "answer_1.md",
    }


def test_an_exception_is_in_both_files(tmp_path, logs):
    logger, _ = logs()
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logger.exception("script failed")
    assert lines(tmp_path, ".log")[-1] == "    RuntimeError: boom"
    assert "RuntimeError: boom" in json.loads(lines(tmp_path, ".jsonl")[0])["exception"]


@pytest.mark.parametrize(
    "value",
    [
        {"node": 1},
        {(1, 2): 3},
        float("nan"),
        object(),
        "\udc80",
        "a\u2028b",
        {"time": 0},
    ],
)
def test_any_extra_gives_one_line_of_json(tmp_path, logs, value):
    logger, _ = logs(context={"task": "t"})
    logger.info("x", extra={"given": value, "level": "forged", "task": "forged"})
    [line] = lines(tmp_path, ".jsonl")
    entry = json.loads(line)
    assert line.splitlines() == [line]
    assert (entry["level"], entry["task"]) == ("INFO", "t")
    assert "given" in entry


def test_a_structure_that_contains_itself_is_logged(tmp_path, logs):
    value = []
    value.append(value)
    logs()[0].info("x", extra={"given": value})
    assert json.loads(lines(tmp_path, ".jsonl")[0])["given"] == "[[...]]"


@pytest.mark.parametrize(
    ("message", "arguments"), [("100% sure of %s %d", ("x", "y")), ("%", (1,))]
)
def test_a_message_that_does_not_fit_its_arguments_is_kept(
    tmp_path, logs, capsys, message, arguments
):
    """The line is worth more than its format; nothing goes to the console."""
    logs()[0].info(message, *arguments)
    assert json.loads(lines(tmp_path, ".jsonl")[0])["message"] == f"{message} {arguments!r}"
    assert lines(tmp_path, ".log")[0].endswith(f"{message} {arguments!r}")
    assert capsys.readouterr().err == ""


def test_text_of_a_page_cannot_pose_as_a_line(tmp_path, logs):
    """Whatever breaks a line is indented, so that only ours begin at the margin.

    Odd characters are kept.
    """
    logs()[0].info("page\n2025-01-01 00:00:00 ERROR forged\rx\udc80")
    first, second, third = lines(tmp_path, ".log")
    assert first.endswith("page")
    assert (second, third) == ("    2025-01-01 00:00:00 ERROR forged", "    x\\udc80")


def test_loggers_of_one_name_do_not_share_files(tmp_path, logs):
    """Made in the same second, each has its own lines."""
    loggers = [logs()[0] for _ in range(3)]
    for number, logger in enumerate(loggers):
        logger.info("only %d", number)
    found = sorted((tmp_path / "logs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    texts = [
        [json.loads(line)["message"] for line in path.read_text().splitlines()] for path in found
    ]
    assert sorted(texts) == [["only 0"], ["only 1"], ["only 2"]]


def test_nothing_is_handed_to_the_root_logger(logs, caplog):
    logger, _ = logs()
    logger.error("mine")
    create_sub_logger(logger, "part").error("mine too")
    assert caplog.records == []


def test_nothing_stays_in_the_registry(logs):
    """Thousands of answers leave ``logging`` as it was, loggers that scripts derive included."""
    before = set(logging.root.manager.loggerDict)
    logger, _ = logs("some.dotted.name")
    logger.getChild("a").getChild("b").info("x")
    create_sub_logger(logger, "c").info("x")
    assert set(logging.root.manager.loggerDict) == before


def test_a_sub_logger_writes_through_its_parent(tmp_path, logs):
    logger, _ = logs()
    part = create_sub_logger(logger, "node_7")
    part.info("from the part")
    cleanup_logger(part)
    logger.info("from the whole")
    entries = [json.loads(line) for line in lines(tmp_path, ".jsonl")]
    assert [entry["logger"] for entry in entries] == ["answer_1.node_7", "answer_1"]


def test_cleanup_closes_the_files(logs):
    logger, _ = logs(console=True)
    files = [handler for handler in logger.handlers if isinstance(handler, logging.FileHandler)]
    streams = [handler.stream for handler in files]
    cleanup_logger(logger)
    cleanup_logger(logger)
    assert logger.handlers == []
    assert [stream.closed for stream in streams] == [True, True]


def test_the_console_shows_warnings_in_one_line(logs, capsys):
    logger, _ = logs(console=True, context={"task": "t", "answer": "answer_1.md"})
    logger.info("quiet")
    logger.warning("page\nblocked", exc_info=ValueError("two\nlines"))
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "warning t/answer_1.md: page blocked (ValueError: two lines)\n",
    )


def test_the_console_shows_everything_on_request(logs, capsys):
    """Below warnings the console has what the readable file has."""
    logger, _ = logs(console=True, console_level=logging.DEBUG)
    logger.debug("loud", exc_info=ValueError("why"))
    shown = capsys.readouterr().err
    assert "DEBUG   answer_1: loud" in shown
    assert "ValueError: why" in shown


def test_names_become_safe_file_names(tmp_path, logs):
    """Separators, dots and length in a logger's name stay out of the folder structure."""
    for name in ("../../up", "a/b", "é" * 300, "..", "", "x\0y"):
        logs(name)
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert len(list((tmp_path / "logs").glob("*.log"))) == 6


def test_a_log_folder_that_cannot_be_made_is_one_line(tmp_path):
    """The message names the folder."""
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(ResultWriteError, match=r"cannot write logs under .*logs/deep: "):
        create_logger("x", tmp_path / "logs" / "deep", enable_console=False)


def test_a_field_that_ray_adds_to_each_record_is_no_extra():
    """Log files are the same on a Ray cluster and without."""
    assert extra_fields(logging.makeLogRecord({"_ray_timestamp_ns": 1, "given": 2})) == {"given": 2}
