"""Results and pages made by hand, as many and as hostile as a test wants."""

import json
from pathlib import Path

from mind2web2.analysis.summaries import generate_result_summary
from mind2web2.pages.cache import CacheFileSys
from mind2web2.utils.path_config import PathConfig

URL = "https://lake.example/facts"


def leaf(
    name,
    claim,
    *,
    passed=True,
    url=URL,
    reasoning="The page says so.",
    desc="A fact is right",
    **more,
):
    """Return a leaf that two votes on one page decided."""
    votes = [
        {
            "trial": trial,
            "supported": passed,
            "reasoning": reasoning,
            "judgment": f"{name}-{trial}",
        }
        for trial in (1, 2)
    ]
    shown = {
        "kind": "web",
        "sha256": None,
        "text_chars": 20,
        "text_chars_stored": 20,
        "images": 0,
    }
    outcome = "supported" if passed else "not_supported"
    return {
        "id": name,
        "desc": desc,
        "critical": False,
        "score": float(passed),
        "status": "passed" if passed else "failed",
        "strategy": "parallel",
        "children": [],
        "evidence": {
            "decided_by": "judge",
            "claim": claim,
            "num_trials": 3,
            "pages": [{"url": url, "outcome": outcome, "page": shown, "votes": votes, **more}],
        },
    }


def result(agent, answer, leaves, desc="What is known of the lake?"):
    """Return a result whose root is the mean of its leaves."""
    score = sum(each["score"] for each in leaves) / len(leaves)
    root = {
        "id": "root",
        "desc": desc,
        "critical": False,
        "score": score,
        "strategy": "parallel",
    }
    root["status"] = "passed" if score == 1 else "partial" if score else "failed"
    return {
        "agent_name": agent,
        "answer_name": f"{answer}.md",
        "judge_model": "judge-1",
        "final_score": score,
        "eval_breakdown": [{"info": [], "verification_tree": {**root, "children": leaves}}],
        "extractions": [],
        "run": {"created": "2026-11-01T10:00:00+00:00", "tree_format": 2},
    }


class Results:
    """A project's folders, filled with results."""

    def __init__(self, folder: Path) -> None:
        self.paths = PathConfig(folder)

    def add(self, content, task, text="The lake is deep.", stamp="20261101_100000"):
        """Write a result of an answer with this text."""
        agent, name = content["agent_name"], content["answer_name"]
        folder = self.paths.eval_results_root / agent / task / name.removesuffix(".md")
        (folder / "results").mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        (folder / "results" / f"{stamp}_{name}.json").write_text(
            json.dumps(content), encoding="utf-8"
        )

    def add_page(self, agent, task, url, text, screenshot=None):
        """Store a page."""
        CacheFileSys(self.paths.cache_root / agent / task).put_web(url, text, screenshot)

    def summarise(self, *agents):
        """Write the agents' summaries."""
        for agent in agents:
            generate_result_summary(self.paths.eval_results_root, agent)
