"""The corrected score of an agent: by labels of people, else by a strong judge's sample of answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TypedDict

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.runs.audited import (
    AuditedAnswer,
    audited_answers,
    judged_cells,
    label_verdicts,
)
from mind2web2.runs.corrected import corrected_score, interval_summary, spanned
from mind2web2.runs.drawn_labels import drawn_labels
from mind2web2.runs.labels import LabelFile, auditors
from mind2web2.runs.provenance import Premises
from mind2web2.runs.results import latest_results, write_file
from mind2web2.statistics.agreement import Cells, figures_of
from mind2web2.statistics.correction import (
    CorrectedDifference,
    CorrectedMean,
    corrected_difference,
)
from mind2web2.statistics.paired import Estimate, share_difference
from mind2web2.statistics.sampled_answers import JudgedTwice, corrected_by_answers
from mind2web2.statistics.uncertainty import Interval
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

SAMPLE_NAME = "sample.json"
# A task and an answer, the latter without ``.md``.
AnswerName = tuple[str, str]


class SampleRecord(BaseModel):
    """A strong judge's sample of an agent's answers, ``rejudged/<judge>/1/<agent>/sample.json``.

    Args:
        order: all answers that had a score, in the order in which the sample takes them.
        size: how many are in the sample.
        target: the reach at which the sample was to end; ``None`` where its size was chosen.
    """

    model_config = ConfigDict(frozen=True)

    judge: str
    seed: int
    created: str
    order: tuple[AnswerName, ...]
    size: int
    target: float | None = None

    @classmethod
    def made_now(
        cls,
        judge: str,
        seed: int,
        order: Sequence[AnswerName],
        size: int,
        target: float | None = None,
    ) -> SampleRecord:
        """Return the record of a sample that is drawn now."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(
            judge=judge,
            seed=seed,
            created=created,
            order=tuple(order),
            size=size,
            target=target,
        )

    def write(self, agent_folder: Path) -> None:
        """Write it beside the strong judge's results. Raises ResultWriteError: it cannot be written."""
        agent_folder.mkdir(parents=True, exist_ok=True)
        write_file(agent_folder / SAMPLE_NAME, self.model_dump_json(indent=2) + "\n")


class CorrectionJson(TypedDict):
    """``Correction`` or ``NoCorrection`` as ``--json`` prints it."""

    by: str
    raw: float
    corrected: float | None
    these_tasks: dict[str, float] | None
    tasks_at_large: dict[str, float] | None
    sampled: int
    of: int
    unit: str
    weight_of_judge: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Correction:
    """An agent's score, corrected by people or by a strong judge.

    Args:
        by: who corrects.
        mean: with the judge's scores.
        highest: the same with the leaves that nothing decides as passed: behind gates that fail wrongly.
        value: the corrected score; ``None`` where there is none better than the judge's.
        cells: the verdicts of the judge and of who corrects, by task, as all leaves would have them.
        weight: of the judge's scores; ``None`` where labels of leaves correct them.
    """

    by: str
    mean: CorrectedMean
    highest: CorrectedMean
    value: float | None
    these_tasks: Interval | None
    tasks_at_large: Interval | None
    cells: Mapping[str, Cells]
    weight: float | None

    @property
    def unit(self) -> str:
        """Return what is sampled."""
        return "leaves" if self.weight is None else "answers"

    def summary(self) -> CorrectionJson:
        """Return it as ``--json`` prints it."""
        return {
            "by": self.by,
            "raw": round(self.mean.raw, 6),
            "corrected": None if self.value is None else round(self.value, 6),
            "these_tasks": interval_summary(self.these_tasks),
            "tasks_at_large": interval_summary(self.tasks_at_large),
            "sampled": self.mean.labels,
            "of": self.mean.population,
            "unit": self.unit,
            "weight_of_judge": None if self.weight is None else round(self.weight, 4),
            "reason": None,
        }


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """Labels or a sample that exist, but do not correct an agent's score.

    Args:
        by: who would correct.
        raw: the score by the judge.
        of: the number of answers.
        reason: why not, and what to do.
    """

    by: str
    raw: float
    of: int
    reason: str

    @classmethod
    def for_reason(
        cls, by: str, answers: Sequence[AuditedAnswer], reason: str
    ) -> NoCorrection:
        """Return it for these answers."""
        scores: dict[str, list[float]] = defaultdict(list)
        for one in answers:
            scores[one.task].append(one.score)
        return cls(by, fmean(map(fmean, scores.values())), len(answers), reason)

    def summary(self) -> CorrectionJson:
        """Return it as ``--json`` prints it."""
        return {
            "by": self.by,
            "raw": round(self.raw, 6),
            "corrected": None,
            "these_tasks": None,
            "tasks_at_large": None,
            "sampled": 0,
            "of": self.of,
            "unit": "answers",
            "weight_of_judge": None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class CorrectionRoots:
    """The folders of results, labels and answers that were judged again."""

    eval_results: Path
    audits: Path
    rejudged: Path


def correction_of(
    roots: CorrectionRoots, agent: str, tasks: Collection[str] | None = None
) -> Correction | NoCorrection | None:
    """Return the corrected score over some tasks; ``None`` without labels and without a strong sample.

    Labels of people count before a strong judge, as far as they are enough for any statement.
    """
    names = auditors(roots.audits, agent)
    samples = _sample_folders(roots.rejudged, agent)
    if not names and not samples:
        return None
    answers = audited_answers(roots.eval_results, agent, tasks)
    found = [_corrected_by_labels(answers, roots.audits, agent, names)]
    found += [correction_by_sample(answers, folder, agent) for folder in samples]
    corrections = [one for one in found if isinstance(one, Correction)]
    enough = [one for one in corrections if one.mean.is_enough]
    # A reason says what to do, which too few labels do not.
    reasons = [one for one in found if isinstance(one, NoCorrection)]
    in_order: list[Correction | NoCorrection] = [*enough, *reasons, *corrections]
    return in_order[0] if in_order else None


def _corrected_by_labels(
    answers: Sequence[AuditedAnswer], audits: Path, agent: str, names: Sequence[str]
) -> Correction | NoCorrection | None:
    files = {name: LabelFile(audits, agent, name) for name in names}
    drawn = drawn_labels(files, agent, answers)
    counting = [name for name, labels in drawn.by_auditor.items() if labels]
    verdicts = label_verdicts(answers, list(drawn.by_auditor.values()))
    found = corrected_score(answers, verdicts)
    if found is None:
        for name, reason in drawn.reasons.items():
            return NoCorrection.for_reason(f"labels of {name}", answers, reason)
        return None
    leaves = [leaf for answer in answers for leaf in answer.leaves]
    cells, _ = judged_cells(leaves, verdicts)
    return Correction(
        by=f"labels of {', '.join(counting)}",
        mean=found.mean,
        highest=found.highest,
        value=found.value,
        these_tasks=found.these_tasks,
        tasks_at_large=found.tasks_at_large,
        cells=cells,
        weight=None,
    )


def correcting_files(roots: CorrectionRoots, agent: str) -> list[Path]:
    """Return the files on which an agent's corrected score rests beside its results."""
    samples = [
        folder / agent / SAMPLE_NAME
        for folder in _sample_folders(roots.rejudged, agent)
    ]
    return [*sorted((roots.audits / agent).glob("*.jsonl")), *samples]


def _sample_folders(rejudged_root: Path, agent: str) -> list[Path]:
    """Return the result folders of strong judges that have a sample of an agent, the newest first."""
    dated = []
    for path in rejudged_root.glob(f"*/1/*/{SAMPLE_NAME}"):
        record = read_sample(path.parent)
        if path.parent.name == agent and record is not None:
            dated.append((record.created, path.parent.parent))
    return [folder for _, folder in sorted(dated, reverse=True)]


def read_sample(agent_folder: Path) -> SampleRecord | None:
    """Return the record of a sample, ``None`` where there is none that can be read."""
    try:
        return SampleRecord.model_validate_json(
            read_regular_file(agent_folder / SAMPLE_NAME)
        )
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
    if not any((one.task, one.answer) in drawn for one in answers):
        return None
    strong = {
        (one.task, one.answer): one
        for one in audited_answers(folder, agent)
        if (one.task, one.answer) in drawn
    }
    pairs = [(one, strong.get((one.task, one.answer))) for one in answers]
    sampled = [(one, other) for one, other in pairs if other is not None]
    reason = _not_random(answers, record, sampled)
    if reason is not None:
        repeat = f"`{program()} rejudge {agent} --judge_model STRONG --sample N`"
        reason = f"{reason} repeat {repeat}"
        return NoCorrection.for_reason(record.judge, answers, reason)
    twice = [
        JudgedTwice(one.task, one.score, None if other is None else other.score)
        for one, other in pairs
    ]
    mean, weight = corrected_by_answers(twice)
    if record.target is not None and mean.labels < mean.population:
        mean = replace(mean, least_reach=record.target)
    return Correction(
        by=f"{record.judge} on {mean.labels} of {counted(mean.population, 'answer')}",
        mean=mean,
        highest=mean,
        value=mean.estimate if mean.is_enough else None,
        these_tasks=mean.these_tasks,
        tasks_at_large=mean.tasks_at_large,
        cells=_cells(sampled),
        weight=weight,
    )


def _not_random(
    answers: Sequence[AuditedAnswer],
    record: SampleRecord,
    sampled: Sequence[tuple[AuditedAnswer, AuditedAnswer]],
) -> str | None:
    """Return why a sample is no random one of all answers as they are now, ``None`` where it is.

    The command to repeat follows the reason.
    """
    known = set(record.order)
    others = [one for one in answers if (one.task, one.answer) not in known]
    if others:
        outside = f"{counted(len(others), 'answer')} of {len(answers)}"
        return f"{outside} came after the sample or were outside of it:"
    drawn = set(record.order[: record.size])
    size = sum((one.task, one.answer) in drawn for one in answers)
    of_sample = f"of {counted(size, 'sampled answer')}"
    if len(sampled) < size:
        return f"{size - len(sampled)} {of_sample} have no score by {record.judge}:"
    outdated = _outdated(sampled)
    if not outdated:
        return None
    causes = ", ".join(f"{cause}: {count}" for cause, count in outdated.items())
    premises = f"were judged on other premises than the results ({causes}):"
    return f"{outdated.total()} {of_sample} {premises} evaluate results that are out of date, then"


def _outdated(pairs: Iterable[tuple[AuditedAnswer, AuditedAnswer]]) -> Counter[str]:
    """Return how many answers two judges did not judge alike, by the cause."""
    causes: Counter[str] = Counter()
    for one, other in pairs:
        cause = _other_premise(one.premises, other.premises)
        if cause is not None:
            causes[cause] += 1
    return causes


def _other_premise(one: Premises | None, other: Premises | None) -> str | None:
    if one is None or other is None:
        return "not recorded"
    if one.answer_sha256 != other.answer_sha256:
        return "another text of the answer"
    if one.script_sha256 != other.script_sha256:
        return "another script"
    if one.settings_sha256 != other.settings_sha256:
        return "other prompts or default settings"
    return None


def _cells(pairs: Iterable[tuple[AuditedAnswer, AuditedAnswer]]) -> dict[str, Cells]:
    found: dict[str, Cells] = {}
    for one, other in pairs:
        strong = {leaf.name: leaf.passed for leaf in other.leaves}
        for leaf in one.leaves:
            if leaf.name in strong:
                found.setdefault(one.task, Cells()).add(
                    leaf.passed, float(strong[leaf.name]), 1.0
                )
    return found


def cost_of_sample(
    folder: Path, agent: str, names: Collection[AnswerName]
) -> float | None:
    """Return what a judge's results of some answers have cost in dollars, ``None`` where that is unknown."""
    usages = [
        found.content.judge_usage
        for task, answer, found in latest_results(folder, agent)
        if (task, answer.removesuffix(".md")) in names
    ]
    costs = [None if usage is None else usage.cost_usd for usage in usages]
    known = [cost for cost in costs if cost is not None]
    if known and len(known) == len(costs):
        return sum(known)
    return None


class CorrectedPairJson(TypedDict):
    """``CorrectedPair`` as ``mind2web2 compare --corrected --json`` prints it."""

    first: CorrectionJson
    second: CorrectionJson
    raw_difference: float
    corrected_difference: float | None
    these_tasks: dict[str, float] | None
    tasks_at_large: dict[str, float] | None
    wrong_passes: dict[str, float | None]
    wrong_failures: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class CorrectedPair:
    """Two agents' corrected scores over the same tasks: the second minus the first.

    Args:
        wrong_passes: the difference of the judge's error rates by agent: a bias that could turn a ranking.
    """

    first: Correction
    second: Correction
    difference: CorrectedDifference
    wrong_passes: Estimate
    wrong_failures: Estimate

    def summary(self) -> CorrectedPairJson:
        """Return it as ``mind2web2 compare --corrected --json`` prints it."""
        corrected = self.difference.value
        return {
            "first": self.first.summary(),
            "second": self.second.summary(),
            "raw_difference": round(self.difference.raw, 6),
            "corrected_difference": None if corrected is None else round(corrected, 6),
            "these_tasks": interval_summary(self.difference.these_tasks),
            "tasks_at_large": interval_summary(self.difference.tasks_at_large),
            "wrong_passes": _rate(self.wrong_passes),
            "wrong_failures": _rate(self.wrong_failures),
        }


def _rate(found: Estimate) -> dict[str, float | None]:
    values = {"value": found.value, "low": found.low, "high": found.high}
    return {
        name: None if value is None else round(value, 6)
        for name, value in values.items()
    }


def corrected_pair(first: Correction, second: Correction) -> CorrectedPair:
    """Compare two agents. Raises ValueError: their tasks differ."""
    one, other = figures_of(first.cells), figures_of(second.cells)
    return CorrectedPair(
        first,
        second,
        _difference(first, second),
        share_difference(one.wrong_passes, other.wrong_passes),
        share_difference(one.wrong_failures, other.wrong_failures),
    )


def _difference(first: Correction, second: Correction) -> CorrectedDifference:
    """Return the difference; its intervals allow for either verdict on leaves that nothing decides."""
    found = corrected_difference(first.mean, second.mean)
    least = corrected_difference(first.highest, second.mean)
    most = corrected_difference(first.mean, second.highest)
    has_values = first.value is not None and second.value is not None
    return CorrectedDifference(
        raw=found.raw,
        value=found.value if has_values else None,
        these_tasks=spanned(least.these_tasks, most.these_tasks),
        tasks_at_large=spanned(least.tasks_at_large, most.tasks_at_large),
    )
