"""An installation with pip has all that the package imports."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# pydantic needs exactly one version of its core.
PACKAGES = [path.parent for path in sorted(ROOT.glob("mind2web2*/__init__.py"))]
OWN = {*(path.name for path in PACKAGES), "pydantic_core"}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements):
    """Return the names of packages without their versions."""
    ends = str.maketrans("[<>=", "    ")
    return {each.translate(ends).split()[0].lower() for each in requirements}


def declared():
    """Return the names of the dependencies, those of extras included."""
    extras = PROJECT["optional-dependencies"].values()
    return names([*PROJECT["dependencies"], *(name for extra in extras for name in extra)])


def test_a_plain_installation_has_what_eval_scripts_may_import():
    """docs/eval-scripts.md names these beside the standard library."""
    assert {"pydantic", "openai", "python-dateutil"} <= names(PROJECT["dependencies"])


def imported(path):
    """Return the top-level modules that a module imports anywhere, for types as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_all_that_is_imported_is_declared():
    """An installation may lack an undeclared package."""
    distributions, wanted = packages_distributions(), declared()
    undeclared = {
        name: str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in package.rglob("*.py")
        for name in set(imported(path)) - sys.stdlib_module_names - OWN
        if not wanted & {each.lower().replace("_", "-") for each in distributions.get(name, [name])}
    }
    assert undeclared == {}


def test_a_message_about_an_extra_says_how_to_install_it_in_a_clone():
    """There, uv runs the program, and the environment has no pip."""
    for path in (path for package in PACKAGES for path in package.rglob("*.py")):
        text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))
        with_pip, with_uv = text.count("pip install 'mind2web2["), text.count("uv sync --extra")
        assert with_pip == with_uv, path.name
