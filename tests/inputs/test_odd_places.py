"""A folder, pipe, device or loop of links in a file's place ends with one line at once."""

import os
from itertools import product

from inputs.limited import outcome_within

from mind2web2.analysis.summaries import generate_result_summary, merge_all_results
from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.transfer import open_for_replay
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import listed_urls
from mind2web2.pages.cited_pages import AgentCache
from mind2web2.results.answers import (
    agent_names,
    answer_files,
    read_answer,
    select_answers,
    select_work,
)
from mind2web2.utils.path_config import PathConfig

PLACES = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a folder that nobody may enter": lambda path: path.mkdir(mode=0),
    "bytes of no encoding": lambda path: path.write_bytes(b"\xff\xfe\0\xd8"),
    "a JSON value as deep as it is long": lambda path: path.write_bytes(b"[" * 100_000),
    "nothing": lambda path: path.write_bytes(b""),
}


def use_cache(folder):
    """Look pages up, store one, tidy up."""
    cache = CacheFileSys(folder)
    cache.get_all_urls()
    cache.has("http://a.example")
    cache.capture_record("http://a.example")
    cache.put_web("http://a.example", "text", None)
    cache.save()


def sum_up(folder):
    """Sum up the results of an agent and of all."""
    generate_result_summary(folder, "agent")
    merge_all_results(folder)


def select(folder):
    """List what there is to evaluate."""
    paths = PathConfig(folder)
    for select_some in (
        lambda: select_work(paths, "agent"),
        lambda: agent_names(paths),
    ):
        try:
            select_some()
        except Mind2Web2Error as error:
            assert len(str(error).splitlines()) == 1
    select_answers(paths, "agent")


def replay(path):
    """Open judgments to answer from."""
    with open_for_replay(path) as store:
        store.all()


# Where the odd thing is, and what is done to the folder around it.
READERS = {
    "cache/index.json": lambda folder: use_cache(folder / "cache"),
    "cache/.replacing.json": lambda folder: use_cache(folder / "cache"),
    "cache/.index.lock": lambda folder: use_cache(folder / "cache"),
    "cache": lambda folder: use_cache(folder / "cache"),
    "agent/task/index.json": lambda folder: AgentCache(folder / "agent").holders(),
    "agent/task": lambda folder: AgentCache(folder / "agent").holders(),
    "agent/task.json": lambda folder: listed_urls(folder / "agent/task.json"),
    "agent/task/answer_1/results/20250101_000000_answer_1.md.json": sum_up,
    "agent/task/answer_1/answer_1.md": sum_up,
    "agent/task/summary.json": sum_up,
    "agent/summary.json": sum_up,
    "all_results.json": sum_up,
    "answers/agent/task/answer_1.md": lambda folder: read_answer(
        folder / "answers/agent/task/answer_1.md"
    ),
    "answers/agent/task/answer_1.meta.json": lambda folder: answer_files(
        folder / "answers/agent/task"
    ),
    "answers/agent/task/answer_2.md": select,
    "answers/agent/task": select,
    "answers/agent": select,
    "answers": select,
    "eval_scripts/v/task.py": select,
    "eval_scripts/v": select,
    "eval_scripts": select,
    "judgments.jsonl": lambda folder: replay(folder / "judgments.jsonl"),
    "judgments.sqlite3": lambda folder: replay(folder / "judgments.sqlite3"),
}


def faults_in(root):
    """Return what goes wrong with each odd thing in each place, by both."""
    faults = {}
    for number, (name, (where, read)) in enumerate(product(PLACES, READERS.items())):
        folder = root / str(number)
        path = folder / where
        path.parent.mkdir(parents=True)
        PLACES[name](path)
        try:
            read(folder)
        except Mind2Web2Error as error:
            if len(str(error).splitlines()) != 1:
                faults[name, where] = str(error)
        except Exception as error:
            faults[name, where] = repr(error)
    return faults


def test_what_is_no_sound_file_is_told_or_left_out(tmp_path):
    assert outcome_within(800, 60, faults_in, tmp_path) == {}


NAMES = (
    "x" * 250 + ".md",
    "answer_1.md\n",
    "answer_" + "9" * 200 + ".md",
    "answer_\u0661.md",
    "\u202eanswer_1.md",
    "..md",
)


def test_odd_names_of_files_are_left_out(tmp_path):
    folder = tmp_path / "answers/agent/task"
    folder.mkdir(parents=True)
    for name in (*NAMES, "answer_1.md"):
        (folder / name).write_text("text")
    (folder / os.fsdecode(b"\xff.md")).write_text("text")
    answers, [problem] = answer_files(folder)
    assert [answer.name for answer in answers] == [
        "answer_1.md",
        "answer_" + "9" * 200 + ".md",
    ]
    assert problem.startswith("ignored ")
