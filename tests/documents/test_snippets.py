"""Every block of README and docs runs, in a reader's order, and prints what the page shows."""

import ast
import re
import shlex
import shutil
import subprocess
from contextlib import suppress

import pytest
from documents import trainer_stubs
from documents.blocks import DOCUMENTS, blocks_of, commands_of, name_of
from projects import REPOSITORY, call
from servers.judge_server import JudgeServer
from servers.recorded_replies import RecordedReplies

from mind2web2 import Scorer
from mind2web2.cli import command_modules, evaluate_main, main
from mind2web2.cli.options import CommandParser
from mind2web2.errors import UsageError

# Documents use this name for a task of the reader's own.
NAMES = {"my_task": "museum_saturday"}
OWN = ("uv run run_eval.py", "uv run mind2web2")
AGENTS = ("my_agent", "other_agent", "example")


@pytest.fixture(scope="session")
def judge():
    """Serve a judge that knows the example's answer key."""
    with JudgeServer(RecordedReplies()) as server:
        yield server


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory, judge):
    """Make a clone's folders, with agents who gave the example's answers and have results."""
    folder = tmp_path_factory.mktemp("clone")
    for name in AGENTS:
        shutil.copytree(REPOSITORY / "answers/example", folder / "answers" / name)
        shutil.copytree(REPOSITORY / "cache/example", folder / "cache" / name)
    shutil.copytree(REPOSITORY / "checks/report/cache", folder / "checks/report/cache")
    for name in ("eval_scripts", "examples"):
        shutil.copytree(REPOSITORY / name, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.setenv("OPENAI_BASE_URL", judge.base_url)
        first, *others = AGENTS
        assert call(evaluate_main, "--agent_name", first, "--no_capture").returncode == 0
    for name in others:
        shutil.copytree(folder / "eval_results" / first, folder / "eval_results" / name)
    return folder


@pytest.fixture
def clone(tmp_path, evaluated, judge, monkeypatch):
    """Stand in a copy of that clone, with stubs of the trainers' packages."""
    trainer_stubs.install(monkeypatch)
    folder = tmp_path / "clone"
    shutil.copytree(evaluated, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("OPENAI_BASE_URL", judge.base_url)
    return folder


def has_blocks_that_run(document):
    """Tell whether a test runs something of a document."""
    return any(
        block.reason is None and block.language in ("bash", "python")
        for block in blocks_of(document)
    )


@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize("document", list(filter(has_blocks_that_run, DOCUMENTS)), ids=name_of)
def test_blocks_run_in_order(document):
    _run_blocks(document)


def test_options_of_blocks_that_do_not_run_are_the_programs():
    for document in DOCUMENTS:
        if not has_blocks_that_run(document):
            _run_blocks(document)


def _run_blocks(document):
    for block in blocks_of(document):
        if block.language == "bash" and block.reason is None:
            printed = "".join(_run(command) for command in commands_of(block))
            if block.output is not None:
                _compare(printed, block.output)
        elif block.language == "bash":
            for command in commands_of(block):
                _parse(command)
        elif block.language == "python":
            _run_python(block)


def test_a_block_that_does_not_run_is_an_exception():
    """Most blocks run, and each other one says why."""
    blocks = [block for document in DOCUMENTS for block in blocks_of(document)]
    shell = [block for block in blocks if block.language in ("bash", "python")]
    assert all(block.reason is None or len(block.reason.split()) >= 3 for block in shell)
    assert sum(block.reason is None for block in shell) >= 30


def _run(command):
    """Run a command as a reader types it, and return what it prints."""
    command = command.removeprefix(".uv/bin/")
    words = shlex.split(command, comments=True)
    if command.startswith(OWN):
        words = [NAMES.get(word, word) for word in words[2:]]
        program = words.pop(0)
        judges = program == "run_eval.py" or words[0] == "evaluate"
        if judges and not {"replay", "--estimate", "--no_capture"} & set(words):
            # The example's pages are stored, and its three missing ones are none of the network's.
            words.append("--no_capture")
        if words[0] == "check-judge" and "--labels" not in words:
            # The labelled set is as long as 40 others of these commands.
            words += ["--sample", "20"]
        outcome = call(evaluate_main if program == "run_eval.py" else main, *words)
        assert (command, outcome.returncode, outcome.stderr) == (command, 0, "")
        return outcome.stdout
    if words[:2] in (["pip", "install"], ["uv", "sync"]) or words[0] == "export":
        # The tests have an environment and a judge of their own.
        return ""
    outcome = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=False)
    assert (command, outcome.returncode, outcome.stderr) == (command, 0, "")
    return outcome.stdout


def _parse(command):
    """Read the options of a command of ours that is not run."""
    if not command.startswith(OWN):
        return
    program, *words = shlex.split(command, comments=True)[2:]
    parsers = _parsers()
    if program == "run_eval.py":
        parsers["evaluate"].parse_args([word for word in words if word != "--agent_name"])
    else:
        parsers[words[0]].parse_args(words[1:])


def _parsers():
    """Return the parser of each command by name."""
    together = CommandParser(prog="mind2web2")
    subcommands = together.add_subparsers()
    for module in command_modules():
        module.add_command(subcommands)
    return dict(subcommands.choices)


def _run_python(block):
    """Run a block; one that defines an evaluation is loaded as an eval script."""
    if (
        "async def evaluate_answer" in block.text
        or "Evaluator" in block.text
        or "await evaluator" in block.text
    ):
        assert ast.parse(block.text)
        return
    if block.reason is not None:
        assert ast.parse(block.text)
        return
    names = {}
    exec(compile(block.text, "block", "exec"), names)
    for value in names.values():
        if isinstance(value, Scorer):
            with suppress(UsageError), value:
                # A page may leave this to the reader.
                continue
            value.close()


def _compare(printed, written):
    """Find each line that the page shows, in its order; ``...`` leaves lines out, times differ."""
    rest = _plain(printed)
    for line in written.splitlines():
        wanted = _plain(line).strip()
        if wanted in ("", "..."):
            continue
        if wanted.startswith("["):
            # Answers end in any order.
            assert wanted.partition("] ")[2] in _plain(printed), (wanted, printed)
            continue
        assert wanted in rest, (wanted, printed)
        rest = rest[rest.index(wanted) + len(wanted) :]


def _plain(text):
    """Return a text without what differs from run to run: widths of tables and times."""
    text = re.sub(r"[─━═┏┓┗┛┡┩┳┻╇└┘┴┼├┤│┃]+", " ", text)
    text = re.sub(r"\b\d+ s\b", "N s", text)
    return re.sub(r"[^\S\n]+", " ", text)
