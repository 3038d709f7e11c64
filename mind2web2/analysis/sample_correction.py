"""The score corrected by answers that a strong judge judged as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from mind2web2.analysis.audited import (
    AuditedAnswer,
    audited_answers,
    cells_by_task,
    judged_leaves,
)
from mind2web2.analysis.correction import Correction, NoCorrection, basis_of, correct_mean
from mind2web2.analysis.correction_record import SAMPLE_NAME
from mind2web2.analysis.sample_basis import AnswerName, SampledFrom, difference, listed_differences
from mind2web2.results.stored_results import latest_results, write_file
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.program import program
from mind2web2.utils.text import counted


class SampleRecord(SampledFrom):
    """A strong judge's sample of an agent's answers, ``rejudged/<judge>/1/<agent>/sample.json``.

    Args:
        size: how many are in the sample.
    """

    judge: str
    seed: int
    created: str
    size: int

    @classmethod
    def made_now(cls, judge: str, seed: int, population: SampledFrom, size: int) -> SampleRecord:
        """Return the record of a sample that is drawn now."""
        return cls(
            order=population.order,
            basis=population.basis,
            judge=judge,
            seed=seed,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            size=size,
        )

    def write(self, agent_folder: Path) -> None:
        """Write it beside the strong judge's results.

        Raises ResultWriteError: it cannot be written.
        """
        agent_folder.mkdir(parents=True, exist_ok=True)
        write_file(agent_folder / SAMPLE_NAME, self.model_dump_json(indent=2) + "\n")


def sample_folders(rejudged_root: Path, agent: str) -> list[Path]:
    """Return strong judges' result folders that have a sample of an agent, newest first."""
    dated = []
    for path in rejudged_root.glob(f"*/1/*/{SAMPLE_NAME}"):
        record = read_sample(path.parent)
        if path.parent.name == agent and record is not None:
            dated.append((record.created, path.parent.parent))
    return [folder for _, folder in sorted(dated, reverse=True)]


def read_sample(agent_folder: Path) -> SampleRecord | None:
    """Return the record of a sample, ``None`` where there is none that can be read."""
    try:
        return SampleRecord.model_validate_json(read_regular_file(agent_folder / SAMPLE_NAME))
    except (OSError, ValidationError):
        return None


def correction_by_sample(
    answers: Sequence[AuditedAnswer], folder: Path, agent: str
) -> Correction | NoCorrection | None:
    """Return the score corrected by a strong judge's sample; ``None`` where no answer is in it.

    There is no correction if the sample is not a random one of these answers as they are now.

    Args:
        folder: the results root of the strong judge.
    """
    record = read_sample(folder / agent)
    if record is None:
        return None
    drawn = set(record.order[: record.size])
    if not any(one.name in drawn for one in answers):
        return None
    strong = {one.name: one for one in audited_answers(folder, agent) if one.name in drawn}
    sampled = [(one, strong[one.name]) for one in answers if one.name in strong]
    reason = _not_random(answers, record, sampled)
    if reason is not None:
        repeat = f"`{program()} rejudge {agent} --judge_model STRONG --sample N`"
        return NoCorrection.for_reason(record.judge, answers, f"{reason} repeat {repeat}")
    exact = {name: one.score for name, one in strong.items()}
    mean, weight = correct_mean(answers, exact)
    return Correction(
        by=f"{record.judge} on {mean.labels} of {counted(mean.population, 'answer')}",
        mean=mean,
        low=mean,
        high=mean,
        weight=weight,
        cells=cells_by_task(answers, judged_leaves(strong.values())),
    )


def _not_random(
    answers: Sequence[AuditedAnswer],
    record: SampleRecord,
    sampled: Sequence[tuple[AuditedAnswer, AuditedAnswer]],
) -> str | None:
    """Return why a sample is not random for today's answers, or ``None`` if it is.

    The command to repeat follows the reason.
    """
    changed = record.describe_changes(basis_of(answers))
    if changed is not None:
        return f"{changed}:"
    drawn = set(record.order[: record.size])
    size = sum(one.name in drawn for one in answers)
    if len(sampled) < size:
        of_sample = f"of {counted(size, 'sampled answer')}"
        return f"{size - len(sampled)} {of_sample} have no score by {record.judge}:"
    outdated = listed_differences(
        ((one.name, difference(one.basis, other.basis)) for one, other in sampled), size
    )
    if outdated is None:
        return None
    return f"by {record.judge}, {outdated}: evaluate results that are out of date, then"


def cost_of_sample(folder: Path, agent: str, names: Collection[AnswerName]) -> float | None:
    """Return what a judge's results of some answers have cost in dollars.

    The cost is ``None`` where it is unknown.
    """
    costs = [
        result.content.cost_usd
        for task, answer, result in latest_results(folder, agent)
        if (task, answer.removesuffix(".md")) in names
    ]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
