"""The judge requests, tokens and dollars that a run will probably take; nothing is asked.

An answer takes the mean of the earlier results of its task; without any, the script runs once with
made-up replies. The answer takes nothing if its result still holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.tokens import REPLY_TOKENS, text_tokens
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import price_usd
from mind2web2.pages.citations import cited_urls
from mind2web2.results.answers import AnswerJob, RunFolders, TaskWork, read_answer
from mind2web2.results.freshness import Conditions, why_judged_again
from mind2web2.results.result_file import JudgeUsage
from mind2web2.results.stored_results import latest_result
from mind2web2.rubric.vote_rule import FIRST_VOTES, most_votes
from mind2web2.runs.likely_questions import likely_questions
from mind2web2.runs.run import answer_jobs
from mind2web2.scripts.load import script_problem

# The tokens of a question without answer and page, and of a page with its screenshots.
QUESTION_TOKENS, PAGE_TOKENS = 1000, 4000


@dataclass(frozen=True)
class PlannedRun:
    """A run to be estimated."""

    work: Sequence[TaskWork]
    folders: RunFolders
    judge: JudgeSpec
    conditions: Conditions
    overwrite: bool


class Amounts(NamedTuple):
    """Judge requests, tokens and dollars.

    The dollars are ``nan`` where the model's price is not known.
    """

    requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cost_usd: float = 0.0


def total(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sums."""
    return Amounts(*map(sum, zip(Amounts(), *amounts, strict=True)))


@dataclass
class RunEstimate:
    """The amounts of a run.

    Args:
        amounts: one for each answer that will be judged, by task.
        results: how many earlier results a task's amounts rest on.
        unscored: why answers will have no result, by ``task/answer``.
    """

    amounts: dict[str, list[Amounts]] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    uncached_pages: int = 0
    unscored: dict[str, str] = field(default_factory=dict)


def estimate_run(run: PlannedRun) -> RunEstimate:
    """Estimate a run from answers and results."""
    estimate = RunEstimate()
    for task in run.work:
        try:
            jobs = answer_jobs(task, run.folders)
            if problem := script_problem(jobs[0].script_path) if jobs else None:
                raise Mind2Web2Error(problem)
        except Mind2Web2Error as error:
            names = [f"{task.task_id}/{answer.name}" for answer in task.answers]
            estimate.unscored |= dict.fromkeys(names, str(error))
            continue
        earlier = _of_earlier_results(run, task.task_id)
        amount = _mean(earlier) if earlier else None
        pages: set[str] = set()
        for job in jobs:
            try:
                text = read_answer(job.answer.path)
                if _holds(run, job, text):
                    continue
                amount = amount or _by_policy(run.judge, job, text)
            except Mind2Web2Error as error:
                estimate.unscored[f"{task.task_id}/{job.answer.name}"] = str(error)
                continue
            estimate.amounts.setdefault(task.task_id, []).append(amount)
            pages.update(url for url in cited_urls(text) if job.task_cache.has(url) is None)
        estimate.results[task.task_id] = len(earlier)
        estimate.uncached_pages += len(pages)
    return estimate


def _holds(run: PlannedRun, job: AnswerJob, text: str) -> bool:
    stored = None if run.overwrite else latest_result(job.folder / "results")
    return stored is not None and why_judged_again(stored, job, text, run.conditions) is None


def _of_earlier_results(run: PlannedRun, task_id: str) -> list[Amounts]:
    """Return what the task's results took, those of this agent if there are any."""
    root, agent = run.folders.eval_results_root, run.folders.agent_name
    own = task_usages(root / agent / task_id)
    usages = own or [each for path in root.glob(f"[!.]*/{task_id}") for each in task_usages(path)]
    return [_amounts(run.judge, usage) for usage in usages]


def task_usages(task_folder: Path) -> list[JudgeUsage]:
    """Return the judge's use for the newest results of a task, as far as they record its tokens."""
    results = [latest_result(folder) for folder in sorted(task_folder.glob("*/results"))]
    usages = [each.content.judge_usage for each in results if each is not None]
    return [usage for usage in usages if usage is not None and usage.input_tokens > 0]


def _mean(amounts: Sequence[Amounts]) -> Amounts:
    return Amounts(*map(fmean, zip(*amounts, strict=True)))


def _by_policy(judge: JudgeSpec, job: AnswerJob, text: str) -> Amounts:
    """Return what a script asks with made-up replies.

    Raises EvalScriptError: it fails with them.
    """
    requests = tokens_in = 0
    for question in likely_questions(job.script_path, text):
        trials = question.num_trials
        count = 1 if trials is None else min(FIRST_VOTES, most_votes(trials, judge.votes))
        requests += count
        on_page = PAGE_TOKENS if question.is_on_page else 0
        tokens_in += count * (QUESTION_TOKENS + text_tokens(text) + on_page)
    usage = JudgeUsage(
        judgments=requests, input_tokens=tokens_in, output_tokens=requests * REPLY_TOKENS
    )
    return _amounts(judge, usage) if requests else Amounts()


def _amounts(judge: JudgeSpec, usage: JudgeUsage) -> Amounts:
    """Return usage with dollars, by the price of a request of mean length."""
    requests = usage.judgments
    counts = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    price = price_usd(Usage(*(round(count / requests) for count in counts)), judge.model)
    cost_usd = float("nan") if price is None else requests * price * judge.price_share
    return Amounts(requests, usage.input_tokens, usage.output_tokens, cost_usd)
