"""Scripts that import this toolkit under another name."""

import pytest
from projects import call

from mind2web2 import Evaluator
from mind2web2.cli import main
from mind2web2.scripts.imports import set_script_aliases
from mind2web2.scripts.load import load_eval_script, unload_eval_script

SCRIPT = """
IMPORT

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger):
    evaluator = FOUND()
    evaluator.initialize("lake")
    evaluator.add_custom_node(True, "x", "x")
    return evaluator.get_summary()
"""
FORMS = [
    ("from NAME import Evaluator", "Evaluator"),
    ("from NAME.evaluator import Evaluator as E", "E"),
    ("import NAME", "NAME.Evaluator"),
    ("import NAME.evaluator", "NAME.evaluator.Evaluator"),
    ("import NAME.evaluator as other, json", "other.Evaluator"),
]


@pytest.fixture(autouse=True)
def no_aliases():
    """Leave none behind."""
    yield
    set_script_aliases({})


def written(folder, form, found, name):
    """Return a script that imports the evaluator in one of the forms."""
    path = folder / "lake.py"
    path.write_text(
        SCRIPT.replace("IMPORT", form).replace("FOUND", found).replace("NAME", name),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(("form", "found"), FORMS)
@pytest.mark.parametrize("name", ["obj_task_eval", "cap_eval", "their_eval"])
async def test_an_alias_stands_for_the_package(tmp_path, form, found, name):
    """In every form of import; two names are built in."""
    set_script_aliases({"their_eval": "mind2web2"})
    evaluate = load_eval_script(written(tmp_path, form, found, name))
    arguments = dict.fromkeys(
        (
            "client",
            "answer",
            "agent_name",
            "answer_name",
            "cache",
            "semaphore",
            "logger",
        )
    )
    assert (await evaluate(**arguments))["final_score"] == 1.0
    unload_eval_script(evaluate)


def test_a_name_that_is_no_alias_is_missing(tmp_path):
    """As ever; taking an alias back counts for the same file."""
    path = written(tmp_path, "from their_eval import Evaluator", "Evaluator", "")
    set_script_aliases({"their_eval": "mind2web2"})
    assert load_eval_script(path)
    set_script_aliases({})
    with pytest.raises(ModuleNotFoundError):
        load_eval_script(path)
    assert Evaluator


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        ('[scripts]\naliases = {their_eval = "mind2web2"}', 0, ""),
        ("", 1, "No module named 'their_eval'"),
        ("[scripts]\naliases = 3", 2, "write [scripts] with aliases"),
        ("[scripts]\nalias = {}", 2, "did you mean aliases?"),
    ],
)
def test_the_settings_file_names_aliases(tmp_path, monkeypatch, content, status, message):
    """They reach the process that runs the script."""
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "eval_scripts" / "own"
    scripts.mkdir(parents=True)
    written(scripts, "from their_eval import Evaluator", "Evaluator", "")
    (tmp_path / "mind2web2.toml").write_text(content, encoding="utf-8")
    outcome = call(main, "rehearse", "lake")
    assert outcome.returncode == status
    assert message in outcome.stdout + outcome.stderr
    assert ("No module" in outcome.stdout) is (message[:9] == "No module")
