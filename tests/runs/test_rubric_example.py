"""The example's rubric files against its scripts, on all nine answers."""

import importlib.util
import json

from projects import REPOSITORY

from mind2web2.judge.store import JudgmentStore
from mind2web2.utils.path_config import PathConfig

SHOWN = ("id", "desc", "critical", "strategy", "score", "status")
OF_THE_ANSWER = {"library_facts", "plan", "walks"}


def recording():
    """Return the module that records the example's judgments."""
    path = REPOSITORY / "examples" / "record_judgments.py"
    spec = importlib.util.spec_from_file_location("record_judgments", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer_key():
    """Return the example's key with the names that rubric files give to extractions."""
    key = json.loads((REPOSITORY / "examples" / "answer_key.json").read_text(encoding="utf-8"))
    both = list(key["extractions"])
    both += [{**entry, "name": "answer"} for entry in both if entry["name"] in OF_THE_ANSWER]
    return {**key, "extractions": both}


async def trees(scripts, folder):
    """Return tree and score of each answer, as a folder's scripts or rubric files make them."""
    module = recording()
    paths = PathConfig(REPOSITORY).apply_overrides(eval_scripts_root=scripts)
    with JudgmentStore(None) as store:
        judge = module.KeyJudge(store, answer_key())
        outcomes = await module.record(judge, paths, module.AGENT, folder)
    assert [outcome.reason for outcome in outcomes if outcome.score is None] == []
    return {
        (outcome.task_id, outcome.answer_name): (
            outcome.score,
            list(_lines(outcome.result.document)),
        )
        for outcome in outcomes
    }


def _lines(result):
    stack = [result["eval_breakdown"][0]["verification_tree"]]
    while stack:
        node = stack.pop()
        # A script's question may begin with a line break.
        yield tuple(node[name].strip() if name == "desc" else node[name] for name in SHOWN)
        stack += node["children"]


async def test_rubric_files_give_the_trees_of_the_scripts(tmp_path):
    of_scripts = await trees(REPOSITORY / "eval_scripts", tmp_path / "scripts")
    of_files = await trees(REPOSITORY / "examples" / "rubrics", tmp_path / "files")
    assert len(of_scripts) == 9
    for answer, (score, tree) in of_scripts.items():
        assert of_files[answer] == (score, tree), answer
