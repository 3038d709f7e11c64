"""An agent's results as a log file of Inspect; the extra ``inspect`` has the package."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from mind2web2 import __version__
from mind2web2.plugin import (
    AgentResults,
    AnswerRecord,
    UsageError,
    answer_rows,
    leaf_records,
)
from mind2web2_inspect.inspect_texts import explain_leaves

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSample
    from inspect_ai.scorer import Score

    from mind2web2.plugin import ResultFile

FORMATS = (".eval", ".json")
SCORER = "rubric_tree"


def write_inspect_log(path: Path, agent: str, eval_results_root: Path) -> int:
    """Write the newest results of an agent as an Inspect log and return the number of samples.

    An epoch is a run; an answer without a result is unscored, and counts in no figure.

    Raises:
        UsageError: there are no results, the file's name has another ending, or Inspect is missing.
    """
    if path.suffix not in FORMATS:
        raise UsageError(f"cannot write {path}: name a file that ends in {' or '.join(FORMATS)}")
    with UsageError.naming_extra("--inspect", "inspect"):
        from inspect_ai.log import (
            EvalConfig,
            EvalDataset,
            EvalLog,
            EvalSpec,
            EvalStats,
            write_eval_log,
        )

    answers = list(answer_rows(agent, eval_results_root))
    samples = [_sample(record, epoch, eval_results_root) for record, epoch in _with_epochs(answers)]
    tasks = list(dict.fromkeys(record.task_id for record in answers))
    created = max((record.created or "" for record in answers), default="")
    judges = sorted({record.judge for record in answers if record.judge})
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created=created or datetime.now(UTC).isoformat(timespec="seconds"),
            task="mind2web2",
            task_version=__version__,
            model=agent,
            dataset=EvalDataset(name="mind2web2", samples=len(tasks), sample_ids=list(tasks)),
            config=EvalConfig(epochs=max(sample.epoch for sample in samples)),
            metadata={"judges": judges},
            packages={"mind2web2": __version__},
        ),
        results=_figures(answers),
        stats=EvalStats(),
        samples=samples,
    )
    with UsageError.unable_to(f"write {path}"):
        write_eval_log(log, path)
    return len(samples)


def _sample(record: AnswerRecord, epoch: int, root: Path) -> EvalSample:
    """Return an answer as a sample; its result is in memory for no longer than that takes."""
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput

    stored = AgentResults(root, record.agent).newest(record.task_id, record.answer_name)
    result = None if stored is None else stored.content
    question = _question(result)
    answer = _answer_text(root, record)
    return EvalSample(
        id=record.task_id,
        epoch=epoch,
        input=question,
        target="",
        messages=[
            ChatMessageUser(content=question),
            ChatMessageAssistant(content=answer),
        ],
        output=ModelOutput.from_content(record.agent, answer),
        scores={SCORER: _score(record, result)},
        metadata={"task": record.task_id, "answer": record.answer_name},
    )


def _with_epochs(
    records: Sequence[AnswerRecord],
) -> Iterator[tuple[AnswerRecord, int]]:
    """Yield each answer with its run; answers with names of their own are counted."""
    taken: defaultdict[str, set[int]] = defaultdict(set)
    for record in sorted(records, key=lambda record: record.run is None):
        epochs = taken[record.task_id]
        epoch = record.run or max(epochs, default=0) + 1
        epochs.add(epoch)
        yield record, epoch


def _score(record: AnswerRecord, result: ResultFile | None) -> Score:
    from inspect_ai.scorer import Score

    if record.score is None:
        return Score.unscored(reason="scoring_failed", explanation=record.reason)
    if result is None:
        return Score(value=record.score, explanation=record.reason)
    leaves = leaf_records(record.agent, record.task_id, record.answer_name, result)
    metadata = {
        "leaves": [asdict(leaf) for leaf in leaves],
        "judge": record.judge,
        "cost_usd": record.cost_usd,
    }
    return Score(value=record.score, explanation=explain_leaves(result), metadata=metadata)


def _question(result: ResultFile | None) -> str:
    trees = () if result is None else result.trees
    return trees[0].desc if trees else ""


def _answer_text(root: Path, record: AnswerRecord) -> str:
    folder = AgentResults(root, record.agent).folder(record.task_id, record.answer_name)
    path = folder / record.answer_name
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _figures(records: Sequence[AnswerRecord]) -> EvalResults:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.score is not None:
            by_task[record.task_id].append(record.score)
    means = [fmean(scores) for scores in by_task.values()]
    scored = sum(len(scores) for scores in by_task.values())
    metrics = {"mean": fmean(means)} if means else {}
    if len(means) > 1:
        metrics["stderr"] = stdev(means) / math.sqrt(len(means))
    return EvalResults(
        total_samples=len(records),
        completed_samples=len(records),
        scores=[
            EvalScore(
                name=SCORER,
                scorer=SCORER,
                scored_samples=scored,
                unscored_samples=len(records) - scored,
                metrics={
                    name: EvalMetric(name=name, value=value) for name, value in metrics.items()
                },
            )
        ],
    )
