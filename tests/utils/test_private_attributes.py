"""Private attributes of other packages are listed, and checked before first use."""

import ast
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import mind2web2
from mind2web2.errors import MachineError
from mind2web2.utils.private_attributes import (
    PRIVATE_ATTRIBUTES,
    REQUIREMENTS,
    check_private_attributes,
)

PACKAGE = Path(mind2web2.__file__).parent
PROJECT = PACKAGE.parent / "pyproject.toml"


@pytest.fixture(autouse=True)
def _checked_again():
    check_private_attributes.cache_clear()
    yield
    check_private_attributes.cache_clear()


@pytest.mark.parametrize("package", REQUIREMENTS)
def test_the_tested_versions_have_what_we_use(package):
    """No error, and every package has an entry."""
    check_private_attributes(package)
    assert any(each.package == package for each in PRIVATE_ATTRIBUTES)


@pytest.mark.parametrize(
    "entry", PRIVATE_ATTRIBUTES, ids=lambda entry: f"{entry.kind}.{entry.attribute}"
)
def test_a_missing_attribute_names_package_version_and_cure(entry, monkeypatch):
    __import__(entry.module)
    with monkeypatch.context() as patched:
        patched.setattr(sys.modules[entry.module], entry.kind, type(entry.kind, (), {}))
        with pytest.raises(MachineError) as caught:
            check_private_attributes(entry.package)
    text = str(caught.value)
    assert text.startswith(f"{entry.package} {version(entry.package)} lacks {entry.kind}.")
    assert text.endswith(f"install {REQUIREMENTS[entry.package]}")


def test_the_requirements_are_those_of_the_project():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    dependencies = {*project["dependencies"], *extras["ray"], *extras["arxiv"]}
    assert set(REQUIREMENTS.values()) <= dependencies
    assert all("<" in text for text in REQUIREMENTS.values())


def test_no_other_private_attribute_of_foreign_objects_is_used():
    """Private names on other objects are ours, listed, or documented."""
    documented = {"_replace", "_asdict", "_fields", "_getframe", "_exit"}
    # Types only: argparse gives its groups no public names.
    documented |= {"_ActionsContainer", "_ArgumentGroup", "_SubParsersAction"}
    # The options of a parser and the commands below it, which have no public names either.
    documented |= {"_actions", "_choices_actions"}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    private = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    }
    listed = {each.attribute for each in PRIVATE_ATTRIBUTES}
    own = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"self", "cls"}
    }
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    own |= {
        target.id
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
    }
    assert private - own - listed - documented == set()
