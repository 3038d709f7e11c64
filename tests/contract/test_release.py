"""The built wheel: what it holds, and that it works without a clone."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import pytest
import yaml
from projects import REPOSITORY, call, clean_environment

from mind2web2 import __version__
from mind2web2.cli import main

MAX_BYTES = 3_000_000
# The packages beside the core, each with a command that is gone without it.
PRODUCTS = {
    "mind2web2_authoring": "rehearse",
    "mind2web2_check": "check",
    "mind2web2_inspect": None,
    "mind2web2_ray": None,
    "mind2web2_telemetry": None,
    "mind2web2_trust": "check-judge",
}
# Without the installation of the clone that runs the tests.
ALONE = """
import sys
sys.path += sys.argv[1:3]
del sys.argv[1:3]
from mind2web2.__main__ import command
command()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel, built from the repository."""
    folder = tmp_path_factory.mktemp("dist")
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(folder),
    ]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    """Return a folder with the installed files of the wheel."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def outside(unpacked, cwd, *words):
    """Run the unpacked package in a folder of its own, with the dependencies of this Python."""
    return subprocess.run(
        [sys.executable, "-m", "mind2web2", *words],
        cwd=cwd,
        check=False,
        env=clean_environment(PYTHONPATH=str(unpacked), HOME=str(cwd)) | {"UV": ""},
        capture_output=True,
        text=True,
    )


def test_the_wheel_is_small_and_holds_no_tests(wheel):
    assert wheel.stat().st_size < MAX_BYTES
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert {name.split("/")[0] for name in names} == {
        "mind2web2",
        *PRODUCTS,
        f"mind2web2-{__version__}.dist-info",
    }
    assert [name for name in names if re.search(r"(^|/)(tests?|conftest|benchmarks)\b", name)] == []
    assert [
        name for name in names if "__pycache__" in name or name.endswith((".lock", ".sqlite3"))
    ] == []
    for part in (
        "viewer/static/main.js",
        "mind2web2_trust/judge_check/labelled_set.json.xz",
        ".dist-info/entry_points.txt",
        "pages/barred.txt",
        "LICENSE",
    ):
        assert any(name.endswith(part) for name in names), part


def test_the_example_works_outside_of_a_clone(unpacked, tmp_path):
    run = outside(unpacked, tmp_path, "example", "my example")
    assert (run.returncode, run.stderr) == (0, "")
    assert "museum_saturday │ example │ 1: 0.44  2: 1  3: 0" in run.stdout
    assert run.stdout.endswith("cd 'my example'; python -m mind2web2 view example\n")
    summary = json.loads((tmp_path / "my example/eval_results/example/summary.json").read_text())
    assert round(summary["avg_score"], 4) == 0.6034
    again = outside(unpacked, tmp_path, "example", "my example")
    assert (again.returncode, "0 files written into my example" in again.stdout) == (
        0,
        True,
    )
    script = tmp_path / "my example/eval_scripts/example/library_facts.py"
    script.write_text("mine")
    refused = outside(unpacked, tmp_path, "example", "my example")
    assert refused.returncode == 2
    assert "library_facts.py differ from the example: name another folder\n" in refused.stderr
    assert script.read_text() == "mine"


@pytest.fixture(scope="module")
def own_example(tmp_path_factory):
    """Return the example, written and evaluated by a clone."""
    folder = tmp_path_factory.mktemp("outside") / "example"
    assert call(main, "example", folder).returncode == 0
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("rehearse", "--no_run"),
        ("show", "example", "museum_saturday", "answer_1"),
        ("metrics", "example"),
        ("report", "example", "-o", "report.html"),
    ],
)
def test_commands_work_outside_of_a_clone(unpacked, own_example, words):
    run = outside(unpacked, own_example, *words)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_product_can_be_deleted(unpacked, own_example, tmp_path, product):
    """With its folder and its entry points; all other commands stay."""
    shutil.copytree(unpacked, tmp_path / "site", ignore=shutil.ignore_patterns(product))
    [entries] = (tmp_path / "site").glob("*.dist-info/entry_points.txt")
    lines = entries.read_text().splitlines()
    entries.write_text("\n".join(line for line in lines if product not in line))
    folders = (str(tmp_path / "site"), sysconfig.get_path("purelib"))

    def run(*words):
        return subprocess.run(
            [sys.executable, "-S", "-c", ALONE, *folders, *words],
            cwd=own_example,
            check=True,
            env=clean_environment(PYTHONPATH="") | {"UV": ""},
            capture_output=True,
            text=True,
        ).stdout

    commands = {line.split()[1] for line in run("--help", "all").splitlines()}
    assert {"evaluate", *filter(None, PRODUCTS.values())} - commands == {PRODUCTS[product]} - {None}
    assert "0.60" in run("metrics", "example")
    assert "0.44" in run(
        "evaluate", "example", "--llm_provider", "replay", "--judgments", "examples/judgments.jsonl"
    )


def test_a_plain_installation_runs_the_commands_of_the_readme(tmp_path):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        re.split("[<>=]", name)[0].replace("_", "-")
        for names in project["optional-dependencies"].values()
        for name in names
    }
    absent = [
        module
        for module, names in packages_distributions().items()
        if any(name.lower().replace("_", "-") in extras for name in names)
    ]
    assert {"mammoth", "lxml", "mcp", "ray"} <= {*absent}
    for name in ("answers", "cache", "checks", "eval_scripts", "examples"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    # Each Python that is started runs this first.
    absence = f"import sys\nsys.modules.update(dict.fromkeys({absent}))\n"
    (tmp_path / "sitecustomize.py").write_text(absence)
    path = f"{tmp_path}{os.pathsep}{REPOSITORY}"

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "mind2web2", *words],
            cwd=tmp_path,
            check=False,
            env=clean_environment(PYTHONPATH=path),
            capture_output=True,
            text=True,
        )

    replay = ("--llm_provider", "replay", "--judgments")
    evaluated = run("evaluate", "example", *replay, "examples/judgments.jsonl")
    assert (evaluated.returncode, "0.44" in evaluated.stdout) == (0, True)
    checked = run("check", "examples/report.md", *replay, "examples/report_judgments.jsonl")
    assert "3 of 5 checked claims hold" in checked.stdout
    (tmp_path / "report.html").write_text("<p>One. <a href='https://a.example/'>1</a></p>")
    refused = run("check", "report.html", "--list")
    assert (refused.returncode, "mind2web2[html]" in refused.stderr) == (2, True)


def test_a_clone_writes_the_same_example(unpacked, own_example):
    packed = unpacked / "mind2web2/example_project"
    for path in packed.rglob("*"):
        if path.is_file():
            assert (own_example / path.relative_to(packed)).read_bytes() == path.read_bytes()


def test_the_version_is_one():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", changelog, re.MULTILINE)[0].startswith(__version__)
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {__version__}\n" in citation


def test_no_folder_of_the_environment_is_named(wheel):
    with zipfile.ZipFile(wheel) as packed:
        [metadata] = [name for name in packed.namelist() if name.endswith("METADATA")]
        text = packed.read(metadata).decode()
    assert os.fspath(REPOSITORY) not in text
    assert "index-url" not in text


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_documents_for_developers_name_files_that_exist(name):
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:mind2web2|tests|benchmarks|docs)/[\w./-]+)`", text)
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []


def test_forms_and_citation_can_be_read():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "version"} <= citation.keys()
    forms = sorted((REPOSITORY / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    for form in forms:
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        if form.name != "config.yml":
            assert {"name", "description", "body"} <= content.keys()
            assert all(part["attributes"] for part in content["body"])
    assert len(forms) == 4
