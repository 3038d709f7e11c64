"""The judge requests, tokens and dollars that a run will take; no judge is asked, no script runs.

An answer takes the mean of the earlier results of its task, or a plain guess where there are none. It takes
nothing where the result still holds, or where all judgments that a rerun needs are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.budget import PART_SIZE_PX, text_tokens
from mind2web2.judge.caching import JudgeSettings
from mind2web2.judge.store import FILE_NAME
from mind2web2.judge.transfer import reading
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.prices import BATCH_PRICE_SHARE, image_tokens, price_usd
from mind2web2.pages.citations import cited_urls, one_spelling_each, read_citations
from mind2web2.runs.answer import (
    AnswerJob,
    changed_since,
    current_provenance,
    held_result,
    inputs_now,
)
from mind2web2.runs.answers import TaskWork, read_answer
from mind2web2.runs.provenance import JudgeRecord, Provenance
from mind2web2.runs.results import LoadedResult, latest_result, loaded_results
from mind2web2.runs.run import RunFolders, answer_jobs
from mind2web2.scripts.clock import AsOf
from mind2web2.scripts.inputs import InputsNow

# How far off the least and the most of earlier results may be, a single result, and a guess.
_MANY, _ONE, _GUESS = 1.25, 2.0, 4.0

# The guess: two votes on each of two claims a page and four on the whole answer, and one extraction.
_VOTES, _CLAIMS_A_PAGE, _CLAIMS_ON_THE_ANSWER, _EXTRACTIONS = 2, 2, 4, 1
_QUESTION_TOKENS, _PAGE_TOKENS, _PAGE_IMAGES, _OUTPUT_TOKENS, _CACHED_SHARE = 1000, 4000, 3, 400, 0.5

_KEYS = """
    SELECT key, task_id, answer_name FROM judgments
    WHERE purpose <> 'gate' AND model = ? AND temperature IS ? AND reasoning_effort IS ?
          AND endpoint = COALESCE(?, endpoint)
"""


@dataclass(frozen=True)
class PlannedRun:
    """A run to be estimated.

    Args:
        endpoint: the judge's server; ``None`` where its address is not set: results of any server count.
        overwrite: reuse neither results nor judgments.
        with_captures: whether pages that are not stored are captured.
        with_private_network: whether private addresses are visited as well.
        as_of: the moment that scripts take for now; ``None`` for the real time.
        variables: of the environment that scripts are given.
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


class Amounts(NamedTuple):
    """Judge requests, tokens and dollars; the dollars are ``nan`` where the model's price is not known."""

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


class Range(NamedTuple):
    """What an answer or more may take: at least, probably, at most; ``basis`` says by what it is judged."""

    low: Amounts
    expected: Amounts
    high: Amounts
    basis: str


@dataclass(frozen=True)
class TaskEstimate:
    """What a task's answers will take.

    Args:
        answers: how many there are.
        ranges: one for each answer that has no result that still holds.
    """

    task_id: str
    answers: int
    ranges: tuple[Range, ...]


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


class _Answer(NamedTuple):
    job: AnswerJob
    text: str
    provenance: Provenance
    now: InputsNow


class _Result(BaseModel):
    judge_model: str
    judge_usage: Usage


def estimate_run(run: PlannedRun) -> RunEstimate:
    """Estimate a run from answers, results and stored judgments.

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
        if answers:
            cache = answers[0].job.task_cache
            uncached += sum(cache.has(url) is None for url in _cited(task, answers, run.folders))
        ranges = tuple(records.range(answer) for answer in answers)
        tasks.append(TaskEstimate(task.task_id, len(task.answers), ranges))
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
            answer = _with_provenance(job, run)
            if run.overwrite or held_result(job, answer.provenance, answer.now) is None:
                answers.append(answer)
        except Mind2Web2Error as error:
            reasons[job.answer.name] = str(error)
    return answers, reasons


def _with_provenance(job: AnswerJob, run: PlannedRun) -> _Answer:
    text = read_answer(job.answer.path)
    made_from = None if run.endpoint is not None else _made_from(latest_result(job.folder / "results"))
    endpoint = run.endpoint or (made_from.judge.endpoint if made_from else "")
    judge = JudgeRecord.of(run.judge, endpoint)
    captures, private = run.with_captures, run.with_private_network
    provenance = current_provenance(job, judge, text, with_captures=captures, with_private_network=private)
    return _Answer(job, text, provenance, inputs_now(job.answer, run.as_of, run.variables))


def _made_from(result: LoadedResult | None) -> Provenance | None:
    try:
        return Provenance.model_validate(result.content.get("provenance") if result else None)
    except ValidationError:
        return None


def _cited(task: TaskWork, answers: Sequence[_Answer], folders: RunFolders) -> list[str]:
    """Return the pages that these answers cite: as listed when they were cached, else by their links."""
    try:
        listed = read_citations(folders.task_cache(task.task_id).parent, task.task_id)
    except Mind2Web2Error:
        listed = None
    by_url = {} if listed is None else listed.answers_by_url
    selected = {answer.job.answer.name for answer in answers}
    known = {name for names in by_url.values() for name in names}
    urls = [url for url, names in by_url.items() if not names or selected & set(names)]
    for answer in answers:
        if answer.job.answer.name not in known:
            urls += cited_urls(answer.text)
    return one_spelling_each(urls)


class _Records:
    """Earlier results and stored judgments."""

    def __init__(self, run: PlannedRun) -> None:
        self._run = run
        self._by_task: dict[str, tuple[list[_Result], str] | None] = {}

    def range(self, answer: _Answer) -> Range:
        """Return what an answer without a result that holds takes."""
        known = self._known(answer.job.task_id)
        found = self._guess(answer) if known is None else self._mean(*known)
        if self._run.overwrite:
            return found
        if self._is_stored(answer):
            return Range(Amounts(), Amounts(), Amounts(), "stored judgments")
        stored = self._stored.get((answer.job.task_id, answer.job.answer.name), 0)
        left = max(0.0, 1 - stored / found.expected.requests) if found.expected.requests else 0.0
        low = found.low.times(left if found.low.requests > stored else 0.0)
        if stored and latest_result(answer.job.folder / "results") is None:
            # A run was stopped here: at least the judgment that it was at is missing.
            least = min(1.0, 1 / max(1.0, found.expected.requests))
            return Range(low, found.expected.times(max(left, least)), found.high, found.basis)
        return found._replace(low=low)

    def _is_stored(self, answer: _Answer) -> bool:
        """Tell whether a result of the same making, such as one before another judge's, has all judgments."""
        for result in loaded_results(answer.job.folder / "results"):
            if changed_since(result, answer.job, answer.provenance, answer.now) is None:
                keys = set(_judgment_keys(result.content))
                return bool(keys) and keys <= self._stored_keys
        return False

    def _known(self, task_id: str) -> tuple[list[_Result], str] | None:
        if task_id not in self._by_task:
            root, agent = self._run.folders.eval_results_root, self._run.folders.agent_name
            own = task_results(root / agent / task_id)
            others = (
                [] if own else [result for path in root.glob(f"*/{task_id}") for result in task_results(path)]
            )
            results = own or others
            of_judge = [result for result in results if result.judge_model == self._run.judge.model]
            count = len(of_judge or results)
            basis = f"{'your ' if own else ''}{count} earlier result{'' if count == 1 else 's'}"
            basis += ("" if own else " of other agents") + ("" if of_judge else " by another judge")
            self._by_task[task_id] = (of_judge or results, basis) if results else None
        return self._by_task[task_id]

    def _mean(self, results: Sequence[_Result], basis: str) -> Range:
        usages = [result.judge_usage for result in results]
        is_other_judge = results[0].judge_model != self._run.judge.model
        columns = [
            self._amounts(
                usage.judgments,
                usage.input_tokens,
                usage.cached_tokens,
                # Reasoning models write many times as much as others.
                max(usage.output_tokens, usage.judgments * _OUTPUT_TOKENS * is_other_judge),
            )
            for usage in usages
        ]
        factor = _ONE if len(results) == 1 or is_other_judge else _MANY
        low, mean, high = (Amounts(*map(of, zip(*columns, strict=True))) for of in (min, fmean, max))
        return Range(low.times(1 / factor), mean, high.times(factor), basis)

    def _guess(self, answer: _Answer) -> Range:
        pages = len(cited_urls(answer.text))
        on_pages = _VOTES * _CLAIMS_A_PAGE * pages
        requests = _EXTRACTIONS + _VOTES * _CLAIMS_ON_THE_ANSWER + on_pages
        page_tokens = _PAGE_TOKENS + _PAGE_IMAGES * image_tokens(self._run.judge.model, *PART_SIZE_PX)
        tokens_in = requests * (_QUESTION_TOKENS + text_tokens(answer.text)) + on_pages * page_tokens
        guess = self._amounts(requests, tokens_in, _CACHED_SHARE * tokens_in, requests * _OUTPUT_TOKENS)
        return Range(guess.times(1 / _GUESS), guess, guess.times(_GUESS), "a guess from length and links")

    def _amounts(self, requests: int, tokens_in: float, cached: float, tokens_out: float) -> Amounts:
        """Add dollars, by a request of mean length, as some models charge more for long requests."""
        usage = Usage(*(round(count / requests) for count in (tokens_in, cached, tokens_out)))
        price = price_usd(usage, self._run.judge.model)
        share = BATCH_PRICE_SHARE if self._run.judge.batch else 1.0
        cost_usd = float("nan") if price is None else requests * price * share
        return Amounts(requests, tokens_in, cached, tokens_out, cost_usd)

    @cached_property
    def _rows(self) -> list[tuple[str, str | None, str | None]]:
        return stored_judgments(
            self._run.folders.agent_results / FILE_NAME, self._run.judge, self._run.endpoint
        )

    @cached_property
    def _stored_keys(self) -> set[str]:
        return {key for key, _, _ in self._rows}

    @cached_property
    def _stored(self) -> Mapping[tuple[str | None, str | None], int]:
        counts: dict[tuple[str | None, str | None], int] = {}
        for _, *answer in self._rows:
            counts[answer[0], answer[1]] = counts.get((answer[0], answer[1]), 0) + 1
        return counts


def stored_judgments(
    path: Path, judge: JudgeSettings, endpoint: str | None
) -> list[tuple[str, str | None, str | None]]:
    """Return key, task and answer of a judge's judgments in a store; nothing where there is no store.

    Args:
        endpoint: the judge's server; ``None`` for any.

    Raises:
        JudgmentStoreError: the file is damaged or no store.
    """
    if not path.is_file():
        return []
    parameters = (judge.model, judge.temperature, judge.reasoning_effort, endpoint)
    with reading(path) as connection:
        return list(connection.execute(_KEYS, parameters))


def task_results(task_folder: Path) -> list[_Result]:
    """Return what the newest results of a task's answers took."""
    found = [latest_result(folder) for folder in sorted(task_folder.glob("*/results"))]
    results = []
    for result in found:
        try:
            read = _Result.model_validate(result.content if result else None)
        except ValidationError:  # another tool's result
            continue
        if read.judge_usage.judgments > 0 and read.judge_usage.input_tokens > 0:
            results.append(read)
    return results


def _judgment_keys(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        if isinstance(key := content.get("judgment"), str):
            yield key
        content = list(content.values())
    if isinstance(content, list):
        for part in content:
            yield from _judgment_keys(part)
