"""The example's nine answers, evaluated in this process.

The module also knows what comes out where nothing is disturbed.
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from projects import REPOSITORY
from servers.recorded_replies import RECORDED

from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import open_for_replay
from mind2web2.llm_client.chat import ChatProvider
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.scripts.isolation.messages import Ahead
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.path_config import PathConfig

AGENT = "example"
SETTINGS = JudgeSpec("o4-mini")

Name = tuple[str, str]


@dataclass(frozen=True)
class Manner:
    """How a run goes about it, which no score may depend on."""

    ahead: Ahead = "values"
    requests_at_once: int = 30
    answers_at_once: int = 3


async def evaluate_example(
    provider: ChatProvider, results: Path, manner: Manner, library: PageLibrary
) -> list[AnswerOutcome]:
    """Evaluate the nine answers as the command does and return what became of them."""
    with JudgmentStore(results / AGENT / STORE_NAME) as store:
        return await _evaluate(CachingJudge(SETTINGS, provider, store), results, manner, library)


async def undisturbed_trees(results: Path, library: PageLibrary) -> dict[Name, Any]:
    """Return each answer's tree as the recorded judgments give it."""
    with open_for_replay(RECORDED) as store:
        judge = CachingJudge(JudgeSpec("example-key", provider="replay"), None, store)
        outcomes = await _evaluate(judge, results, Manner(), library)
    missing = [
        f"{'/'.join(name_of(outcome))}: {outcome.reason}"
        for outcome in outcomes
        if not outcome.result
    ]
    if missing:
        raise AssertionError(f"a replay gives no result: {missing}")
    trees = {
        name_of(outcome): tree_of(outcome.result.document) for outcome in outcomes if outcome.result
    }
    expected = json.loads(
        (REPOSITORY / "examples" / "expected_scores.json").read_text(encoding="utf-8")
    )
    for task, answers in expected.items():
        for answer, score in answers.items():
            if not math.isclose(trees[task, answer]["score"], score, abs_tol=1e-9):
                raise AssertionError(
                    f"a replay does not give {task}/{answer} the score derived by hand, {score}"
                )
    return trees


async def _evaluate(
    judge: CachingJudge, results: Path, manner: Manner, library: PageLibrary
) -> list[AnswerOutcome]:
    paths = PathConfig(REPOSITORY)
    run = RunParts(
        judge=judge,
        library=library,
        limits=DualSemaphore(asyncio.Semaphore(10), asyncio.Semaphore(manner.requests_at_once)),
        reuse=judge.endpoint != "replay",
        answer_timeout_s=None,
        ahead=manner.ahead,
    )
    folders = RunFolders(AGENT, paths.cache_root, results)
    concurrency = Concurrency(max_answers=manner.answers_at_once)
    return await evaluate_work(select_work(paths, AGENT), folders, run, concurrency, RunProgress())


def stored_judgments(results: Path) -> dict[str, Judgment]:
    """Return the judgments that a run has kept, by key; what it noted beside them is left out."""
    path = results / AGENT / STORE_NAME
    if not path.exists():
        return {}
    with JudgmentStore(path) as store:
        return {judgment.key: judgment for judgment in store.all() if judgment.purpose != "gate"}


def name_of(outcome: AnswerOutcome) -> Name:
    """Return the task and the answer."""
    return outcome.task_id, outcome.answer_name


def tree_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a result that has to be the same, whatever was disturbed.

    The part holds each node and why it came out so.
    """
    tree: dict[str, Any] = result["eval_breakdown"][0]["verification_tree"]
    return tree


def without_evidence(node: dict[str, Any]) -> dict[str, Any]:
    """Return a tree's nodes with their scores, without what decided them."""
    # Judging ahead of time may have looked at more pages before it was known that one is enough.
    children = [without_evidence(child) for child in node["children"]]
    return {**node, "children": children, "evidence": None}
