"""What a run will take, told before anything is spent: nothing is asked, run or written.

The scripts are not even imported, as that would run their code; what they ask is known from earlier
evaluations, or guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from mind2web2.answer_evaluation import AnswerJob, current_provenance, held_result, inputs_now
from mind2web2.citations import read_citations
from mind2web2.discovery import cited_urls, one_spelling_each
from mind2web2.earlier_usage import AnswerUsage, StoredUsage, agent_usage, stored_usage, task_usage
from mind2web2.errors import Mind2Web2Error
from mind2web2.estimates import (
    Amounts,
    Sample,
    TaskEstimate,
    blended_sample,
    guessed_sample,
    sample_of,
    shares_left,
)
from mind2web2.eval_runner import RunFolders, answer_jobs
from mind2web2.judgments import FILE_NAME
from mind2web2.llm_client.chat import TokenUsage
from mind2web2.llm_client.prices import BATCH_PRICE_SHARE, price_usd
from mind2web2.provenance import JudgeRecord, Provenance
from mind2web2.recorded_judge import JudgeSettings
from mind2web2.results import latest_result
from mind2web2.script_clock import AsOf
from mind2web2.selection import TaskWork, read_answer
from mind2web2.usage_guess import guessed_requests, guessed_tokens, mean_page_tokens


@dataclass(frozen=True)
class PlannedRun:
    """A run to be estimated.

    Args:
        endpoint: the judge's server; ``None`` where its address is not set; results of any server count.
        overwrite: reuse neither results nor judgments.
        with_captures: whether pages that are not stored would be captured.
        with_private_network: whether private addresses would be visited as well.
        as_of: the moment that scripts would take for now.
        variables: of the environment that they would be given.
    """

    work: Sequence[TaskWork]
    folders: RunFolders
    judge: JudgeSettings
    endpoint: str | None
    overwrite: bool
    with_captures: bool
    with_private_network: bool
    as_of: AsOf | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunEstimate:
    """What a run will take.

    Args:
        uncached_pages: cited by the answers to evaluate.
        unscored: why answers will have no result, by name.
    """

    tasks: tuple[TaskEstimate, ...]
    uncached_pages: int
    unscored: Mapping[str, str]


@dataclass(frozen=True)
class _Answer:
    job: AnswerJob
    text: str

    @cached_property
    def urls(self) -> list[str]:
        return cited_urls(self.text)

    @property
    def has_result(self) -> bool:
        return latest_result(self.job.folder / "results") is not None


def estimate_run(run: PlannedRun) -> RunEstimate:
    """Estimate a run; reads answers, results, stored judgments and cached pages.

    Raises:
        JudgmentStoreError: the store of judgments is damaged.
    """
    records = _Records(run)
    tasks: list[TaskEstimate] = []
    unscored: dict[str, str] = {}
    uncached = 0
    for task in run.work:
        answers, reasons = _answers_to_evaluate(task, run)
        unscored |= {f"{task.task_id}/{name}": reason for name, reason in reasons.items()}
        uncached += _uncached_pages(task, answers, run)
        sample = records.sample(task.task_id, answers) if answers else None
        left = [records.share_left(answer, sample) for answer in answers if sample is not None]
        tasks.append(
            TaskEstimate(
                task_id=task.task_id,
                answers=len(task.answers),
                to_evaluate=len(answers),
                shares=tuple(share for share, _ in left),
                least_shares=tuple(least for _, least in left),
                sample=sample,
            )
        )
    return RunEstimate(tuple(tasks), uncached, unscored)


def _answers_to_evaluate(task: TaskWork, run: PlannedRun) -> tuple[list[_Answer], dict[str, str]]:
    """Return the answers without a result that still holds, and why others will have none."""
    try:
        jobs = answer_jobs(task, run.folders)
    except Mind2Web2Error as error:
        return [], {answer.name: str(error) for answer in task.answers}
    answers: list[_Answer] = []
    reasons: dict[str, str] = {}
    for job in jobs:
        try:
            text = read_answer(job.answer.path)
            if run.overwrite or not _has_held_result(job, text, run):
                answers.append(_Answer(job, text))
        except Mind2Web2Error as error:
            reasons[job.answer.name] = str(error)
    return answers, reasons


def _has_held_result(job: AnswerJob, text: str, run: PlannedRun) -> bool:
    endpoint = _recorded_endpoint(job) if run.endpoint is None else run.endpoint
    judge = JudgeRecord.of(run.judge, endpoint)
    provenance = current_provenance(
        job,
        judge,
        text,
        with_captures=run.with_captures,
        with_private_network=run.with_private_network,
    )
    now = inputs_now(job.answer, run.as_of, run.variables)
    return held_result(job, provenance, now) is not None


def _recorded_endpoint(job: AnswerJob) -> str:
    found = latest_result(job.folder / "results")
    try:
        made_from = Provenance.model_validate(found.content.get("provenance") if found else None)
    except ValueError:
        return ""
    return made_from.judge.endpoint


def _uncached_pages(task: TaskWork, answers: Sequence[_Answer], run: PlannedRun) -> int:
    if not answers:
        return 0
    cache = answers[0].job.task_cache
    return sum(cache.has(url) is None for url in _cited(task, answers, run.folders))


def _cited(task: TaskWork, answers: Sequence[_Answer], folders: RunFolders) -> list[str]:
    """Return the pages that these answers cite: as listed when they were cached, else by their links."""
    folder = folders.task_cache(task.task_id).parent
    try:
        listed = read_citations(folder, task.task_id)
    except Mind2Web2Error:
        listed = None
    by_url = {} if listed is None else listed.answers_by_url
    selected = {answer.job.answer.name for answer in answers}
    known = {name for names in by_url.values() for name in names}
    urls = [url for url, names in by_url.items() if not names or selected & set(names)]
    for answer in answers:
        if answer.job.answer.name not in known:
            urls += answer.urls
    return one_spelling_each(urls)


class _Records:
    """What earlier evaluations took, looked up from the likest to the least like."""

    def __init__(self, run: PlannedRun) -> None:
        self._run = run
        self._root = run.folders.eval_results_root
        self._agent = run.folders.agent_name
        self._others = sorted(folder.name for folder in self._root.glob("*/") if folder.name != self._agent)
        stored = [] if run.overwrite else self._stored
        self._kept = {(usage.task_id, usage.answer_name): usage.judgments for usage in stored}

    def share_left(self, answer: _Answer, sample: Sample) -> tuple[float, float]:
        """Return how much of an answer's evaluation is still to be asked: as expected, and at best."""
        kept = self._kept.get((answer.job.task_id, answer.job.answer.name), 0)
        if not kept:
            return 1.0, 1.0
        if answer.has_result:
            # It no longer holds. What has changed decides how many judgments do: all of them, or none.
            return 1.0, 0.0
        return shares_left(kept, sample.mean.requests / self._requests_a_judgment)

    def sample(self, task_id: str, answers: Sequence[_Answer]) -> Sample:
        """Return the evaluations that tell most about this task."""
        own = task_usage(self._root, self._agent, task_id)
        if own and all(answer.has_result for answer in answers):
            return self._sample(own, "of this task", is_of_task=True)
        found = self._found(task_id, own)
        guess = self._guess(answers)
        return guess if found is None else blended_sample(found, guess)

    def _found(self, task_id: str, own: Sequence[AnswerUsage]) -> Sample | None:
        if own:
            return self._sample(own, "of this task", is_of_task=True)
        others = [usage for name in self._others for usage in task_usage(self._root, name, task_id)]
        if others:
            return self._sample(others, "of this task, other agents'", is_of_task=True)
        return self._sample_of_other_tasks

    @cached_property
    def _sample_of_other_tasks(self) -> Sample | None:
        own = agent_usage(self._root, self._agent)
        if own:
            return self._sample(own, "of other tasks", is_of_task=False)
        others = [usage for name in self._others for usage in agent_usage(self._root, name)]
        if others:
            return self._sample(others, "of other tasks, other agents'", is_of_task=False)
        return None

    @cached_property
    def _stored(self) -> list[StoredUsage]:
        return stored_usage(self._run.folders.agent_results / FILE_NAME, self._run.judge, self._run.endpoint)

    @cached_property
    def _requests_a_judgment(self) -> float:
        judgments = sum(usage.judgments for usage in self._stored)
        return sum(usage.requests for usage in self._stored) / judgments if judgments else 1.0

    def _sample(self, usages: Sequence[AnswerUsage], what: str, *, is_of_task: bool) -> Sample:
        same = [usage for usage in usages if usage.model == self._run.judge.model]
        count = len(same or usages)
        basis = f"{count} {'result' if count == 1 else 'results'} {what}"
        basis += "" if same else ", by another judge"
        amounts = [self._amounts(usage.judgments, usage.tokens) for usage in same or usages]
        return sample_of(amounts, basis, is_of_task=is_of_task)

    def _guess(self, answers: Sequence[_Answer]) -> Sample:
        cache = answers[0].job.task_cache
        urls = one_spelling_each(url for answer in answers for url in answer.urls)
        page_tokens = mean_page_tokens(cache, urls, self._run.judge.model)
        guesses = []
        for answer in answers:
            tokens = guessed_tokens(answer.text, len(answer.urls), page_tokens)
            tokens_in, cached, tokens_out = (round(count) for count in tokens)
            usage = TokenUsage(tokens_in, cached, tokens_out)
            guesses.append(self._amounts(guessed_requests(len(answer.urls)), usage))
        mean = Amounts(*(fmean(column) for column in zip(*guesses, strict=True)))
        return guessed_sample(mean, "a guess from its length and links")

    def _amounts(self, judgments: int, tokens: TokenUsage) -> Amounts:
        return Amounts(
            requests=judgments * self._requests_a_judgment,
            input_tokens=tokens.input_tokens,
            cached_tokens=tokens.cached_tokens,
            output_tokens=tokens.output_tokens,
            cost_usd=self._price(judgments, tokens),
        )

    def _price(self, judgments: int, tokens: TokenUsage) -> float:
        """Return dollars, reckoned by a request of mean length: some models charge more for long ones."""
        if not judgments:
            return 0.0
        counts = (tokens.input_tokens, tokens.cached_tokens, tokens.output_tokens)
        price = price_usd(TokenUsage(*(count // judgments for count in counts)), self._run.judge.model)
        if price is None:
            return float("nan")
        return judgments * price * (BATCH_PRICE_SHARE if self._run.judge.batch else 1.0)
