"""``examples/plugin/``: installed into an environment of its own, and used."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from projects import AGENT, TASK, clean_environment, entered

REPOSITORY = Path(__file__).parents[2]
PLUGIN = REPOSITORY / "examples" / "plugin"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return the Python of an environment with this package and the plugin."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", symlinks=True)
    [packages] = (folder / "venv").glob("lib/*/site-packages")
    ours = f"{REPOSITORY}\n{sysconfig.get_path('purelib')}\n"
    (packages / "ours.pth").write_text(ours)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=PLUGIN, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(packages)
    return folder / "venv" / "bin" / "python"


@pytest.fixture
def run(python, tmp_path, monkeypatch):
    """Return what runs a command in a project with two claims, of which the answer supports one."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer("answer_1", "The lake is deep and cold.")
    claims = {"deep": ("The lake is deep.", None), "wide": ("The lake is wide.", None)}
    project.add_script(claims)

    def call(*words):
        command = [python, "-m", "mind2web2", *words]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=clean_environment(),
            check=False,
        )

    return call


def test_the_plugin_is_listed(run):
    printed = run("--version", "-v").stdout.splitlines()
    assert "judges rules: mind2web2_rules:PROVIDER" in printed
    assert "exports markdown: mind2web2_rules:EXPORT" in printed


def test_its_judge_evaluates_and_its_export_writes(run):
    judge = ("--llm_provider", "rules", "--judge_model", "words", "--no_capture")
    outcome = run("evaluate", AGENT, *judge)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    outcome = run("export", AGENT, "--markdown", "list.md")
    assert outcome.stdout == "2 verdicts written to list.md\n"
    lines = Path("list.md").read_text().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["- passed", "- failed"]
    assert "0.5" in run("show", AGENT, TASK).stdout
