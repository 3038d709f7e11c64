"""The judge requests, tokens and dollars that a run will take, as a range; nothing is asked.

An answer takes the mean of the earlier results of its task; without any, the script runs once with
made-up replies. The answer takes nothing if its result still holds, or if all judgments that it
needs are stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from mind2web2.errors import JudgmentStoreError, Mind2Web2Error
from mind2web2.judge.other_agents import stores_of_others
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import FILE_NAME, extra_body_column
from mind2web2.judge.tokens import text_tokens
from mind2web2.judge.transfer import judgments_named, reading
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import price_usd
from mind2web2.pages.citations import cited_urls
from mind2web2.results.answers import AnswerJob, RunFolders, TaskWork, read_answer
from mind2web2.results.freshness import Conditions, held_result, why_judged_again
from mind2web2.results.result_file import JudgeUsage, ResultFile
from mind2web2.results.stored_results import LoadedResult, latest_result, loaded_results
from mind2web2.runs.likely_pages import likely_page_tokens
from mind2web2.runs.likely_questions import likely_questions
from mind2web2.runs.run import answer_jobs
from mind2web2.scripts.load import script_problem

log = logging.getLogger(__name__)

# How far the true amount may lie outside of several earlier results, and of one or none.
_MANY, _ONE = 1.25, 2.0
_QUESTION_TOKENS, _OUTPUT_TOKENS, _CACHED_SHARE = 1000, 400, 0.5
# The share of requests that ``--ahead gates`` wastes if a fifth of the claims fails
# (benchmarks/chain.py).
_WASTED_SHARE = 0.13

_STORED = """
    SELECT key, task_id, answer_name FROM judgments
    WHERE purpose <> 'gate' AND model = ? AND temperature IS ? AND reasoning_effort IS ?
          AND endpoint = COALESCE(?, endpoint) AND {extra_body} IS ?
"""


@dataclass(frozen=True)
class PlannedRun:
    """A run to be estimated.

    Args:
        endpoint: the judge's server; ``None`` where its address is not set: results of any server
            count.
        looks_ahead: it goes on as if gates passed.
    """

    work: Sequence[TaskWork]
    folders: RunFolders
    judge: JudgeSpec
    endpoint: str | None
    conditions: Conditions
    overwrite: bool
    looks_ahead: bool = False


class Amounts(NamedTuple):
    """Judge requests, tokens and dollars.

    The dollars are ``nan`` where the model's price is not known.
    """

    requests: float = 0.0
    input_tokens: float = 0.0
    cached_tokens: float = 0.0
    output_tokens: float = 0.0
    cost_usd: float = 0.0

    def times(self, factor: float) -> Amounts:
        """Return this many times as much."""
        return Amounts(*(factor * amount for amount in self))


def total(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sums."""
    return Amounts(*map(sum, zip(Amounts(), *amounts, strict=True)))


class Basis(NamedTuple):
    """The source of amounts: earlier results of a task, or what ``kind`` says.

    Args:
        kind: in words, with ``{}`` for the number of results.
    """

    kind: str
    task_id: str = ""
    results: int = 0


def basis_text(bases: Iterable[Basis]) -> str:
    """Return what several amounts are derived from.

    The results of one kind are added up over the tasks.
    """
    results: dict[str, int] = {}
    for basis in dict.fromkeys(bases):
        results[basis.kind] = results.get(basis.kind, 0) + basis.results
    counted = {
        kind: f"{count} earlier result{'s' * (count > 1)}" for kind, count in results.items()
    }
    return " and ".join(kind.format(count) for kind, count in counted.items())


class Range(NamedTuple):
    """The amounts of an answer: at least, probably, at most, and what they rest on."""

    low: Amounts
    expected: Amounts
    high: Amounts
    basis: Basis

    def with_lookahead(self) -> Range:
        """Return the amounts with those of ``--ahead gates``."""
        factor = 1 + _WASTED_SHARE
        return self._replace(expected=self.expected.times(factor), high=self.high.times(factor))


_BY_POLICY = Basis("the questions that scripts ask with made-up replies")


@dataclass
class RunEstimate:
    """The amounts of a run.

    Args:
        ranges: one for each answer that will be judged, by task.
        unscored: why answers will have no result, by ``task/answer``.
    """

    ranges: dict[str, list[Range]] = field(default_factory=dict)
    uncached_pages: int = 0
    unscored: dict[str, str] = field(default_factory=dict)


def estimate_run(run: PlannedRun) -> RunEstimate:
    """Estimate a run from answers, results and stored judgments.

    Raises:
        JudgmentStoreError: the store of judgments is damaged.
    """
    estimator = _Estimator(run)
    estimate = RunEstimate()
    for task in run.work:
        pages: set[str] = set()
        try:
            jobs = answer_jobs(task, run.folders)
        except Mind2Web2Error as error:
            estimate.unscored |= {
                f"{task.task_id}/{answer.name}": str(error) for answer in task.answers
            }
            continue
        if problem := script_problem(jobs[0].script_path) if jobs else None:
            estimate.unscored |= {f"{task.task_id}/{job.answer.name}": problem for job in jobs}
            continue
        for job in jobs:
            try:
                text = read_answer(job.answer.path)
                held = None if run.overwrite else held_result(job, text, run.conditions)[0]
                found = estimator.range(job, text) if held is None else None
            except JudgmentStoreError:
                raise
            except Mind2Web2Error as error:
                estimate.unscored[f"{task.task_id}/{job.answer.name}"] = str(error)
                continue
            if found is not None:
                estimate.ranges.setdefault(task.task_id, []).append(found)
                pages.update(url for url in cited_urls(text) if job.task_cache.has(url) is None)
        estimate.uncached_pages += len(pages)
    return estimate


class _Estimator:
    """Estimates single answers; earlier results and stored judgments are read once."""

    def __init__(self, run: PlannedRun) -> None:
        self._run = run
        self._mean = cache(self._mean_of_task)
        self._others_results = cache(self._results_of_others)

    def range(self, job: AnswerJob, text: str) -> Range:
        """Return the amounts of an answer without a result that holds.

        Raises:
            EvalScriptError: the script fails with made-up replies.
            JudgmentStoreError: the store of judgments is damaged.
        """
        found = self._mean(job.task_id) or self._by_policy(job, text)
        if self._run.overwrite:
            return found
        for result in (
            *loaded_results(job.folder / "results"),
            *self._others_results(job.task_id),
        ):
            if why_judged_again(result, job, text, self._run.conditions) is None:
                needed = judgments_named(result.content.document)
                if needed and needed <= self._stored.keys():
                    return Range(Amounts(), Amounts(), Amounts(), Basis("stored judgments"))
        # The stored judgments of this answer may be all that the script needs.
        is_known = (job.task_id, job.answer.name) in self._stored_answers
        return found._replace(low=Amounts()) if is_known else found

    def _results_of_others(self, task_id: str) -> list[LoadedResult]:
        """Return the results of other agents.

        A result on an equal answer names the judgments that the answer needs.
        """
        root, agent = self._run.folders.eval_results_root, self._run.folders.agent_name
        folders = sorted(root.glob(f"[!.]*/{task_id}/*/results"))
        others = [folder for folder in folders if folder.parents[2].name != agent]
        return [result for folder in others for result in loaded_results(folder)]

    def _mean_of_task(self, task_id: str) -> Range | None:
        """Return the mean of the task's earlier results.

        Own results come before others', and then those of this judge before those of others.
        """
        root, agent = self._run.folders.eval_results_root, self._run.folders.agent_name
        own = task_results(root / agent / task_id)
        results = own or [
            result for path in root.glob(f"*/{task_id}") for result in task_results(path)
        ]
        of_judge = [result for result in results if result.judge_model == self._run.judge.model]
        # Reasoning models write many times as much as others.
        least_output = 0 if of_judge else _OUTPUT_TOKENS
        amounts: list[Amounts] = []
        for result in of_judge or results:
            if result.judge_usage is not None:
                amounts.append(self._amounts(result.judge_usage, least_output))
        if not amounts:
            return None
        low, mean, high = (
            Amounts(*map(of, zip(*amounts, strict=True))) for of in (min, fmean, max)
        )
        kind = "your {}" if own else "{} of other agents"
        kind += "" if of_judge else " by another judge"
        basis = Basis(kind, task_id, len(amounts))
        factor = _MANY if of_judge and len(amounts) > 1 else _ONE
        return Range(low.times(1 / factor), mean, high.times(factor), basis)

    def _by_policy(self, job: AnswerJob, text: str) -> Range:
        """Return what a script asks with made-up replies.

        Raises EvalScriptError: it fails with them.
        """
        judge = self._run.judge
        page_tokens = likely_page_tokens(job.task_cache, cited_urls(text), judge)
        requests = tokens_in = 0
        for question in likely_questions(job.script_path, text):
            trials = question.num_trials
            count = 1 if trials is None else judge.vote_rule.likely_votes(trials)
            requests += count
            tokens = _QUESTION_TOKENS + text_tokens(text) + page_tokens * question.is_on_page
            tokens_in += count * round(tokens)
        if not requests:
            return Range(Amounts(), Amounts(), Amounts(), _BY_POLICY)
        usage = JudgeUsage(
            judgments=requests,
            input_tokens=tokens_in,
            cached_tokens=round(_CACHED_SHARE * tokens_in),
        )
        expected = self._amounts(usage, _OUTPUT_TOKENS)
        return Range(expected.times(1 / _ONE), expected, expected.times(_ONE), _BY_POLICY)

    def _amounts(self, usage: JudgeUsage, least_output: int) -> Amounts:
        """Return usage with dollars.

        A request of mean length is priced, as long ones may cost more each.
        """
        requests, tokens_in, cached = (
            usage.judgments,
            usage.input_tokens,
            usage.cached_tokens,
        )
        tokens_out = max(usage.output_tokens, requests * least_output)
        one_request = Usage(*(round(count / requests) for count in (tokens_in, cached, tokens_out)))
        price = price_usd(one_request, self._run.judge.model)
        if price is None:
            cost_usd = float("nan")
        else:
            cost_usd = requests * price * self._run.judge.price_share
        return Amounts(requests, tokens_in, cached, tokens_out, cost_usd)

    @cached_property
    def _stored(self) -> Mapping[str, tuple[str | None, str | None]]:
        path = self._run.folders.agent_results / FILE_NAME
        found: dict[str, tuple[str | None, str | None]] = {}
        for other in stores_of_others(path.parent.parent, path.parent.name):
            try:
                theirs = self._judgments_in(other)
            except JudgmentStoreError as error:
                log.warning("%s", error)
            else:
                found |= dict.fromkeys(theirs, (None, None))
        return found | self._judgments_in(path)

    def _judgments_in(self, path: Path) -> dict[str, tuple[str | None, str | None]]:
        return stored_judgments(path, self._run.judge, self._run.endpoint)

    @cached_property
    def _stored_answers(self) -> set[tuple[str | None, str | None]]:
        # A set: there may be a hundred thousand judgments.
        return set(self._stored.values())


def stored_judgments(
    path: Path, judge: JudgeSpec, endpoint: str | None
) -> dict[str, tuple[str | None, str | None]]:
    """Return task and answer of a judge's stored judgments by key; nothing if there is no store.

    Args:
        endpoint: the judge's server; ``None`` for any.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    if not path.is_file():
        return {}
    parameters = (
        judge.model,
        judge.temperature,
        judge.reasoning_effort,
        endpoint,
        judge.keyed_body,
    )
    with reading(path) as connection:
        query = _STORED.format(extra_body=extra_body_column(connection))
        return {
            key: (task_id, name) for key, task_id, name in connection.execute(query, parameters)
        }


def task_results(task_folder: Path) -> list[ResultFile]:
    """Return the newest results of a task's answers, as far as they record the judge's tokens."""
    results = []
    for folder in sorted(task_folder.glob("*/results")):
        found = latest_result(folder)
        usage = None if found is None else found.content.judge_usage
        if (
            found is not None
            and usage is not None
            and usage.judgments > 0
            and usage.input_tokens > 0
        ):
            results.append(found.content)
    return results
