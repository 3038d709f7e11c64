"""The benchmark as a task of Inspect, and the rubric trees as its scorer (extra ``inspect``).

    inspect eval mind2web2/mind2web2 --model openai/gpt-5 --solver my_agent.py

Inspect imports this module by the package's entry point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Literal, TypeVar

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.scorer import Score as InspectScore
from inspect_ai.scorer import Scorer as InspectScorer
from inspect_ai.scorer import Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from mind2web2 import Judge, NoScore, Scorer
from mind2web2.plugin import (
    ResultFile,
    RunSettings,
    UsageError,
    find_tasks,
    leaf_records,
)
from mind2web2_inspect.inspect_texts import explain_leaves

_Function = TypeVar("_Function", bound=Callable[..., object])


def _of_distribution(function: _Function) -> _Function:
    """Name the module after the distribution: Inspect looks for one of the module's first name."""
    function.__module__ = "mind2web2"
    return function


@task
@_of_distribution
def mind2web2(
    judge_model: str = "o4-mini",
    judge_base_url: str | None = None,
    judge_provider: str = "openai",
    tasks: str = "",
    task_list: str | None = None,
    scripts: str = "eval_scripts",
    eval_version: str | None = None,
    pages: str | None = None,
    missing_pages: Literal["capture", "unavailable", "no_score"] = "capture",
    max_cost: float | None = None,
) -> Task:
    """Return the task, a sample for each question, for solvers that answer in markdown.

    Args:
        judge_provider: and the two before it: the judge, as ``mind2web2.Judge`` has it.
        tasks: ids of tasks, separated by commas; all by default.
        task_list: a file with ids, or CSV with questions.
        scripts: the root of eval scripts and rubric files.
        pages: a folder for captured pages, with a folder for each task.
        missing_pages: ``capture``, ``unavailable`` or ``no_score``, as ``mind2web2.Scorer`` has it.
        max_cost: dollars for the judge.
    """
    paths = RunSettings(eval_scripts_root=Path(scripts), eval_version=eval_version).paths
    listed = None if task_list is None else Path(task_list)
    task_names = [name.strip() for name in tasks.split(",") if name.strip()]
    known = find_tasks(paths, Path("tasks"), listed, task_names)
    # A broken script may have no question to read; it fails when it is run.
    silent = [each.task_id for each in known if not each.question and not each.script_problem]
    if silent:
        raise UsageError(
            f"no question for {', '.join(silent)}: give a task list with a column "
            "task_description, or an eval script with TASK_DESCRIPTION"
        )
    samples = [
        Sample(id=each.task_id, input=each.question, metadata={"task": each.task_id})
        for each in known
        if each.question
    ]
    return Task(
        dataset=MemoryDataset(samples, name="mind2web2"),
        scorer=rubric_tree(
            judge_model=judge_model,
            judge_base_url=judge_base_url,
            judge_provider=judge_provider,
            scripts=scripts,
            eval_version=eval_version,
            pages=pages,
            missing_pages=missing_pages,
            max_cost=max_cost,
        ),
    )


# Each list holds the open scorer of one ``rubric_tree``.
_open_scorers: list[list[Scorer]] = []


@hooks(name="mind2web2", description="closes the scorers of rubric trees")
class _Closing(Hooks):
    async def on_run_end(self, data: RunEnd) -> None:  # noqa: ARG002 (Inspect's interface)
        """Close what the run's samples have opened; at the process's exit it would be too late."""
        while _open_scorers:
            opened = _open_scorers.pop()
            await opened.pop().aclose()


@scorer(metrics=[mean(), stderr(cluster="task")])
@_of_distribution
def rubric_tree(
    judge_model: str = "o4-mini",
    judge_base_url: str | None = None,
    judge_provider: str = "openai",
    scripts: str = "eval_scripts",
    eval_version: str | None = None,
    pages: str | None = None,
    missing_pages: Literal["capture", "unavailable", "no_score"] = "capture",
    max_cost: float | None = None,
) -> InspectScorer:
    """Return a scorer by rubric trees.

    The ``task`` in a sample's metadata, or its id, names the tree.

    A sample without a score is unscored and counts in no figure: the judge or a page failed.
    """
    judge = Judge(judge_model, judge_base_url, judge_provider)
    opened: list[Scorer] = []

    def open_scorer() -> Scorer:
        # Inspect does not tell a scorer when samples begin.
        if not opened:
            scores = Scorer(
                judge=judge,
                pages=pages,
                scripts=scripts,
                eval_version=eval_version,
                missing_pages=missing_pages,
                max_cost=max_cost,
            )
            opened.append(scores.__enter__())
            _open_scorers.append(opened)
        return opened[0]

    async def score(state: TaskState, target: Target) -> InspectScore:  # noqa: ARG001 (Inspect's interface)
        answer = state.output.completion
        task_id = str((state.metadata or {}).get("task", state.sample_id))
        outcome = await open_scorer().score(task=task_id, answer=answer)
        if isinstance(outcome, NoScore):
            return InspectScore.unscored(
                reason="scoring_failed",
                explanation=outcome.reason,
                metadata={"kind": outcome.kind},
            )
        result = ResultFile.of(outcome.result)
        leaves = leaf_records(str(state.model), task_id, "answer_1.md", result)
        metadata = {
            "leaves": [asdict(leaf) for leaf in leaves],
            "cost_usd": outcome.cost_usd,
        }
        return InspectScore(
            value=outcome.score, explanation=explain_leaves(result), metadata=metadata
        )

    return score
