"""Scripts that import this toolkit under another name."""

import pytest

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


def written(folder, form, found, name):
    """Return a script that imports the evaluator in one of the forms."""
    path = folder / "lake.py"
    path.write_text(
        SCRIPT.replace("IMPORT", form).replace("FOUND", found).replace("NAME", name),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(("form", "found"), FORMS)
@pytest.mark.parametrize("name", ["obj_task_eval", "cap_eval"])
async def test_an_alias_stands_for_the_package(tmp_path, form, found, name):
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
    path = written(tmp_path, "from their_eval import Evaluator", "Evaluator", "")
    with pytest.raises(ModuleNotFoundError):
        load_eval_script(path)
