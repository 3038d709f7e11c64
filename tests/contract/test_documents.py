"""README and docs: every command, snippet, option and link in them works."""

import argparse
import json
import re
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest
from projects import REPOSITORY
from servers.judge_server import JudgeServer
from servers.recorded_replies import RecordedReplies

from mind2web2.cli import command_modules
from mind2web2.cli.options import CommandParser

DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
README_WORDS = 900
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(*languages):
    """Return the code blocks of all documents in these languages, with the document's name."""
    found = []
    for document in DOCUMENTS:
        for indent, language, text in BLOCK.findall(document.read_text(encoding="utf-8")):
            if language in languages:
                lines = [line.removeprefix(indent) for line in text.splitlines()]
                found.append((document.name, "\n".join(lines) + "\n"))
    assert found
    return found


def parsers():
    """Return the parser of each command by name."""
    together = CommandParser(prog="mind2web2")
    subcommands = together.add_subparsers()
    for module in command_modules():
        module.add_command(subcommands)
    return dict(subcommands.choices)


def options_of(parser):
    """Return the options of a parser and of its subcommands."""
    found = set()
    for action in parser._actions:
        found |= {word.replace("-", "_").replace("__", "--", 1) for word in action.option_strings}
        if isinstance(action, argparse._SubParsersAction):
            found |= set().union(*(options_of(choice) for choice in action.choices.values()))
    return {word for word in found if word.startswith("--")} - {"--help"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a folder with the example's answers, beside a judge that knows the key."""
    for agent in ("my_agent", "other_agent", "example"):
        shutil.copytree(REPOSITORY / "answers/example", tmp_path / "answers" / agent)
        shutil.copytree(REPOSITORY / "cache/example", tmp_path / "cache" / agent)
    for folder in ("eval_scripts", "examples"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    with JudgeServer(RecordedReplies()) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "dummy")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield


@pytest.mark.parametrize(("document", "text"), blocks("json", "toml"))
def test_data_snippets_can_be_read(document, text):
    assert json.loads(text) if text.startswith("{") else tomllib.loads(text), document


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    text = BLOCK.sub("", document.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if "://" in link:
            continue
        name, _, heading = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
            assert heading in anchors, link


def test_the_files_to_change_exist():
    """The architecture names for each kind of change where it is made."""
    text = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")
    rows = text.partition("| to change | open |")[2].partition("\n## ")[0].splitlines()[2:]
    places = [re.findall(r"`(mind2web2\w*/[^`]*)`", row) for row in rows if row]
    assert len(places) >= 15
    assert [row for row, paths in zip(rows, places, strict=False) if not paths] == []
    assert [path for paths in places for path in paths if not (REPOSITORY / path).exists()] == []


def test_pages_list_the_keys_of_settings_and_the_names_for_products():
    """If this fails, ``make options`` writes them."""
    writer = runpy.run_path(str(REPOSITORY / "docs/write_options.py"))
    for page in writer["PARTS"]:
        assert (REPOSITORY / "docs" / page).read_text(encoding="utf-8") == writer["written"](page)


def test_documents_name_options_that_exist():
    existing = set().union(*(options_of(parser) for parser in parsers().values())) | {
        "--agent_name"
    }
    others = {
        "--help",
        "--extra",
        "--dist",
        "--break",
        "--group",
        "--no",
        "--remote",
        "--security",
        "--user",
        "--system",
    }
    # Options of Slurm, Ray, vLLM, slime and Inspect.
    others |= {"--nodes", "--ntasks", "--cpus", "--mem", "--time", "--array"}
    others |= {"--custom", "--rm", "--with", "--out", "--solver", "--model", "--log"}
    others |= {"--markdown"}  # of the example of a plugin
    others |= {"--target"}  # of pip
    others |= {"--head", "--port", "--address", "--object", "--block", "--enable"}
    for document in DOCUMENTS:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z_]+", document.read_text(encoding="utf-8")))
        assert named - existing - others == set(), document.name


def test_the_readme_is_short():
    """Somebody reads it to the end."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= README_WORDS


def test_the_readme_has_the_test_command_of_continuous_integration():
    named = {
        re.search(r"pytest -n .*?--dist \w+", (REPOSITORY / name).read_text(encoding="utf-8"))[0]
        for name in ("README.md", "Makefile", ".ci/run")
    }
    assert len(named) == 1, named


def test_no_module_cites_a_document_that_is_not_there():
    documents = {path.name for path in Path(REPOSITORY).rglob("*.md") if ".venv" not in path.parts}
    cited = {
        name
        for path in REPOSITORY.glob("mind2web2*/**/*.py")
        for name in re.findall(r"(?<![\w.])[\w-]+\.md\b(?!\.)", path.read_text(encoding="utf-8"))
    }
    assert cited - documents == set()
