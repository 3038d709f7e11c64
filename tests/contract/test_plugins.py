"""Our own plugins: what they import, and what is left of the toolkit without each of them."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mind2web2
from mind2web2.cli import command_modules
from mind2web2.cli.options import CommandParser
from mind2web2.utils.entry_points import entry_points

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(mind2web2.__file__).parent
NAMES = {
    plugin: names.split()
    for plugin, _, names in (
        line.partition(" ") for line in (PACKAGE / "plugins" / "names.txt").read_text().splitlines()
    )
}
PLUGINS = sorted(path.parent.name for path in PACKAGE.glob("plugins/*/__init__.py"))
OWN_PARTS = [part for part in entry_points() if part.plugin in PLUGINS]


def imported_by(path):
    """Return the modules of ours that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.split(".")[0] == "mind2web2"}


@pytest.mark.parametrize("plugin", [*PLUGINS, "example"])
def test_a_plugin_imports_what_is_public(plugin):
    text = (REPOSITORY / "docs/plugins.md").read_text(encoding="utf-8")
    section = text.partition("## What a plugin may import")[2].partition("\n## ")[0]
    public = set(re.findall(r"`(mind2web2[\w.]*)`", section))
    rooms = tuple(re.findall(r"`(mind2web2[\w.]*\.)\*`", section))
    public.add(f"mind2web2.plugins.{plugin}")
    own = f"mind2web2.plugins.{plugin}."
    folder = PACKAGE / "plugins" / plugin
    files = (REPOSITORY / "examples/plugin" if plugin == "example" else folder).rglob("*.py")
    used = set().union(*map(imported_by, files))
    assert {name for name in used - public if not name.startswith((own, *rooms))} == set()


def test_the_core_names_no_plugin():
    for path in PACKAGE.rglob("*.py"):
        if "plugins" not in path.relative_to(PACKAGE).parts[:1]:
            assert "mind2web2.plugins" not in path.read_text(encoding="utf-8"), path


def test_names_that_need_a_plugin_are_listed():
    """Its commands, options and values, so that messages can name it."""
    together = CommandParser(prog="mind2web2")
    commands = together.add_subparsers()
    for module in command_modules():
        module.add_command(commands)
    options = {
        option: parser.prog
        for parser in commands.choices.values()
        for option in parser._option_string_actions
    }
    listed = {name for names in NAMES.values() for name in names}
    kinds = ("commands", "judges", "engines")
    needed = {part.name for part in OWN_PARTS if part.hook in kinds}
    needed |= {f"--{part.name}" for part in OWN_PARTS if part.hook == "exports"}
    assert needed <= listed
    assert {name for name in listed if name.startswith("--")} <= options.keys()
    assert sorted(NAMES) == PLUGINS


@pytest.fixture
def without(tmp_path):
    """Return what copies the package without some plugins, and returns what runs Python there."""

    def copied(*plugins):
        shutil.copytree(PACKAGE, tmp_path / "mind2web2")
        for path in REPOSITORY.iterdir():
            if path.name != "mind2web2" and not path.name.startswith("."):
                (tmp_path / path.name).symlink_to(path)
        for plugin in plugins:
            shutil.rmtree(tmp_path / "mind2web2" / "plugins" / plugin)
        path = os.pathsep.join((str(tmp_path), str(REPOSITORY / "tests")))

        project = tmp_path / "project"
        project.mkdir()

        def run(*words, cwd=project):
            return subprocess.run(
                [sys.executable, "-m", *words],
                cwd=cwd,
                env=os.environ | {"PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=False,
            )

        return run

    return copied


# Runs commands in one process, which loads the package once.
RUN_COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr
from mind2web2.cli import main

outcomes = []
for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    with redirect_stderr(said):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    outcomes.append((status, said.getvalue()))
print(json.dumps(outcomes))
"""


def words_with(name):
    """Return a command that needs a name of a plugin: its command, option or value."""
    if name.startswith("--"):
        return ["rehearse", name]
    if name in {part.name for part in OWN_PARTS if part.hook in ("judges", "engines")}:
        option = "--engine" if name == "ray" else "--llm_provider"
        return ["evaluate", "bot", option, name]
    return [name]


@pytest.mark.parametrize("missing", [PLUGINS[::2], PLUGINS[1::2]], ids=["one half", "the other"])
def test_without_plugins_the_commands_name_them(without, missing, tmp_path):
    """Their commands are gone from the help, and one line names the plugin where it is needed."""
    run = without(*missing)
    listed = run("mind2web2", "plugins")
    assert (listed.returncode, listed.stderr) == (0, "")
    helped = run("mind2web2", "--help").stdout
    fields = {part.name for part in OWN_PARTS if part.hook == "compositions"}
    plugin_of = {
        name: plugin
        for plugin in missing
        for name in NAMES[plugin]
        if "://" not in name and not name.startswith(".") and name not in fields
    }
    (tmp_path / "run_commands.py").write_text(RUN_COMMANDS)
    outcomes = run("run_commands", json.dumps([words_with(name) for name in plugin_of]))
    assert outcomes.returncode == 0, outcomes.stderr
    for (name, plugin), (status, said) in zip(
        plugin_of.items(), json.loads(outcomes.stdout), strict=True
    ):
        assert f"\n{plugin}: " not in f"\n{listed.stdout}"
        assert (status, said.count("\n")) == (2, 1), name
        assert f"needs the plugin {plugin}" in said
        assert re.search(rf"(?m)^ *(mind2web2 )?{name}(?![\w-])", helped) is None


def test_a_stored_judge_names_the_plugin_that_it_needs(without, tmp_path):
    """A result of two judges cannot be checked without the plugin that has their rule."""
    run = without("cascade")
    (tmp_path / "project" / "read.py").write_text(
        "from mind2web2.judge.spec import JudgeRecord\n"
        "JudgeRecord(provider='openai', endpoint='', model='a', first_model='b').as_replay()\n"
    )
    outcome = run("read")
    assert outcome.stderr.splitlines()[-1].endswith(
        "a judge of several models needs the plugin cascade"
    )


# The contract tests of what the package does; others are about its text, documents and the wheel.
CONTRACT = ("test_published_names.py", "test_cache_commands.py")


def test_without_all_plugins_the_example_and_the_contract_hold(without):
    run = without(*PLUGINS)
    example = run("mind2web2", "example")
    assert (example.returncode, example.stderr) == (0, "")
    contract = [REPOSITORY / "tests/contract" / name for name in CONTRACT]
    options = ("-q", "-x", "-p", "no:cacheprovider", "--rootdir", REPOSITORY)
    outcome = run("pytest", *map(str, options), *map(str, contract), cwd=REPOSITORY)
    assert outcome.returncode == 0, outcome.stdout
